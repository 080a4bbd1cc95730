//! Orders in which passes are named alike.

use std::{collections::HashMap, path::Path, sync::Arc};

use xla_gym_agents::Demonstration;
use xla_gym_engine::protocol::PassId;
use xla_gym_env::{EnvError, Walk, World};

use crate::{
    Setting, TeachError,
    by_program::{by_program, read_sorted},
    program::prefix,
};

/// What came of naming passes alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renamed {
    /// Passes in all orders.
    pub passes: usize,
    /// Those that have another name now.
    pub renamed: usize,
    /// Orders that do not lead to as much of the primary metric as they said.
    pub elsewhere: usize,
}

/// Orders in which passes are named alike: where several variants of a pass make the same program,
/// the one that all orders together use most.
///
/// What a search finds is full of chance: `algsimp:scalar-multiply` here, `algsimp` there, to the
/// same effect. Who learns from such orders learns the chance too, and uses a pass that copies
/// functions where one that does not would have done.
pub fn canonical(
    orders: &Path,
    output: &Path,
    setting: &Setting<'_>,
) -> Result<Renamed, TeachError> {
    let orders = read_sorted(&[orders])?;
    let common = by_use(&orders);
    let said = by_program(&orders, output, 1, setting, |program, _, order| {
        let (passes, operations) = say(program.world()?, order, &common)?;
        Ok(Demonstration { passes, operations, ..order.clone() })
    })?;
    let mut renamed = Renamed::default();
    for (order, said) in orders.iter().zip(&said) {
        renamed.passes += order.passes.len();
        renamed.renamed += order.passes.iter().zip(&said.passes).filter(|(a, b)| a != b).count();
        renamed.elsewhere += usize::from(order.operations != said.operations);
    }
    Ok(renamed)
}

/// The passes of all orders, the one that is used most first.
fn by_use(orders: &[Demonstration]) -> Vec<String> {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for pass in orders.iter().flat_map(|order| &order.passes) {
        *uses.entry(pass).or_default() += 1;
    }
    let mut uses: Vec<(&str, usize)> = uses.into_iter().collect();
    uses.sort_by_key(|(pass, uses)| (std::cmp::Reverse(*uses), *pass));
    uses.into_iter().map(|(pass, _)| pass.to_owned()).collect()
}

/// The same programs in the same order, each made by the first variant that makes it; and how much
/// of the primary metric the last one has.
fn say(
    world: &Arc<World>,
    order: &Demonstration,
    common: &[String],
) -> Result<(Vec<String>, u64), EnvError> {
    let ids = world.engine().passes(common.iter().map(String::as_str))?;
    let mut walk = Walk::begin_after(world, 0, &prefix(world, order)?)?;
    let mut said = Vec::new();
    for name in &order.passes {
        let mut there = walk.fork_with_program()?;
        there.step(world.engine().pass(name)?)?;
        let mut chosen = name;
        let same = base(world, world.engine().pass(name)?);
        for (other, id) in common.iter().zip(&ids).filter(|(_, id)| base(world, **id) == same) {
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
    Ok((said, walk.state().counts.primary()))
}

/// The name of a pass without its options.
fn base(world: &World, pass: PassId) -> &str {
    &world.engine().hello().passes[usize::from(pass.0)].base
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{demonstration, world_of};

    const PROGRAM: &str = "hlo-v1/mlp/classifier-forward-8l";

    #[test]
    fn passes_that_are_used_most_come_first() {
        let orders = [["dce", "cse"], ["cse", "algsimp"]].map(|o| demonstration(PROGRAM, &o));
        assert_eq!(by_use(&orders), ["cse", "algsimp", "dce"]);
    }

    #[test]
    fn a_variant_that_does_the_same_takes_the_name_that_is_used_most() {
        let world = world_of(PROGRAM);
        let once = demonstration(PROGRAM, &["algsimp:dot-strength", "dce"]);
        let common: Vec<String> =
            ["algsimp", "cse", "algsimp:dot-strength", "dce"].map(Into::into).into();
        let (said, operations) = say(&world, &once, &common).unwrap();
        assert_eq!(said, ["algsimp", "dce"]);
        assert!(operations > 0);
        let plain = demonstration(PROGRAM, &["algsimp", "dce"]);
        assert_eq!(say(&world, &plain, &common).unwrap(), (said, operations));
        let after = vec!["algsimp".to_owned()];
        let rest = Demonstration { after, ..demonstration(PROGRAM, &["dce"]) };
        assert_eq!(say(&world, &rest, &common).unwrap(), (vec!["dce".to_owned()], operations));
    }
}
