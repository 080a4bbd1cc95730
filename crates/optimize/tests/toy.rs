//! The whole of it on the toy compiler, whose programs and passes are small enough to be followed by hand.

use std::{fs, path::Path, sync::Arc, time::Duration};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{
    Source,
    protocol::{Form, PassId},
};
use xla_gym_env::{World, WorldConfig};
use xla_gym_optimize::{
    Answer, Judge, Objective, OptimizeError, Plan, Task, apply, attribute, optimize,
    optimize_with_store, shorten, timeline, walk,
};
use xla_gym_oracle::Options;
use xla_gym_profile::{Figure, Profile, Spec, Start, StartPasses};
use xla_gym_recipe::{Recipe, Store, StoreLimit};
use xla_gym_search::{Budget, Method};
use xla_gym_toy_profile::Toy;

/// The pass that miscompiles.
const WRONG: &str = "cancel";

/// Whatever [`WRONG`] does here is wrong, since the inputs are two; and yet it makes the program smaller
/// than any other pass can. Only its last product is computed twice.
const PLANTED: &str = "toy\ninput 0\ninput 1\nneg 1\nadd 0 2\nmul 0 1\nmul 0 1\nadd 4 5\nmul 3 6\n";

/// Beside [`PLANTED`], of which it has nothing.
const OTHER: &str = "toy\ninput 0\nconst 1\nmul 0 1\n";

fn world(programs: Vec<Benchmark>) -> Arc<World> {
    let mut config = WorldConfig::new(Arc::new(Toy::default()))
        .expect("`cargo build -p xla-gym-toy-worker` comes first");
    config.engine.quarantine = None;
    let found = Benchmarks { programs, skipped: Vec::new() };
    Arc::new(World::with_programs(config, found).unwrap())
}

fn in_memory(name: &str, text: &str) -> Benchmark {
    Benchmark::Memory(Source { name: name.into(), bytes: text.as_bytes().into() })
}

fn judge_of(text: &str) -> Judge {
    Judge::new(&world(vec![in_memory("program", text)]), 0).unwrap()
}

/// The programs in `testdata/toy`, by name.
fn committed() -> Vec<Benchmark> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/toy");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(Benchmark::File).collect()
}

fn task(judge: &Judge, objective: &str, budget: Budget) -> Task {
    let objective = Objective::parse(objective, judge.spec()).unwrap();
    Task { objective, budget, ..Task::usual(judge.spec()) }
}

fn passes(judge: &Judge, names: &[&str]) -> Vec<PassId> {
    judge.world.engine().passes(names.iter().copied()).unwrap()
}

fn figure(judge: &Judge, name: &str) -> Figure {
    judge.spec().figure(name).unwrap()
}

/// Checks what holds of every answer, whatever was asked; returns the gain.
fn check(judge: &Judge, task: &Task, answer: &Answer) -> f64 {
    let name = judge.world.benchmark_name(judge.benchmark);
    let Answer { plan, figures, default, recipe, .. } = answer;
    let what = format!("{name}, {}: {recipe:?}", task.objective);
    assert!(task.objective.value(figures, default) <= 1.0, "never worse; {what}");
    assert_eq!(plan.is_default, recipe.is_default(), "{what}");
    if plan.is_default {
        assert_eq!(recipe.gain, 1.0, "{what}");
        return 1.0;
    }
    assert!(recipe.gain > 1.0, "{what}");
    assert!(recipe.evidence.outputs.as_ref().unwrap().is_equal(), "{what}");
    // Once more, on other inputs.
    let options = Options { seed: 4711, trials: 3, ..Options::default() };
    let again = judge.compare(plan, options).unwrap();
    assert!(again.is_equal(), "{what}: {again:?}");
    recipe.gain
}

