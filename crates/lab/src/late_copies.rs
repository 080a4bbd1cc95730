//! Orders in which functions are copied as late as possible.

use std::path::PathBuf;

use anyhow::Result;
use xla_gym_proof::Options;
use xla_gym_teaching::late_copies;

use crate::bar::{Bar, setting};

/// Orders in which functions are copied as late as possible: everything else comes first.
///
/// Inlining a function that is called more than once pays on some programs and not on others, and
/// cannot be taken back. Who has done everything else before has lost nothing by it: the fewest
/// operations on the way count. Orders that need the copies early stay as they are, and so do those
/// whose outputs would not be found equal. What is in the output already is not done again.
#[derive(clap::Args)]
pub struct Args {
    /// Files with orders, as `xla-gym-lab demonstrations` writes them.
    #[arg(required = true)]
    orders: Vec<PathBuf>,

    /// How many operations more than before are no reason to keep an order, for a thousand of them.
    #[arg(long, default_value_t = 5)]
    lenient: u64,

    /// On how many kinds of inputs at least orders are proven.
    #[arg(long, default_value_t = Options::default().trials)]
    trials: u32,

    /// Where to write them.
    #[arg(long, short)]
    output: PathBuf,
}

pub fn run(args: Args) -> Result<()> {
    let bar = Bar::default();
    let orders: Vec<_> = args.orders.iter().map(PathBuf::as_path).collect();
    let done = late_copies(&orders, &args.output, args.lenient, args.trials, &setting(&bar)?)?;
    drop(bar);
    println!(
        "of {} orders that copy functions, {} do without and {} do it later",
        done.copied, done.without, done.late
    );
    Ok(())
}
