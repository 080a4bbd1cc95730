//! Agents that learn in which order passes should run.
//!
//! A [`Config`] says what to train on and how; [`train`] does it, survives being killed, and writes
//! a [`TrainedPolicy`]. The algorithms are one file each: `ppo.rs`, `a2c.rs`, `dqn.rs`, `trpo.rs`.
//! A policy plugs into every search as a [`Guide`].
//!
//! Invariants: a run's result depends on its configuration alone, not on the number of cores, on
//! what is cached, or on how often it was interrupted. Luck is drawn anew for every episode and
//! every update, by their numbers, so that there is none to save.

#![forbid(unsafe_code)]

mod a2c;
mod actor_critic;
mod advantage;
mod choice;
mod config;
mod dqn;
mod earlier;
mod ensemble;
mod episode;
mod error;
mod imitation;
mod learner;
mod observer;
mod policy;
mod ppo;
mod shipped;
mod tensors;
#[cfg(test)]
mod testing;
mod train;
mod trpo;

pub use a2c::A2cConfig;
pub use actor_critic::Discounting;
pub use config::{Algorithm, Config, Environment, Network, Observation, Plateau, Validation};
pub use dqn::DqnConfig;
pub use ensemble::together;
pub use episode::{Chooser, Episode, EpisodeRequest, Gatherer};
pub use error::AgentError;
pub use imitation::{Demonstration, Examples, Imitation, examples};
pub use observer::Observer;
pub use policy::{Card, Guide, Interface, TrainedPolicy};
pub use ppo::PpoConfig;
pub use shipped::Shipped;
pub use train::{LAST, LEAST_RATIO, POLICY, Setting, Trained, Watch, make_world, train};
pub use trpo::TrpoConfig;
pub use xla_gym_report::results::Progress;
