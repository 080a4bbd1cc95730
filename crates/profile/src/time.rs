//! How long a program runs, and how long it takes to compile.

use xla_gym_engine::{EngineError, Session, protocol::Finish};
use xla_gym_oracle::typical_inputs;

/// How often a program is run. Of so many runs the median is not one that was disturbed.
const RUNS: u32 = 9;

/// The median time of some runs of a program, in nanoseconds, on inputs that nobody chose.
pub fn run_time(session: &mut Session, how: &Finish) -> Result<f64, EngineError> {
    let signature = session.signature()?;
    let mut scratch = session.scratch()?;
    let compiled = scratch.compile(how)?;
    if let Some(call) = signature.unknown_calls.first() {
        return Err(EngineError::Internal(format!("{call} is not here")));
    }
    scratch.make_inputs(&compiled, &typical_inputs(&signature, 0))?;
    let (mut nanos, _) = scratch.execute(&compiled, RUNS, false)?;
    nanos.sort_unstable();
    Ok(nanos.get(nanos.len() / 2).copied().unwrap_or(1).max(1) as f64)
}

/// The time to compile a program, in nanoseconds.
pub fn compile_time(session: &mut Session, how: &Finish) -> Result<f64, EngineError> {
    Ok(session.scratch()?.compile(how)?.nanos.max(1) as f64)
}
