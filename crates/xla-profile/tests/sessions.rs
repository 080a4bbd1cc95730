//! The engine on real XLA: sessions, what kills them, and what they say of a program.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::{
    Death, Engine, EngineConfig, EngineError, PassFailure, Session, Source,
    protocol::{Finish, Form, Observe, PassId},
};
use xla_gym_xla_profile::{INLINED, OPERATIONS, engine_config};

fn config() -> EngineConfig {
    EngineConfig { quarantine: None, ..engine_config().expect("`make build` comes first") }
}

fn engine() -> Engine {
    Engine::start(config()).expect("the engine starts")
}

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

fn load(engine: &Engine, graph: &str) -> Session {
    engine.load_file(testdata(&format!("graphs/{graph}.hlo.zst"))).unwrap()
}

fn pass_failure<T: std::fmt::Debug>(result: Result<T, EngineError>) -> PassFailure {
    match result {
        Err(EngineError::Pass(error)) => error.failure,
        other => panic!("a failing pass was expected, not {other:?}"),
    }
}

#[test]
fn every_format_gives_the_same_program() {
    let engine = engine();
    let mut fingerprints = Vec::new();
    for entry in fs::read_dir(testdata("formats")).unwrap() {
        let path = entry.unwrap().path();
        let mut session = engine.load_file(&path).unwrap();
        fingerprints.push((session.fingerprint().unwrap(), path));
    }
    assert!(fingerprints.len() >= 7);
    for (fingerprint, path) in &fingerprints {
        assert_eq!(*fingerprint, fingerprints[0].0, "{}", path.display());
    }
}

#[test]
fn what_inlining_would_cost_is_known_beforehand() {
    let engine = engine();
    let counts = |session: &mut Session| session.observe(Observe::COUNTS).unwrap().counts.unwrap();
    let check = |name: &str, session: &mut Session| {
        let before = counts(session);
        let inline = engine.pass("call-inliner").unwrap();
        let after = session.apply(inline, Observe::COUNTS).unwrap().observation.counts.unwrap();
        assert_eq!(
            (after[OPERATIONS], after[INLINED]),
            (before[INLINED], before[INLINED]),
            "{name}"
        );
        (before[OPERATIONS], before[INLINED])
    };
    for (name, expected, computations) in PROGRAMS_WITH_CALLS {
        let text = format!("HloModule {name}\n\n{computations}");
        let source = Source::from_bytes(name, text.into()).unwrap();
        let mut session = engine.load(&source).unwrap();
        assert_eq!(check(name, &mut session), expected, "{name}");
    }
    for graph in ["gpt2-train-1l", "resnet-train", "gpt2-generate-sample"] {
        check(graph, &mut load(&engine, graph));
    }
}

