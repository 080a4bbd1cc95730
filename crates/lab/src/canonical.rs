//! Orders in which passes are named alike.

use std::{collections::HashMap, path::PathBuf};

use anyhow::{Context as _, Result};
use xla_gym_common::on_all_cores;
use xla_gym_env::Walk;

use crate::{demonstrations::Row, graphs};

/// Orders in which passes are named alike: where several variants of a pass make the same program,
/// the one that all orders together use most.
///
/// What a search finds is full of chance: `algsimp:scalar-multiply` here, `algsimp` there, to the
/// same effect. Who learns from such orders learns the chance too, and uses a pass that copies
/// functions where one that does not would have done.
#[derive(clap::Args)]
pub struct Args {
    /// Orders, as `xla-gym-lab demonstrations` writes them.
    orders: PathBuf,

    /// Where to write them.
    #[arg(long, short)]
    output: PathBuf,
}

pub fn run(args: Args) -> Result<()> {
    let mut rows = Row::read(&args.orders)?;
    let common = by_use(&rows);
    let bar = graphs::progress(rows.len() as u64, "orders");
    let said = on_all_cores(rows.len(), |index| {
        let row = &rows[index];
        let passes = say(row, &common).with_context(|| row.benchmark.clone());
        bar.inc(1);
        passes
    })?;
    bar.finish_and_clear();
    let steps: usize = rows.iter().map(|row| row.passes.len()).sum();
    let (mut changed, mut elsewhere) = (0, 0);
    for (row, (passes, operations)) in rows.iter_mut().zip(said) {
        elsewhere += usize::from(operations != row.operations);
        changed += row.passes.iter().zip(&passes).filter(|(old, new)| old != new).count();
        row.passes = passes;
    }
    Row::write(&rows, &args.output)?;
    println!("{changed} of {steps} passes have another name now");
    if elsewhere > 0 {
        println!("{elsewhere} orders do not lead to as many operations as they say");
    }
    Ok(())
}

/// The passes of all orders, the one that is used most first.
fn by_use(rows: &[Row]) -> Vec<String> {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for pass in rows.iter().flat_map(|row| &row.passes) {
        *uses.entry(pass).or_default() += 1;
    }
    let mut uses: Vec<(&str, usize)> = uses.into_iter().collect();
    uses.sort_by_key(|(pass, uses)| (std::cmp::Reverse(*uses), *pass));
    uses.into_iter().map(|(pass, _)| pass.to_owned()).collect()
}

/// The same programs in the same order, each made by the first variant that makes it; and how many
/// operations the last one has.
fn say(row: &Row, common: &[String]) -> Result<(Vec<String>, u64)> {
    let world = row.world()?;
    let ids = world.engine().passes(common.iter().map(String::as_str))?;
    let mut walk = Walk::begin_after(&world, 0, &row.prefix(&world)?)?;
    let mut said = Vec::new();
    for name in &row.passes {
        let mut there = walk.fork_with_program()?;
        there.step(world.engine().passes([name.as_str()])?[0])?;
        let mut chosen = name;
        for (other, id) in common.iter().zip(&ids).filter(|(other, _)| base(other) == base(name)) {
            if other == name {
                break;
            }
            let mut trial = walk.fork_with_program()?;
            if trial.step(*id)?.changed && trial.state().id == there.state().id {
                chosen = other;
                break;
            }
        }
        said.push(chosen.clone());
        walk = there;
    }
    Ok((said, walk.state().counts.operations))
}

/// The name of a pass without its options.
fn base(pass: &str) -> &str {
    pass.split_once(':').map_or(pass, |(base, _)| base)
}

#[cfg(test)]
mod tests {
    use xla_gym_proof::Outputs;

    use super::*;

    fn row(passes: &[&str]) -> Row {
        let passes = passes.iter().map(|pass| (*pass).to_owned()).collect();
        let benchmark = "hlo-v1/mlp/classifier-forward-8l".to_owned();
        Row {
            benchmark,
            legal: false,
            after: Vec::new(),
            passes,
            initial: 0,
            default: 0,
            operations: 0,
            outputs: Outputs::Unchecked,
        }
    }

    #[test]
    fn passes_that_are_used_most_come_first() {
        let rows = [row(&["dce", "cse"]), row(&["cse", "algsimp"])];
        assert_eq!(by_use(&rows), ["cse", "algsimp", "dce"]);
    }

    #[test]
    fn a_variant_that_does_the_same_takes_the_name_that_is_used_most() {
        let once = row(&["algsimp:dot-strength", "dce"]);
        let common: Vec<String> =
            ["algsimp", "cse", "algsimp:dot-strength", "dce"].map(Into::into).into();
        let (said, operations) = say(&once, &common).unwrap();
        assert_eq!(said, ["algsimp", "dce"]);
        assert!(operations > 0);
        let (same, also) = say(&row(&["algsimp", "dce"]), &common).unwrap();
        assert_eq!((same, also), (said, operations));
        let after = vec!["algsimp".to_owned()];
        let (rest, also) = say(&Row { after, ..row(&["dce"]) }, &common).unwrap();
        assert_eq!((rest, also), (vec!["dce".to_owned()], operations));
    }
}
