//! The shortest part of an order that gives the same.

use std::sync::Arc;

use xla_gym_engine::protocol::PassId;
use xla_gym_env::{EnvError, Walk, World};

/// Leaves out what can be left out while `good` holds for the state at the end: halves first, then
/// quarters, down to single passes (delta debugging). Ends where it stands when `enough` says so.
pub fn minimise(
    world: &Arc<World>,
    benchmark: usize,
    order: &[PassId],
    mut good: impl FnMut(&mut Walk) -> Result<bool, EnvError>,
    enough: impl Fn() -> bool,
) -> Result<Vec<PassId>, EnvError> {
    let mut order = order.to_vec();
    let mut part = order.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut shorter = false;
        while at < order.len() {
            if enough() {
                return Ok(order);
            }
            let mut rest = order.clone();
            rest.drain(at..(at + part).min(order.len()));
            let mut walk = Walk::begin(world, benchmark)?;
            for &pass in &rest {
                walk.step(pass)?;
            }
            if good(&mut walk)? {
                order = rest;
                shorter = true;
            } else {
                at += part;
            }
        }
        if part == 1 && !shorter {
            return Ok(order);
        }
        part = if part == 1 { 1 } else { part.div_ceil(2) };
    }
}
