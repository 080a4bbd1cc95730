//! Orders that are mutated and crossed.

use rand::Rng;
use xla_gym_engine::protocol::PassId;
use xla_gym_env::EnvError;

use crate::{
    goal::Value,
    lane::Lane,
    search::{Optimizer, walk_order},
};

/// An evolutionary search: a population of orders, of which the better ones have offspring by
/// mutation and crossover. Since only passes that did something are inherited, orders stay short.
pub struct Evolve {
    /// Orders in the population of a lane.
    pub population: usize,
    /// The longest order.
    pub length: usize,
}

impl Default for Evolve {
    fn default() -> Evolve {
        Evolve { population: 12, length: 80 }
    }
}

/// How good an order is, and the order.
type Individual = (Value, Vec<PassId>);

/// A place in an order that is to be tried.
#[derive(Clone, Copy)]
enum Gene {
    /// This pass.
    Pass(PassId),
    /// Any pass that may do something there.
    Any,
}

impl Optimizer for Evolve {
    fn lanes(&self) -> u64 {
        2
    }

    fn run(&self, lane: &mut Lane<'_>) -> Result<(), EnvError> {
        let mut population: Vec<Individual> = Vec::new();
        for order in lane.seeds().to_vec() {
            let walk = walk_order(lane, &order)?;
            admit(&mut population, (lane.value(&walk), order), self.population);
        }
        let given = lane.begin()?.path().len();
        let mut began = 0;
        while lane.over().is_none() {
            // A few from scratch, so that not all descend from one.
            let order = if population.is_empty() || began < self.population / 3 {
                began += 1;
                vec![Gene::Any; lane.rng.random_range(4..=self.length / 2)]
            } else {
                self.offspring(lane, &population)
            };
            let mut walk = lane.begin()?;
            for gene in order {
                let pass = match gene {
                    Gene::Pass(pass) if lane.is_useless(&walk, pass) => continue,
                    Gene::Pass(pass) => pass,
                    Gene::Any => match lane.pick_for(&walk) {
                        Some(pass) => pass,
                        None => break,
                    },
                };
                if lane.step(&mut walk, pass)?.is_none() {
                    break;
                }
            }
            let individual = (lane.value(&walk), walk.path().skip(given).collect());
            admit(&mut population, individual, self.population);
        }
        Ok(())
    }
}

/// Adds an order to the population, which stays sorted.
fn admit(population: &mut Vec<Individual>, individual: Individual, most: usize) {
    if !population.contains(&individual) {
        population.push(individual);
        population.sort_by_key(|(value, order)| (*value, order.len()));
        population.truncate(most);
    }
}

impl Evolve {
    fn offspring(&self, lane: &mut Lane<'_>, population: &[Individual]) -> Vec<Gene> {
        let mut order = pick(lane, population).to_vec();
        if lane.rng.random_bool(0.3) {
            // One-point crossover.
            let other = pick(lane, population);
            let from = lane.rng.random_range(0..=other.len());
            let until = lane.rng.random_range(0..=order.len());
            order.truncate(until);
            order.extend(&other[from..]);
        }
        let mut order: Vec<Gene> = order.into_iter().map(Gene::Pass).collect();
        for _ in 0..lane.rng.random_range(1..=3) {
            let at = lane.rng.random_range(0..=order.len());
            match lane.rng.random_range(0..4) {
                0 if at < order.len() => drop(order.remove(at)),
                1 if at < order.len() => order[at] = Gene::Any,
                2 if order.len() > 1 => {
                    let other = lane.rng.random_range(0..order.len());
                    let last = order.len() - 1;
                    order.swap(at.min(last), other);
                }
                _ => order.insert(at, Gene::Any),
            }
        }
        order.truncate(self.length);
        order
    }
}

/// The better of two.
fn pick<'a>(lane: &mut Lane<'_>, population: &'a [Individual]) -> &'a [PassId] {
    let (a, b) =
        (lane.rng.random_range(0..population.len()), lane.rng.random_range(0..population.len()));
    // The population is sorted.
    &population[a.min(b)].1
}
