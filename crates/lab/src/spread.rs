//! Graphs of all families.

use std::collections::BTreeMap;

use anyhow::Result;
use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use xla_gym_data::{Benchmark, Benchmarks};

/// The graphs in an order that goes round the families, small ones first.
pub fn spread(names: &[String], up_to: u64, seed: u64) -> Result<Vec<Benchmark>> {
    let mut programs = Benchmarks::find(names)?.programs;
    programs.retain(|program| match program {
        Benchmark::Graph(graph) => graph.size() <= up_to,
        _ => true,
    });
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    programs.shuffle(&mut rng);
    let mut families: BTreeMap<String, Vec<Benchmark>> = BTreeMap::new();
    for program in programs {
        let family = match &program {
            Benchmark::Graph(graph) => graph.family.clone(),
            _ => String::new(),
        };
        families.entry(family).or_default().push(program);
    }
    let mut families: Vec<Vec<Benchmark>> = families.into_values().collect();
    families.shuffle(&mut rng);
    for family in &mut families {
        family.sort_by_key(|program| match program {
            Benchmark::Graph(graph) => graph.size(),
            _ => 0,
        });
    }
    let longest = families.iter().map(Vec::len).max().unwrap_or_default();
    Ok((0..longest)
        .flat_map(|round| families.iter().filter_map(move |family| family.get(round).cloned()))
        .collect())
}
