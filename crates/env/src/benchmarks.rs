//! The programs of a world, and what is known of them.

use std::sync::{Arc, OnceLock};

use xla_gym_data::Benchmark;
use xla_gym_engine::protocol::{Fingerprint, PassId};
use xla_gym_transitions::State;

use crate::{error::EnvError, reward::Defaults};

/// A program of a world.
pub struct Program {
    /// Where it comes from.
    pub benchmark: Benchmark,
    /// Id or path.
    pub name: String,
    /// Its start state, once somebody began there.
    pub start: OnceLock<Arc<State>>,
    /// What XLA itself makes of it, once somebody asked.
    pub defaults: OnceLock<Defaults>,
    /// What makes it legal, once somebody asked.
    pub legalising: OnceLock<Arc<[PassId]>>,
}

impl Program {
    pub fn new(benchmark: Benchmark) -> Program {
        let name = benchmark.name();
        Program {
            benchmark,
            name,
            start: OnceLock::new(),
            defaults: OnceLock::new(),
            legalising: OnceLock::new(),
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
