//! Many environments on all cores.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::{prelude::*, types::PyList};
use xla_gym_env::{Info, VectorEnv, VectorStep, View};

use crate::{
    arrays::Told,
    env::{parse_action, parse_config, parse_views},
    errors::env_error,
    gate::{Owned, release},
    inputs,
    world::PyWorld,
};

type Observations<'py> = Vec<Bound<'py, PyArray2<f32>>>;

/// Many environments on all cores, without what Gymnasium wants of them.
#[pyclass(name = "VectorEnv", module = "xla_gym._native")]
pub struct PyVectorEnv {
    envs: Owned<VectorEnv>,
    views: Vec<View>,
}

impl PyVectorEnv {
    /// For each view one row an environment.
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<Observations<'py>> {
        let envs = self.envs.get()?;
        let mut all = Vec::with_capacity(self.views.len());
        for &view in &self.views {
            let length = envs.with(0, |env| env.bounds(view).length);
            let mut values = vec![0.0; length * envs.len()];
            for (index, row) in values.chunks_mut(length.max(1)).enumerate() {
                envs.with(index, |env| env.write(view, row)).map_err(env_error)?;
            }
            all.push(PyArray1::from_vec(py, values).reshape([envs.len(), length])?);
        }
        Ok(all)
    }

    fn infos<'py>(&self, py: Python<'py>, infos: &[Option<Info>]) -> PyResult<Bound<'py, PyList>> {
        let envs = self.envs.get()?;
        let told: Vec<Told> =
            release(py, || (0..envs.len()).map(|index| envs.with(index, Told::of)).collect())?;
        let list = PyList::empty(py);
        for (index, told) in told.into_iter().enumerate() {
            list.append(envs.with(index, |env| told.info(py, env, infos[index].as_ref()))?)?;
        }
        Ok(list)
    }
}

#[pymethods]
impl PyVectorEnv {
    #[new]
    fn new(
        world: &PyWorld,
        config: &str,
        views: Vec<String>,
        count: usize,
    ) -> PyResult<PyVectorEnv> {
        let config = parse_config(config)?;
        let envs = VectorEnv::new(world.world.get()?, &config, count).map_err(env_error)?;
        Ok(PyVectorEnv { envs: Owned::new(envs), views: parse_views(&views)? })
    }

    /// For each view its smallest value, its largest, and its length.
    #[getter]
    fn bounds(&self) -> PyResult<Vec<(f32, f32, usize)>> {
        self.envs.get()?.with(0, |env| {
            let bounds = self.views.iter().map(|view| env.bounds(*view));
            Ok(bounds.map(|bounds| (bounds.low, bounds.high, bounds.length)).collect())
        })
    }

    /// Names of the actions, in order.
    #[getter]
    fn actions(&self) -> PyResult<Vec<String>> {
        self.envs.get()?.with(0, |env| {
            Ok((0..env.actions()).map(|action| env.action_name(action).to_owned()).collect())
        })
    }

    /// Begins an episode in those of `which`.
    fn reset<'py>(
        &mut self,
        py: Python<'py>,
        seeds: Vec<Option<u64>>,
        which: Vec<bool>,
    ) -> PyResult<(Observations<'py>, Bound<'py, PyList>)> {
        let envs = self.envs.get_mut()?;
        let count = envs.len();
        release(py, || {
            envs.reset_some(&seeds, &which)?;
            (0..count).try_for_each(|index| envs.with(index, |env| inputs::check_episode(env)))
        })?;
        Ok((self.observe(py)?, self.infos(py, &vec![None; count])?))
    }

    /// Takes one action in each.
    #[allow(clippy::type_complexity, reason = "the five values of Gymnasium")]
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        actions: Vec<i64>,
    ) -> PyResult<(
        Observations<'py>,
        Bound<'py, PyArray1<f64>>,
        Bound<'py, PyArray1<bool>>,
        Bound<'py, PyArray1<bool>>,
        Bound<'py, PyList>,
    )> {
        let actions = actions.into_iter().map(parse_action).collect::<PyResult<Vec<_>>>()?;
        let envs = self.envs.get_mut()?;
        let steps = release(py, || {
            let steps = envs.step(&actions)?;
            for (index, step) in steps.iter().enumerate() {
                if matches!(step, VectorStep::Began) {
                    envs.with(index, |env| inputs::check_episode(env))?;
                }
            }
            Ok(steps)
        })?;
        let (mut rewards, mut terminated) = (Vec::new(), Vec::new());
        let (mut truncated, mut infos) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                VectorStep::Began => {
                    rewards.push(0.0);
                    terminated.push(false);
                    truncated.push(false);
                    infos.push(None);
                }
                VectorStep::Stepped(step) => {
                    rewards.push(step.reward);
                    terminated.push(step.terminated);
                    truncated.push(step.truncated);
                    infos.push(Some(step.info));
                }
            }
        }
        Ok((
            self.observe(py)?,
            PyArray1::from_vec(py, rewards),
            PyArray1::from_vec(py, terminated),
            PyArray1::from_vec(py, truncated),
            self.infos(py, &infos)?,
        ))
    }

    /// One line about each.
    fn describe(&self) -> PyResult<Vec<String>> {
        let envs = self.envs.get()?;
        (0..envs.len())
            .map(|index| envs.with(index, |env| env.describe()).map_err(env_error))
            .collect()
    }

    /// Ends the compiler process behind one of them, as an outside kill would. For tests.
    fn kill_worker(&mut self, py: Python<'_>, env: usize) -> PyResult<()> {
        let envs = self.envs.get()?;
        release(py, || {
            envs.with(env, |env| env.kill_worker());
            Ok(())
        })
    }

    /// Ends them.
    fn close(&mut self, py: Python<'_>) {
        let envs = self.envs.close();
        py.detach(|| drop(envs));
    }
}
