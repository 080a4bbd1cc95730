//! LLVM behind the engine: loading, stepping, forking, and surviving what passes do.

mod common;

use std::{fs, thread, time::Duration};

use common::{LIMITS, apply, bitcode, config, engine, instructions, state, text};
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, PassFailure, Session, Source,
    protocol::{Finish, Form, Limits, Observe, PassId, PipelineOptions},
};
use xla_gym_llvm_shim as llvm;

#[test]
fn it_introduces_itself() {
    let engine = engine();
    let hello = engine.hello();
    assert_eq!(hello.engine, "llvm");
    assert!(hello.version.starts_with("19."), "{}", hello.version);
    assert!(hello.passes.len() >= 200);
    let named = |name: &str| &hello.passes[usize::from(engine.pass(name).unwrap().0)];
    assert!(!named("gvn").lossy && named("gvn").is_default_action);
    assert!(named("lower-invoke").lossy && !named("lower-invoke").is_default_action);
}

#[test]
fn passes_lead_where_opt_leads() {
    let engine = engine();
    let source = bitcode("crc32");
    let folder = tempfile::tempdir().unwrap();
    let before = folder.path().join("before.bc");
    fs::write(&before, &source.bytes).unwrap();
    let passes = [
        "sroa",
        "early-cse<memssa>",
        "inline",
        "simplifycfg",
        "instcombine<no-verify-fixpoint>",
        "loop-rotate",
        "licm",
        "indvars",
        "gvn",
        "loop-unroll",
        "slp-vectorizer",
        "loop-vectorize",
    ];
    let mut session = engine.load(&source).unwrap();
    for pass in passes {
        apply(&mut session, pass);
    }
    // One at a time, and all of them in one run of LLVM's own program.
    llvm::initialize(|| std::process::abort());
    let nested = passes.map(|pass| llvm::find_pass(pass).unwrap().nested());
    let ours = String::from_utf8(session.print(Form::TEXT).unwrap()).unwrap();
    let body = |text: &str| text.split_once("\n\n").unwrap().1.to_owned();
    let theirs = common::run(
        common::tool("opt")
            .args(["-S", "-discard-value-names", "-o", "-"])
            .arg(format!("-passes={}", nested.join(",")))
            .arg(&before),
    );
    let theirs = String::from_utf8(theirs.stdout).unwrap();
    assert!(body(&ours) == body(&theirs), "{ours}\n{theirs}");
}

#[test]
fn observations_are_of_the_state() {
    let engine = engine();
    let mut session = engine.load(&bitcode("sort")).unwrap();
    let everything = Observe::COUNTS | Observe::OPCODES | Observe::FINGERPRINT | Observe::EXACT;
    let before = session.observe(everything | Observe::COST).unwrap();
    assert!(engine.hello().costs.is_empty() && before.cost.unwrap().unwrap().is_empty());
    let counts = before.counts.unwrap();
    assert_eq!(engine.hello().primary(), "instructions");
    assert_eq!(before.opcodes.as_ref().unwrap().len(), engine.hello().opcodes.len());
    assert_eq!(u64::from(before.opcodes.unwrap().iter().sum::<u32>()), counts.primary());
    assert!(apply(&mut session, "sroa"));
    let after = session.observe(everything).unwrap();
    assert_ne!(after.fingerprint, before.fingerprint);
    assert_ne!(after.exact, before.exact);
    assert!(after.counts.unwrap().primary() < counts.primary());
    // A pass that finds nothing more to do is known not to have changed anything.
    assert!(!apply(&mut session, "sroa"));
    assert_eq!(session.observe(everything).unwrap(), after);
}

#[test]
fn breakdown_and_graph_are_of_the_same_program() {
    let engine = engine();
    let mut session = engine.load(&bitcode("trie")).unwrap();
    let count = instructions(&mut session);
    let functions = session.breakdown().unwrap();
    assert!(functions.iter().any(|function| function.name == "main" && function.runs));
    let sum: u32 = functions.iter().flat_map(|function| &function.opcodes).map(|of| of.1).sum();
    assert_eq!(u64::from(sum), count);
    let graph = session.graph().unwrap();
    let opcodes = &engine.hello().opcodes;
    let kind = |name: &str| opcodes.iter().position(|opcode| opcode == name).unwrap() as u64;
    let first_other = kind("variable");
    let features = &engine.hello().node_features;
    let rows: Vec<&[u64]> = graph.nodes.chunks(features.len()).collect();
    let found = rows.iter().filter(|node| node[0] < first_other).count();
    assert_eq!(found as u64, count);
    let nodes = rows.len() as u32;
    assert!(graph.edges.iter().all(|edge| edge.from < nodes && edge.to < nodes));
    assert!(rows.iter().all(|node| node[0] < opcodes.len() as u64));
}

