//! Programs with fewer layers, on the real compiler.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use xla_gym_data::Library;
use xla_gym_engine::{
    Engine, EngineConfig, Source,
    protocol::{Observe, REDUCED},
};
use xla_gym_env::{World, WorldConfig};
use xla_gym_optimize::{Judge, Plan, Task, Watch, optimize, reduced};
use xla_gym_oracle::Report;
use xla_gym_search::Budget;
use xla_gym_xla_profile::{LEGAL, ORDER, Xla};

/// Eight narrow layers, which run in no time.
const DEEP: &str = "hlo-v1/gpt2/forward-8l";

fn config() -> WorldConfig {
    let config = WorldConfig::new(Arc::new(Xla::default())).expect("`make build` comes first");
    let engine = EngineConfig { quarantine: None, ..config.engine };
    WorldConfig { engine, ..config }
}

fn judge(benchmark: &str) -> Judge {
    Judge::new(&Arc::new(World::new(config(), [benchmark]).unwrap()), 0).unwrap()
}

fn opcodes(judge: &Judge) -> BTreeSet<String> {
    let start = judge.world.start_state(0).unwrap();
    let engine = judge.world.engine();
    engine.name_opcodes(start.opcodes.clone()).map(|(name, _)| name).collect()
}

/// Twelve layers become two and what is around them; an order does to them what it does to all.
#[test]
fn fewer_layers_stand_for_all_of_them() {
    let whole = judge("hlo-full-v1/gpt2/decode-step-124m");
    let small = reduced(&whole).unwrap().expect("it has twelve layers");
    let share = small.initial as f64 / whole.initial as f64;
    assert!((0.1..0.45).contains(&share), "{} of {} operations", small.initial, whole.initial);
    assert_eq!(opcodes(&small), opcodes(&whole));

    // Where a plan that does little and one that does much lead, beside XLA's own.
    let engine = whole.world.engine();
    let little = engine.passes(["dce"]).unwrap();
    let much = engine.passes(["algsimp", "reshape-mover", "algsimp", "cse", "dce"]).unwrap();
    let [little, much] = [little, much].map(|passes| Plan::instead(whole.spec(), passes));
    for (figure, near) in [(ORDER, 0.15), (LEGAL, 0.15)] {
        let value = |judge: &Judge, plan: &Plan| {
            let figures = judge.judge(plan).unwrap().unwrap().figures;
            figures.get(figure).unwrap() / judge.default_figures.get(figure).unwrap()
        };
        let whole = [value(&whole, &little), value(&whole, &much)];
        let small = [value(&small, &little), value(&small, &much)];
        assert!(whole[1] < whole[0] && small[1] < small[0], "{figure:?}: {whole:?}, {small:?}");
        for (whole, small) in whole.into_iter().zip(small) {
            assert!((whole - small).abs() < near * whole, "{figure:?}: {whole}, {small}");
        }
    }
}

/// There is nothing to gain where nothing repeats.
#[test]
fn one_layer_stays_as_it_is() {
    assert!(reduced(&judge("hlo-v1/gpt2/forward-1l")).unwrap().is_none());
}

/// Loops, tuples, calls, random numbers, roots of all kinds: a reduced program is a program, and
/// the same each time.
#[test]
fn what_is_left_is_a_valid_program() {
    let engine = Engine::start(config().engine).unwrap();
    let form = engine.hello().form(REDUCED).unwrap();
    let library = Library::hlo_v1().unwrap();
    let (mut tried, mut refused) = (0, 0);
    for graph in library.manifest().graphs.iter().filter(|graph| graph.size() < 1500).step_by(9) {
        let mut session = engine.load(&library.source(graph).unwrap()).unwrap();
        let Ok(text) = session.print(form) else {
            // Those for several devices.
            refused += 1;
            continue;
        };
        tried += 1;
        assert!(text == session.print(form).unwrap(), "{}: not the same twice", graph.id);
        let source = Source { name: graph.id.as_str().into(), bytes: text.into() };
        // Loading refuses what XLA's verifier refuses.
        let mut small =
            engine.load(&source).unwrap_or_else(|error| panic!("{}: {error}", graph.id));
        let counts = small.observe(Observe::COUNTS).unwrap();
        let counts = counts.counts.unwrap();
        assert!(counts.primary() <= graph.counts["operations"], "{}", graph.id);
        assert!(counts.primary() > 0, "{}", graph.id);
    }
    assert!(tried > 20 && refused < tried / 4, "{tried} tried, {refused} refused");
}

/// The step that comes after a search with fewer layers.
const ON_THE_WHOLE: &str = "trying the best on the whole program";

/// Ends a search, as Ctrl-C does, at that step.
struct UntilTheWhole {
    stop: Arc<AtomicBool>,
    told: Mutex<Vec<String>>,
}

impl Watch for UntilTheWhole {
    fn doing(&self, what: &str) {
        self.told.lock().unwrap().push(what.to_owned());
        if what == ON_THE_WHOLE {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Within a time, the search goes by fewer layers; the answer is one for the whole, and proven.
#[test]
fn what_is_found_with_fewer_layers_is_tried_and_proven_on_the_whole() {
    let judge = judge(DEEP);
    assert!(reduced(&judge).unwrap().is_some());
    let time = Some(Duration::from_secs(300));
    let task = Task { budget: Budget { passes: None, time }, ..Task::usual(judge.spec()) };
    let watch = UntilTheWhole { stop: task.stop.clone(), told: Mutex::default() };
    let answer = optimize(&judge, &task, &watch).unwrap();
    let told = watch.told.into_inner().unwrap();
    assert!(told.iter().any(|what| what == ON_THE_WHOLE), "{told:?}");
    assert!(answer.recipe.evidence.outputs.as_ref().is_some_and(Report::is_equal));
    assert!(answer.figures.get(LEGAL) < answer.default.get(LEGAL));
    // It holds on the whole.
    let again = judge.judge(&answer.plan).unwrap().unwrap();
    assert_eq!(again.figures.get(LEGAL), answer.figures.get(LEGAL));
}
