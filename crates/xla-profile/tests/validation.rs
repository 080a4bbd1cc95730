//! What picks the weights is run, and what cannot be run picks nothing.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use xla_gym_agents::{Config, Setting, Trained, Watch, train};
use xla_gym_env::Profile as _;
use xla_gym_xla_profile::Xla;

fn stranger(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/strangers");
    folder.join(name).canonicalize().unwrap()
}

#[derive(Default)]
struct Heard(Vec<String>);

impl Watch for Heard {
    fn warn(&mut self, what: &str) {
        self.0.push(what.to_owned());
    }
}

fn trained(benchmarks: &[&str], every: usize, check: bool) -> (Trained, Vec<String>) {
    let text = format!(
        "benchmarks = {benchmarks:?}\nsteps = 64\nnetwork.hidden = [16]\n\
         environment.traj-limit = 16\nenvironment.other-starts = {{ legal = 0.5 }}\nobservation.policy = ['share']\n\
         [validation]\nevery = {every}\nupdates = 1\ncheck = {check}\n\
         [algorithm]\nname = 'ppo'\nepisodes = 2\n"
    );
    let config = Config::parse(&text, &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let setting = Setting {
        folder: folder.path(),
        profile: Arc::new(Xla::default()),
        engine: Xla::default().engine_config().expect("`make build` comes first"),
        command: String::new(),
        commit: None,
        checkpoint_seconds: 60.0,
        stop: &stop,
    };
    let mut heard = Heard::default();
    (train(&config, &setting, &mut heard).unwrap(), heard.0)
}

#[test]
fn outcomes_that_are_right_count_as_they_are() {
    let programs = ["hlo-v1/ode/life", "hlo-v1/sorting/ranking", "hlo-v1/control/collatz"];
    let (checked, heard) = trained(&programs, 3, true);
    assert!(heard.is_empty(), "{heard:?}");
    assert!(checked.validation.is_some());
    assert_eq!(checked.validation, trained(&programs, 3, false).0.validation);
}

#[test]
fn programs_that_cannot_be_compared_are_left_out_and_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let tiny = folder.path().join("tiny.hlo");
    let text =
        "HloModule tiny\nENTRY main {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n";
    std::fs::write(&tiny, text).unwrap();
    // Of two, the larger is held out.
    let infeed = stranger("infeed.hlo");
    let programs = [infeed.to_str().unwrap(), tiny.to_str().unwrap()];
    let (checked, heard) = trained(&programs, 2, true);
    assert_eq!(heard, ["1 of 1 held-out programs cannot be compared and are left out"]);
    assert_eq!(checked.validation, None);
    let (unchecked, heard) = trained(&programs, 2, false);
    assert!(heard.is_empty() && unchecked.validation.is_some(), "{heard:?}");
}
