//! `teach`, in short: three small graphs, every step.

mod common;

use std::{
    thread,
    time::{Duration, Instant},
};

use common::Home;

const CONFIG: &str = r#"
name = "taught"
benchmarks = ["hlo-v1/ode/life", "hlo-v1/sorting/ranking", "hlo-v1/control/collatz"]
[environment]
traj-limit = 16
legal = 0.3
[observation]
policy = ["scaled", "applied"]
[network]
hidden = [16]
[validation]
every = 0
[imitation]
orders = "not read"
epochs = 20
[algorithm]
name = "ppo"
"#;

const SHORT: [&str; 14] = [
    "teach",
    "small.toml",
    "--members",
    "2",
    "--rounds",
    "2",
    "--budget",
    "60",
    "--dagger",
    "1",
    "--dagger-budget",
    "40",
    "--trials",
    "1",
];

fn teach<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    [&SHORT[..], rest].concat()
}

fn rows(home: &Home, file: &str) -> usize {
    String::from_utf8(home.read(file)).unwrap().lines().count()
}

#[test]
fn every_step_leaves_its_file_and_is_not_done_twice() {
    let home = Home::new();
    home.write("small.toml", CONFIG);
    home.run(&teach(&["-o", "taught"]))
        .says(&["step 1 of 9, searching for good orders", "step 9 of 9, learning, last lesson"])
        .prints(&["taught/policy.safetensors"]);
    // Each program from two starts; and each of those two times, astray.
    assert_eq!(rows(&home, "taught/search-1.jsonl"), 6);
    assert_eq!(rows(&home, "taught/canonical-2.jsonl"), 6);
    assert_eq!(rows(&home, "taught/dagger-1.jsonl"), 12);
    assert_eq!(rows(&home, "taught/demonstrations.jsonl"), 18);
    let orders = String::from_utf8(home.read("taught/demonstrations.jsonl")).unwrap();
    assert!(orders.lines().all(|line| line.contains(r#""outputs":"equal""#)), "{orders}");
    let policy = home.read("taught/policy.safetensors");
    let card = String::from_utf8_lossy(&policy);
    assert!(card.contains("2 of ppo") && card.contains("xla-gym teach small.toml"));

    // It is a policy as any other, and knows what it has learnt.
    let eval = ["eval", "taught/policy.safetensors", "--benchmarks", "hlo-v1/ode/life"];
    let eval = home.json(&[&eval[..], &["--against", "none", "--budget", "16"]].concat());
    assert_eq!(eval[0]["contestant"], "taught");
    assert!(eval[0]["order"]["mean"]["value"].as_f64().unwrap() >= 0.99, "{eval}");

    let start = Instant::now();
    home.run(&teach(&["-o", "taught", "-q"])).expect(0);
    assert!(start.elapsed() < Duration::from_secs(5), "nothing was left to do");
    assert_eq!(home.read("taught/policy.safetensors"), policy);
    home.run(&teach(&["-o", "taught", "--seed", "1"])).expect(2).says(&["other options"]);
}

#[test]
fn ctrl_c_leaves_what_was_found_and_the_rest_comes_out_the_same() {
    let home = Home::new();
    home.write("small.toml", CONFIG);
    let arrays = |run: &str| {
        let bytes = home.read(&format!("{run}/policy.safetensors"));
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        bytes[8 + header..].to_vec()
    };
    // Interrupted in the first searches, in the naming or learning after them, and going astray.
    for file in ["search-1.jsonl", "canonical-1.jsonl", "dagger-1.jsonl"] {
        let path = home.path("often").join(file);
        let running = home.start(&teach(&["-o", "often"]));
        let start = Instant::now();
        while std::fs::read_to_string(&path).unwrap_or_default().is_empty() {
            assert!(start.elapsed() < Duration::from_secs(60), "no row comes in {file}");
            thread::sleep(Duration::from_millis(5));
        }
        let found = std::fs::read_to_string(&path).unwrap();
        running.signal("INT");
        running.wait().expect(1).prints(&["Interrupted", "goes on"]);
        let kept = std::fs::read_to_string(&path).unwrap();
        assert!(kept.starts_with(&found) && kept.ends_with('\n'));
    }
    home.run(&teach(&["-o", "often", "-q"])).expect(0);
    home.run(&teach(&["-o", "once", "-q"])).expect(0);
    assert_eq!(arrays("often"), arrays("once"));
}

#[test]
fn what_is_wrong_is_named() {
    let home = Home::new();
    home.write("small.toml", CONFIG);
    home.write("ppo.toml", "benchmarks = ['hlo-v1/ode/life']\n[algorithm]\nname = 'ppo'\n");
    home.run(&["teach", "ppo.toml", "-o", "taught"]).expect(2).says(&["[imitation]"]);
    home.run(&["teach", "small.toml", "-o", "taught", "--largest", "5"])
        .expect(2)
        .says(&["small enough"]);
    home.run(&["teach", "missing.toml", "-o", "taught"]).expect(3).says(&["missing.toml"]);
}
