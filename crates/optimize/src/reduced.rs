//! A smaller program in place of a large one.

use std::sync::Arc;

use xla_gym_engine::{EngineError, Source, protocol::REDUCED};
use xla_gym_env::EnvError;

use crate::{error::OptimizeError, plan::Judge};

/// Where more of the program stays than this, little time is won.
const WORTH_IT: f64 = 0.6;

/// The same program with fewer layers, if it has many that are alike. An order does to each layer what
/// it does to the others, so that what is good for a few is good for all; but it takes a fraction of the
/// time to find out. What is found has to be judged, and proven, on the whole.
///
/// None too where the compiler does not take what is left: that is no fault of the program.
pub fn reduced(judge: &Judge) -> Result<Option<Judge>, OptimizeError> {
    match with_fewer_layers(judge) {
        Err(
            error @ (OptimizeError::Engine(EngineError::Interrupted)
            | OptimizeError::Env(EnvError::Engine(EngineError::Interrupted))),
        ) => Err(error),
        found => Ok(found.unwrap_or(None)),
    }
}

fn with_fewer_layers(judge: &Judge) -> Result<Option<Judge>, OptimizeError> {
    let Some(form) = judge.world.engine().hello().form(REDUCED) else { return Ok(None) };
    let text = judge.emitted()?.print(form)?;
    let name = format!("{} with fewer layers", judge.world.benchmark_name(judge.benchmark));
    let source = Source { name: name.into(), bytes: text.into() };
    let world = Arc::new(judge.world.beside(source)?);
    let left = world.emitted_state(0)?.counts.primary();
    if left as f64 > judge.initial as f64 * WORTH_IT {
        return Ok(None);
    }
    Judge::new(&world, 0).map(Some)
}
