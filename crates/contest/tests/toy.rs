//! A contest on the toy compiler, from first to last: nothing in contests knows another.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use xla_gym_agents::{Config, Setting, Shipped, TrainedPolicy, train};
use xla_gym_contest::{Contest, Contestant, END, Options, Outputs, Records, Way};
use xla_gym_data::Benchmarks;
use xla_gym_env::{CacheConfig, Profile as _};
use xla_gym_report::results::{Outcome, Ratio, summary, summary_text};
use xla_gym_search::Method;
use xla_gym_toy_profile::Toy;

const BUDGET: u64 = 24;

fn program(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/toy");
    let path: PathBuf = folder.join(name).canonicalize().unwrap();
    path.to_str().unwrap().to_owned()
}

fn contest(check: Option<Options>) -> Contest {
    let toy = Arc::new(Toy::default());
    let engine = toy.engine_config().expect("`make build` comes first");
    let names = ["tempting.toy", "polynomial.toy", "cancels.toy"].map(program);
    let programs = Benchmarks::find(names).unwrap();
    Contest::new(toy, engine, programs, CacheConfig::default(), check)
}

fn contestant(name: &str, way: Way) -> Contestant {
    Contestant { name: name.to_owned(), seed: 0, way }
}

fn order(passes: &[&str]) -> Way {
    Way::Order(passes.iter().map(|pass| (*pass).to_owned()).collect())
}

fn stages(outcome: &Outcome) -> Vec<&str> {
    outcome.stages.iter().map(|stage| &*stage.name).collect()
}

#[test]
fn every_contestant_says_something_at_every_stage() {
    let contest = contest(Some(Options::default()));
    let header = contest.header();
    let named: Vec<&str> = header.stages.iter().map(|stage| &*stage.name).collect();
    assert_eq!(named, ["order", END, "final"]);
    assert_eq!(header.stages[2].ratio, Ratio::Left);
    assert_eq!(header.baseline.order, "the toy's own order");
    let ways = [
        ("default", Way::Default),
        ("random", Way::Plain(Method::Random)),
        ("beam", Way::Plain(Method::Beam)),
        ("coreset", Way::Coreset(Method::Coreset)),
        ("tidy", order(&["fold", "simplify", "dedup", "copy-elim", "dead"])),
    ];
    let mut outcomes = Vec::new();
    for program in 0..contest.len() {
        for (name, way) in &ways {
            let competes = contestant(name, way.clone());
            let outcome = contest.compete(program, &competes, BUDGET, true).unwrap();
            assert!(contest.went_through(&outcome), "{outcome:?}");
            let ends = outcome.stage(END).is_some();
            assert_eq!(ends, *name == "tidy", "only that one has a trajectory");
            assert!(outcome.charged <= BUDGET, "{outcome:?}");
            assert!(outcome.refused.is_none(), "{outcome:?}");
            if *name == "default" {
                let [order, last] = &outcome.stages[..] else { panic!("{outcome:?}") };
                assert_eq!((order.result, last.result), (order.default, last.default));
                assert!(outcome.is_proven());
            } else {
                assert!(outcome.stage("final").unwrap().passes.is_some(), "from its own start");
            }
            let order_only = contest.compete(program, &competes, BUDGET, false).unwrap();
            assert!(!contest.went_through(&order_only));
            outcomes.push(outcome);
        }
    }
    let rows = summary(&header, &outcomes);
    let text = summary_text(&header, &rows);
    assert!(text.contains("the toy's own order") || text.contains("its own"), "{text}");
    let written: String =
        outcomes.iter().map(|outcome| serde_json::to_string(outcome).unwrap() + "\n").collect();
    let first = serde_json::to_string(&Records::first_row(&header)).unwrap() + "\n";
    let mut records = Records::default();
    records.add(&(first + &written), &header).unwrap();
    assert_eq!(records.header, Some(header));
    assert_eq!(records.outcomes.len(), outcomes.len());
}

