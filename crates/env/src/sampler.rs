//! In which order the benchmarks come.

use rand::{Rng, distr::weighted::WeightedIndex, prelude::Distribution};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::{error::EnvError, world::World};

/// In which order the benchmarks come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampler {
    /// One after the other. Environments of a vector begin at different ones.
    #[default]
    Cycle,
    /// Each as often as any other, at random.
    Random,
    /// At random by weight, one weight for each benchmark.
    Weighted(Vec<f64>),
    /// At random among the smallest at first, among all of them after so many episodes.
    Curriculum {
        /// After how many episodes of this environment.
        episodes: u64,
    },
}

/// A sampler at work.
#[derive(Clone)]
pub enum Sampling {
    Cycle { next: usize, stride: usize },
    Random,
    Weighted(WeightedIndex<f64>),
    Curriculum { by_size: Vec<usize>, episodes: u64 },
}

impl Sampling {
    /// For environment `index` of `of`.
    pub fn new(
        sampler: &Sampler,
        world: &World,
        index: usize,
        of: usize,
    ) -> Result<Sampling, EnvError> {
        Ok(match sampler {
            Sampler::Cycle => Sampling::Cycle { next: index % world.len(), stride: of },
            Sampler::Random => Sampling::Random,
            Sampler::Weighted(weights) if weights.len() != world.len() => {
                return Err(EnvError::Config(format!(
                    "{} weights for {} benchmarks; there must be one for each",
                    weights.len(),
                    world.len()
                )));
            }
            Sampler::Weighted(weights) => Sampling::Weighted(
                WeightedIndex::new(weights)
                    .map_err(|error| EnvError::Config(format!("the weights: {error}")))?,
            ),
            Sampler::Curriculum { episodes } => {
                let mut sizes = (0..world.len())
                    .map(|benchmark| Ok((world.size(benchmark)?, benchmark)))
                    .collect::<Result<Vec<_>, EnvError>>()?;
                sizes.sort();
                Sampling::Curriculum {
                    by_size: sizes.into_iter().map(|(_, benchmark)| benchmark).collect(),
                    episodes: *episodes,
                }
            }
        })
    }

    /// The benchmark of the next episode.
    pub fn next(&mut self, world: &World, episode: u64, rng: &mut ChaCha8Rng) -> usize {
        match self {
            Sampling::Cycle { next, stride } => {
                let benchmark = *next;
                *next = (*next + *stride) % world.len();
                benchmark
            }
            Sampling::Random => rng.random_range(0..world.len()),
            Sampling::Weighted(weights) => weights.sample(rng),
            Sampling::Curriculum { by_size, episodes } => {
                let share = (episode + 1) as f64 / (*episodes).max(1) as f64;
                let count = (by_size.len() as f64 * share.min(1.0)).ceil() as usize;
                by_size[rng.random_range(0..count.clamp(1, by_size.len()))]
            }
        }
    }

    /// Back to the beginning, as after a new seed.
    pub fn restart(&mut self, index: usize, world: &World) {
        if let Sampling::Cycle { next, .. } = self {
            *next = index % world.len();
        }
    }
}
