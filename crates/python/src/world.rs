//! What the environments of a process share.

use std::{path::PathBuf, sync::Arc};

use pyo3::{
    prelude::*,
    types::{PyDict, PyTuple},
};
use xla_gym_common::state_dir;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{
    EngineConfig, Source, memory_for_running,
    protocol::{Limits, Metric},
};
use xla_gym_env::{CacheConfig, EnvError, Figure, World, WorldConfig};
use xla_gym_transitions::Names;

use crate::{
    arrays,
    errors::{ConfigError, benchmark_error, engine_error},
    gate::{Owned, release},
};

/// Where the dynamic linker looks first.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// The engine, the benchmarks and what is remembered of them, shared by environments.
#[pyclass(name = "World", module = "xla_gym._native", frozen, weakref)]
pub struct PyWorld {
    pub world: Owned<Arc<World>>,
}

#[pymethods]
impl PyWorld {
    #[new]
    #[pyo3(signature = (benchmarks, *, engine, programs, worker, libraries, start, passes, cache,
                        cache_memory, pass_limit, memory_limit, remember_failures))]
    #[allow(clippy::too_many_arguments, reason = "called by the Python package alone, by name")]
    fn new(
        py: Python<'_>,
        benchmarks: Vec<String>,
        engine: &str,
        programs: Vec<(String, Vec<u8>)>,
        worker: PathBuf,
        libraries: Option<PathBuf>,
        start: Option<String>,
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
        let profile = xla_gym_compilers::profile(engine).ok_or_else(|| {
            let known = xla_gym_compilers::NAMES.join(", ");
            ConfigError::new_err(format!("there is no compiler {engine:?}; there are {known}"))
        })?;
        let start = start.unwrap_or_else(|| profile.spec().starts[0].name.to_owned());
        let mut engine = EngineConfig::new(worker);
        engine.environment = profile.environment();
        // After what the profile says: the package has an engine of its own.
        let libraries = libraries.map(|folder| (LIBRARY_PATH.into(), Some(folder.into())));
        engine.environment.extend(libraries);
        engine.limits = Limits {
            pass_millis: (pass_limit * 1e3).ceil() as u64,
            memory_bytes: memory_limit
                .map_or_else(memory_for_running, |limit| (limit * f64::from(1 << 30)) as u64),
            ..engine.limits
        };
        engine.quarantine = state_dir().ok().filter(|_| remember_failures);
        engine.quarantine = engine.quarantine.map(|folder| folder.join("quarantine.jsonl"));
        let config = WorldConfig {
            profile,
            engine,
            start,
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
        let hello = world.engine().hello();
        let passes: Vec<String> = hello.passes.iter().map(|pass| pass.name.clone()).collect();
        let (counts, costs) = (names(&hello.counts), names(&hello.costs));
        let names = Names { passes: &passes, counts: &counts, costs: &costs };
        release(py, || world.transitions().export_parquet(&path, names).map_err(EnvError::from))
    }

    /// Waits until everything is on disk.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let world = self.world.get()?;
        release(py, || {
            world.transitions().flush();
            Ok(())
        })
    }

    /// What is counted of a program, the primary metric first.
    #[getter]
    fn counts(&self) -> PyResult<Vec<String>> {
        let hello = self.world.get()?.engine().hello();
        Ok(names(&hello.counts))
    }

    /// What is estimated of a program.
    #[getter]
    fn costs(&self) -> PyResult<Vec<String>> {
        let hello = self.world.get()?.engine().hello();
        Ok(names(&hello.costs))
    }

    /// What the compiler makes of a program, by name: what `at_end` and objectives can be.
    #[getter]
    fn figures(&self) -> PyResult<Vec<&'static str>> {
        let spec = self.world.get()?.profile().spec();
        Ok(spec.all_figures().map(|figure| spec.figure_name(figure)).collect())
    }

    /// In which forms programs can be written.
    #[getter]
    fn forms(&self) -> PyResult<Vec<String>> {
        let hello = self.world.get()?.engine().hello();
        let forms = hello.forms.iter().filter(|form| !form.endings.is_empty());
        Ok(forms.map(|form| form.name.clone()).collect())
    }

    /// What a node of a graph says of itself. Empty if the compiler gives no graphs.
    #[getter]
    fn node_features(&self) -> PyResult<Vec<String>> {
        Ok(self.world.get()?.engine().hello().node_features.clone())
    }

    /// Where episodes can begin.
    #[getter]
    fn starts(&self) -> PyResult<Vec<&'static str>> {
        Ok(self.world.get()?.profile().spec().start_names())
    }

    /// Where they begin here.
    #[getter]
    fn start(&self) -> PyResult<&'static str> {
        Ok(self.world.get()?.start_name())
    }

    /// Figures of a benchmark by name: without any passes, and by the compiler's own.
    fn baseline<'py>(
        &self,
        py: Python<'py>,
        benchmark: usize,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let world = self.world.get()?;
        let known = release(py, || world.baseline(benchmark))?;
        let spec = world.profile().spec();
        Ok((arrays::figures(py, spec, &known.initial)?, arrays::figures(py, spec, &known.default)?))
    }

    /// The same in short: the primary metric at the start, and the compiler's own result at each stage
    /// of its profile.
    fn defaults<'py>(&self, py: Python<'py>, benchmark: usize) -> PyResult<Bound<'py, PyTuple>> {
        let world = self.world.get()?;
        let known = release(py, || world.baseline(benchmark))?;
        let spec = world.profile().spec();
        let stages =
            spec.stages.iter().map(|stage| (stage.figure, known.default.get(stage.figure)));
        let shown =
            [(Figure::PRIMARY, known.initial.get(Figure::PRIMARY))].into_iter().chain(stages);
        let numbers: Vec<Bound<'py, PyAny>> = shown
            .map(|(figure, value)| arrays::number(py, spec, figure, value.unwrap_or(f64::NAN)))
            .collect::<PyResult<_>>()?;
        PyTuple::new(py, numbers)
    }
}

fn names(metrics: &[Metric]) -> Vec<String> {
    metrics.iter().map(|metric| metric.name.clone()).collect()
}
