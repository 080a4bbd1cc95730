//! Orders that are mutated and crossed.

use rand::Rng;
use xla_gym_engine::protocol::PassId;
use xla_gym_env::EnvError;

use crate::{
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

/// An order, and the operations that it leaves.
type Individual = (u64, Vec<PassId>);

impl Optimizer for Evolve {
    fn lanes(&self) -> u64 {
        2
    }

    fn run(&self, lane: &mut Lane<'_>) -> Result<(), EnvError> {
        let mut population: Vec<Individual> = Vec::new();
        for order in lane.seeds().to_vec() {
            let walk = walk_order(lane, &order)?;
            population.push((walk.state().counts.operations, order));
        }
        let given = lane.begin()?.path().len();
        let mut began = 0;
        while lane.over().is_none() {
            // A few from scratch, so that not all descend from one.
            let order = if population.is_empty() || began < self.population / 3 {
                began += 1;
                let length = lane.rng.random_range(4..=self.length / 2);
                random_order(lane, length)
            } else {
                self.offspring(lane, &population)
            };
            let walk = walk_order(lane, &order)?;
            let individual = (walk.state().counts.operations, walk.path().skip(given).collect());
            if !population.contains(&individual) {
                population.push(individual);
                population.sort_by_key(|(operations, order)| (*operations, order.len()));
                population.truncate(self.population);
            }
        }
        Ok(())
    }
}

impl Evolve {
    fn offspring(&self, lane: &mut Lane<'_>, population: &[Individual]) -> Vec<PassId> {
        let parent = pick(lane, population).to_vec();
        let mut order = parent;
        if lane.rng.random_bool(0.3) {
            // One-point crossover.
            let other = pick(lane, population);
            let from = lane.rng.random_range(0..=other.len());
            let until = lane.rng.random_range(0..=order.len());
            order.truncate(until);
            order.extend(&other[from..]);
        }
        for _ in 0..lane.rng.random_range(1..=3) {
            let at = lane.rng.random_range(0..=order.len());
            let pass = lane.pick();
            match lane.rng.random_range(0..4) {
                0 if at < order.len() => drop(order.remove(at)),
                1 if at < order.len() => order[at] = pass,
                2 if order.len() > 1 => {
                    let other = lane.rng.random_range(0..order.len());
                    let last = order.len() - 1;
                    order.swap(at.min(last), other);
                }
                _ => order.insert(at, pass),
            }
        }
        order.truncate(self.length);
        order
    }
}

fn random_order(lane: &mut Lane<'_>, length: usize) -> Vec<PassId> {
    (0..length).map(|_| lane.pick()).collect()
}

/// The better of two.
fn pick<'a>(lane: &mut Lane<'_>, population: &'a [Individual]) -> &'a [PassId] {
    let (a, b) =
        (lane.rng.random_range(0..population.len()), lane.rng.random_range(0..population.len()));
    // The population is sorted.
    &population[a.min(b)].1
}
