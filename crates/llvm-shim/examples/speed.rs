//! What looking at a program costs beside running passes on it: `speed FILE...`, bitcode or text.
//! Medians in microseconds.

use std::{env, fs, hint::black_box, time::Instant};

use xla_gym_llvm_shim::{self as llvm, Module};

/// Of what CompilerGym's users run most.
const PASSES: [&str; 8] =
    ["mem2reg", "sroa", "early-cse", "simplifycfg", "instcombine", "gvn", "licm", "inline"];

fn main() {
    llvm::initialize(|| std::process::abort());
    for path in env::args().skip(1) {
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let module = Module::parse(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
        println!("{path}: {:?}", module.counts());
        let row = |name: &str, mut work: Box<dyn FnMut() + '_>| {
            println!("{:>12.1} {name}", median(&mut work));
        };
        row(
            "counts",
            Box::new(|| {
                black_box(module.counts());
            }),
        );
        row(
            "opcodes",
            Box::new(|| {
                black_box(module.opcodes());
            }),
        );
        row(
            "InstCount",
            Box::new(|| {
                black_box(module.inst_count());
            }),
        );
        row(
            "Autophase",
            Box::new(|| {
                black_box(module.autophase());
            }),
        );
        row(
            "content",
            Box::new(|| {
                black_box(module.content());
            }),
        );
        row(
            "exact",
            Box::new(|| {
                black_box(module.exact());
            }),
        );
        row(
            "version",
            Box::new(|| {
                black_box(module.version());
            }),
        );
        row("verify", Box::new(|| drop(black_box(module.verify()))));
        row("graph", Box::new(|| drop(black_box(module.graph()))));
        row("copy", Box::new(|| drop(black_box(module.clone()))));
        row("bitcode", Box::new(|| drop(black_box(module.bitcode(false)))));
        row("read", Box::new(|| drop(black_box(Module::parse(&bytes)))));
        let mut copy = module.clone();
        row("no pass", Box::new(|| drop(black_box(copy.run_pipeline("no-op-module")))));
        let all: Vec<f64> = PASSES
            .iter()
            .map(|name| {
                let pass = llvm::find_pass(name).expect("it is in the table");
                let time = fresh_median(&module, |copy| drop(black_box(copy.run(pass))));
                println!("{time:>12.1} {}", pass.name());
                time
            })
            .collect();
        println!("{:>12.1} mean of these passes", all.iter().sum::<f64>() / all.len() as f64);
    }
}

/// Of up to 51 runs, or as many as a second holds.
fn median(work: &mut dyn FnMut()) -> f64 {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 51 && (times.is_empty() || begin.elapsed().as_secs() < 1) {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The same for what changes the program: each run has a copy of its own.
fn fresh_median(module: &Module, work: impl Fn(&mut Module)) -> f64 {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 51 && (times.is_empty() || begin.elapsed().as_secs() < 1) {
        let mut copy = module.clone();
        let start = Instant::now();
        work(&mut copy);
        times.push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