#[test]
fn better_orders_than_the_toys_own_are_found_and_proven() {
    let world = world(committed());
    assert!(world.len() >= 8);
    let last = world.profile().spec().figure("final").unwrap();
    let mut better = Vec::new();
    for benchmark in 0..world.len() {
        let judge = Judge::new(&world, benchmark).unwrap();
        let task = task(&judge, "final", Budget::passes(300));
        let answer = optimize(&judge, &task, &()).unwrap();
        let gain = check(&judge, &task, &answer);
        // What is written down is what comes out.
        let judged = judge.judge(&answer.plan).unwrap().unwrap();
        assert_eq!(judged.figures.get(last), answer.figures.get(last));
        let stage = answer.recipe.evidence.stage("final").unwrap();
        assert_eq!(stage.ratio.result as f64, answer.figures.get(last).unwrap());
        if gain > 1.0 {
            better.push(Path::new(world.benchmark_name(benchmark)).file_stem().unwrap());
        }
    }
    // Nothing can be made of `minimal`.
    assert!(better.len() > world.len() / 2, "{better:?}");
    assert!(!better.iter().any(|name| *name == "minimal"), "{better:?}");
}

/// Any lines at all, most of them read by one of the next few.
fn random_program(rng: &mut ChaCha8Rng) -> String {
    let inputs = rng.random_range(1..4);
    let mut lines: Vec<String> = (0..inputs).map(|which| format!("input {which}")).collect();
    for _ in 0..rng.random_range(10..40) {
        let [a, b] = [(); 2].map(|()| rng.random_range(lines.len().saturating_sub(4)..lines.len()));
        lines.push(match rng.random_range(0..6) {
            0 => format!("const {}", rng.random_range(-1..3)),
            1 => format!("neg {a}"),
            2 => format!("copy {a}"),
            3 => format!("mul {a} {b}"),
            _ => format!("add {a} {b}"),
        });
    }
    format!("toy\n{}\n", lines.join("\n"))
}

#[test]
fn an_answer_is_never_worse_whatever_is_asked_of_whatever_program() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let objectives = ["final", "lines", "work", "registers", "0.5*final+0.5*work", "final,work"];
    let methods = Method::ALL;
    let programs: Vec<Benchmark> = (0..12)
        .map(|number| in_memory(&format!("random-{number}"), &random_program(&mut rng)))
        .collect();
    let world = world(programs);
    let mut better = 0;
    for benchmark in 0..world.len() {
        let judge = Judge::new(&world, benchmark).unwrap();
        let task = Task {
            method: methods[benchmark % methods.len()],
            seed: benchmark as u64,
            ..task(&judge, objectives[benchmark % objectives.len()], Budget::passes(200))
        };
        let answer = optimize(&judge, &task, &()).unwrap();
        better += usize::from(check(&judge, &task, &answer) > 1.0);
        for proven in &answer.front {
            assert!(proven.outputs.is_equal(), "{:?}", proven.judged.plan);
        }
    }
    assert!(better >= 4, "only {better} are better");
}

#[test]
fn what_miscompiles_is_found_best_and_dropped() {
    let judge = judge_of(PLANTED);
    let last = figure(&judge, "final");
    let wrong = Plan::instead(judge.spec(), passes(&judge, &["dedup", "copy-elim", WRONG, "dead"]));
    let tempting = judge.judge(&wrong).unwrap().unwrap();
    assert_eq!(tempting.plan.passes, wrong.passes, "each of them does something");
    assert_eq!(
        (judge.default_figures.get(last), tempting.figures.get(last)),
        (Some(9.0), Some(6.0))
    );
    assert!(judge.compare(&wrong, Options::default()).unwrap().is_different());

    let cancel = judge.world.engine().pass(WRONG).unwrap();
    // However little there is time for.
    let limited = Budget { passes: None, time: Some(Duration::from_secs(4)) };
    for (objective, budget, known) in [
        ("final", Budget::passes(400), None),
        ("final", Budget::passes(400), Some(wrong.clone())),
        ("final", limited, Some(wrong.clone())),
        ("lines", Budget::passes(400), Some(wrong.clone())),
        ("final,work", Budget::passes(400), Some(wrong.clone())),
    ] {
        let task = Task { known, ..task(&judge, objective, budget) };
        let answer = optimize(&judge, &task, &()).unwrap();
        let gain = check(&judge, &task, &answer);
        assert!(!answer.plan.passes.contains(&cancel), "{objective}: {:?}", answer.recipe);
        // Where the order alone counts two are looked at; a front has none that another beats. All of
        // them are wrong here.
        if objective == "final" && budget != limited {
            assert!(gain > 1.0, "{objective}: one of two equal products can go");
            assert_eq!(answer.figures.get(last), Some(8.0), "{objective}");
        }
        let wrong = |plan: &Plan| plan.passes.contains(&cancel);
        assert!(!answer.front.iter().any(|proven| wrong(&proven.judged.plan)), "{objective}");
        let dropped = &answer.recipe.evidence.dropped;
        let told = dropped.iter().any(|why| why.contains("outputs differ"));
        assert!(told || budget == limited, "{objective}: {dropped:?}");
    }
}

