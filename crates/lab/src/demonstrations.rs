//! Good orders for training graphs, by search, for agents to learn.

use std::path::PathBuf;

use anyhow::Result;
use xla_gym_agents::TrainedPolicy;
use xla_gym_proof::Options;
use xla_gym_search::Budget;
use xla_gym_teaching::{Searches, demonstrations};

use crate::bar::{Bar, setting};

/// Good orders for training graphs, by search, for agents to learn. `xla-gym teach` does this and all
/// that follows.
///
/// Searches from the program as emitted, and from the program made legal by XLA's own passes; with
/// `--astray`, from where a policy may stand after some steps of its own, to learn how to go on
/// from there (DAgger). Each order is run beside the program as emitted; one that is not found equal
/// is cut before the pass to blame, and where nothing can be proven the row has no passes, so that
/// nobody learns from it. Results are written as they come; a run that is started again goes on where
/// it ended.
#[derive(clap::Args)]
pub struct Args {
    /// Which graphs.
    #[arg(default_values_t = ["hlo-v1:all/train".to_owned()])]
    benchmarks: Vec<String>,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = 5000)]
    up_to: u64,

    /// Passes of each search.
    #[arg(long, default_value_t = 1000)]
    budget: u64,

    /// A policy whose walk each search begins with and whose word it heeds, or which goes astray: a
    /// name or a file.
    #[arg(long)]
    policy: Option<String>,

    /// Searches for each program and start, each after a few steps that the policy takes by chance,
    /// now and then a pass that it would never take.
    #[arg(long, requires = "policy", value_name = "SEARCHES",
          value_parser = clap::value_parser!(u64).range(1..))]
    astray: Option<u64>,

    /// On how many kinds of inputs at least orders are proven.
    #[arg(long, default_value_t = Options::default().trials)]
    trials: u32,

    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Where to write the orders, one line of JSON each.
    #[arg(long, short)]
    output: PathBuf,
}

pub fn run(args: Args) -> Result<()> {
    let how = Searches {
        benchmarks: args.benchmarks,
        largest: args.up_to,
        budget: Budget::passes(args.budget),
        seed: args.seed,
        trials: args.trials,
        policy: args.policy.as_deref().map(|name| TrainedPolicy::find(name, "xla")).transpose()?,
        astray: args.astray,
    };
    let bar = Bar::default();
    Ok(demonstrations(&how, &args.output, &setting(&bar)?)?)
}
