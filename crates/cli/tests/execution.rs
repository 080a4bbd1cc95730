//! Commands that run programs: exec, check, score.

mod common;

use std::fs;

use common::{Home, graph, mlp, stage};

#[test]
fn exec_gives_the_same_digest_again() {
    let home = Home::new();
    let file = mlp("hlo");
    let exec = |arguments: &[&str]| {
        let shown = home.json(&[&["exec", "--runs", "3"], arguments].concat());
        shown["digest"].as_str().unwrap().to_owned()
    };
    let digest = exec(&[&file]);
    assert_eq!(exec(&[&mlp("stablehlo.mlir")]), digest);
    assert_ne!(exec(&[&file, "--seed", "1"]), digest);
    let text = home.run(&["exec", &file, "--runs", "3"]).expect(0);
    text.prints(&["compile time", "median run", &digest]);
}

#[test]
fn check_finds_equal_programs() {
    let home = Home::new();
    let file = mlp("hlo");
    home.run(&["run", &file, "-p", "call-inliner,algsimp,reshape-mover,cse", "-o", "b.pb"])
        .expect(0);
    home.run(&["check", &file, "b.pb"]).expect(0).prints(&["equal on ", " sets of inputs"]);
    let report = home.json(&["check", &file, "b.pb", "--trials", "5", "--seed", "9"]);
    assert_eq!(report["verdict"], "equal");
    // A small program gets more.
    let trials = report["trials"].as_u64().unwrap();
    assert!(trials >= 5, "{report}");
    assert_eq!(report["elements"], trials * 8 * 10);
}

#[test]
fn check_finds_a_changed_operation() {
    let home = Home::new();
    let file = mlp("hlo");
    let text = fs::read_to_string(&file).unwrap();
    for (name, from, to) in
        [("add.hlo", " add(", " subtract("), ("divide.hlo", " divide(", " multiply(")]
    {
        home.write(name, text.replacen(from, to, 1));
        home.run(&["check", &file, name]).expect(4).prints(&["DIFFERENT", "output 0 (f32)"]);
    }
    let report = home.run(&["check", &file, "add.hlo", "--json"]).expect(4).json();
    assert_eq!(report["verdict"], "different");
}

#[test]
fn check_says_what_cannot_be_compared() {
    let home = Home::new();
    home.write(
        "rng.hlo",
        "HloModule m\n\nENTRY e {\n  a = f32[] constant(0)\n  b = f32[] constant(1)\n  \
         ROOT r = f32[4] rng(a, b), distribution=rng_uniform\n}\n",
    );
    let check = |a: &str, b: &str, reason: &str| {
        home.run(&["check", a, b]).expect(5).prints(&["not comparable", reason]);
    };
    let doubled =
        fs::read_to_string(home.path("rng.hlo")).unwrap().replace("constant(1)", "constant(2)");
    home.write("twice.hlo", doubled);
    check("rng.hlo", "twice.hlo", "rng");
    // Which device gets what is said by shardings; without them nobody knows.
    home.write(
        "bare.hlo",
        "HloModule m\n\nsum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n\
         ENTRY e { x = f32[4] parameter(0)  ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, \
         to_apply=sum }\n",
    );
    check("bare.hlo", "bare.hlo", "which devices there are");
    let collectives = graph("collectives");
    home.run(&["check", &collectives, &collectives]).expect(0).prints(&["equal on"]);
    home.run(&["check", &mlp("hlo"), &graph("fft")]).expect(4).prints(&["DIFFERENT: it has"]);
    // An unknown function stands for itself in a comparison, but takes no time that means anything.
    let custom = graph("custom-call");
    home.run(&["check", &custom, &custom])
        .expect(0)
        .prints(&["arbitrary function stood for lapack"]);
    home.run(&["exec", &custom]).expect(1).says(&["lapack"]);
}

