//! From the environment's numbers to Python's arrays.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::{prelude::*, types::PyDict};
use xla_gym_engine::protocol::Graph;
use xla_gym_env::{Env, EnvError, Info, View};

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
        dict.set_item("operations", state.counts.operations)?;
        dict.set_item("inlined", state.counts.inlined)?;
        dict.set_item("instructions", state.counts.instructions)?;
        dict.set_item("computations", state.counts.computations)?;
        let cost = state.cost.unwrap_or_default();
        dict.set_item("flops", cost.flops)?;
        dict.set_item("transcendentals", cost.transcendentals)?;
        dict.set_item("bytes_accessed", cost.bytes_accessed)?;
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

/// Node features (opcode, element type, rank, computation, logarithm of elements), edges
/// (from, to) and edge features (kind, position).
#[allow(clippy::type_complexity, reason = "three arrays")]
pub fn graph<'py>(
    py: Python<'py>,
    graph: &Graph,
) -> PyResult<(Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>)> {
    let mut nodes = Vec::with_capacity(graph.nodes.len() * 5);
    for node in &graph.nodes {
        nodes.extend([
            node.opcode as f32,
            node.dtype as f32,
            node.rank as f32,
            node.computation as f32,
            (node.elements as f64).ln_1p() as f32,
        ]);
    }
    let (mut links, mut kinds) = (Vec::new(), Vec::new());
    for edge in &graph.edges {
        links.extend([i64::from(edge.from), i64::from(edge.to)]);
        kinds.extend([edge.kind as f32, edge.position as f32]);
    }
    let edges = graph.edges.len();
    Ok((
        PyArray1::from_vec(py, nodes).reshape([graph.nodes.len(), 5])?,
        PyArray1::from_vec(py, links).reshape([edges, 2])?,
        PyArray1::from_vec(py, kinds).reshape([edges, 2])?,
    ))
}