/// Name, operations before and after inlining, computations.
const PROGRAMS_WITH_CALLS: [(&str, (u64, u64), &str); 4] = [
    // Two in `negated`, two calls in `twice`, three in `going`, two calls and a loop in `main`;
    // `twice` stays as the loop's body, and its four operations are copied into `main`.
    (
        "loop",
        (2 + 2 + 3 + 3, 4 + 3 + (4 + 2 + 1)),
        "negated { x = f32[4] parameter(0)  y = f32[4] negate(x)  ROOT z = f32[4] exponential(y) }
        twice { x = f32[4] parameter(0)  y = f32[4] call(x), to_apply=negated
          ROOT z = f32[4] call(y), to_apply=negated }
        going { x = f32[4] parameter(0)  one = f32[] constant(1)
          first = f32[1] slice(x), slice={[0:1]}  scalar = f32[] reshape(first)
          ROOT go = pred[] compare(scalar, one), direction=LT }
        ENTRY main { x = f32[4] parameter(0)  y = f32[4] call(x), to_apply=twice
          z = f32[4] call(y), to_apply=negated
          ROOT w = f32[4] while(z), condition=going, body=twice }",
    ),
    // What is applied to elements does not run by itself, also if it is called elsewhere.
    (
        "adder",
        (2 + 3, 2 + 2 + 1),
        "sum { x = f32[] parameter(0)  y = f32[] parameter(1)  z = f32[] add(x, y)
          ROOT w = f32[] negate(z) }
        ENTRY main { x = f32[4] parameter(0)  zero = f32[] constant(0)
          y = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
          z = f32[] call(y, y), to_apply=sum  ROOT w = f32[] call(z, y), to_apply=sum }",
    ),
    // Nor does a loop that nothing reaches.
    (
        "unreachable",
        (2 + 2, 2 + 2),
        "twice { x = f32[4] parameter(0)  y = f32[4] negate(x)  ROOT z = f32[4] exponential(y) }
        going { x = f32[4] parameter(0)  ROOT go = pred[] constant(false) }
        nobody { x = f32[4] parameter(0)
          ROOT y = f32[4] while(x), condition=going, body=twice }
        ENTRY main { x = f32[4] parameter(0)  y = f32[4] call(x), to_apply=twice
          ROOT z = f32[4] call(y), to_apply=twice }",
    ),
    // The program may forbid it.
    (
        "forbidden",
        (2 + 2, 2 + 2),
        "twice { x = f32[4] parameter(0)  y = f32[4] negate(x)  ROOT z = f32[4] exponential(y) }
        ENTRY main { x = f32[4] parameter(0)
          y = f32[4] call(x), to_apply=twice, frontend_attributes={inlineable=\"false\"}
          ROOT z = f32[4] call(y), to_apply=twice, frontend_attributes={inlineable=\"false\"} }",
    ),
];

#[test]
fn calls_of_any_depth_are_counted() {
    let engine = engine();
    let chain = |depth: usize, calls: &str| {
        let mut text = "HloModule chain\n\n".to_owned();
        text += "call0 { x = f32[] parameter(0)  ROOT y = f32[] negate(x) }\n";
        for i in 1..=depth {
            let calls = calls.replace("FROM", &format!("call{}", i - 1));
            text += &format!("call{i} {{ x = f32[] parameter(0)  {calls} }}\n");
        }
        text += &format!(
            "ENTRY main {{ x = f32[] parameter(0)  ROOT y = f32[] call(x), to_apply=call{depth} }}\n"
        );
        let source = Source::from_bytes("chain.hlo", text.into()).unwrap();
        engine.load(&source).unwrap().observe(Observe::COUNTS).unwrap().counts.unwrap()
    };
    let once = chain(100_000, "ROOT y = f32[] call(x), to_apply=FROM");
    assert_eq!((once[OPERATIONS], once[INLINED]), (100_002, 1));
    let twice =
        chain(60, "y = f32[] call(x), to_apply=FROM  ROOT z = f32[] call(y), to_apply=FROM");
    assert_eq!((twice[OPERATIONS], twice[INLINED]), (122, 1_000_000_000_000_000));
}

#[test]
fn what_is_printed_can_be_read_back_in_another_process() {
    let (one, other) = (engine(), engine());
    for graph in ["gpt2-train-1l", "resnet-train", "gpt2-generate-sample", "complex-ops"] {
        let mut session = load(&one, graph);
        let passes = one.passes(["call-inliner", "algsimp", "cse", "constant_folding"]).unwrap();
        session.multistep(&passes, Observe::NOTHING, |_| {}).unwrap();
        let expected = session.fingerprint().unwrap();
        for form in [Form::TEXT, Form::BINARY] {
            let bytes = session.print(form).unwrap();
            let source = Source::from_bytes(graph, bytes).unwrap();
            let mut again = other.load(&source).unwrap();
            assert_eq!(again.fingerprint().unwrap(), expected, "{graph} as {form:?}");
        }
    }
}

#[test]
fn a_fingerprint_sees_what_matters_and_nothing_else() {
    let engine = engine();
    let fingerprint = |text: &str| {
        let source = Source::from_bytes("test", text.as_bytes().to_vec()).unwrap();
        engine.load(&source).unwrap().fingerprint().unwrap()
    };
    let module = |body: &str| format!("HloModule m\nENTRY e {{\n{body}\n}}\n");
    let base = module("x = f32[4]{0} parameter(0)\n ROOT y = f32[4]{0} add(x, x)");
    let check = |body: &str, same: bool| {
        assert_eq!(fingerprint(&module(body)) == fingerprint(&base), same, "{body}");
    };
    check(
        "p = f32[4]{0} parameter(0)\n ROOT q = f32[4]{0} add(p, p), metadata={op_name=\"z\"}",
        true,
    );
    check("x = f32[4]{0} parameter(0)\n ROOT y = f32[4]{0} multiply(x, x)", false);
    check("x = f32[5]{0} parameter(0)\n ROOT y = f32[5]{0} add(x, x)", false);
    check("x = bf16[4]{0} parameter(0)\n ROOT y = bf16[4]{0} add(x, x)", false);

    // Attributes, constants and the order of operands each count.
    let pairs = [
        (
            "x = f32[2,4] parameter(0)\n ROOT y = f32[2,2] slice(x), slice={[0:2],[0:2]}",
            "x = f32[2,4] parameter(0)\n ROOT y = f32[2,2] slice(x), slice={[0:2],[1:3]}",
        ),
        ("ROOT c = f32[2] constant({1, 2})", "ROOT c = f32[2] constant({1, 3})"),
        (
            "x = f32[4] parameter(0)\n z = f32[4] parameter(1)\n ROOT y = f32[4] subtract(x, z)",
            "x = f32[4] parameter(0)\n z = f32[4] parameter(1)\n ROOT y = f32[4] subtract(z, x)",
        ),
        (
            "x = f32[4] parameter(0)\n z = f32[4] parameter(1)\n ROOT y = pred[4] compare(x, z), direction=LT",
            "x = f32[4] parameter(0)\n z = f32[4] parameter(1)\n ROOT y = pred[4] compare(x, z), direction=GT",
        ),
        (
            "x = f32[4,4] parameter(0)\n ROOT y = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "x = f32[4,4] parameter(0)\n ROOT y = f32[4,4] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        ),
        (
            "x = s32[4] parameter(0)\n ROOT y = s32[4,4] broadcast(x), dimensions={0}",
            "x = s32[4] parameter(0)\n ROOT y = s32[4,4] broadcast(x), dimensions={1}",
        ),
    ];
    for (a, b) in pairs {
        assert_ne!(fingerprint(&module(a)), fingerprint(&module(b)), "{a}\n{b}");
    }
}

/// jax writes gathers and scatters with batch dimensions, which these two passes do not expect
/// unless `batched_gather_scatter_normalizer` came first: one aborts, the other fails half-way.
#[test]
fn an_abort_costs_one_step_and_the_second_try_nothing() {
    let engine = engine();
    let mut session = load(&engine, "gpt2-train-1l");
    session.apply(engine.pass("cse").unwrap(), Observe::NOTHING).unwrap();
    let before = session.fingerprint().unwrap();
    let text = session.print(Form::TEXT).unwrap();

    let killer = engine.pass("scatter_simplifier").unwrap();
    let begin = Instant::now();
    let failure = pass_failure(session.apply(killer, Observe::NOTHING));
    let first = begin.elapsed();
    match failure {
        PassFailure::Died(Death::Signal { message, .. }) => {
            assert!(message.contains("Check failed: dim_to_insert"), "{message}");
        }
        other => panic!("an abort was expected, not {other:?}"),
    }
    assert_eq!(session.fingerprint().unwrap(), before);
    assert!(session.print(Form::TEXT).unwrap() == text, "the program is not what it was");

    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let begin = Instant::now();
            let failure = pass_failure(session.apply(killer, Observe::NOTHING));
            assert!(matches!(failure, PassFailure::Quarantined(_)), "{failure}");
            begin.elapsed()
        })
        .collect();
    times.sort();
    assert!(times[0] * 20 < first, "a refusal takes {times:?}, the first try took {first:?}");

    let next = session.apply(engine.pass("algsimp").unwrap(), Observe::COUNTS).unwrap();
    assert!(next.changed);
    // With the normaliser first, the same pass is harmless.
    session.reset().unwrap();
    let harmless =
        engine.passes(["batched_gather_scatter_normalizer", "scatter_simplifier"]).unwrap();
    session.multistep(&harmless, Observe::NOTHING, |_| {}).unwrap();
}

