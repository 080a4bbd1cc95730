//! A short training on real XLA: the policy must beat luck on graphs that it never saw.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use xla_gym_agents::{
    Chooser, Config, EpisodeRequest, Gatherer, Observer, Setting, TrainedPolicy, make_world, train,
};
use xla_gym_env::{Env, Figure, Profile as _};
use xla_gym_xla_profile::Xla;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

#[test]
fn every_configuration_can_be_read() {
    let mut read = 0;
    for folder in ["configs", "configs/paper"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let config = Config::read(&path, &[]).unwrap();
                assert_eq!(config.name, path.file_stem().unwrap().to_str().unwrap());
                read += 1;
            }
        }
    }
    assert!(read >= 7, "{read}");
}

/// Geometric mean of the order ratio of walks over all graphs of a world.
fn mean_ratio(gatherer: &Gatherer, chooser: Chooser<'_>) -> f64 {
    let requests: Vec<EpisodeRequest> = (0..gatherer.world.len())
        .map(|benchmark| EpisodeRequest { benchmark, start: 0, seed: 0, stream: benchmark as u64 })
        .collect();
    let logs: Vec<f64> = gatherer
        .gather(&requests, chooser)
        .unwrap()
        .iter()
        .filter_map(|episode| {
            let baseline = gatherer.world.baseline(episode.benchmark).unwrap();
            let initial = baseline.initial.primary();
            let gain = initial - episode.lowest() as f64;
            (initial > baseline.default.primary())
                .then(|| (gain / baseline.reduction(Figure::PRIMARY)).max(0.01).ln())
        })
        .collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

#[test]
fn a_short_training_beats_luck_on_graphs_never_seen() {
    let folder = tempfile::tempdir().unwrap();
    let changes = [
        "steps=4096".to_owned(),
        "largest=400".to_owned(),
        "environment.other-starts={}".to_owned(),
        "imitation.epochs=30".to_owned(),
    ];
    let config = Config::read(&root().join("configs/general.toml"), &changes).unwrap();
    let profile = Arc::new(Xla::default());
    let engine = profile.engine_config().expect("`make build` comes first");
    let stop = AtomicBool::new(false);
    let setting = Setting {
        folder: folder.path(),
        profile: profile.clone(),
        engine: engine.clone(),
        command: String::new(),
        commit: None,
        checkpoint_seconds: 60.0,
        stop: &stop,
    };
    let trained = train(&config, &setting, &mut ()).unwrap();
    assert_eq!(trained.steps, 4096);
    let policy = TrainedPolicy::read(&trained.policy).unwrap();

    let unseen =
        Config { benchmarks: vec!["hlo-v1:all/test".to_owned()], largest: 250, ..config.clone() };
    let world = Arc::new(make_world(&unseen, profile, engine).unwrap());
    assert!(world.len() > 10, "{}", world.len());
    let env = Env::new(&world, config.environment.env()).unwrap();
    let gatherer = Gatherer {
        observer: Observer::new(&config.observation, &env),
        config: config.environment.env(),
        world,
        mask: true,
    };
    let learnt = mean_ratio(&gatherer, Chooser::Greedy(&policy.network));
    let luck = mean_ratio(&gatherer, Chooser::Random);
    println!("learnt {learnt:.3}, by luck {luck:.3}");
    assert!(learnt > luck + 0.05, "learnt {learnt}, by luck {luck}");
}
