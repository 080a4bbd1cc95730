//! Every pass on every test graph.

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

use anyhow::{Context, Result};
use xla_gym_engine::{
    EngineError,
    protocol::{Observe, PassId},
};

use crate::graphs;

/// Which pass changes which graph: every pass on every test graph.
#[derive(clap::Args)]
pub struct Args {
    /// Write the table here instead of to standard output.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

pub fn run(args: Args) -> Result<()> {
    let engine = graphs::engine(30)?;
    let graphs = graphs::all()?;
    let names: Vec<String> = engine.hello().passes.iter().map(|pass| pass.name.clone()).collect();
    let bar = graphs::progress((graphs.len() * names.len()) as u64, "passes on graphs");
    let mut cells: BTreeMap<(usize, usize), String> = BTreeMap::new();
    for (column, (_, file)) in graphs.iter().enumerate() {
        let mut session = engine.load_file(file)?;
        let start = graphs::counts(&mut session)?;
        for row in 0..names.len() {
            let mut own = session.fork()?;
            let cell = match own.apply(PassId(row as u16), Observe::COUNTS) {
                Ok(applied) if !applied.changed => "·".to_owned(),
                Ok(applied) => {
                    let after = applied.observation.counts.context("no counts")?;
                    format!("{:+}", after.primary() as i64 - start.primary() as i64)
                }
                Err(EngineError::Pass(error)) => error.failure.kind().to_owned(),
                Err(error) => return Err(error.into()),
            };
            cells.insert((row, column), cell);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();

    let mut text = format!(
        "# Change in operations when a pass runs alone on the graph as emitted; · no change.\n\
         # Engine: {}. Made by `xla-gym-lab pass-table -o evidence/pass-table.tsv`.\npass",
        engine.name()
    );
    for (name, _) in &graphs {
        write!(text, "\t{name}")?;
    }
    text.push('\n');
    for (row, name) in names.iter().enumerate() {
        text.push_str(name);
        for column in 0..graphs.len() {
            write!(text, "\t{}", cells[&(row, column)])?;
        }
        text.push('\n');
    }
    match args.output {
        Some(path) => std::fs::write(path, text)?,
        None => print!("{text}"),
    }
    Ok(())
}