#[test]
fn a_pass_that_fails_half_way_leaves_no_trace() {
    let engine = engine();
    let mut session = load(&engine, "gather-batched");
    let text = session.print(Form::TEXT).unwrap();
    let half = engine.pass("gather_simplifier").unwrap();
    match pass_failure(session.apply(half, Observe::NOTHING)) {
        PassFailure::Refused(message) => assert!(message.contains("RET_CHECK"), "{message}"),
        other => panic!("a refusal was expected, not {other:?}"),
    }
    assert!(session.print(Form::TEXT).unwrap() == text, "the program is not what it was");
    let expanded = engine.pass("gather_expander:all").unwrap();
    assert!(session.apply(expanded, Observe::NOTHING).unwrap().changed);
}

/// A random sequence without the passes that are known to fail on this graph.
fn random_passes(engine: &Engine, count: usize, seed: u64) -> Vec<PassId> {
    let usable: Vec<PassId> = engine
        .hello()
        .passes
        .iter()
        .enumerate()
        .filter(|(_, pass)| pass.is_default_action && pass.base != "while_loop_unroller")
        .map(|(id, _)| PassId(id as u16))
        .collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| *usable.choose(&mut rng).unwrap()).collect()
}

/// Runs the passes; those that fail are left out.
fn run(session: &mut Session, passes: &[PassId], mut after_step: impl FnMut(u64)) -> Vec<u8> {
    for (step, &pass) in passes.iter().enumerate() {
        match session.apply(pass, Observe::COUNTS) {
            Ok(_) | Err(EngineError::Pass(_)) => after_step(step as u64 + 1),
            Err(error) => panic!("step {step}: {error}"),
        }
    }
    session.print(Form::TEXT).unwrap()
}

