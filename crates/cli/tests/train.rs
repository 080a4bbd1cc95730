//! `train`, `eval` and `report`, as a user meets them.

mod common;

use std::{
    thread,
    time::{Duration, Instant},
};

use common::Home;
use serde_json::Value;

const CONFIG: &str = r#"
name = "small"
benchmarks = ["hlo-v1/ode/life", "hlo-v1/sorting/ranking", "hlo-v1/control/collatz"]
steps = 128
[environment]
traj-limit = 16
[network]
hidden = [16]
[validation]
every = 3
updates = 2
[algorithm]
name = "ppo"
episodes = 2
"#;

#[test]
fn train_then_evaluate_then_report() {
    let home = Home::new();
    home.write("small.toml", CONFIG);
    let trained = home.json(&["train", "small.toml", "-o", "run", "--seed", "3", "-q"]);
    assert_eq!(trained["steps"], 128);
    assert_eq!(trained["interrupted"], false);
    assert!(trained["validation"].as_f64().is_some());
    assert_eq!(String::from_utf8(home.read("run/progress.jsonl")).unwrap().lines().count(), 4);
    let policy = home.read("run/policy.safetensors");
    let card = String::from_utf8_lossy(&policy);
    assert!(card.contains("xla-gym train small.toml -o run --seed 3"));
    if let Some(commit) = option_env!("XLA_GYM_COMMIT") {
        assert!(card.contains(commit), "{commit} is not on the card");
    }

    let shipped = ["eval", "general", "--benchmarks", "hlo-v1/ode/life", "--budget", "4"];
    let shipped = home.json(&[&shipped[..], &["--against", "none", "--no-legal"]].concat());
    assert_eq!(shipped[0]["contestant"], "general");
    let eval = ["eval", "mine=run", "--benchmarks", "hlo-v1/ode/*", "--budget", "16", "--against"];
    // What is checked is tested in proven.rs; here it would take most of the time.
    let eval = [&eval[..], &["random,default", "--seeds", "0,1", "-o", "out.jsonl", "--no-check"]];
    let eval = eval.concat();
    let rows = home.json(&eval);
    let find = |name: &str| -> Value {
        let rows = rows.as_array().unwrap();
        rows.iter().find(|row| row["contestant"] == name).unwrap().clone()
    };
    for (index, stage) in [(0, "order"), (2, "legal")] {
        let ratio = &find("default")["stages"][index];
        assert_eq!(ratio["stage"], stage);
        assert_eq!(ratio["mean"]["value"], 1.0);
    }
    assert_eq!(find("random")["seeds"], 2);
    assert_eq!(find("mine")["kind"], "rollout");
    let outcomes = String::from_utf8(home.read("out.jsonl")).unwrap();
    assert!(outcomes.starts_with("{\"header\":"), "{outcomes}");
    for line in outcomes.lines().skip(1) {
        let outcome: Value = serde_json::from_str(line).unwrap();
        assert!(outcome["charged"].as_u64().unwrap() <= 16, "{line}");
        if outcome["contestant"] == "mine" {
            assert_eq!(outcome["seed"], 3, "the seed of the training");
        }
    }
    // What is done is not done again.
    home.json(&eval);
    assert_eq!(String::from_utf8(home.read("out.jsonl")).unwrap(), outcomes);
    // But a policy that was trained anew is another one.
    std::fs::remove_dir_all(home.path("run")).unwrap();
    home.run(&[
        "train",
        "small.toml",
        "-o",
        "run",
        "--seed",
        "3",
        "--set",
        "network.hidden=[8]",
        "-q",
    ])
    .expect(0);
    home.json(&eval);
    let again = String::from_utf8(home.read("out.jsonl")).unwrap();
    let of = |text: &str| text.lines().filter(|line| line.contains("\"mine\"")).count();
    assert_eq!(of(&again), 2 * of(&outcomes));

    home.run(&["report", "out.jsonl", "--run", "run", "-o", "page"]).expect(0);
    let page = String::from_utf8(home.read("page/index.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("mine") && !page.contains("<script"));
}

#[test]
fn ctrl_c_ends_a_run_that_then_goes_on() {
    let home = Home::new();
    home.write("small.toml", CONFIG);
    let train = ["train", "small.toml", "-o", "run", "--steps", "2048", "-q"];
    let running = home.start(&train);
    let start = Instant::now();
    while std::fs::read_to_string(home.path("run/progress.jsonl")).unwrap_or_default().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30), "nothing happens");
        thread::sleep(Duration::from_millis(5));
    }
    running.signal("INT");
    let ended = running.wait().expect(0).prints(&["Interrupted", "goes on"]);
    assert!(ended.stdout.contains("policy"));
    home.run(&["train", "small.toml", "-o", "other", "--steps", "2048", "-q"]).expect(0);
    home.run(&train).expect(0);
    // Words such as seconds differ; all arrays are behind them.
    let arrays = |run: &str| {
        let bytes = home.read(&format!("{run}/checkpoint.safetensors"));
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        bytes[8 + header..].to_vec()
    };
    assert_eq!(arrays("run"), arrays("other"));
}

#[test]
fn what_is_wrong_is_named() {
    let home = Home::new();
    home.write("small.toml", CONFIG);
    home.write("broken.toml", "benchmarks = [");
    home.write("garbage.safetensors", "garbage");
    let train = |arguments: &[&str]| home.run(&[&["train", "-o", "run"], arguments].concat());
    train(&["missing.toml"]).expect(3).says(&["missing.toml"]);
    train(&["broken.toml"]).expect(2).says(&["broken.toml"]);
    let nothing_left = train(&["small.toml", "--set", "validation.every=1"]);
    nothing_left.expect(2).says(&["validation.every"]);
    train(&["small.toml", "--set", "network.hiden=[8]"]).expect(2).says(&["hiden"]);
    train(&["small.toml", "--set", "environment.passes=['nonsense']"])
        .expect(2)
        .says(&["nonsense"]);
    train(&["small.toml", "--benchmarks", "nowhere.hlo"]).expect(3).says(&["nowhere.hlo"]);
    train(&["small.toml", "--set", "largest=1"]).expect(2).says(&["largest = 1", "3 programs"]);
    home.run(&["eval", "generl"]).expect(2).says(&["generl", "general, gpt2"]);
    home.run(&["eval", "garbage.safetensors"]).expect(3).says(&["garbage.safetensors"]);
    home.run(&["eval", "--against", "magic"]).expect(1).says(&["magic", "random"]);
    home.run(&["report", "missing.jsonl", "-o", "page"]).expect(1).says(&["missing.jsonl"]);
}

/// As the README says: the shipped configuration, on one's own graphs.
#[test]
fn the_shipped_configuration_learns_on_other_graphs() {
    let home = Home::new();
    std::fs::create_dir(home.path("my_graphs")).unwrap();
    for name in ["mlp-train", "conditional"] {
        let file = format!("my_graphs/{name}.hlo.zst");
        std::fs::copy(common::graph(name), home.path(&file)).unwrap();
    }
    let config = common::testdata("../configs/general.toml").to_str().unwrap().to_owned();
    let train = ["train", &config, "-o", "run", "--benchmarks", "my_graphs", "--steps", "64", "-q"];
    let all = [&train[..], &["--set", "algorithm.episodes=2", "--json"]].concat();
    let output = home.command(&all).output().unwrap();
    let trained: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(trained["steps"], 128);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no order for these programs"), "{said}");
}
