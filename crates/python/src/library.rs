//! The benchmark library, and the compilers that there are.

use pyo3::{prelude::*, types::PyBytes};
use xla_gym_data::{Benchmarks, Library, LibraryError};

use crate::errors::{BenchmarkNotFoundError, benchmark_error};

fn library_error(error: LibraryError) -> PyErr {
    BenchmarkNotFoundError::new_err(error.to_string())
}

/// Ids of the benchmarks that the specs stand for, and what was passed over.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "names, and names with reasons")]
fn find_benchmarks(specs: Vec<String>) -> PyResult<(Vec<String>, Vec<(String, String)>)> {
    let found = Benchmarks::find(&specs).map_err(benchmark_error)?;
    Ok((
        found.programs.iter().map(|program| program.name()).collect(),
        found.skipped.into_iter().map(|skipped| (skipped.name, skipped.reason)).collect(),
    ))
}

/// What is known of a graph of the data set, as JSON.
#[pyfunction]
fn describe_graph(id: &str) -> PyResult<String> {
    let library = Library::of_id(id).map_err(library_error)?;
    let graph = library.graph(id).map_err(library_error)?;
    serde_json::to_string(graph).map_err(|error| BenchmarkNotFoundError::new_err(error.to_string()))
}

/// The text of a graph of the data set.
#[pyfunction]
fn read_graph<'py>(py: Python<'py>, id: &str) -> PyResult<Bound<'py, PyBytes>> {
    let library = Library::of_id(id).map_err(library_error)?;
    let source = library.graph(id).and_then(|graph| library.source(graph));
    Ok(PyBytes::new(py, &source.map_err(library_error)?.bytes))
}

/// The names of all compilers; the first is meant if nobody says which.
#[pyfunction]
fn engines() -> Vec<&'static str> {
    xla_gym_compilers::NAMES.to_vec()
}

/// The compiler of a file, by the ending of its name.
#[pyfunction]
fn engine_of(name: &str) -> &'static str {
    xla_gym_compilers::of_file(name)
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(engines, module)?)?;
    module.add_function(wrap_pyfunction!(engine_of, module)?)?;
    module.add_function(wrap_pyfunction!(find_benchmarks, module)?)?;
    module.add_function(wrap_pyfunction!(describe_graph, module)?)?;
    module.add_function(wrap_pyfunction!(read_graph, module)?)
}
