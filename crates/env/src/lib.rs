//! Environments: pass ordering as a Markov decision process, on any engine.
//!
//! A [`World`] is what all environments of a process share: the engine, the benchmarks, and the
//! [`Transitions`] that are already known. An [`Env`] is one episode at a time in it: `reset` to a
//! benchmark at one of the starts that the compiler's profile has, then one pass a step, up to a limit. A
//! [`VectorEnv`] is many of them on all cores.
//!
//! What an agent sees and what it is paid for are small parts that combine: see [`View`] and
//! [`Reward`].
//!
//! Invariants: a step never fails because of what a compiler does. A pass that crashes, is refused
//! or leaves a program that the verifier rejects leaves the state as it was, and says so. What a
//! step returns depends on the benchmark, the actions and the seed alone, never on timing or on
//! what happens to be cached.

#![forbid(unsafe_code)]

mod benchmarks;
mod config;
mod env;
mod error;
mod mask;
mod picture;
mod reward;
mod sampler;
mod vector;
mod view;
mod walk;
mod world;

pub use config::{EnvConfig, MaskKind};
pub use env::{Env, EnvState, Info, Step};
pub use error::EnvError;
pub use picture::{Picture, plot};
pub use reward::{Objective, Potential, Reward, Rules};
pub use sampler::Sampler;
pub use vector::{VectorEnv, VectorStep};
pub use view::{Bounds, Places, Seen, Shape, View};
pub use walk::{Stepped, Walk};
pub use world::{World, WorldConfig};
pub use xla_gym_profile::{Figure, Profile};
pub use xla_gym_transitions::{
    Config as CacheConfig, Failure, FailureKind, State, Stats as CacheStats, Transitions,
};
