//! One environment.

use numpy::PyArray1;
use pyo3::{exceptions::PyValueError, prelude::*, types::PyBytes, types::PyDict};
use xla_gym_engine::protocol::{Form, Hello};
use xla_gym_env::{Env, EnvConfig, EnvState, Step, View, plot};

use crate::{
    arrays::{self, Told, parse_view},
    errors::{ConfigError, StateError, env_error},
    gate::{Owned, release},
    inputs,
    world::PyWorld,
};

type Observations<'py> = Vec<Bound<'py, PyArray1<f32>>>;

/// One environment, without what Gymnasium wants of it.
#[pyclass(name = "Env", module = "xla_gym._native")]
pub struct PyEnv {
    env: Owned<Env>,
    views: Vec<View>,
    /// Of the last step: whether no compiler ran, and the seconds of the pass alone. Not part of
    /// `info`, which is the same in every run.
    last: (bool, f64),
}

pub fn parse_config(text: &str) -> PyResult<EnvConfig> {
    serde_json::from_str(text).map_err(|error| ConfigError::new_err(error.to_string()))
}

pub fn parse_views(names: &[String]) -> PyResult<Vec<View>> {
    names.iter().map(|name| parse_view(name)).collect()
}

pub fn parse_action(action: i64) -> PyResult<usize> {
    usize::try_from(action).map_err(|_| {
        PyValueError::new_err(format!("there is no action {action}; actions are counted from 0"))
    })
}

/// A form by its name, or by the ending of files that hold it; the compiler's own text if nobody says.
fn parse_form(hello: &Hello, form: Option<&str>) -> PyResult<Form> {
    let Some(name) = form else { return Ok(Form::TEXT) };
    hello.form(name).or_else(|| hello.form_of_ending(name)).ok_or_else(|| {
        let forms = hello.forms.iter().filter(|form| !form.endings.is_empty());
        let known: Vec<&str> = forms.map(|form| &*form.name).collect();
        PyValueError::new_err(format!("there is no form {name:?}; there are {}", known.join(", ")))
    })
}

impl PyEnv {
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<Observations<'py>> {
        let env = self.env.get()?;
        self.views.iter().map(|view| arrays::view(py, env, *view)).collect()
    }
}

#[pymethods]
impl PyEnv {
    #[new]
    fn new(world: &PyWorld, config: &str, views: Vec<String>) -> PyResult<PyEnv> {
        let config = parse_config(config)?;
        let env = Env::new(world.world.get()?, config).map_err(env_error)?;
        Ok(PyEnv { env: Owned::new(env), views: parse_views(&views)?, last: (false, 0.0) })
    }

    /// For each view its smallest value, its largest, and its length.
    #[getter]
    fn bounds(&self) -> PyResult<Vec<(f32, f32, usize)>> {
        let env = self.env.get()?;
        let bounds = self.views.iter().map(|view| env.bounds(*view));
        Ok(bounds.map(|bounds| (bounds.low, bounds.high, bounds.length)).collect())
    }

    /// Names of the actions, in order.
    #[getter]
    fn actions(&self) -> PyResult<Vec<String>> {
        let env = self.env.get()?;
        Ok((0..env.actions()).map(|action| env.action_name(action).to_owned()).collect())
    }

