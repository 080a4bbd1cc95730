//! The native part of the Python package `xla_gym`.
//!
//! Thin: it turns Python's arguments into those of [`xla_gym_env`] and [`xla_gym_optimize`], releases Python's lock while a
//! compiler works, and turns each kind of error into an exception class of its own. What it means
//! to be a Gymnasium environment is in `python/xla_gym`.

#![forbid(unsafe_code)]

mod arrays;
mod env;
mod errors;
mod gate;
mod inputs;
mod library;
mod optimize;
mod vector;
mod world;

use pyo3::prelude::*;

/// The native part of xla_gym.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    gate::prepare();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<world::PyWorld>()?;
    module.add_class::<env::PyEnv>()?;
    module.add_class::<vector::PyVectorEnv>()?;
    library::add(module)?;
    optimize::add(module)?;
    errors::add(module)
}