#[test]
fn where_only_what_is_wrong_gains_the_toys_own_order_stays() {
    let judge = judge_of("toy\ninput 0\ninput 1\nneg 1\nadd 0 2\nmul 3 0\n");
    let task = task(&judge, "final", Budget::passes(200));
    let answer = optimize(&judge, &task, &()).unwrap();
    check(&judge, &task, &answer);
    assert!(answer.plan.is_default);
    assert!(answer.nearest.is_some_and(|near| near.primary() < judge.default_figures.primary()));
    let dropped = &answer.recipe.evidence.dropped;
    assert!(dropped.iter().any(|why| why.contains("outputs differ")), "{dropped:?}");
}

#[test]
fn what_is_not_needed_is_left_out_and_nothing_more() {
    let judge = judge_of(PLANTED);
    let round = passes(&judge, &["fold", "simplify", "dedup", "copy-elim", "lower", "dead"]);
    let order: Vec<PassId> = round.iter().cycle().take(5 * round.len()).copied().collect();
    let long = judge.judge(&Plan::instead(judge.spec(), order)).unwrap().unwrap();
    let short = shorten(&judge, long.clone(), Duration::from_secs(60)).unwrap();
    assert!(short.figures.no_worse(&long.figures));
    let names: Vec<&str> =
        short.plan.passes.iter().map(|pass| judge.world.engine().pass_name(*pass)).collect();
    assert_eq!(names, ["dedup", "copy-elim", "dead"]);
    for at in 0..names.len() {
        let mut rest = short.plan.clone();
        rest.passes.remove(at);
        let rest = judge.judge(&rest).unwrap().unwrap();
        assert!(!rest.figures.no_worse(&short.figures), "{} is not needed", names[at]);
    }
}

#[test]
fn a_pass_is_credited_with_what_is_missing_without_it() {
    let judge = judge_of(PLANTED);
    let plan = Plan::instead(judge.spec(), passes(&judge, &["dedup", "copy-elim", "dead"]));
    let found = attribute(&judge, &plan, true, &()).unwrap();
    let shown: Vec<(usize, &str, f64, Option<f64>, Option<f64>)> = found
        .iter()
        .map(|one| (one.position, &*one.pass, one.by_step, one.left_out, one.left_out_final))
        .collect();
    // One line goes, in the last step; but it takes all three.
    let expected = [
        (1, "dedup", 0.0, Some(1.0), Some(1.0)),
        (2, "copy-elim", 0.0, Some(1.0), Some(1.0)),
        (3, "dead", 1.0, Some(1.0), Some(1.0)),
    ];
    assert_eq!(shown, expected);
    let steps = timeline(&judge, &plan.passes).unwrap();
    let metrics: Vec<&str> = steps.metrics.iter().map(|metric| &*metric.name).collect();
    assert_eq!(metrics, ["lines", "constants", "work"]);
    assert_eq!((steps.start(), steps.end()), (Some(8.0), Some(7.0)));
    let without = attribute(&judge, &plan, false, &()).unwrap();
    assert!(without.iter().all(|one| one.left_out_final.is_none()));
}

