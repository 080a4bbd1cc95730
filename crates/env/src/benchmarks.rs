//! The programs of a world, and what is known of them.

use std::sync::{Arc, OnceLock};

use xla_gym_data::Benchmark;
use xla_gym_engine::protocol::{Fingerprint, PassId};
use xla_gym_profile::Baseline;
use xla_gym_transitions::State;

use crate::error::EnvError;

/// A program of a world.
pub struct Program {
    /// Where it comes from.
    pub benchmark: Benchmark,
    /// Id or path.
    pub name: String,
    /// Its state as it came, once somebody began there.
    pub emitted: OnceLock<Arc<State>>,
    /// What the compiler itself makes of it, once somebody asked.
    pub baseline: OnceLock<Baseline>,
    /// What leads to each start, once somebody asked.
    pub starts: Vec<OnceLock<Arc<[PassId]>>>,
}

impl Program {
    pub fn new(benchmark: Benchmark, starts: usize) -> Program {
        let name = benchmark.name();
        Program {
            benchmark,
            name,
            emitted: OnceLock::new(),
            baseline: OnceLock::new(),
            starts: (0..starts).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Identity of the text.
    pub fn text_identity(&self) -> Result<Fingerprint, EnvError> {
        if let Benchmark::Graph(graph) = &self.benchmark {
            return Ok(hash(graph.sha256.as_bytes()));
        }
        Ok(hash(&self.benchmark.source()?.bytes))
    }
}

/// Only ever compared with itself.
pub fn hash(bytes: &[u8]) -> Fingerprint {
    Fingerprint(xla_gym_common::fnv128(bytes.iter().copied()))
}
