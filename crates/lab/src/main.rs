//! Experiments and benchmarks whose results are committed, each by one command.

#![forbid(unsafe_code)]

mod bar;
mod canonical;
mod coreset;
mod demonstrations;
mod ensemble;
mod episodes;
mod evaluate;
mod false_alarms;
mod full_size;
mod fuzz;
mod graphs;
mod headroom;
mod hlo_text;
mod late_copies;
mod manifest;
mod mutants;
mod mutate;
mod mutations;
mod optional;
mod overhead;
mod pack;
mod pass_table;
mod power;
mod recheck;
mod reduced;
mod referee;
mod search;
mod soundness;
mod speed;
mod spread;
mod throughput;
mod transitions;
mod transport;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Experiments and benchmarks of XLA Gym.
#[derive(Parser)]
#[command(name = "xla-gym-lab", version)]
enum Lab {
    #[command(flatten)]
    Command(Command),
}

#[derive(Subcommand)]
enum Command {
    /// Which pass changes which graph: every pass on every test graph.
    PassTable(pass_table::Args),
    /// Random pass orders on random graphs: what fails, and whether what is left still computes
    /// the same.
    Episodes(episodes::Args),
    FalseAlarms(false_alarms::Args),
    FullSize(full_size::Args),
    /// Broken files into the loader.
    Fuzz(fuzz::Args),
    /// What the engine client adds to the passes' own time.
    Overhead(overhead::Args),
    /// What the environments add to the passes' own time.
    Throughput(throughput::Args),
    /// Pipes against a socket pair, for messages of the size of ours.
    Transport(transport::Args),
    /// Whether a state's fingerprint and a pass determine the next state.
    Transitions(transitions::Args),
    /// The manifest of the data set: what the engine says of every graph.
    Manifest(manifest::Args),
    /// What there is to win: the best of some random pass orders on a sample of graphs.
    Headroom(headroom::Args),
    /// What `optimize` is worth: many graphs, methods side by side at equal budgets.
    Evaluate(evaluate::Args),
    /// Run time as the objective: many models, each beside XLA's own pipeline and a control.
    Speed(speed::Args),
    /// A small set of orders that together do well on the training graphs.
    Coreset(coreset::Args),
    /// Good orders for training graphs, by search, for agents to learn.
    Demonstrations(demonstrations::Args),
    /// Orders in which passes are named alike.
    Canonical(canonical::Args),
    LateCopies(late_copies::Args),
    /// Whether orders in files compute what they should.
    Recheck(recheck::Args),
    Power(power::Args),
    Reduced(reduced::Args),
    Soundness(soundness::Args),
    /// One policy out of several.
    Ensemble(ensemble::Args),
    /// Which passes of XLA's own pipeline can be left out.
    Optional(optional::Args),
    /// How often the oracle calls a wrong program equal.
    Mutants(mutants::Args),
    Pack(pack::Args),
    /// A better pass order for one graph.
    Search(search::Args),
}

fn main() -> Result<()> {
    let Lab::Command(command) = Lab::parse();
    match command {
        Command::PassTable(args) => pass_table::run(args),
        Command::Episodes(args) => episodes::run(args),
        Command::FalseAlarms(args) => false_alarms::run(args),
        Command::FullSize(args) => full_size::run(args),
        Command::Fuzz(args) => fuzz::run(args),
        Command::Overhead(args) => overhead::run(args),
        Command::Throughput(args) => throughput::run(args),
        Command::Transport(args) => transport::run(args),
        Command::Transitions(args) => transitions::run(args),
        Command::Manifest(args) => manifest::run(args),
        Command::Headroom(args) => headroom::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Speed(args) => speed::run(args),
        Command::Coreset(args) => coreset::run(args),
        Command::Demonstrations(args) => demonstrations::run(args),
        Command::Canonical(args) => canonical::run(args),
        Command::LateCopies(args) => late_copies::run(args),
        Command::Recheck(args) => recheck::run(args),
        Command::Power(args) => power::run(args),
        Command::Reduced(args) => reduced::run(args),
        Command::Soundness(args) => soundness::run(args),
        Command::Ensemble(args) => ensemble::run(args),
        Command::Optional(args) => optional::run(args),
        Command::Mutants(args) => mutants::run(args),
        Command::Pack(args) => pack::run(args),
        Command::Search(args) => search::run(args),
    }
}
