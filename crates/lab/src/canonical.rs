//! Orders in which passes are named alike.

use std::path::PathBuf;

use anyhow::Result;
use xla_gym_teaching::canonical;

use crate::bar::{Bar, setting};

/// Orders in which passes are named alike: where several variants of a pass make the same program,
/// the one that all orders together use most.
///
/// What a search finds is full of chance: `algsimp:scalar-multiply` here, `algsimp` there, to the
/// same effect. Who learns from such orders learns the chance too, and uses a pass that copies
/// functions where one that does not would have done. What is in the output already is not done
/// again.
#[derive(clap::Args)]
pub struct Args {
    /// Orders, as `xla-gym-lab demonstrations` writes them.
    orders: PathBuf,

    /// Where to write them.
    #[arg(long, short)]
    output: PathBuf,
}

pub fn run(args: Args) -> Result<()> {
    let bar = Bar::default();
    let done = canonical(&args.orders, &args.output, &setting(&bar)?)?;
    drop(bar);
    println!("{} of {} passes have another name now", done.renamed, done.passes);
    if done.elsewhere > 0 {
        println!("{} orders do not lead to as many operations as they say", done.elsewhere);
    }
    Ok(())
}
