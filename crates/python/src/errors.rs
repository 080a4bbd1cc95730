//! Each kind of error its own exception class.

use pyo3::{
    create_exception,
    exceptions::{PyException, PyKeyboardInterrupt, PyValueError},
    prelude::*,
};
use xla_gym_data::BenchmarkError;
use xla_gym_engine::EngineError;
use xla_gym_env::EnvError;
use xla_gym_optimize::OptimizeError;
use xla_gym_recipe::StoreError;

create_exception!(xla_gym, XlaGymError, PyException, "Anything that goes wrong in xla_gym.");
create_exception!(
    xla_gym,
    EngineNotFoundError,
    XlaGymError,
    "The compiler is not set up; the message says what to run."
);
create_exception!(
    xla_gym,
    BenchmarkNotFoundError,
    XlaGymError,
    "A benchmark cannot be found or read."
);
create_exception!(
    xla_gym,
    ProgramError,
    XlaGymError,
    "The compiler cannot make a program of a file."
);
create_exception!(xla_gym, UnknownPassError, XlaGymError, "There is no such pass.");
create_exception!(
    xla_gym,
    CompilerError,
    XlaGymError,
    "The compiler refused or died of something other than a pass."
);
create_exception!(xla_gym, CacheError, XlaGymError, "The disk cache cannot be used.");
create_exception!(xla_gym, ConfigError, XlaGymError, "The configuration makes no sense.");
create_exception!(
    xla_gym,
    NotRunningError,
    XlaGymError,
    "`step` was called before `reset`, or after the end of an episode."
);
create_exception!(xla_gym, StateError, XlaGymError, "A state does not fit this environment.");
create_exception!(
    xla_gym,
    ForkedError,
    XlaGymError,
    "The process was forked after the environment was made; make it in the child."
);

create_exception!(xla_gym, RecipeMismatch, XlaGymError, "The recipe was made for another program.");

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("XlaGymError", py.get_type::<XlaGymError>())?;
    module.add("EngineNotFoundError", py.get_type::<EngineNotFoundError>())?;
    module.add("BenchmarkNotFoundError", py.get_type::<BenchmarkNotFoundError>())?;
    module.add("ProgramError", py.get_type::<ProgramError>())?;
    module.add("UnknownPassError", py.get_type::<UnknownPassError>())?;
    module.add("CompilerError", py.get_type::<CompilerError>())?;
    module.add("CacheError", py.get_type::<CacheError>())?;
    module.add("ConfigError", py.get_type::<ConfigError>())?;
    module.add("NotRunningError", py.get_type::<NotRunningError>())?;
    module.add("StateError", py.get_type::<StateError>())?;
    module.add("RecipeMismatch", py.get_type::<RecipeMismatch>())?;
    module.add("ForkedError", py.get_type::<ForkedError>())
}

/// An error that becomes an exception.
pub trait Raised {
    /// Its exception.
    fn raised(self) -> PyErr;
}

impl Raised for EnvError {
    fn raised(self) -> PyErr {
        env_error(self)
    }
}

impl Raised for OptimizeError {
    fn raised(self) -> PyErr {
        optimize_error(self)
    }
}

pub fn optimize_error(error: OptimizeError) -> PyErr {
    let message = error.to_string();
    match error {
        OptimizeError::Engine(error) => engine_error(error),
        OptimizeError::Env(error) => env_error(error),
        OptimizeError::OtherProgram { .. } => {
            RecipeMismatch::new_err(message.replace("--force", "force=True"))
        }
        OptimizeError::NotRunnable(_) => ProgramError::new_err(message),
        _ => ConfigError::new_err(message),
    }
}

pub fn store_error(error: StoreError) -> PyErr {
    CacheError::new_err(error.to_string())
}

pub fn engine_error(error: EngineError) -> PyErr {
    let message = error.to_string();
    match error {
        EngineError::WorkerNotFound { .. } | EngineError::WorkerStart { .. } => {
            EngineNotFoundError::new_err(message)
        }
        EngineError::Source(_) => BenchmarkNotFoundError::new_err(message),
        EngineError::Load { .. } => ProgramError::new_err(message),
        EngineError::UnknownPass { .. } => UnknownPassError::new_err(message),
        EngineError::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => CompilerError::new_err(message),
    }
}

pub fn benchmark_error(error: BenchmarkError) -> PyErr {
    BenchmarkNotFoundError::new_err(error.to_string())
}

pub fn env_error(error: EnvError) -> PyErr {
    let message = error.to_string();
    match error {
        EnvError::Engine(error) => engine_error(error),
        EnvError::Benchmark(error) => benchmark_error(error),
        EnvError::Cache(_) => CacheError::new_err(message),
        EnvError::Config(_) => ConfigError::new_err(message),
        EnvError::NotRunning(_) => NotRunningError::new_err(message),
        EnvError::NoSuchAction { .. } => PyValueError::new_err(message),
        EnvError::State(_) => StateError::new_err(message),
    }
}