#[test]
fn score_compares_with_xla() {
    let home = Home::new();
    let passes = "call-inliner,algsimp,scatter_simplifier,dce,cse,reshape-mover,algsimp,dce,cse";
    let score = ["score", &graph("gpt2-train-1l"), "-p", passes, "--trials", "1", "-o", "best.pb"];
    let shown = home.json(&score);
    let ratio = |name: &str| stage(&shown, name)["value"].as_f64().unwrap();
    assert!((0.5..1.5).contains(&ratio("order")), "{shown}");
    assert!((0.5..1.5).contains(&ratio("legal")), "{shown}");
    let order = stage(&shown, "order");
    let reduction = |end: &str| order["initial"].as_f64().unwrap() - order[end].as_f64().unwrap();
    assert!((ratio("order") - reduction("result") / reduction("default")).abs() < 1e-9);
    for kind in ["default", "result", "before"] {
        assert!(stage(&shown, "kernels")[kind].as_u64().unwrap() > 100, "{shown}");
    }
    assert_eq!(shown["skipped"][0][0], "scatter_simplifier", "{shown}");
    assert_eq!(shown["invalid"], serde_json::Value::Null);
    assert_eq!(shown["outputs_prefix"]["verdict"], "equal");
    assert_eq!(shown["outputs_replace"]["verdict"], "equal");
    assert_eq!(home.fingerprint("best.pb"), shown["fingerprint"].as_str().unwrap());
    home.expect_clean(1);
}

#[test]
fn score_prints_a_table() {
    let home = Home::new();
    let text =
        home.run(&["score", &mlp("hlo"), "-p", "algsimp,dce", "--start", "normalized"]).expect(0);
    text.prints(&["operations, order", "kernels", "verifier accepts", "equal on "]);
    let quick = home.run(&["score", &mlp("hlo"), "-p", "dce", "--no-check"]).expect(0);
    assert!(!quick.stdout.contains("Outputs"), "{quick:#?}");
}

/// A program that turns so often, and nothing else.
fn looping(turns: u32) -> String {
    format!(
        "HloModule loop
body {{
  state = (s32[], f32[16]) parameter(0)
  turn = s32[] get-tuple-element(state), index=0
  x = f32[16] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(turn, one)
  y = f32[16] tanh(x)
  ROOT out = (s32[], f32[16]) tuple(next, y)
}}
condition {{
  state = (s32[], f32[16]) parameter(0)
  turn = s32[] get-tuple-element(state), index=0
  turns = s32[] constant({turns})
  ROOT goes-on = pred[] compare(turn, turns), direction=LT
}}
ENTRY main {{
  x = f32[16] parameter(0)
  zero = s32[] constant(0)
  begin = (s32[], f32[16]) tuple(zero, x)
  end = (s32[], f32[16]) while(begin), condition=condition, body=body
  ROOT y = f32[16] get-tuple-element(end), index=1
}}"
    )
}

#[test]
fn two_programs_are_run_in_turn_until_it_is_clear_which_is_faster() {
    let home = Home::new();
    home.write("slow.hlo", looping(2000));
    home.write("fast.hlo", looping(1600));
    home.write("other.hlo", "HloModule other\nENTRY main {\n  ROOT x = f32[4] parameter(0)\n}\n");
    let ran = home.run(&["exec", "slow.hlo", "--against", "fast.hlo", "--seconds", "30"]).expect(0);
    ran.prints(&["times as fast", "the second runs faster"]);
    let timing = home.json(&["exec", "fast.hlo", "--against", "slow.hlo", "--seconds", "30"]);
    let (speedup, high) = (&timing["run"]["speedup"], &timing["run"]["interval"][1]);
    assert!(speedup.as_f64().unwrap() < 0.95 && high.as_f64().unwrap() < 1.0, "{timing}");
    let timing = home.json(&["exec", "slow.hlo", "--against", "slow.hlo", "--seconds", "10"]);
    assert_eq!(timing["run"]["within_noise"], true, "{timing}");
    home.run(&["exec", "slow.hlo", "--against", "other.hlo"])
        .expect(1)
        .says(&["slow.hlo and other.hlo do not take the same inputs"]);
    home.run(&["exec", "slow.hlo", "--against", "fast.hlo", "--seconds", "0"])
        .expect(2)
        .says(&["seconds are a number over 0"]);
}
