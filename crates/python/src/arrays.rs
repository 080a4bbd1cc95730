//! From the environment's numbers to Python's arrays.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::{prelude::*, types::PyDict};
use xla_gym_engine::protocol::Graph;
use xla_gym_env::{Env, EnvError, Figure, Info, View};
use xla_gym_profile::{Figures, Kind, Spec};

/// Reads the name of a view.
pub fn parse_view(name: &str) -> PyResult<View> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).map_err(|_| {
        crate::errors::ConfigError::new_err(format!(
            "there is no view {name:?}; there are counts, scaled, share, cost and history"
        ))
    })
}

/// A view of the current state.
pub fn view<'py>(py: Python<'py>, env: &Env, view: View) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let mut values = vec![0.0; env.bounds(view).length];
    env.write(view, &mut values).map_err(crate::errors::env_error)?;
    Ok(PyArray1::from_vec(py, values))
}

/// What Python is told besides the observation.
pub struct Told {
    benchmark: usize,
    action: Option<usize>,
    mask: Vec<bool>,
}

impl Told {
    /// Computes what may need the compiler.
    pub fn of(env: &mut Env) -> Result<Told, EnvError> {
        let mut mask = vec![true; env.actions()];
        env.write_mask(&mut mask)?;
        Ok(Told { benchmark: env.benchmark()?, action: env.taken()?.last().copied(), mask })
    }

    /// The `info` of Gymnasium.
    pub fn info<'py>(
        self,
        py: Python<'py>,
        env: &Env,
        info: Option<&Info>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let state = env.state().map_err(crate::errors::env_error)?;
        dict.set_item("benchmark", env.world().benchmark_name(self.benchmark))?;
        let hello = env.world().engine().hello();
        for (metric, count) in hello.counts.iter().zip(&state.counts[..]) {
            dict.set_item(&metric.name, count)?;
        }
        for (at, metric) in hello.costs.iter().enumerate() {
            let value = state.cost.as_ref().and_then(|cost| cost.get(at)).copied();
            dict.set_item(&metric.name, value.unwrap_or_default())?;
        }
        dict.set_item("action_mask", PyArray1::from_vec(py, self.mask))?;
        if let Some(info) = info {
            dict.set_item("pass", self.action.map(|action| env.action_name(action)))?;
            dict.set_item("changed", info.changed)?;
            let failure = info.failure.as_ref();
            dict.set_item("failure", failure.map(|failure| failure.kind.to_string()))?;
            dict.set_item("failure_message", failure.map(|failure| &*failure.message))?;
            if let Some((result, default)) = info.at_end {
                dict.set_item("at_end", (result, default))?;
            }
        }
        Ok(dict)
    }
}

/// A feature of nodes that says how large a value is. It spans so many orders of magnitude that its
/// logarithm is what a network can use.
const ELEMENTS: &str = "elements";

/// Node features as the compiler's worker names them, sizes as logarithms; edges (from, to) and edge
/// features (kind, position).
#[allow(clippy::type_complexity, reason = "three arrays")]
pub fn graph<'py>(
    py: Python<'py>,
    graph: &Graph,
    features: &[String],
) -> PyResult<(Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>)> {
    let names = features.iter().cycle();
    let as_number = |(value, name): (&u64, &String)| match &**name {
        ELEMENTS => (*value as f64).ln_1p() as f32,
        _ => *value as f32,
    };
    let nodes: Vec<f32> = graph.nodes.iter().zip(names).map(as_number).collect();
    let rows = nodes.len().checked_div(features.len()).unwrap_or_default();
    let (mut links, mut kinds) = (Vec::new(), Vec::new());
    for edge in &graph.edges {
        links.extend([i64::from(edge.from), i64::from(edge.to)]);
        kinds.extend([edge.kind as f32, edge.position as f32]);
    }
    let edges = graph.edges.len();
    Ok((
        PyArray1::from_vec(py, nodes).reshape([rows, features.len()])?,
        PyArray1::from_vec(py, links).reshape([edges, 2])?,
        PyArray1::from_vec(py, kinds).reshape([edges, 2])?,
    ))
}

/// Figures by name, as far as they are known; counts as whole numbers.
pub fn figures<'py>(
    py: Python<'py>,
    spec: &Spec,
    figures: &Figures,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for figure in spec.all_figures() {
        if let Some(value) = figures.get(figure) {
            dict.set_item(spec.figure_name(figure), number(py, spec, figure, value)?)?;
        }
    }
    Ok(dict)
}

/// A figure as Python's own number: an integer if it is counted.
pub fn number<'py>(
    py: Python<'py>,
    spec: &Spec,
    figure: Figure,
    value: f64,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match spec.kind(figure) {
        Kind::Whole => (value as u64).into_pyobject(py)?.into_any(),
        Kind::Estimate => value.into_pyobject(py)?.into_any(),
    })
}
