//! Whether a demonstration computes what it should.

use std::sync::Arc;

use xla_gym_agents::Demonstration;
use xla_gym_env::{EnvError, World};
use xla_gym_proof::{Outputs, Pipeline, Prover};

use crate::program::{along, ids, prefix, start_of};

/// Runs what an order makes of its program, the only one of the world, beside the program as emitted.
/// What is not found equal is cut back to the best that is, and said.
pub(crate) fn prove(
    world: &Arc<World>,
    prover: &Prover,
    order: &mut Demonstration,
) -> Result<Option<String>, EnvError> {
    let start = start_of(world, order.start.as_deref())?;
    let pipeline = Pipeline::from_start(world.profile().spec(), start);
    let prefix = prefix(world, order)?;
    let passes = ids(world, &order.passes)?;
    let proof = prover.prove(&mut along(world, &prefix, &passes)?, pipeline)?;
    order.outputs = proof.outputs.clone();
    if proof.outputs == Outputs::Equal {
        return Ok(None);
    }
    let mut good = 0;
    let mut words = proof.words;
    if !matches!(proof.outputs, Outputs::NotComparable(_) | Outputs::Unchecked)
        && let Some(guilty) = prover.guilty(&along(world, &prefix, &[])?, &passes, pipeline)?
    {
        words = format!("{words}, after {}", guilty.pass);
        // The fewest operations before it, by the fewest passes.
        let mut walk = along(world, &prefix, &[])?;
        let mut best = (walk.state().counts.primary(), 0);
        for (number, &pass) in passes[..guilty.before].iter().enumerate() {
            walk.step(pass)?;
            best = best.min((walk.state().counts.primary(), number + 1));
        }
        let proof = prover.prove(&mut along(world, &prefix, &passes[..best.1])?, pipeline)?;
        if proof.outputs == Outputs::Equal {
            (good, order.outputs) = (best.1, proof.outputs);
        }
    }
    order.passes.truncate(good);
    order.operations = along(world, &prefix, &passes[..good])?.state().counts.primary();
    Ok(Some(format!("{words}; {good} of {} passes are kept", passes.len())))
}

#[cfg(test)]
mod tests {
    use xla_gym_proof::Options;

    use super::*;
    use crate::program::{demonstration, world_of};

    #[test]
    fn an_order_is_cut_before_the_pass_that_makes_it_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scatter.hlo");
        std::fs::write(&file, include_str!("../../../testdata/proof/batched-scatter.hlo")).unwrap();
        let file = file.to_str().unwrap();
        let world = world_of(file);
        let prover = Prover::new(Options { trials: 1, ..Options::default() });
        let passes = ["algsimp", "scatter_determinism_expander", "dce", "algsimp"];
        let mut wrong = demonstration(file, &passes);
        let words = prove(&world, &prover, &mut wrong).unwrap().unwrap();
        assert!(words.contains("after scatter_determinism_expander"), "{words}");
        assert_eq!(wrong.passes, ["algsimp"]);
        assert_eq!(wrong.outputs, Outputs::Equal);
        assert!(wrong.operations < world.emitted_state(0).unwrap().counts.primary());
        let mut right = demonstration(file, &["algsimp", "dce"]);
        assert!(prove(&world, &prover, &mut right).unwrap().is_none());
        assert_eq!((right.passes.len(), right.outputs), (2, Outputs::Equal));
        // What is wrong before it begins cannot be mended.
        let mut lost = demonstration(file, &["algsimp"]);
        lost.after = vec!["scatter_determinism_expander".to_owned()];
        prove(&world, &prover, &mut lost).unwrap().unwrap();
        assert!(lost.passes.is_empty() && lost.outputs == Outputs::Different);
    }
}