    /// Begins an episode, on the given benchmark or on the next.
    #[pyo3(signature = (seed=None, benchmark=None))]
    fn reset<'py>(
        &mut self,
        py: Python<'py>,
        seed: Option<u64>,
        benchmark: Option<usize>,
    ) -> PyResult<(Observations<'py>, Bound<'py, PyDict>)> {
        let env = self.env.get_mut()?;
        let told = release(py, || {
            match benchmark {
                Some(benchmark) => env.reset_to(benchmark, seed)?,
                None => env.reset(seed)?,
            }
            inputs::check_episode(env)?;
            Told::of(env)
        })?;
        Ok((self.observe(py)?, told.info(py, self.env.get()?, None)?))
    }

    /// Takes an action.
    #[allow(clippy::type_complexity, reason = "the five values of Gymnasium")]
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        action: i64,
    ) -> PyResult<(Observations<'py>, f64, bool, bool, Bound<'py, PyDict>)> {
        let action = parse_action(action)?;
        let env = self.env.get_mut()?;
        let (step, told): (Step, Told) = release(py, || {
            let step = env.step(action)?;
            Ok((step, Told::of(env)?))
        })?;
        self.last = (step.info.remembered, step.info.nanos as f64 / 1e9);
        let info = told.info(py, self.env.get()?, Some(&step.info))?;
        Ok((self.observe(py)?, step.reward, step.terminated, step.truncated, info))
    }

    /// Of the last step: whether no compiler ran, and the seconds of the pass alone.
    #[getter]
    fn last(&self) -> (bool, f64) {
        self.last
    }

    /// Takes several actions; the sum of the rewards, and whether the episode is over.
    fn multistep<'py>(
        &mut self,
        py: Python<'py>,
        actions: Vec<i64>,
    ) -> PyResult<(Observations<'py>, f64, bool, bool, Bound<'py, PyDict>)> {
        let actions = actions.into_iter().map(parse_action).collect::<PyResult<Vec<_>>>()?;
        let env = self.env.get_mut()?;
        let (steps, told) = release(py, || {
            let steps = env.multistep(&actions)?;
            Ok((steps, Told::of(env)?))
        })?;
        let reward = steps.iter().map(|step| step.reward).sum();
        let last = steps.last();
        let info = told.info(py, self.env.get()?, last.map(|step| &step.info))?;
        let ended = |end: fn(&Step) -> bool| last.is_some_and(end);
        let (terminated, truncated) = (ended(|step| step.terminated), ended(|step| step.truncated));
        Ok((self.observe(py)?, reward, terminated, truncated, info))
    }

    /// Takes back the last actions.
    fn undo<'py>(&mut self, py: Python<'py>, count: usize) -> PyResult<Observations<'py>> {
        self.env.get_mut()?.undo(count).map_err(env_error)?;
        self.observe(py)
    }

    /// A second environment in the same state.
    fn fork(&mut self, py: Python<'_>) -> PyResult<PyEnv> {
        let env = self.env.get_mut()?;
        let env = release(py, || env.fork())?;
        Ok(PyEnv { env: Owned::new(env), views: self.views.clone(), last: self.last })
    }

    /// Benchmark and actions, as JSON.
    fn save(&self) -> PyResult<String> {
        let state = self.env.get()?.save().map_err(env_error)?;
        serde_json::to_string(&state).map_err(|error| StateError::new_err(error.to_string()))
    }

    /// Comes back to what `save` gave.
    fn restore<'py>(&mut self, py: Python<'py>, state: &str) -> PyResult<Observations<'py>> {
        let state: EnvState =
            serde_json::from_str(state).map_err(|error| StateError::new_err(error.to_string()))?;
        let env = self.env.get_mut()?;
        release(py, || env.restore(&state))?;
        self.observe(py)
    }

    /// Whether each action may be of use here.
    fn action_mask<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let env = self.env.get_mut()?;
        let mask = release(py, || {
            let mut mask = vec![true; env.actions()];
            env.write_mask(&mut mask)?;
            Ok(mask)
        })?;
        Ok(PyArray1::from_vec(py, mask))
    }

    /// The current program as nodes, edges and edge features.
    fn graph<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let env = self.env.get_mut()?;
        let graph = release(py, || env.graph())?;
        let features = &env.world().engine().hello().node_features;
        Ok(arrays::graph(py, &graph, features)?.into_pyobject(py)?.into_any())
    }

    /// The current program in one of the compiler's forms, by name.
    #[pyo3(signature = (form=None))]
    fn program<'py>(
        &mut self,
        py: Python<'py>,
        form: Option<&str>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let env = self.env.get_mut()?;
        let form = parse_form(env.world().engine().hello(), form)?;
        Ok(PyBytes::new(py, &release(py, || env.print(form))?))
    }

    /// Identity of the current program by content.
    fn fingerprint(&mut self, py: Python<'_>) -> PyResult<String> {
        let env = self.env.get_mut()?;
        Ok(release(py, || env.fingerprint())?.to_string())
    }

    /// One line about the current state.
    fn describe(&self) -> PyResult<String> {
        self.env.get()?.describe().map_err(env_error)
    }

    /// Width, height and pixels of a plot of the primary metric over steps.
    fn plot<'py>(&mut self, py: Python<'py>) -> PyResult<(usize, usize, Bound<'py, PyBytes>)> {
        let env = self.env.get_mut()?;
        let picture = release(py, || {
            let benchmark = env.benchmark()?;
            // A plot without the line is better than no plot.
            let world = env.world();
            let spec = world.profile().spec();
            let figure = spec.starts[world.start()].counts_as;
            let known = world.baseline(benchmark).ok();
            let default = known.and_then(|known| known.default.get(figure)).map(|most| most as u64);
            let labels = (world.engine().hello().primary(), spec.words.baseline);
            let name = world.benchmark_name(benchmark);
            Ok(plot(name, labels, env.sizes()?, env.config().traj_limit, default))
        })?;
        Ok((picture.width, picture.height, PyBytes::new(py, &picture.bytes)))
    }

    /// The actions of this episode.
    #[getter]
    fn taken(&self) -> PyResult<Vec<usize>> {
        Ok(self.env.get()?.taken().map_err(env_error)?.to_vec())
    }

    /// Ends the compiler process behind it, as an outside kill would. For tests.
    fn kill_worker(&mut self, py: Python<'_>) -> PyResult<()> {
        let env = self.env.get_mut()?;
        release(py, || {
            env.kill_worker();
            Ok(())
        })
    }

    /// Ends it.
    fn close(&mut self, py: Python<'_>) {
        let env = self.env.close();
        py.detach(|| drop(env));
    }
}
