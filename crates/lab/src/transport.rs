//! Pipes against a socket pair.

use std::{
    io::{Read, Write, pipe},
    os::unix::net::UnixStream,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result};

use crate::graphs::median;

/// Pipes against a socket pair, for messages of the size of ours.
///
/// The other side is `cat`, which reads and writes as a worker does: one message each way.
#[derive(clap::Args)]
pub struct Args {
    /// Round trips.
    #[arg(long, default_value_t = 20_000)]
    rounds: usize,
}

pub fn run(args: Args) -> Result<()> {
    for size in [16, 600, 16_384] {
        let pipes = pipes(size, args.rounds)?;
        let socket = socket(size, args.rounds)?;
        println!(
            "{size:6} bytes: pipes {pipes:.1} µs, socket pair {socket:.1} µs a round trip \
             (ratio {:.2})",
            socket / pipes
        );
    }
    Ok(())
}

fn pipes(size: usize, rounds: usize) -> Result<f64> {
    let (child_in, mut to_child) = pipe()?;
    let (mut from_child, child_out) = pipe()?;
    let mut child = Command::new("cat").stdin(child_in).stdout(child_out).spawn().context("cat")?;
    let result = ping(size, rounds, |message| {
        to_child.write_all(message)?;
        from_child.read_exact(message)
    });
    drop(to_child);
    child.wait()?;
    result
}

fn socket(size: usize, rounds: usize) -> Result<f64> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let input: std::os::fd::OwnedFd = theirs.try_clone()?.into();
    let output: std::os::fd::OwnedFd = theirs.into();
    let mut child = Command::new("cat")
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .spawn()
        .context("cat")?;
    let result = ping(size, rounds, |message| {
        ours.write_all(message)?;
        ours.read_exact(message)
    });
    drop(ours);
    child.wait()?;
    result
}

/// Median time of a round trip, in microseconds.
fn ping(
    size: usize,
    rounds: usize,
    mut trip: impl FnMut(&mut [u8]) -> std::io::Result<()>,
) -> Result<f64> {
    let mut message = vec![7; size];
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        trip(&mut message)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&mut times))
}