#[test]
fn every_form_is_read_back() {
    let engine = engine();
    let mut session = engine.load(&bitcode("fft")).unwrap();
    apply(&mut session, "sroa");
    let exact = session.observe(Observe::EXACT).unwrap().exact;
    let fingerprint = session.fingerprint().unwrap();
    for form in [Form::TEXT, Form::BINARY] {
        let bytes = session.print(form).unwrap();
        let mut back = engine.load(&Source::from_bytes("back", bytes).unwrap()).unwrap();
        assert_eq!(back.fingerprint().unwrap(), fingerprint, "{form:?}");
        if form == Form::BINARY {
            assert_eq!(back.observe(Observe::EXACT).unwrap().exact, exact);
        }
    }
    assert!(session.print(Form(2)).is_err());
}

#[test]
fn broken_programs_are_refused_with_the_place() {
    let check = |source: &str, words: &[&str]| {
        let error = engine().load(&text(source)).err().expect("it is broken").to_string();
        for word in words {
            assert!(error.contains(word), "{word:?} is missing in: {error}");
        }
    };
    check("", &["empty"]);
    check("define i32 @f() {\n  ret i64 1\n}", &["program.ll", "line 2", "ret i64 1"]);
    check("int main() {}", &["line 1"]);
    let unreached = "define i32 @f(i1 %c) {\n br i1 %c, label %a, label %b\na:\n %x = add i32 1, 2\n br label %b\nb:\n ret i32 %x\n}";
    check(unreached, &["does not dominate"]);
}

#[test]
fn forks_and_undo_are_exact() {
    let engine = Engine::start(EngineConfig { freeze_after: Duration::ZERO, ..config() }).unwrap();
    let mut session = engine.load(&bitcode("dijkstra")).unwrap();
    let mut past = vec![state(&mut session)];
    for pass in ["sroa", "inline", "gvn", "loop-rotate", "licm", "loop-unroll:unroll-count=4"] {
        apply(&mut session, pass);
        past.push(state(&mut session));
    }
    let mut other = session.fork().unwrap();
    assert!(state(&mut other) == state(&mut session));
    apply(&mut other, "reg2mem");
    assert!(Some(&state(&mut session)) == past.last());
    // What a killed worker leaves is rebuilt, to the letter.
    session.kill_worker();
    assert!(Some(&state(&mut session)) == past.last());
    for count in [1, 2] {
        session.undo(count).unwrap();
        past.truncate(past.len() - count);
        assert!(Some(&state(&mut session)) == past.last());
    }
    // The compiler's own copy is exact, too.
    let mut scratch = session.scratch().unwrap();
    let copy = scratch.clone_program().unwrap();
    let printed = Source::from_bytes("copy", scratch.print(copy, Form::BINARY).unwrap()).unwrap();
    let mut copy = engine.load(&printed).unwrap();
    assert!(state(&mut copy) == state(&mut session));
}

#[test]
fn no_default_action_starts_a_thread() {
    // A process that has threads refuses to be forked, and the session is rebuilt from its source
    // instead: where that is not possible, because the steps do not lead anywhere, it shows.
    let engine = engine();
    let mut session = engine.load(&bitcode("matrix")).unwrap();
    for (at, pass) in engine.hello().passes.iter().enumerate() {
        if !pass.is_default_action {
            continue;
        }
        let mut fork = session.fork().unwrap();
        fork.apply(PassId(at as u16), Observe::NOTHING).unwrap();
        assert_eq!(threads_of_workers(), 1, "{}", pass.name);
    }
}

/// The largest number of threads that a worker of this process has.
fn threads_of_workers() -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let workers = processes.filter(|path| {
        fs::read_link(path.join("exe"))
            .is_ok_and(|exe| exe == std::path::Path::new(env!("CARGO_BIN_EXE_xla-gym-worker-llvm")))
    });
    workers
        .filter_map(|path| Some(fs::read_dir(path.join("task")).ok()?.count()))
        .max()
        .unwrap_or(0)
}

/// Insists that a pass did not take place, and says why: the kind and the whole message.
fn failure<T: std::fmt::Debug>(result: Result<T, EngineError>) -> (PassFailure, String) {
    match result {
        Err(EngineError::Pass(error)) => (error.failure.clone(), error.to_string()),
        other => panic!("a failed pass was expected, not {other:?}"),
    }
}

fn check_contained(session: &mut Session, pass: &str, kind: &str, words: &[&str]) {
    let before = state(session);
    let id = session.engine().pass(pass).unwrap();
    let (why, message) = failure(session.apply(id, Observe::NOTHING));
    assert_eq!(why.kind(), kind, "{message}");
    for word in words {
        assert!(message.contains(word), "{word:?} is missing in: {message}");
    }
    assert!(state(session) == before);
    // From now on it is not even tried.
    let (why, _) = failure(session.apply(id, Observe::NOTHING));
    assert!(matches!(why, PassFailure::Quarantined(_)));
    assert!(apply(session, "sroa"), "the session works on");
}