#[test]
fn a_recipe_does_again_what_was_found() {
    let judge = judge_of(PLANTED);
    let task = task(&judge, "final", Budget::passes(300));
    let answer = optimize(&judge, &task, &()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe.json");
    answer.recipe.write(&path).unwrap();
    let recipe = Recipe::read(&path).unwrap();
    assert_eq!(recipe, answer.recipe);

    // Elsewhere, where nobody remembers anything.
    let there = world(vec![in_memory("the same", PLANTED), in_memory("another", OTHER)]);
    let mut applied = apply(&there, 0, &recipe, false).unwrap();
    assert_eq!(applied.plan, answer.plan);
    assert!(applied.skipped.is_empty() && applied.warnings.is_empty(), "{:?}", applied.warnings);
    let mut found = judge.session(&answer.plan).unwrap();
    let text = found.print(Form::TEXT).unwrap();
    assert_eq!(applied.session.print(Form::TEXT).unwrap(), text);
    assert_ne!(text, PLANTED.as_bytes());

    let wanted = |recipe: &Recipe, benchmark, force| apply(&there, benchmark, recipe, force).err();
    let error = wanted(&recipe, 1, false).unwrap();
    assert!(matches!(error, OptimizeError::OtherProgram { .. }), "{error}");
    let forced = apply(&there, 1, &recipe, true).unwrap();
    assert!(forced.warnings[0].contains("nothing in it was proven"), "{:?}", forced.warnings);

    let own = Recipe { passes: Vec::new(), disabled_passes: Vec::new(), ..recipe.clone() };
    let mut own = apply(&there, 0, &own, false).unwrap();
    assert!(own.plan.is_default);
    assert_eq!(own.session.print(Form::TEXT).unwrap(), PLANTED.as_bytes());

    let lowered = Recipe { start: "lowered".to_owned(), ..recipe.clone() };
    let error = wanted(&lowered, 0, false).unwrap();
    assert!(matches!(error, OptimizeError::Start { .. }), "{error}");
    let harmful = Recipe { disabled_passes: vec!["lower".to_owned()], ..recipe.clone() };
    let error = wanted(&harmful, 0, false).unwrap();
    assert!(matches!(error, OptimizeError::NotOptional { .. }), "{error}");
    assert!(error.to_string().contains("the toy's pipeline"), "{error}");
    let elsewhere = Recipe { pipeline: "O3".to_owned(), ..recipe.clone() };
    let error = wanted(&elsewhere, 0, false).unwrap();
    assert!(matches!(error, OptimizeError::NoPipeline { .. }), "{error}");
    let named = Recipe { pipeline: "standard".to_owned(), ..recipe };
    assert_eq!(apply(&there, 0, &named, false).unwrap().plan, answer.plan);
}

#[test]
fn what_is_known_is_tried_first_and_a_lie_does_not_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("recipes.db"), StoreLimit::default()).unwrap();
    let judge = judge_of(PLANTED);
    let task = task(&judge, "final", Budget::passes(300));
    let run = || optimize_with_store(&judge, &task, &store, &()).unwrap();
    let known = || {
        let fingerprint = judge.emitted().unwrap().fingerprint().unwrap();
        store.best(fingerprint, &judge.world.engine().name(), "final").unwrap()
    };
    let (answer, remembered) = run();
    assert!(!remembered.known && remembered.kept && remembered.problem.is_none());
    assert_eq!(known(), Some(answer.recipe.clone()));
    let (again, remembered) = run();
    assert!(remembered.known, "{remembered:?}");
    assert!(again.recipe.gain >= answer.recipe.gain);

    // Somebody else's, which says that it was proven: its figures are true, and its outputs are not.
    let mut lie = answer.recipe.clone();
    lie.passes = ["dedup", "copy-elim", WRONG, "dead"].map(str::to_owned).to_vec();
    lie.gain = 9.0 / 6.0;
    lie.evidence.figures.insert("final".to_owned(), (9.0, 6.0));
    let line = serde_json::to_string(&lie).unwrap();
    assert_eq!(store.import(line.as_bytes()).unwrap().taken, 1);
    let (honest, remembered) = run();
    assert!(remembered.known && remembered.kept, "{remembered:?}");
    check(&judge, &task, &honest);
    assert_eq!(known(), Some(honest.recipe), "it took the place of the lie");
}

