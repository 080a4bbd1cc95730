//! Broken files into the loader.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Result;
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::{Engine, EngineError, Source};

use crate::graphs;

/// Broken files into the loader.
///
/// Takes real files of every format and breaks them: flips, cuts, repeats, splices, swaps of
/// words and numbers. Each must load or be refused with an error; the host must stay alive.
#[derive(clap::Args)]
pub struct Args {
    /// How long.
    #[arg(long, default_value_t = 600.0)]
    seconds: f64,

    /// Seed of everything.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub fn run(args: Args) -> Result<()> {
    let engine = graphs::engine(10)?;
    let corpus = corpus()?;
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let end = Instant::now() + Duration::from_secs_f64(args.seconds);
    let bar = graphs::progress(args.seconds.ceil() as u64, "seconds of broken files");
    let mut outcomes: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut deaths: BTreeMap<String, u64> = BTreeMap::new();
    while Instant::now() < end {
        let bytes = broken(&corpus, &mut rng);
        let outcome = match load(&engine, bytes)? {
            Outcome::Loaded => "loaded",
            Outcome::Refused => "refused",
            Outcome::Died(message) => {
                *deaths.entry(message).or_default() += 1;
                "the worker died, the host went on"
            }
        };
        *outcomes.entry(outcome).or_default() += 1;
        bar.set_position((args.seconds - (end - Instant::now()).as_secs_f64()) as u64);
    }
    bar.finish_and_clear();
    println!("{} files, 0 host crashes", outcomes.values().sum::<u64>());
    for (outcome, count) in &outcomes {
        println!("  {count:8}  {outcome}");
    }
    let mut sorted: Vec<_> = deaths.into_iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (message, count) in sorted.iter().take(20) {
        println!("  {count:8}  {message}");
    }
    Ok(())
}

enum Outcome {
    Loaded,
    Refused,
    Died(String),
}

fn load(engine: &Engine, bytes: Vec<u8>) -> Result<Outcome> {
    let source = match Source::from_bytes("fuzz", bytes) {
        Ok(source) => source,
        Err(_) => return Ok(Outcome::Refused),
    };
    match engine.load(&source) {
        Ok(_) => Ok(Outcome::Loaded),
        Err(EngineError::Load { message, .. }) if message.starts_with("the compiler ") => {
            Ok(Outcome::Died(message.chars().take(140).collect()))
        }
        Err(EngineError::Load { message, .. }) => {
            anyhow::ensure!(!message.trim().is_empty(), "a refusal without a reason");
            Ok(Outcome::Refused)
        }
        Err(error) => Err(error.into()),
    }
}

fn corpus() -> Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    for folder in [graphs::folder(), graphs::folder().join("../formats")] {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let compressed = std::fs::read(&path)?;
            let plain = Source::read(&path)?.bytes.to_vec();
            // Small files: more tries a second, and what breaks a loader is not size.
            if plain.len() < 200_000 {
                files.push(plain);
                files.push(compressed);
            }
        }
    }
    Ok(files)
}

fn broken(corpus: &[Vec<u8>], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = corpus.choose(rng).cloned().unwrap_or_default();
    for _ in 0..rng.random_range(1..6) {
        if bytes.is_empty() {
            break;
        }
        let at = rng.random_range(0..bytes.len());
        let length = rng.random_range(1..64).min(bytes.len() - at);
        match rng.random_range(0..8) {
            0 => bytes[at] ^= 1 << rng.random_range(0..8),
            1 => bytes[at] = rng.random(),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let chunk = bytes[at..at + length].to_vec();
                let times = rng.random_range(1..50);
                bytes.splice(at..at, chunk.repeat(times));
            }
            5 => {
                let other = corpus.choose(rng).cloned().unwrap_or_default();
                let from = rng.random_range(0..other.len().max(1));
                bytes.truncate(at);
                bytes.extend(&other[from.min(other.len())..]);
            }
            6 => replace_number(&mut bytes, at, rng),
            _ => {
                let to = rng.random_range(0..bytes.len() - length + 1);
                let chunk = bytes[at..at + length].to_vec();
                bytes[to..to + length].copy_from_slice(&chunk);
            }
        }
    }
    bytes
}

/// Sizes and indices beyond any bound are what text formats break on.
fn replace_number(bytes: &mut Vec<u8>, at: usize, rng: &mut ChaCha8Rng) {
    const NUMBERS: [&str; 7] =
        ["0", "-1", "2147483648", "9223372036854775807", "99999999999999999999", "1e400", "nan"];
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|i| at + i) else {
        return;
    };
    let end =
        bytes[start..].iter().position(|b| !b.is_ascii_digit()).map_or(bytes.len(), |i| start + i);
    let number = NUMBERS.choose(rng).copied().unwrap_or("0");
    bytes.splice(start..end, number.bytes());
}