#[test]
fn fifty_kills_in_a_thousand_steps_change_nothing() {
    const STEPS: usize = 1000;
    const KILLS: usize = 50;
    let undisturbed = engine();
    let passes = random_passes(&undisturbed, STEPS, 7);
    let expected = run(&mut load(&undisturbed, "mlp-train"), &passes, |_| {});

    let (_folder, worker, engine) = engine_of_its_own();
    let mut session = load(&engine, "mlp-train");

    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut moments: Vec<u64> = (0..KILLS).map(|_| rng.random_range(0..STEPS as u64)).collect();
    moments.sort_unstable();
    let (aimed, killed) = (AtomicU64::new(0), AtomicU64::new(0));
    let (order, orders) = std::sync::mpsc::channel::<()>();
    let got = std::thread::scope(|scope| {
        let (aimed, killed, worker) = (&aimed, &killed, &worker);
        scope.spawn(move || {
            for () in orders {
                aimed.fetch_add(1, Ordering::AcqRel);
                // The run goes on meanwhile: the kill comes in the middle of some pass. All
                // kinds of workers are hit: the session's own, frozen ones, the stem.
                std::thread::sleep(Duration::from_micros(rng.random_range(0..1500)));
                let patience = Instant::now() + Duration::from_secs(10);
                let victim = loop {
                    match processes_of(worker).choose(&mut rng) {
                        Some(pid) => break rustix::process::Pid::from_raw(*pid).unwrap(),
                        // A new stem is just being started.
                        None => assert!(Instant::now() < patience, "nobody is left to kill"),
                    }
                };
                let _ = rustix::process::kill_process(victim, rustix::process::Signal::KILL);
                killed.fetch_add(1, Ordering::AcqRel);
            }
        });
        let mut due = moments.iter().peekable();
        let mut ordered = 0;
        run(&mut session, &passes, move |done| {
            while due.next_if(|moment| **moment <= done).is_some() {
                order.send(()).unwrap();
                ordered += 1;
                while aimed.load(Ordering::Acquire) < ordered {
                    std::thread::sleep(Duration::from_micros(20));
                }
            }
        })
    });
    assert_eq!(killed.into_inner(), KILLS as u64);
    assert!(got == expected, "the killed run ended in another program");
}

/// An engine whose worker has a path of its own, by which its processes can be told from others.
fn engine_of_its_own() -> (tempfile::TempDir, PathBuf, Engine) {
    let folder = tempfile::tempdir().unwrap();
    let worker = folder.path().join("worker");
    fs::copy(config().worker, &worker).unwrap();
    let engine = Engine::start(EngineConfig { worker: worker.clone(), ..config() }).unwrap();
    (folder, worker, engine)
}

fn threads(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// Processes that run this very file.
fn processes_of(program: &Path) -> Vec<i32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program))
        .collect()
}

#[test]
fn the_same_passes_give_the_same_bytes_in_every_process() {
    let (one, other) = (engine(), engine());
    for graph in ["gpt2-train-1l", "resnet-train", "gpt2-scan-layers-train"] {
        let passes = random_passes(&one, 60, 3);
        let mut session = load(&one, graph);
        let first = run(&mut session, &passes, |_| {});
        // What was remembered along the way is what a fresh look finds.
        let printed = Source::from_bytes(graph, first.clone()).unwrap();
        let fresh = other.load(&printed).unwrap().fingerprint().unwrap();
        assert_eq!(session.fingerprint().unwrap(), fresh, "{graph}");
        let second = run(&mut load(&other, graph), &passes, |_| {});
        assert!(first == second, "{graph} differs between two processes");
    }
}

