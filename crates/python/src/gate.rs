//! The one gate through which every call goes that may take long.

use std::{
    panic, process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use pyo3::{
    exceptions::{PyKeyboardInterrupt, PyUserWarning},
    prelude::*,
};
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

/// How often somebody looks for Ctrl-C meanwhile.
const TICK: Duration = Duration::from_millis(50);

/// Runs `work`, which ends early with what it has when `stop` is set. Ctrl-C sets it; a second
/// Ctrl-C, or whatever else a signal handler raises, is raised here, and `work` is left to end by
/// itself. Says besides whether it was stopped.
///
/// `work` has a thread of its own: the main thread is the only one on which Python's signal handlers
/// run, and must not sit in a wait that a signal would end together with what was found.
pub fn stoppable<R: Send + 'static, E: Send + Raised + 'static>(
    py: Python<'_>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> Result<R, E> + Send + 'static,
) -> PyResult<(R, bool)> {
    let (sender, mut receiver) = mpsc::channel();
    let worker = thread::Builder::new().name("xla-gym search".to_owned()).spawn(move || {
        // Nobody listens any more after a second Ctrl-C.
        let _ = sender.send(work());
    })?;
    loop {
        let received;
        (receiver, received) = py.detach(move || {
            let received = receiver.recv_timeout(TICK);
            (receiver, received)
        });
        if let Err(raised) = py.check_signals() {
            let first = !stop.swap(true, Ordering::Relaxed);
            if !(first && raised.is_instance_of::<PyKeyboardInterrupt>(py)) {
                return Err(raised);
            }
            let said = c"the search ends with the best so far, once that is proven; \
                         Ctrl-C again gives it up";
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), said, 2)?;
        }
        match received {
            Ok(result) => {
                return Ok((result.map_err(Raised::raised)?, stop.load(Ordering::Relaxed)));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panicked) => panic::resume_unwind(panicked),
                Ok(()) => unreachable!("it sends before it ends"),
            },
        }
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
