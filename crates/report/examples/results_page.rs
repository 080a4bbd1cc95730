//! Writes a page of made-up results: `cargo run -p xla-gym-report --example results_page -- FOLDER`.
//! The tests use the same results.

use std::{collections::BTreeMap, path::PathBuf};

use xla_gym_report::{
    Baseline,
    results::{
        Header, Kind, Outcome, Outputs, Progress, Ratio, Stage, StageInfo, results_page, summary,
        summary_text,
    },
};

fn main() -> std::io::Result<()> {
    let (header, outcomes) = (header(), outcomes());
    print!("{}", summary_text(&header, &summary(&header, &outcomes)));
    let Some(folder) = std::env::args().nth(1).map(PathBuf::from) else {
        eprintln!("give a folder to write the web page to");
        return Ok(());
    };
    std::fs::create_dir_all(&folder)?;
    let page = results_page(&header, &outcomes, &progress(), "Pass orders learnt, an example");
    std::fs::write(folder.join("index.html"), page.html)?;
    for (name, content) in page.svgs.into_iter().chain(page.csvs) {
        std::fs::write(folder.join(name), content)?;
    }
    Ok(())
}

/// What the numbers of the outcomes are.
pub fn header() -> Header {
    let stage = |name: &str, label: &str, title: &str| StageInfo {
        name: name.to_owned(),
        label: label.to_owned(),
        title: title.to_owned(),
        things: "operations".to_owned(),
        ratio: Ratio::Removed,
        with_interval: true,
        note: String::new(),
    };
    Header {
        baseline: Baseline::new("XLA's own", "XLA's own order"),
        stages: vec![
            stage("order", "order", "at the best state on the way"),
            StageInfo {
                with_interval: false,
                ..stage("end", "at end", "at the end of the trajectory")
            },
            stage("legal", "legal", "legal programs"),
            StageInfo {
                things: "kernels".to_owned(),
                ratio: Ratio::Left,
                note: "after the whole pipeline".to_owned(),
                ..stage("kernels", "kernels", "kernels")
            },
        ],
    }
}

/// A number from 0 to 1 that looks random.
fn noise(of: &[u64]) -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for part in of {
        state = (state ^ part).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 32;
    }
    (state >> 11) as f64 / (1u64 << 53) as f64
}

/// Contestants of all kinds on two splits, as they might do.
pub fn outcomes() -> Vec<Outcome> {
    let rollouts = [
        ("ppo", 1.02),
        ("ppo-mask", 1.04),
        ("ppo-mask-recurrent", 1.05),
        ("ppo-imitation", 1.035),
        ("a2c", 0.97),
        ("dqn", 0.94),
        ("trpo", 1.0),
    ];
    let mut all = Vec::new();
    for (index, (name, quality)) in (1..).zip(rollouts) {
        for seed in 0..5 {
            all.extend(attempt(name, index, Kind::Rollout, 45, seed, quality));
        }
    }
    for (step, budget) in (0..).zip([100, 300, 1000, 3000]) {
        for seed in 0..3 {
            let gain = 0.012 * f64::from(step);
            all.extend(attempt("ppo", 20, Kind::Search, budget, seed, 1.055 + gain));
            all.extend(attempt("evolve", 21, Kind::Search, budget, seed, 1.02 + 1.4 * gain));
            all.extend(attempt("random", 22, Kind::Baseline, budget, seed, 0.86 + 2.0 * gain));
            all.extend(attempt("greedy", 23, Kind::Baseline, budget, seed, 0.98 + gain));
        }
    }
    all.extend(attempt("default", 0, Kind::Baseline, 0, 0, 1.0));
    all
}

/// One seed of a contestant on all graphs.
fn attempt(
    name: &str,
    index: u64,
    kind: Kind,
    budget: u64,
    seed: u64,
    quality: f64,
) -> Vec<Outcome> {
    let families = ["gpt2", "signal", "ode", "conv", "diffusion"];
    let graph = |number: u64| {
        let family = families[number as usize % families.len()];
        let split = if number.is_multiple_of(3) { "unseen/test" } else { "diverse/test" };
        let initial = 60 + (noise(&[number]) * 900.0) as u64;
        // Of some graphs XLA's own order removes nothing.
        let reduction = if number % 17 == 4 { 0.0 } else { 0.1 + 0.4 * noise(&[number, 1]) };
        let default = initial - (initial as f64 * reduction) as u64;
        let luck = noise(&[number, index, budget]) + noise(&[number, index, seed, budget]) - 1.0;
        let removed = (initial - default) as f64 * (quality + 0.25 * luck);
        let removed = match (index, number) {
            (0, _) => (initial - default) as f64,
            // Some fail altogether.
            (6, 13) => -40.0,
            (_, number) if number % 17 == 4 && index == 20 => 3.0,
            _ => removed,
        };
        let result = (initial as f64 - removed).round() as u64;
        let outputs = match (index, number) {
            // Seven are not found equal, of one contestant.
            (6, 13) => Outputs::Different,
            (6, 20..26) => Outputs::NotComparable("it needs several devices".to_owned()),
            _ => Outputs::Equal,
        };
        let stage = |name: &str, initial: u64, result: u64| {
            Stage::new(name, initial as f64, default as f64, result as f64)
        };
        let passes = Some(vec!["algsimp".to_owned(), "cse".to_owned()]);
        let mut stages =
            vec![Stage { outputs: Some(outputs), passes, ..stage("order", initial, result) }];
        if kind == Kind::Rollout {
            let end = result + (4.0 * noise(&[number, seed])) as u64;
            stages.push(stage("end", initial, end));
        }
        stages.push(stage("legal", initial + 20, result));
        let kernels = |operations: u64| (operations / 6 + 1) as f64;
        stages.push(Stage::left("kernels", kernels(default), kernels(result)));
        Outcome {
            graph: format!("hlo-v1/{family}/example-{number}"),
            splits: vec![split.to_owned()],
            contestant: name.to_owned(),
            kind,
            seed,
            weights: None,
            budget,
            charged: budget,
            stages,
            seconds: budget as f64 * (0.002 + 0.02 * noise(&[number, 9])),
            ..Outcome::default()
        }
    };
    (0..90).map(graph).collect()
}

/// Training runs of three algorithms with three seeds each.
pub fn progress() -> Vec<Progress> {
    let mut lines = Vec::new();
    for (index, (algorithm, goal)) in (0..).zip([("ppo", 1.04), ("a2c", 0.97), ("dqn", 0.93)]) {
        for seed in 0..3u64 {
            for update in 1..=200u64 {
                let share = update as f64 / 200.0;
                let wobble = noise(&[index, seed]) * 0.06 - 0.03;
                let ratio = goal - 0.5 * (-4.0 * share).exp() + wobble * share;
                let noisy = ratio + 0.1 * (noise(&[index, seed, update]) - 0.5);
                lines.push(Progress {
                    run: format!("{algorithm}-{seed}"),
                    algorithm: algorithm.to_owned(),
                    seed,
                    step: update * 2048,
                    seconds: update as f64 * 31.0,
                    environment_seconds: update as f64 * 24.0,
                    learner_seconds: update as f64 * 6.0,
                    episode_return: noisy * 10.0,
                    ratio: noisy,
                    validation: update.is_multiple_of(10).then_some(ratio - 0.01),
                    figures: BTreeMap::from([("entropy".to_owned(), 3.0 - 2.0 * share)]),
                });
            }
        }
    }
    lines
}