/// Everything that is remembered about a state rests on this.
#[test]
fn a_pass_that_says_it_changed_nothing_changed_nothing() {
    let engine = engine();
    let mut liars = Vec::new();
    let mut graphs = 0;
    for entry in fs::read_dir(testdata("graphs")).unwrap() {
        let mut session = engine.load_file(entry.unwrap().path()).unwrap();
        let start = session.fork().unwrap().fingerprint().unwrap();
        for (id, pass) in engine.hello().passes.iter().enumerate() {
            let mut own = session.fork().unwrap();
            match own.apply(PassId(id as u16), Observe::FINGERPRINT) {
                Ok(step) if step.changed == (step.observation.fingerprint != Some(start)) => {}
                Ok(step) if step.changed => {} // Changed and back, or only a name: harmless.
                Ok(_) => liars.push((pass.name.clone(), session.source().name.to_string())),
                Err(EngineError::Pass(_)) => {}
                Err(error) => panic!("{}: {error}", pass.name),
            }
        }
        graphs += 1;
    }
    assert!(graphs >= 20 && engine.hello().passes.len() >= 80);
    assert_eq!(liars, []);
}

#[test]
fn a_scratch_copy_can_be_cloned_and_restored() {
    let engine = engine();
    let mut session = load(&engine, "mlp-train");
    session.apply(engine.pass("algsimp").unwrap(), Observe::NOTHING).unwrap();
    let mut scratch = session.scratch().unwrap();
    let copy = scratch.clone_program().unwrap();
    scratch.restore(copy).unwrap();
    let printed = scratch.print(copy, Form::BINARY).unwrap();
    let source = Source::from_bytes("copy", printed).unwrap();
    let mut again = engine.load(&source).unwrap();
    assert_eq!(again.fingerprint().unwrap(), session.fingerprint().unwrap());
}

/// Folding a dot of constants makes XLA start a pool of threads, and a process with threads
/// cannot be forked. The session can be copied all the same.
#[test]
fn a_pass_that_starts_threads_does_not_keep_a_session_from_being_copied() {
    let (_folder, worker, engine) = engine_of_its_own();
    let dots = (0..20)
        .map(|i| {
            format!(
                " c{i} = f32[128,128] iota(), iota_dimension={}\n d{i} = f32[128,128] dot(c{i}, c{i}), \
                 lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n",
                i % 2
            )
        })
        .collect::<String>();
    let text = format!("HloModule m\nENTRY e {{\n{dots} ROOT r = f32[128,128] add(d0, d1)\n}}\n");
    let source = Source::from_bytes("dots", text.into_bytes()).unwrap();
    let mut session = engine.load(&source).unwrap();
    let fold = engine.pass("constant_folding:aggressive").unwrap();
    assert!(session.apply(fold, Observe::NOTHING).unwrap().changed);
    assert!(processes_of(&worker).into_iter().any(|pid| threads(pid) > 1), "nothing is tested");
    let mut copy = session.fork().unwrap();
    assert_eq!(copy.fingerprint().unwrap(), session.fingerprint().unwrap());
    assert!(copy.apply(fold, Observe::NOTHING).is_ok());
    assert!(session.scratch().unwrap().compile(&Finish::default()).is_ok());
    session.kill_worker();
    assert!(session.apply(engine.pass("dce").unwrap(), Observe::NOTHING).is_ok());
}

/// Warnings of slow operations would come from a thread of their own.
#[test]
fn ordinary_passes_start_no_thread() {
    let (_folder, worker, engine) = engine_of_its_own();
    let mut session = load(&engine, "gpt2-train-4l");
    let passes = ["call-inliner", "constant_folding", "algsimp", "constant_folding", "cse"];
    let passes = engine.passes(passes).unwrap();
    session.multistep(&passes, Observe::COST | Observe::VERDICT, |_| {}).unwrap();
    let workers = processes_of(&worker);
    assert!(workers.len() > 1);
    for pid in workers {
        assert_eq!(threads(pid), 1, "process {pid}");
    }
}
