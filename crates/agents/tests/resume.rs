//! A run that is killed again and again comes to the same weights as one that is not.

mod common;

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use common::{config, programs, trained};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_agents::{Config, LAST, TrainedPolicy};

/// This test program calls itself, so that there is a process to kill.
const CHILD: &str = "XLA_GYM_TEST_RUN";

fn weights(run: &Path) -> Vec<u32> {
    let policy = TrainedPolicy::read(&run.join(LAST)).unwrap();
    policy.network.parameters().iter().map(|parameter| parameter.to_bits()).collect()
}

/// All arrays of a checkpoint, which lie behind its header.
fn checkpoint(run: &Path) -> Vec<u8> {
    let bytes = std::fs::read(run.join("checkpoint.safetensors")).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[8 + header..].to_vec()
}

fn log(run: &Path) -> Vec<(u64, String)> {
    let text = std::fs::read_to_string(run.join("progress.jsonl")).unwrap();
    let parse = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        (value["step"].as_u64().unwrap(), value["figures"].to_string())
    };
    text.lines().map(parse).collect()
}

/// Not a test by itself: the process that is killed.
#[test]
fn run_of_the_child() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let folder = Path::new(&folder);
    let text = std::fs::read_to_string(folder.join("wanted.toml")).unwrap();
    let config = Config::parse(&text, &[]).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let run = folder.join("run");
    let setting = common::setting(&run, 0.05, &stop);
    xla_gym_agents::train(&config, &setting, &mut ()).unwrap();
    std::fs::write(folder.join("done"), "").unwrap();
}

fn check(algorithm: &str, changes: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&programs(folder.path()), algorithm, changes);
    let undisturbed = folder.path().join("undisturbed");
    trained(&config, &undisturbed);
    std::fs::write(folder.path().join("wanted.toml"), config.to_toml().unwrap()).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let progress = folder.path().join("run/progress.jsonl");
    let mut kills = 0;
    let mut kills_after_progress = 0;
    while !folder.path().join("done").exists() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["run_of_the_child", "--exact", "--test-threads=1"])
            .env(CHILD, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if kills < 5 {
            // The first kill hits the start, the others come soon after something was done.
            let size = || std::fs::metadata(&progress).map_or(0, |file| file.len());
            let before = size();
            while kills > 0 && size() == before && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(rng.random_range(0..60)));
            child.kill().unwrap();
            child.wait().unwrap();
            kills_after_progress += usize::from(size() > 0);
            kills += 1;
        } else {
            assert!(child.wait().unwrap().success());
        }
    }
    assert_eq!(kills, 5, "it was over before it had been killed five times");
    assert!(kills_after_progress >= 2, "{kills_after_progress} of 5 kills after it had begun");
    let run = folder.path().join("run");
    assert_eq!(weights(&run), weights(&undisturbed));
    assert_eq!(checkpoint(&run), checkpoint(&undisturbed));
    assert_eq!(log(&run), log(&undisturbed));
}

#[test]
fn ppo_goes_on_exactly() {
    check("ppo", &["steps=30000", "algorithm.batch=64"]);
}

#[test]
fn ppo_with_rivals_goes_on_exactly() {
    let views = "observation.policy=['share', 'applied', 'latest', 'size']";
    check("ppo", &["steps=20000", "algorithm.batch=64", "algorithm.rivals=3", views]);
}

#[test]
fn dqn_goes_on_exactly() {
    check("dqn", &["steps=6000", "algorithm.batch=64", "algorithm.remembered=2000"]);
}

#[test]
fn trpo_goes_on_exactly() {
    check("trpo", &["steps=20000"]);
}

#[test]
fn a2c_goes_on_exactly() {
    check("a2c", &["steps=40000"]);
}

#[test]
fn a_run_of_an_earlier_version_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&programs(folder.path()), "a2c", &["steps=120"]);
    let run = folder.path().join("run");
    trained(&config, &run);
    let path = run.join("config.toml");
    let today = std::fs::read_to_string(&path).unwrap();
    // As those versions wrote where episodes begin.
    let earlier = today.replace("[environment.other-starts]\n", "");
    let earlier =
        earlier.replace("[environment]\n", "[environment]\nnormalised = false\nlegal = 0.0\n");
    assert!(earlier.contains("normalised = false") && !earlier.contains("other-starts"), "{today}");
    std::fs::write(&path, &earlier).unwrap();
    let before = (weights(&run), checkpoint(&run));
    assert_eq!(trained(&config, &run).steps, 120, "there is nothing left to do");
    assert_eq!((weights(&run), checkpoint(&run)), before);
    // It means something else where it says so.
    std::fs::write(&path, earlier.replace("legal = 0.0", "legal = 0.3")).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let error = xla_gym_agents::train(&config, &common::setting(&run, 60.0, &stop), &mut ());
    assert!(error.unwrap_err().to_string().contains("another configuration"));
}

#[test]
fn two_runs_in_one_folder_are_refused_and_so_is_another_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let programs = programs(folder.path());
    let run = folder.path().join("run");
    trained(&config(&programs, "a2c", &["steps=60"]), &run);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let setting = |folder| common::setting(folder, 60.0, &stop);
    let other = config(&programs, "a2c", &["steps=61"]);
    let error = xla_gym_agents::train(&other, &setting(&run), &mut ()).unwrap_err().to_string();
    assert!(error.contains("another configuration"), "{error}");
    let lock = std::fs::File::create(run.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let same = config(&programs, "a2c", &["steps=60"]);
    let error = xla_gym_agents::train(&same, &setting(&run), &mut ()).unwrap_err().to_string();
    assert!(error.contains("in use"), "{error}");
}
