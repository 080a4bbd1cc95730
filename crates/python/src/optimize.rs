//! The search for better orders, and what a recipe says.

use std::{path::PathBuf, sync::Arc, time::Duration};

use pyo3::{prelude::*, types::PyBytes};
use xla_gym_agents::TrainedPolicy;
use xla_gym_engine::protocol::Form;
use xla_gym_env::World;
use xla_gym_optimize::{
    Judge, Objective, OptimizeError, Task, apply, explain, optimize, optimize_with_store,
};
use xla_gym_recipe::{Recipe, Store, StoreLimit, decode};
use xla_gym_search::{Budget, Method, Policy};

use crate::{
    errors::{ConfigError, optimize_error, store_error},
    gate::{release, release_or, stoppable},
    inputs,
    world::PyWorld,
};

/// The policy that comes along for the compiler, if there is one.
const USUAL: &str = "usual";

/// A policy by its name, or from a file.
fn guide(name: &str, world: &World) -> PyResult<Option<Arc<dyn Policy>>> {
    let spec = world.profile().spec();
    let Some(name) = (if name == USUAL { spec.usual_policy } else { Some(name) }) else {
        return Ok(None);
    };
    let policy = TrainedPolicy::find(name, spec.engine).and_then(|policy| policy.guide(world));
    Ok(Some(Arc::new(policy.map_err(|error| ConfigError::new_err(error.to_string()))?)))
}

/// What Python is told of an answer: the recipe as JSON, the program after the passes in the compiler's
/// binary form, the report as HTML if it is wanted, whether the search was stopped, and the commands of
/// the compiler's own tools that do the same.
type Told<'py> = (String, Bound<'py, PyBytes>, Option<String>, bool, Vec<(String, String)>);

/// Finds the best order for a benchmark. Ctrl-C ends the search; the best so far is the answer.
#[pyfunction]
#[pyo3(signature = (world, benchmark, *, objective, method, budget, seconds, seed, trials, coreset,
                    policy, measure, store, report, memory_growth, unproven))]
#[allow(clippy::too_many_arguments, reason = "called by the Python package alone, by name")]
fn optimize_benchmark<'py>(
    py: Python<'py>,
    world: &PyWorld,
    benchmark: usize,
    objective: Option<&str>,
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
    let spec = world.profile().spec();
    let policy = match policy {
        None => None,
        Some(name) => guide(name, &world)?,
    };
    let objective = match objective {
        None => Objective::usual(spec),
        Some(text) => Objective::parse(text, spec).map_err(optimize_error)?,
    };
    let command = format!("xla_gym.optimize(…, objective=\"{objective}\")");
    let task = Task {
        policy,
        objective,
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
        ..Task::usual(spec)
    };
    let store = match store {
        Some(path) => Some(Store::open(&path, StoreLimit::default()).map_err(store_error)?),
        None => None,
    };
    release(py, || inputs::check(&world, benchmark))?;
    let stop = task.stop.clone();
    let work = move || -> Result<_, OptimizeError> {
        let judge = Judge::new(&world, benchmark)?;
        // A store that cannot be used costs no result.
        let answer = match &store {
            Some(store) => optimize_with_store(&judge, &task, store, &())?.0,
            None => optimize(&judge, &task, &())?,
        };
        let html = if report { Some(explain(&judge, &answer, command, &())?.html()) } else { None };
        let program = judge.session(&answer.plan)?.print(Form::BINARY)?;
        let (start, passes) = (&answer.recipe.start, &answer.recipe.passes);
        let commands = judge.world.profile().commands(start, passes, &answer.plan.finish);
        Ok((answer.recipe, program, html, commands.lines))
    };
    let ((recipe, program, html, commands), stopped) = stoppable(py, &stop, work)?;
    Ok((as_json(&recipe)?, PyBytes::new(py, &program), html, stopped, commands))
}

fn as_json(recipe: &Recipe) -> PyResult<String> {
    serde_json::to_string(recipe).map_err(|error| ConfigError::new_err(error.to_string()))
}

/// A recipe as it is written today, from what may be an earlier version's.
#[pyfunction]
fn read_recipe(text: &str) -> PyResult<String> {
    as_json(&decode(text.as_bytes()).map_err(|error| ConfigError::new_err(error.to_string()))?)
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
    let recipe =
        decode(recipe.as_bytes()).map_err(|error| ConfigError::new_err(error.to_string()))?;
    let (program, warnings) = release_or(py, || -> Result<_, OptimizeError> {
        let mut applied = apply(&world, benchmark, &recipe, force)?;
        let mut warnings = applied.warnings;
        warnings.extend(
            applied
                .skipped
                .into_iter()
                .map(|(pass, reason)| format!("{pass} did not take place: {reason}")),
        );
        Ok((applied.session.print(Form::BINARY)?, warnings))
    })?;
    Ok((PyBytes::new(py, &program), warnings))
}

/// Adds the functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(optimize_benchmark, module)?)?;
    module.add_function(wrap_pyfunction!(read_recipe, module)?)?;
    module.add_function(wrap_pyfunction!(apply_recipe, module)?)
}

fn duration(name: &str, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(Some(duration)),
        _ => Err(ConfigError::new_err(format!("{name} must be more than 0, not {seconds}"))),
    }
}
