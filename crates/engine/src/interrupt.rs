//! Giving a long wait up.

use std::sync::OnceLock;

static WANTED: OnceLock<fn() -> bool> = OnceLock::new();

/// Has `wanted` asked whenever a signal interrupts a wait for a worker. If it says yes, the wait
/// ends with [`crate::EngineError::Interrupted`], and the worker with it. For hosts that handle
/// signals between calls, such as Python; without it a wait goes on. The first caller decides.
pub fn interrupt_if(wanted: fn() -> bool) {
    let _ = WANTED.set(wanted);
}

/// Whether to give up.
pub fn interrupted() -> bool {
    WANTED.get().is_some_and(|wanted| wanted())
}
