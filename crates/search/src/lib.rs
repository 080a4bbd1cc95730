//! Finds a better pass order for one program, within a budget.
//!
//! Every method is an [`Optimizer`]. It walks among the states of a program by [`Lane`]s, which
//! charge each pass that is run to the budget and keep the best states seen. The budget is divided
//! among a fixed number of lanes, each with luck of its own, so that a seed gives the same result
//! on any number of cores.
//!
//! Invariants: a search changes nothing but what it returns; it can be stopped at any moment and
//! keeps the best so far; a state that a compiler refused is never a candidate.

#![forbid(unsafe_code)]

mod beam;
mod budget;
mod costs;
mod evolve;
mod goal;
mod lane;
mod mcts;
mod minimise;
mod policy;
mod random;
mod search;

pub use beam::Beam;
pub use budget::{Budget, StopReason};
pub use costs::{Costs, Predictions};
pub use evolve::Evolve;
pub use goal::{Goal, Value};
pub use lane::{Candidate, Lane};
pub use mcts::Mcts;
pub use minimise::minimise;
pub use policy::{Habits, Policy};
pub use random::Random;
pub use search::{Found, Method, Optimizer, Search, search};
pub use xla_gym_profile::Measure;