#[test]
fn a_crash_is_contained() {
    let engine = engine();
    let mut session = engine.load(&bitcode("crc32")).unwrap();
    check_contained(&mut session, "codegenprepare", "aborted", &["segmentation fault"]);
}

#[test]
fn a_fatal_error_says_why() {
    // The coroutine passes insist on a frame of a known form.
    let source = text(
        "define ptr @f() presplitcoroutine {
           %id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
           %n = call ptr @llvm.coro.noop()
           %s = call token @llvm.coro.save(ptr null)
           %h = call ptr @llvm.coro.begin(token %id, ptr null)
           %x = call i8 @llvm.coro.suspend(token %s, i1 true)
           %y = call i8 @llvm.coro.suspend(token none, i1 true)
           ret ptr %h
         }
         define i32 @g(i32 %x) { %slot = alloca i32 store i32 %x, ptr %slot %y = load i32, ptr %slot ret i32 %y }
         declare token @llvm.coro.id(i32, ptr, ptr, ptr)
         declare ptr @llvm.coro.begin(token, ptr)
         declare ptr @llvm.coro.noop()
         declare token @llvm.coro.save(ptr)
         declare i8 @llvm.coro.suspend(token, i1)",
    );
    let engine = engine();
    let mut session = engine.load(&source).unwrap();
    check_contained(&mut session, "coro-split", "aborted", &["LLVM ERROR"]);
}

#[test]
fn time_and_memory_run_out_without_harm() {
    let source = bitcode("interpreter");
    let limits = Limits { pass_millis: 1, ..LIMITS };
    let engine = Engine::start(EngineConfig { limits, ..config() }).unwrap();
    let mut session = engine.load(&source).unwrap();
    let id = engine.pass("function-simplification<O3>").unwrap();
    let (why, message) = failure(session.apply(id, Observe::NOTHING));
    assert_eq!(why.kind(), "timed out", "{message}");

    // Thirty functions, each of which is twice the one before.
    let mut chain =
        "define void @f0(ptr %p) alwaysinline {\n store volatile i32 0, ptr %p\n ret void\n}\n"
            .to_owned();
    for level in 1..30 {
        let call = format!(" call void @f{}(ptr %p)\n", level - 1);
        chain +=
            &format!("define void @f{level}(ptr %p) alwaysinline {{\n{call}{call} ret void\n}}\n");
    }
    let limits = Limits { memory_bytes: 64 << 20, ..LIMITS };
    let engine = Engine::start(EngineConfig { limits, ..config() }).unwrap();
    let mut session = engine.load(&text(&chain)).unwrap();
    let id = engine.pass("always-inline").unwrap();
    let (why, message) = failure(session.apply(id, Observe::NOTHING));
    assert_eq!(why.kind(), "out of memory", "{message}");
}

#[test]
fn outside_kills_are_survived() {
    let engine = engine();
    let mut expected = engine.load(&bitcode("trie")).unwrap();
    let mut session = engine.load(&bitcode("trie")).unwrap();
    for pass in ["sroa", "simplifycfg", "inline", "gvn", "dse", "loop-rotate", "licm"] {
        apply(&mut expected, pass);
        session.kill_worker();
        apply(&mut session, pass);
        assert!(state(&mut session) == state(&mut expected), "{pass}");
        thread::yield_now();
    }
}

#[test]
fn pipelines_run_on_a_copy() {
    let engine = engine();
    let mut session = engine.load(&bitcode("stringsearch")).unwrap();
    let before = state(&mut session);
    let mut run = |name: &str, disabled: &[&str]| {
        let place = engine.hello().pipelines.iter().position(|pipeline| pipeline.name == name);
        let finish = Finish {
            pipeline: place.unwrap() as u16,
            disabled: disabled.iter().map(|pass| (*pass).to_owned()).collect(),
        };
        let options = PipelineOptions { finish, ..PipelineOptions::default() };
        let report = session.scratch().unwrap().pipeline(&options, Observe::COUNTS)?;
        let size = report.end().unwrap().observation.counts.unwrap().primary();
        Ok::<(u64, f64), EngineError>((size, report.finals.unwrap().primary()))
    };
    let (smallest, text) = run("Oz", &[]).unwrap();
    for name in ["O0", "O1", "O2", "O3", "as-is"] {
        let (size, other) = run(name, &[]).unwrap();
        assert!(size > smallest && other > text, "{name}: {size}, {other} bytes");
    }
    let error = run("Oz", &["gvn"]).unwrap_err().to_string();
    assert!(error.contains("`gvn` cannot be left out"), "{error}");
    assert_eq!(run("as-is", &[]).unwrap().0, before.1.counts.unwrap().primary());
    assert!(state(&mut session) == before);
    // As passes they lead to the same place.
    assert!(apply(&mut session, "default<Oz>"));
    assert_eq!(instructions(&mut session), smallest);
}
