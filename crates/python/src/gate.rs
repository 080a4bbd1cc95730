//! The one gate through which every call goes that may take long.

use std::{process, sync::Mutex};

use pyo3::prelude::*;
use xla_gym_engine::interrupt_if;
use xla_gym_env::EnvError;

use crate::errors::{ForkedError, Raised};

/// What a signal handler of Python raised while a call was waiting.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

/// Lets Ctrl-C end a wait for the compiler.
pub fn prepare() {
    interrupt_if(|| {
        Python::attach(|py| match py.check_signals() {
            Ok(()) => false,
            Err(error) => {
                *RAISED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
                true
            }
        })
    });
}

/// Runs `work` without Python's lock, so that other threads of Python go on.
pub fn release<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R, EnvError> + Send,
) -> PyResult<R> {
    release_or(py, work)
}

/// The same for work with errors of another kind.
pub fn release_or<R: Send, E: Send + Raised>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R, E> + Send,
) -> PyResult<R> {
    let result = py.detach(work);
    let raised = RAISED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    match (result, raised) {
        (_, Some(raised)) => Err(raised),
        (result, None) => result.map_err(Raised::raised),
    }
}

/// Something that belongs to the process that made it: its compiler processes talk to nobody else.
pub struct Owned<T> {
    value: Option<T>,
    process: u32,
}

impl<T> Owned<T> {
    pub fn new(value: T) -> Owned<T> {
        Owned { value: Some(value), process: process::id() }
    }

    /// Refuses to be used in a process that was forked since.
    pub fn get(&self) -> PyResult<&T> {
        self.check()?;
        self.value.as_ref().ok_or_else(closed)
    }

    pub fn get_mut(&mut self) -> PyResult<&mut T> {
        self.check()?;
        self.value.as_mut().ok_or_else(closed)
    }

    /// Gives it up; the compiler processes end.
    pub fn close(&mut self) -> Option<T> {
        if process::id() == self.process { self.value.take() } else { None }
    }

    fn check(&self) -> PyResult<()> {
        if process::id() == self.process {
            return Ok(());
        }
        Err(ForkedError::new_err(
            "this environment was made before the process was forked, and its compiler belongs to \
             the parent: make environments in the child, or start children by \"spawn\" or \
             \"forkserver\"",
        ))
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if process::id() != self.process {
            // Ending it properly would end the parent's.
            std::mem::forget(self.value.take());
        }
    }
}

fn closed() -> PyErr {
    crate::errors::NotRunningError::new_err("this environment is closed")
}
