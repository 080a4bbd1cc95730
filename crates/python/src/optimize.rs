//! The search for better orders, and what a recipe says.

use std::{path::PathBuf, sync::Arc, time::Duration};

use pyo3::{prelude::*, types::PyBytes};
use xla_gym_agents::{Guide, TrainedPolicy};
use xla_gym_engine::protocol::Form;
use xla_gym_env::World;
use xla_gym_optimize::{Judge, OptimizeError, Task, apply, explain, optimize, optimize_with_store};
use xla_gym_recipe::{Recipe, Store, StoreLimit};
use xla_gym_search::{Budget, Method, Policy};

use crate::{
    errors::{ConfigError, optimize_error, store_error},
    gate::{release, release_or, stoppable},
    inputs,
    world::PyWorld,
};

/// A policy by its name, or from a file.
fn guide(name: &str, world: &World) -> PyResult<Guide> {
    let policy = TrainedPolicy::find(name);
    Ok(policy.map_err(|error| ConfigError::new_err(error.to_string()))?.guide(world))
}

/// What Python is told of an answer: the recipe as JSON, the program after the passes as a
/// serialised HloModuleProto, the report as HTML if it is wanted, and whether the search was stopped.
type Told<'py> = (String, Bound<'py, PyBytes>, Option<String>, bool);

/// Finds the best order for a benchmark. Ctrl-C ends the search; the best so far is the answer.
#[pyfunction]
#[pyo3(signature = (world, benchmark, *, objective, method, budget, seconds, seed, trials, coreset,
                    policy, measure, store, report, memory_growth, unproven))]
#[allow(clippy::too_many_arguments, reason = "called by the Python package alone, by name")]
fn optimize_benchmark<'py>(
    py: Python<'py>,
    world: &PyWorld,
    benchmark: usize,
    objective: &str,
    method: &str,
    budget: Option<u64>,
    seconds: Option<f64>,
    seed: u64,
    trials: u32,
    coreset: bool,
    policy: Option<&str>,
    measure: Option<f64>,
    store: Option<PathBuf>,
    report: bool,
    memory_growth: f64,
    unproven: bool,
) -> PyResult<Told<'py>> {
    let world = world.world.get()?.clone();
    if !(memory_growth > 0.0 && memory_growth.is_finite()) {
        return Err(ConfigError::new_err(format!(
            "memory_growth must be more than 0, not {memory_growth}"
        )));
    }
    let by_name = Method::ALL.into_iter().find(|other| other.name() == method);
    let names = || Method::ALL.map(Method::name).join(", ");
    let policy: Option<Arc<dyn Policy>> = match policy {
        None => None,
        Some(name) => Some(Arc::new(guide(name, &world)?)),
    };
    let task = Task {
        policy,
        objective: objective.parse().map_err(optimize_error)?,
        method: by_name.ok_or_else(|| {
            ConfigError::new_err(format!("there is no method {method:?}; there are {}", names()))
        })?,
        budget: Budget { passes: budget, time: duration("seconds", seconds)? },
        seed,
        trials: trials.max(1),
        coreset,
        measuring: duration("measure", measure)?,
        memory_growth,
        unproven,
        ..Task::default()
    };
    let store = match store {
        Some(path) => Some(Store::open(&path, StoreLimit::default()).map_err(store_error)?),
        None => None,
    };
    release(py, || inputs::check(&world, benchmark))?;
    let stop = task.stop.clone();
    let command = format!("xla_gym.optimize(…, objective={objective:?})");
    let work = move || -> Result<_, OptimizeError> {
        let judge = Judge::new(&world, benchmark)?;
        // A store that cannot be used costs no result.
        let answer = match &store {
            Some(store) => optimize_with_store(&judge, &task, store, &())?.0,
            None => optimize(&judge, &task, &())?,
        };
        let html = if report { Some(explain(&judge, &answer, command, &())?.html()) } else { None };
        let program = judge.session(&answer.plan)?.print(Form::Binary)?;
        Ok((answer.recipe, program, html))
    };
    let ((recipe, program, html), stopped) = stoppable(py, &stop, work)?;
    let recipe =
        serde_json::to_string(&recipe).map_err(|error| ConfigError::new_err(error.to_string()))?;
    Ok((recipe, PyBytes::new(py, &program), html, stopped))
}

/// Does to a benchmark what a recipe says; the program after the passes, and warnings.
#[pyfunction]
fn apply_recipe<'py>(
    py: Python<'py>,
    world: &PyWorld,
    benchmark: usize,
    recipe: &str,
    force: bool,
) -> PyResult<(Bound<'py, PyBytes>, Vec<String>)> {
    let world = world.world.get()?.clone();
    let recipe: Recipe = serde_json::from_str(recipe)
        .map_err(|error| ConfigError::new_err(format!("this is no recipe: {error}")))?;
    let (program, warnings) = release_or(py, || -> Result<_, OptimizeError> {
        let mut applied = apply(&world, benchmark, &recipe, force)?;
        let mut warnings = applied.warnings;
        warnings.extend(
            applied
                .skipped
                .into_iter()
                .map(|(pass, reason)| format!("{pass} did not take place: {reason}")),
        );
        Ok((applied.session.print(Form::Binary)?, warnings))
    })?;
    Ok((PyBytes::new(py, &program), warnings))
}

/// Adds the functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(optimize_benchmark, module)?)?;
    module.add_function(wrap_pyfunction!(apply_recipe, module)?)
}

fn duration(name: &str, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(Some(duration)),
        _ => Err(ConfigError::new_err(format!("{name} must be more than 0, not {seconds}"))),
    }
}
