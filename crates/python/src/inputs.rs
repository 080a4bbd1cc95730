//! Programs whose inputs are too large to be made.
//!
//! A file of a hundred bytes can ask for terabytes. Where a program is going to be run, Python hears
//! of it before anything is allocated.

use xla_gym_engine::{EngineError, protocol::ArraySpec};
use xla_gym_env::{AtEnd, Env, EnvError, World};

/// Inputs of more bytes than this are not made.
const MOST: u64 = 2 << 30;

/// Refuses a program that is going to be run, and whose inputs would be too large.
pub fn check(world: &World, benchmark: usize) -> Result<(), EnvError> {
    let inputs = world.engine().load(&world.source(benchmark)?)?.signature()?.inputs;
    let total = inputs.iter().map(bytes).try_fold(0, |sum, bytes| u64::checked_add(sum, bytes?));
    if total.is_some_and(|total| total <= MOST) {
        return Ok(());
    }
    let largest = inputs.iter().max_by_key(|spec| bytes(spec).unwrap_or(u64::MAX));
    let message = format!(
        "its inputs are too large to run it: {} in all, at most {} GiB are made; the largest is {}",
        total.map_or("more bytes than can be counted".to_owned(), |total| format!("{total} bytes")),
        MOST >> 30,
        largest.map_or_else(String::new, |spec| format!("{}{:?}", spec.dtype, spec.dims)),
    );
    Err(EngineError::Load { name: world.benchmark_name(benchmark).to_owned(), message }.into())
}

/// The same at the beginning of an episode, if its end is going to be timed.
pub fn check_episode(env: &Env) -> Result<(), EnvError> {
    match env.config().reward.at_end {
        Some(AtEnd::RunTime) => check(env.world(), env.benchmark()?),
        _ => Ok(()),
    }
}

/// Bytes of an array; none if they cannot be counted. The bits of an element are the first number in
/// the name of its type, and what has none, or less than eight, takes a byte.
fn bytes(spec: &ArraySpec) -> Option<u64> {
    let digits = spec.dtype.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
    let bits: u64 = digits.and_then(|digits| digits.parse().ok()).unwrap_or(8);
    let sizes = spec.dims.iter().map(|&size| u64::try_from(size).ok());
    sizes.into_iter().try_fold(bits.div_ceil(8), |product, size| product.checked_mul(size?))
}
