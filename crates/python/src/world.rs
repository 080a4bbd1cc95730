//! What the environments of a process share.

use std::{path::PathBuf, sync::Arc};

use pyo3::{prelude::*, types::PyDict};
use xla_gym_common::state_dir;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{EngineConfig, Source, memory_for_running, protocol::Limits};
use xla_gym_env::{CacheConfig, EnvError, Start, World, WorldConfig};

use crate::{
    errors::{ConfigError, benchmark_error, engine_error},
    gate::{Owned, release},
};

/// The engine, the benchmarks and what is remembered of them, shared by environments.
#[pyclass(name = "World", module = "xla_gym._native", frozen, weakref)]
pub struct PyWorld {
    pub world: Owned<Arc<World>>,
}

#[pymethods]
impl PyWorld {
    #[new]
    #[pyo3(signature = (benchmarks, *, programs, worker, libraries, normalise, passes, cache,
                        cache_memory, pass_limit, memory_limit, remember_failures))]
    #[allow(clippy::too_many_arguments, reason = "called by the Python package alone, by name")]
    fn new(
        py: Python<'_>,
        benchmarks: Vec<String>,
        programs: Vec<(String, Vec<u8>)>,
        worker: PathBuf,
        libraries: Option<PathBuf>,
        normalise: bool,
        passes: Vec<String>,
        cache: Option<PathBuf>,
        cache_memory: usize,
        pass_limit: f64,
        memory_limit: Option<f64>,
        remember_failures: bool,
    ) -> PyResult<PyWorld> {
        let limits = [("pass_limit", Some(pass_limit)), ("memory_limit", memory_limit)];
        for (name, limit) in limits {
            let Some(limit) = limit else { continue };
            if !(limit > 0.0 && limit.is_finite()) {
                return Err(ConfigError::new_err(format!(
                    "{name} must be more than 0, not {limit}"
                )));
            }
        }
        let mut found = Benchmarks::find(&benchmarks).map_err(benchmark_error)?;
        for (name, bytes) in programs {
            let source = Source::from_bytes(&name, bytes)
                .map_err(|error| engine_error(xla_gym_engine::EngineError::from(error)))?;
            found.programs.push(Benchmark::Memory(source));
        }
        let mut engine = EngineConfig::new(worker);
        engine.libraries = libraries;
        engine.limits = Limits {
            pass_millis: (pass_limit * 1e3).ceil() as u64,
            memory_bytes: memory_limit
                .map_or_else(memory_for_running, |limit| (limit * f64::from(1 << 30)) as u64),
            ..engine.limits
        };
        engine.quarantine = state_dir().ok().filter(|_| remember_failures);
        engine.quarantine = engine.quarantine.map(|folder| folder.join("quarantine.jsonl"));
        let config = WorldConfig {
            engine,
            start: if normalise { Start::Normalised } else { Start::Emitted },
            passes,
            cache: CacheConfig {
                disk: cache,
                memory_bytes: cache_memory,
                ..CacheConfig::default()
            },
        };
        let world = release(py, || World::with_programs(config, found))?;
        Ok(PyWorld { world: Owned::new(Arc::new(world)) })
    }

    /// Names of the benchmarks.
    #[getter]
    fn benchmarks(&self) -> PyResult<Vec<String>> {
        let world = self.world.get()?;
        Ok((0..world.len()).map(|index| world.benchmark_name(index).to_owned()).collect())
    }

    /// Files that were passed over, with the reason.
    #[getter]
    fn skipped(&self) -> PyResult<Vec<(String, String)>> {
        let skipped = self.world.get()?.skipped().iter();
        Ok(skipped.map(|skipped| (skipped.name.clone(), skipped.reason.clone())).collect())
    }

    /// Names of the passes that are actions, in order.
    #[getter]
    fn actions(&self) -> PyResult<Vec<String>> {
        let world = self.world.get()?;
        Ok((0..world.actions().len()).map(|action| world.action_name(action).to_owned()).collect())
    }

    /// What opcode counts count, in order.
    #[getter]
    fn opcodes(&self) -> PyResult<Vec<String>> {
        Ok(self.world.get()?.engine().hello().opcodes.clone())
    }

    /// Compiler and version.
    #[getter]
    fn engine(&self) -> PyResult<String> {
        Ok(self.world.get()?.engine().name())
    }

    /// What the cache did so far.
    fn cache_stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.world.get()?.transitions().stats();
        let dict = PyDict::new(py);
        dict.set_item("hits_memory", stats.hits_memory)?;
        dict.set_item("hits_disk", stats.hits_disk)?;
        dict.set_item("misses", stats.misses)?;
        dict.set_item("memory_entries", stats.memory_entries)?;
        dict.set_item("disk_error", stats.disk_error)?;
        dict.set_item("note", stats.note)?;
        Ok(dict)
    }

    /// Writes every known transition to a Parquet file; returns their number.
    fn export_transitions(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        let world = self.world.get()?;
        let names: Vec<String> =
            world.engine().hello().passes.iter().map(|pass| pass.name.clone()).collect();
        release(py, || world.transitions().export_parquet(&path, &names).map_err(EnvError::from))
    }

    /// Waits until everything is on disk.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let world = self.world.get()?;
        release(py, || {
            world.transitions().flush();
            Ok(())
        })
    }

    /// What XLA's own pipeline makes of a benchmark: operations at the start, after its
    /// optimisation passes, before layout assignment, and kernels.
    fn defaults(&self, py: Python<'_>, benchmark: usize) -> PyResult<(u64, u64, u64, u64)> {
        let world = self.world.get()?;
        let known = release(py, || world.defaults(benchmark))?;
        Ok((known.initial, known.optimised, known.legal, known.kernels))
    }
}
