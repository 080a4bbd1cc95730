//! How much there is to do in a run of a program.

use xla_gym_arrays::bytes_of;
use xla_gym_engine::protocol::{Cost, Hello, MetricRole, Signature};

/// A program that has more to do (operations and bytes of a run, as the compiler estimates them), or
/// takes and gives more bytes, is large.
const LARGE_WORK: f64 = 5e9;
const LARGE_BYTES: u64 = 256 << 20;

/// Whether a program has so much to do that only few runs of it can be had.
pub fn is_large(signature: &Signature, hello: &Hello, cost: Option<&Cost>) -> bool {
    work(hello, cost).is_some_and(|work| work > LARGE_WORK) || io_bytes(signature) > LARGE_BYTES
}

/// Operations and bytes of a run.
pub fn work(hello: &Hello, cost: Option<&Cost>) -> Option<f64> {
    let of = |cost, role| hello.cost_of(cost, role);
    cost.map(|cost| of(cost, MetricRole::Arithmetic) + of(cost, MetricRole::Traffic))
        .filter(|work| work.is_finite())
}

/// Bytes of all inputs and outputs.
pub fn io_bytes(signature: &Signature) -> u64 {
    let specs = signature.inputs.iter().chain(&signature.outputs);
    let bytes = specs.map(|spec| bytes_of(&spec.dtype, &spec.dims).unwrap_or(u64::MAX));
    bytes.fold(0, u64::saturating_add)
}

/// About how long the interpreter takes: it visits every element one by one.
pub fn interpreter_seconds(hello: &Hello, cost: &Cost) -> f64 {
    let of = |role| hello.cost_of(cost, role);
    of(MetricRole::Traffic) / 4e7 + of(MetricRole::Transcendental) / 2e7
}
