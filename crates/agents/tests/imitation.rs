//! Orders become examples: what is seen before each step, and the step.

mod common;

use std::sync::Arc;

use common::{config, engine, programs};
use xla_gym_agents::{Demonstration, Gatherer, Observer, examples, make_world};
use xla_gym_env::Env;

#[test]
fn what_comes_before_an_order_is_walked_and_not_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&programs(folder.path()), "ppo", &[]);
    let world = Arc::new(make_world(&config, engine()).unwrap());
    let env = Env::new(&world, config.environment.env()).unwrap();
    let observer = Observer::new(&config.observation, &env);
    let gatherer =
        Gatherer { world: world.clone(), config: config.environment.env(), observer, mask: true };
    let learnt = |after: &[&str], passes: &[&str]| {
        let names = |passes: &[&str]| passes.iter().map(|pass| (*pass).to_owned()).collect();
        let order = Demonstration {
            benchmark: world.benchmark_name(0).to_owned(),
            after: names(after),
            passes: names(passes),
            ..Demonstration::default()
        };
        examples(&gatherer, &[0], false, &[order]).unwrap()
    };
    let whole = learnt(&[], &["fold", "simplify", "dead"]);
    assert_eq!(whole.actions, [0, 1, 4]);
    let rest = learnt(&["fold"], &["simplify", "dead"]);
    assert_eq!(rest.actions, [1, 4]);
    assert_eq!(rest.seen.row(0), whole.seen.row(1), "with what was done before in sight");
    assert_eq!(rest.seen.row(1), whole.seen.row(2));
    assert!(learnt(&["fold", "simplify", "dead"], &[]).actions.is_empty());
}
