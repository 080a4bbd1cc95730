//! Every pass of the table parses and runs on a small program. Each may abort, so they run in
//! processes of their own: this test program, started again.

mod common;

use std::{env, process::Command};

use common::{LOOP, load};
use xla_gym_llvm_shim::{find_pass, passes};

const FROM: &str = "XLA_GYM_TEST_PASSES_FROM";

/// Not a test of its own: runs all passes from the one that the environment names, and says which
/// one it begins.
#[test]
fn child() {
    let Ok(from) = env::var(FROM) else { return };
    for (at, pass) in passes().iter().enumerate().skip(from.parse().unwrap()) {
        println!("\nbegins {at}");
        let mut module = load(LOOP);
        if let Err(error) = module.run(pass) {
            println!("\nfails {at} {error}");
        } else if let Err(error) = module.verify() {
            println!("\nbreaks {at} {}", error.lines().next().unwrap_or_default());
        }
    }
    println!("\nbegins {}", passes().len());
}

#[test]
fn every_pass_runs_on_a_small_program() {
    let mut from = 0;
    let mut wrong = Vec::new();
    while from < passes().len() {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(FROM, from.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut begun = from;
        for line in text.lines() {
            if let Some(at) = line.strip_prefix("begins ") {
                begun = at.parse().unwrap();
            } else if line.starts_with("fails ") || line.starts_with("breaks ") {
                wrong.push(format!("{}: {line}", passes()[begun].name()));
            }
        }
        if begun < passes().len() {
            wrong.push(format!(
                "{}: {} {}",
                passes()[begun].name(),
                output.status,
                String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default()
            ));
        }
        from = begun + 1;
    }
    // Those that are known for it need not run.
    wrong.retain(|line| {
        passes().iter().all(|pass| pass.unfit().is_none() || !line.starts_with(&pass.name()))
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), passes().len(), wrong.join("\n"));
}

#[test]
fn levels_are_llvms() {
    xla_gym_llvm_shim::initialize(|| std::process::abort());
    let check = |name: &str, expected: &str| {
        assert_eq!(find_pass(name).unwrap().nested(), expected);
    };
    check("globalopt", "globalopt");
    check("inline:inline-threshold=5", "cgscc(inline)");
    check("gvn", "function(gvn)");
    check("licm", "function(loop-mssa(licm))");
    check("indvars", "function(loop(indvars))");
    check("loop-unroll", "function(loop-unroll)");
    check(
        "loop-mssa(simple-loop-unswitch<nontrivial>)",
        "function(loop-mssa(simple-loop-unswitch<nontrivial>))",
    );
    // Every pass finds a place behind any other.
    for pass in passes() {
        let mut module = load("define void @f() {\n ret void\n}");
        if pass.unfit().is_none() {
            module.run_pipeline(&format!("no-op-module,{}", pass.nested())).unwrap();
        }
    }
}