/// The toy with one more start, after what tidies up.
struct Tidy {
    toy: Toy,
    spec: Spec,
}

impl Tidy {
    fn new() -> Tidy {
        let toy = Toy::default();
        let mut spec = toy.spec().clone();
        spec.starts.push(Start {
            name: "tidy",
            description: "after what was computed twice is gone",
            passes: StartPasses::Fixed(&["dedup", "copy-elim", "dead"]),
            counts_as: Figure::PRIMARY,
        });
        Tidy { toy, spec }
    }
}

impl Profile for Tidy {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn can_be_left_out(&self) -> Vec<String> {
        self.toy.can_be_left_out()
    }
}

#[test]
fn an_answer_without_passes_from_another_start_is_not_taken_for_the_toys_own_way() {
    let mut config = WorldConfig::new(Arc::new(Tidy::new())).unwrap();
    config.engine.quarantine = None;
    config.start = "tidy".to_owned();
    config.passes = vec!["copy-elim".to_owned()];
    let text = "toy\ninput 0\nconst 2\nconst 3\nadd 1 2\nmul 0 3\nmul 0 3\nadd 4 5\n";
    let found = Benchmarks { programs: vec![in_memory("program", text)], skipped: Vec::new() };
    let judge = Judge::new(&Arc::new(World::with_programs(config, found).unwrap()), 0).unwrap();
    // What led to the start is worth a line, and only the toy's own passes do the rest.
    let untouched = Plan::before(judge.spec(), Vec::new());
    let last = figure(&judge, "final");
    let figures = judge.judge(&untouched).unwrap().unwrap().figures;
    assert_eq!((judge.default_figures.get(last), figures.get(last)), (Some(5.0), Some(4.0)));
    for objective in ["final", "final,registers"] {
        let known = Some(untouched.clone());
        let task = Task { known, ..task(&judge, objective, Budget::passes(50)) };
        let answer = optimize(&judge, &task, &()).unwrap();
        check(&judge, &task, &answer);
        assert!(answer.front.iter().all(|proven| proven.judged.plan != untouched), "{objective}");
        let again = apply(&judge.world, 0, &answer.recipe, false).unwrap();
        assert_eq!(again.plan, answer.plan, "{objective}");
    }
}

#[test]
fn plans_begin_where_the_world_does() {
    let programs = vec![in_memory("program", PLANTED)];
    let mut config = WorldConfig::new(Arc::new(Toy::default())).unwrap();
    config.engine.quarantine = None;
    config.start = "lowered".to_owned();
    let found = Benchmarks { programs, skipped: Vec::new() };
    let judge = Judge::new(&Arc::new(World::with_programs(config, found).unwrap()), 0).unwrap();
    // The negation is two lines there.
    assert_eq!(
        (judge.initial, walk(&judge.world, 0, &[]).unwrap().state().counts.primary()),
        (9, 9)
    );
    let task = task(&judge, "final", Budget::passes(300));
    let answer = optimize(&judge, &task, &()).unwrap();
    check(&judge, &task, &answer);
    assert_eq!(answer.recipe.start, "lowered");
    assert_eq!(answer.figures.get(figure(&judge, "final")), Some(8.0));
    let applied = apply(&judge.world, 0, &answer.recipe, false).unwrap();
    assert_eq!(applied.plan, answer.plan);
}