#[test]
fn what_is_wrong_gains_nothing_and_says_by_which_pass() {
    let checked = contest(Some(Options::default()));
    let unchecked = contest(None);
    let check = |passes: &[&str], guilty: &str, wrong: &[&str]| {
        let follows = contestant("wrong", order(passes));
        let outcome = checked.compete(0, &follows, BUDGET, true).unwrap();
        assert_eq!(outcome.guilty.as_deref(), Some(guilty), "{outcome:?}");
        assert_eq!(stages(&outcome), ["order", END, "final"]);
        assert_eq!(outcome.stages[0].outputs, Some(Outputs::Different));
        assert!(!outcome.is_proven());
        let taken = unchecked.compete(0, &follows, BUDGET, true).unwrap();
        assert_eq!(taken.stages[0].outputs, Some(Outputs::Unchecked));
        for (stage, taken) in outcome.stages.iter().zip(&taken.stages) {
            assert_eq!(stage.claimed.is_some(), wrong.contains(&&*stage.name), "{stage:?}");
            // What it would gain if it were taken at its word.
            assert_eq!(stage.claimed.unwrap_or(stage.result), taken.result, "{stage:?}");
            let start = stage.initial.filter(|_| stage.claimed.is_some());
            assert!(start.is_none_or(|start| stage.result >= start), "{stage:?}");
        }
        outcome
    };
    let outcome = check(&["simplify", "copy-elim", "cancel", "dead"], "cancel", &["order", END]);
    // What the pipeline does in any case leaves no negation for that pass to be wrong on.
    assert_eq!(outcome.stage("final").unwrap().outputs, Some(Outputs::Equal));
    let order = &outcome.stages[0];
    assert!(order.claimed < order.initial && Some(order.result) == order.initial, "{order:?}");
    let outcome = check(&["dead", "shift", "fold", "dead"], "shift", &["order", END, "final"]);
    assert_eq!(outcome.stage("final").unwrap().outputs, Some(Outputs::Different));
}

#[test]
fn a_policy_walks_guides_and_is_refused_where_it_does_not_belong() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["cancels.toy", "polynomial.toy", "tempting.toy", "strides.toy"].map(program);
    let text = format!(
        "benchmarks = {names:?}\nsteps = 2000\nnetwork.hidden = [32]\nvalidation.every = 0\n\
         [environment]\ntraj-limit = {BUDGET}\nreward.objective = 'log-record'\n\
         passes = ['fold', 'simplify', 'dedup', 'copy-elim', 'dead']\n\
         [observation]\npolicy = ['share', 'cost', 'size', 'applied']\n\
         [algorithm]\nname = 'ppo'\nepisodes = 8\n"
    );
    let config = Config::parse(&text, &[]).unwrap();
    let toy = Arc::new(Toy::default());
    let stop = AtomicBool::new(false);
    let setting = Setting {
        folder: folder.path(),
        engine: toy.engine_config().unwrap(),
        profile: toy,
        command: String::new(),
        commit: None,
        checkpoint_seconds: 60.0,
        stop: &stop,
    };
    let trained = train(&config, &setting, &mut ()).unwrap();
    let policy = Arc::new(TrainedPolicy::read(&trained.policy).unwrap());
    let contest = contest(Some(Options::default()));
    let walks = contestant("ppo", Way::Walk(policy.clone()));
    let guides = contestant("ppo+beam", Way::Guided(policy.clone(), Method::Beam));
    for program in 0..contest.len() {
        let walked = contest.compete(program, &walks, BUDGET, true).unwrap();
        assert_eq!(stages(&walked), ["order", END, "final"]);
        let guided = contest.compete(program, &guides, BUDGET, true).unwrap();
        assert_eq!(stages(&guided), ["order", "final"]);
        for outcome in [walked, guided] {
            assert!(outcome.is_proven(), "{outcome:?}");
            assert!(outcome.stages[0].result < outcome.stages[0].initial.unwrap(), "{outcome:?}");
        }
    }
    let stranger = Arc::new(Shipped::all()[0].policy().unwrap().clone());
    for way in [Way::Walk(stranger.clone()), Way::Guided(stranger, Method::Beam)] {
        let error = contest.compete(0, &contestant("stranger", way), BUDGET, false).unwrap_err();
        let words = error.to_string();
        assert!(words.contains("stranger") && words.contains("and this is toy"), "{words}");
    }
}
