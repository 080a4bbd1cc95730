//! Behaviour cloning of what a search found, before learning by trial.

use std::path::{Path, PathBuf};

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use xla_gym_common::on_all_cores;
use xla_gym_env::{Env, EnvError};
use xla_gym_nn::{Adam, Matrix, Mlp, Tape, clip_norm};
use xla_gym_report::results::Outputs;

use crate::{
    actor_critic::{by_logits, pick},
    choice, earlier,
    episode::Gatherer,
    error::AgentError,
};

/// How to learn from orders that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Imitation {
    /// The orders: lines of JSON with `benchmark` and `passes`, perhaps also `start` and `after` (see
    /// [`Demonstration`]), in a file relative to the folder of the configuration. Those of programs
    /// that are not trained on are passed over.
    pub orders: PathBuf,
    /// Passes over all of them.
    #[serde(default = "epochs")]
    pub epochs: usize,
    /// Steps of orders in each step of the optimiser.
    #[serde(default = "batch")]
    pub batch: usize,
    /// Step of the optimiser.
    #[serde(default = "learning_rate")]
    pub learning_rate: f64,
    /// What indecision is worth.
    #[serde(default)]
    pub entropy: f32,
}

fn epochs() -> usize {
    30
}

fn batch() -> usize {
    256
}

fn learning_rate() -> f64 {
    1e-3
}

/// An order that was good for a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demonstration {
    /// The program.
    pub benchmark: String,
    /// Where the order begins: a start of the compiler's profile, by name; where episodes begin, if
    /// nothing is said. Earlier versions told two starts apart by `legal`.
    #[serde(
        default,
        alias = "legal",
        deserialize_with = "earlier::start",
        skip_serializing_if = "Option::is_none"
    )]
    pub start: Option<String>,
    /// Passes that come before the order, and are not to be learnt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The passes that change something, in order.
    pub passes: Vec<String>,
    /// Operations where the order begins: of the program as emitted, or made legal. 0 if nobody
    /// counted them, here and below.
    #[serde(default)]
    pub initial: u64,
    /// Operations after the compiler's own order.
    #[serde(default)]
    pub default: u64,
    /// Operations after this one.
    #[serde(default)]
    pub operations: u64,
    /// Whether what they make of the program was run and found to compute what it should. Whoever
    /// reads it decides; `xla-gym-lab recheck --keep-equal` leaves out the others.
    #[serde(default)]
    pub outputs: Outputs,
}

/// Reads orders from lines of JSON.
pub fn read_demonstrations(path: &Path) -> Result<Vec<Demonstration>, AgentError> {
    Ok(xla_gym_rows::read(path)?)
}

/// Steps of orders: what was seen, and what to do there.
#[derive(Clone, Debug, PartialEq)]
pub struct Examples {
    /// What the policy sees, row by row.
    pub seen: Matrix,
    /// What to do.
    pub actions: Vec<usize>,
}

/// Walks along orders and writes down what is seen on the way. Those that begin elsewhere than where
/// episodes of the world do count only if that start is among the others.
pub fn examples(
    gatherer: &Gatherer,
    benchmarks: &[usize],
    other_starts: &[usize],
    demonstrations: &[Demonstration],
) -> Result<Examples, EnvError> {
    let world = &gatherer.world;
    let spec = world.profile().spec();
    let mut known: Vec<(usize, usize, &Demonstration)> = Vec::new();
    for order in demonstrations {
        let found = world.find(&order.benchmark).filter(|found| benchmarks.contains(found));
        let Some(benchmark) = found else { continue };
        let start = match &order.start {
            None => world.start(),
            Some(name) => spec.start(name).ok_or_else(|| {
                let (of, starts) = (&order.benchmark, spec.start_names().join(", "));
                EnvError::Config(format!(
                    "an order for {of} begins at {name:?}, which is no start of {}: {starts}",
                    spec.engine
                ))
            })?,
        };
        if start == world.start() || other_starts.contains(&start) {
            known.push((benchmark, start, order));
        }
    }
    let width = gatherer.observer.policy_width();
    let walked = on_all_cores(known.len(), |index| {
        let (benchmark, start, order) = known[index];
        let mut env = Env::new(world, gatherer.config.clone())?;
        env.reset_to_start(benchmark, start, Some(0))?;
        let (mut seen, mut actions) = (Vec::new(), Vec::new());
        let mut row = vec![0.0; gatherer.observer.value_width()];
        for (number, name) in order.after.iter().chain(&order.passes).enumerate() {
            let Some(action) = (0..env.actions()).find(|a| env.action_name(*a) == name) else {
                if number < order.after.len() {
                    break; // the order was found in a state that cannot be had
                }
                continue;
            };
            gatherer.observer.write(&env, &mut row)?;
            let step = env.step(action)?;
            if step.info.changed && number >= order.after.len() {
                seen.extend_from_slice(&row[..width]);
                actions.push(action);
            }
            if step.truncated {
                break;
            }
        }
        Ok::<_, EnvError>((seen, actions))
    })?;
    let seen: Vec<f32> = walked.iter().flat_map(|(seen, _)| seen.iter().copied()).collect();
    let actions: Vec<usize> = walked.into_iter().flat_map(|(_, actions)| actions).collect();
    Ok(Examples { seen: Matrix::from_vec(actions.len(), width, seen), actions })
}

/// Teaches a policy to do what the examples do: behaviour cloning. `watch` is told after every epoch in
/// what share of the examples the right action was put first, and says whether to go on. Returns
/// whether it came to the end.
pub fn imitate(
    policy: &mut Mlp,
    examples: &Examples,
    how: &Imitation,
    luck: &mut ChaCha8Rng,
    watch: &mut dyn FnMut(usize, f64) -> bool,
) -> bool {
    let count = examples.actions.len();
    let mut adam = Adam::new(policy.parameters().len(), how.learning_rate, 1e-8);
    let mut gradient = vec![0.0; policy.parameters().len()];
    let mut tape = Tape::default();
    let mut rows: Vec<usize> = (0..count).collect();
    let all = vec![true; policy.shape().outputs];
    for epoch in 0..how.epochs {
        rows.shuffle(luck);
        let mut right = 0.0;
        for batch in rows.chunks(how.batch.max(1)) {
            policy.forward_keeping(&pick(&examples.seen, batch), &mut tape);
            let mut by = Matrix::zeros(batch.len(), all.len());
            let mut logs = vec![0.0; all.len()];
            let share = 1.0 / batch.len() as f32;
            for (index, row) in batch.iter().enumerate() {
                let logits = tape.outputs().row(index);
                choice::log_probabilities(logits, &all, &mut logs);
                let action = examples.actions[*row];
                by_logits(&logs, action, share, how.entropy * share, by.row_mut(index));
                right += if choice::best(logits, &all) == action { 1.0 } else { 0.0 };
            }
            policy.backward(&mut tape, &by, &mut gradient);
            clip_norm(&mut gradient, 1.0);
            adam.step(policy.parameters_mut(), &gradient);
        }
        right /= count.max(1) as f64;
        if !watch(epoch + 1, right) {
            return false;
        }
    }
    true
}
