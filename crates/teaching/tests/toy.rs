//! A policy is taught on the toy compiler: every step, interrupted or not.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use xla_gym_agents::{Config, Demonstration, TrainedPolicy};
use xla_gym_profile::Profile;
use xla_gym_proof::Outputs;
use xla_gym_rows::read;
use xla_gym_search::Budget;
use xla_gym_teaching::{Dagger, Setting, Taught, TeachError, Teaching, Watch, teach};
use xla_gym_toy_profile::Toy;

/// The pass that miscompiles.
const WRONG: &str = "cancel";

/// Each needs its passes in an order of its own. Whatever [`WRONG`] does to the last one is wrong.
const PROGRAMS: [&str; 3] = [
    "toy\ninput 0\nconst 2\nconst -1\nadd 1 2\nmul 0 3\ninput 0\nadd 4 5\n",
    "toy\ninput 0\ncopy 0\nconst 0\nadd 1 2\ncopy 3\ninput 0\nadd 4 5\nneg 6\n",
    "toy\ninput 0\ninput 1\nneg 1\nadd 0 2\nmul 0 1\nmul 0 1\nadd 4 5\nmul 3 6\n",
];

/// What each step leaves.
const FILES: [&str; 6] = [
    "search-1.jsonl",
    "canonical-1.jsonl",
    "lesson-1.safetensors",
    "dagger-1.jsonl",
    "demonstrations.jsonl",
    "policy.safetensors",
];

fn teaching(folder: &Path) -> Teaching {
    let programs: Vec<_> = (0..PROGRAMS.len())
        .map(|number| {
            let path = folder.join(format!("program-{number}.toy"));
            fs::write(&path, PROGRAMS[number]).unwrap();
            path
        })
        .collect();
    let text = format!(
        "benchmarks = {programs:?}\nnetwork.hidden = [16]\nvalidation.every = 0\n\
         [environment]\ntraj-limit = 8\n[observation]\npolicy = ['share', 'applied']\n\
         [imitation]\norders = 'not read'\nepochs = 5\n[algorithm]\nname = 'ppo'\n"
    );
    Teaching {
        config: Config::parse(&text, &[]).unwrap(),
        seed: 0,
        members: 2,
        rounds: 1,
        budget: Budget::passes(60),
        dagger: Dagger { rounds: 1, searches: 1, budget: Budget::passes(40), largest: 3000 },
        trials: 1,
        command: "a command".to_owned(),
        commit: None,
    }
}

/// Raises the flag once so much was done.
struct Until {
    stop: Arc<AtomicBool>,
    left: AtomicUsize,
}

impl Watch for Until {
    fn advance(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Teaches into a folder until so many things are done.
fn taught(teaching: &Teaching, folder: &Path, things: usize) -> Result<Taught, TeachError> {
    let profile = Arc::new(Toy::default());
    let engine = profile.engine_config().expect("`cargo build -p xla-gym-toy-worker` comes first");
    let stop = Arc::new(AtomicBool::new(false));
    let watch = Until { stop: stop.clone(), left: AtomicUsize::new(things) };
    teach(teaching, folder, &Setting { profile, engine, stop, watch: &watch })
}

fn contents(folder: &Path) -> BTreeMap<&'static str, Vec<u8>> {
    FILES.into_iter().map(|name| (name, fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn what_is_learnt_was_proven_and_does_not_depend_on_interruptions() {
    let folder = tempfile::tempdir().unwrap();
    let teaching = teaching(folder.path());
    let once = folder.path().join("once");
    let done = taught(&teaching, &once, usize::MAX).unwrap();
    assert_eq!(done.steps, FILES.len());
    let rows = |name: &str| read::<Demonstration>(&once.join(name)).unwrap();
    let last = folder.path().join("program-2.toy").display().to_string();
    // Each program from two starts, and from where the policy goes astray after each.
    for name in ["search-1.jsonl", "dagger-1.jsonl"] {
        assert_eq!(rows(name).len(), 6, "{name}");
    }
    assert_eq!(done.orders, 6 + 6);
    for order in rows("demonstrations.jsonl") {
        assert!(order.passes.is_empty() || order.outputs == Outputs::Equal, "{order:?}");
        assert!(order.benchmark != last || !order.passes.iter().any(|p| p == WRONG), "{order:?}");
    }
    assert!(rows("search-1.jsonl").iter().all(|order| order.after.is_empty()));
    let astray = rows("dagger-1.jsonl");
    assert!(astray.iter().any(|order| !order.after.is_empty()));
    assert!(astray.iter().all(|order| order.after.len() <= 12));
    let starts: Vec<Option<String>> =
        rows("search-1.jsonl").into_iter().map(|order| order.start).collect();
    let lowered = starts.iter().filter(|start| start.as_deref() == Some("lowered")).count();
    assert_eq!((lowered, starts.iter().filter(|start| start.is_none()).count()), (3, 3));
    assert!(TrainedPolicy::read(&done.policy).is_ok());

    let before = contents(&once);
    let again = taught(&teaching, &once, usize::MAX).unwrap();
    assert_eq!((again.orders, contents(&once) == before), (done.orders, true), "nothing is redone");

    let often = folder.path().join("often");
    let mut interruptions = 0;
    let after = loop {
        match taught(&teaching, &often, 8) {
            Ok(again) => break again,
            Err(TeachError::Interrupted) => interruptions += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(interruptions < 100, "it does not come to an end");
    };
    assert!(interruptions >= 2, "{interruptions}");
    assert!(fs::read(&after.demonstrations).unwrap() == before["demonstrations.jsonl"]);
    // Its card says how long it took.
    let network = |taught: &Taught| TrainedPolicy::read(&taught.policy).unwrap().network;
    assert!(network(&done) == network(&after), "what is learnt depends on interruptions");
}
