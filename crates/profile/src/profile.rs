//! What cannot be data.

use std::{collections::BTreeMap, ffi::OsString};

use xla_gym_engine::{
    EngineConfig, EngineError,
    protocol::{Finish, PipelinePass},
};

use crate::{baseline::Baseline, spec::Spec};

/// What everything above the engine must know of a compiler.
pub trait Profile: Send + Sync {
    /// What it says, apart from the hooks below.
    fn spec(&self) -> &Spec;

    /// What the environment of the compiler's worker must say, wherever the worker is.
    fn environment(&self) -> Vec<(OsString, Option<OsString>)> {
        Vec::new()
    }

    /// The target of the makefile that builds the compiler's worker.
    fn worker_target(&self) -> &'static str {
        "build"
    }

    /// How to run the compiler's worker, where [`EngineConfig::named`] finds it.
    fn engine_config(&self) -> Result<EngineConfig, EngineError> {
        let found = EngineConfig::named(self.spec().engine).map_err(|error| match error {
            EngineError::WorkerNotFound { name, variable, looked_at, .. } => {
                let target = self.worker_target();
                EngineError::WorkerNotFound { name, variable, looked_at, target }
            }
            error => error,
        })?;
        Ok(EngineConfig { environment: self.environment(), ..found })
    }

    /// The compiler's own optimisation passes, as passes of its table, out of those that its usual
    /// pipeline ran before its first stage. None where the pipeline is no list of such passes.
    fn own_order(&self, _ran: &[PipelinePass]) -> Vec<String> {
        Vec::new()
    }

    /// The pass of the table that does what a pass of the pipeline does.
    fn as_in_pipeline(&self, pass: &str) -> String {
        pass.to_owned()
    }

    /// Passes of the pipeline that can be left out, one by one.
    fn can_be_left_out(&self) -> Vec<String> {
        Vec::new()
    }

    /// Orders that did well on other programs, the best first, for one with these opcodes.
    fn first_orders(&self, _has_opcode: &dyn Fn(&str) -> bool) -> Vec<Vec<String>> {
        Vec::new()
    }

    /// What a data set's manifest says of the compiler's own results, if it says that.
    fn known_baseline(&self, _manifest: &BTreeMap<String, f64>) -> Option<Baseline> {
        None
    }

    /// How to have the compiler's own tools do the same: passes from a start, then the pipeline.
    fn commands(&self, _start: &str, _passes: &[String], _finish: &Finish) -> Commands {
        Commands::default()
    }
}

/// Commands for the compiler's own tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// What each does, as a heading, and the line for a shell. The first runs the passes.
    pub lines: Vec<(String, String)>,
    /// Passes with settings that the tool cannot give them, so that it runs the plain ones.
    pub approximated: Vec<String>,
}
