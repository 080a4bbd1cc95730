//! Orders become examples: what is seen before each step, and the step.

mod common;

use std::sync::Arc;

use common::{config, programs};
use xla_gym_agents::{Demonstration, Examples, Gatherer, Observer, examples};
use xla_gym_env::{Env, EnvError, World};

struct Course {
    gatherer: Gatherer,
    world: Arc<World>,
    _folder: tempfile::TempDir,
}

impl Course {
    fn new() -> Course {
        let folder = tempfile::tempdir().unwrap();
        let config = config(&programs(folder.path()), "ppo", &[]);
        let world = common::world(&config);
        let env = Env::new(&world, config.environment.env()).unwrap();
        let observer = Observer::new(&config.observation, &env);
        let config = config.environment.env();
        let gatherer = Gatherer { world: world.clone(), config, observer, mask: true };
        Course { gatherer, world, _folder: folder }
    }

    /// What is learnt from a line of a file of orders, for the second of three programs; the line goes on
    /// after the program's name.
    fn learn(&self, rest: &str, other_starts: &[usize]) -> Result<Examples, EnvError> {
        let name = self.world.benchmark_name(1);
        let order: Demonstration =
            serde_json::from_str(&format!("{{\"benchmark\": {name:?}, {rest}}}")).unwrap();
        examples(&self.gatherer, &[0, 1], other_starts, &[order])
    }
}

#[test]
fn what_comes_before_an_order_is_walked_and_not_learnt() {
    let course = Course::new();
    let learnt = |line: &str| course.learn(line, &[]).unwrap();
    let whole = learnt(r#""passes": ["simplify", "copy-elim", "dead"]"#);
    assert_eq!(whole.actions, [1, 3, 4]);
    let rest = learnt(r#""after": ["simplify"], "passes": ["copy-elim", "dead"]"#);
    assert_eq!(rest.actions, [3, 4]);
    assert_eq!(rest.seen.row(0), whole.seen.row(1), "with what was done before in sight");
    assert_eq!(rest.seen.row(1), whole.seen.row(2));
    let nothing = learnt(r#""after": ["simplify", "copy-elim", "dead"], "passes": []"#);
    assert!(nothing.actions.is_empty());
}

#[test]
fn orders_from_other_starts_are_learnt_there_and_only_if_they_are_wanted() {
    let course = Course::new();
    let emitted = r#""passes": ["simplify", "copy-elim", "dead"], "start": "emitted""#;
    assert_eq!(course.learn(emitted, &[]).unwrap().actions, [1, 3, 4]);
    let lowered = r#""passes": ["simplify", "copy-elim", "dead"], "start": "lowered""#;
    assert!(course.learn(lowered, &[]).unwrap().actions.is_empty());
    let learnt = course.learn(lowered, &[1]).unwrap();
    assert_eq!(learnt.actions, [1, 3, 4]);
    let here = course.learn(emitted, &[1]).unwrap();
    // There is a negation to be written otherwise before it begins.
    assert_ne!(learnt.seen.row(0), here.seen.row(0));
}

#[test]
fn orders_of_earlier_versions_are_read_and_those_of_another_compiler_are_refused() {
    let course = Course::new();
    let passes = r#""passes": ["simplify"], "initial": 9, "default": 5, "operations": 4"#;
    let learnt = course.learn(&format!(r#""legal": false, {passes}"#), &[]).unwrap();
    assert_eq!(learnt.actions, [1]);
    let error = course.learn(&format!(r#""legal": true, {passes}"#), &[]).unwrap_err().to_string();
    assert!(error.contains("\"legal\", which is no start of toy: emitted, lowered"), "{error}");
}
