//! `xla-gym diff`

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Result;
use serde::Serialize;
use xla_gym_common::{Table, grouped};
use xla_gym_engine::{Engine, Session, protocol::Observe};

use crate::{
    context::Context,
    named::{self, Named},
};

/// Show what differs between two programs, by opcode and by function.
#[derive(clap::Args)]
pub struct Args {
    /// The first program.
    a: PathBuf,

    /// The second program.
    b: PathBuf,
}

#[derive(Serialize)]
struct Side {
    file: String,
    counts: Option<Named<u64>>,
    opcodes: BTreeMap<String, i64>,
    functions: BTreeMap<String, i64>,
    identical: String,
}

#[derive(Serialize)]
struct Change {
    name: String,
    a: i64,
    b: i64,
}

#[derive(Serialize)]
struct Shown {
    a: String,
    b: String,
    identical: bool,
    counts: [Option<Named<u64>>; 2],
    opcodes: Vec<Change>,
    functions: Vec<Change>,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let engine = context.engine(&args.a)?;
    let a = side(&engine, &mut context.load(&engine, &args.a)?)?;
    let b = side(&engine, &mut context.load(&engine, &args.b)?)?;
    let shown = Shown {
        identical: a.identical == b.identical,
        counts: [a.counts, b.counts],
        opcodes: changes(&a.opcodes, &b.opcodes),
        functions: changes(&a.functions, &b.functions),
        a: a.file,
        b: b.file,
    };
    if context.json() {
        context.print_json(&shown)?;
    } else {
        context.print(&render(&shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn side(engine: &Engine, session: &mut Session) -> Result<Side> {
    let seen = session.observe(Observe::COUNTS | Observe::OPCODES | Observe::FINGERPRINT)?;
    let opcodes = seen.opcodes.unwrap_or_default();
    // Not every compiler counts by function.
    let breakdown = session.breakdown().unwrap_or_default();
    Ok(Side {
        file: session.source().name.to_string(),
        counts: seen.counts.map(|seen| named::counts(engine.hello(), &seen)),
        opcodes: engine
            .hello()
            .opcodes
            .iter()
            .cloned()
            .zip(opcodes.into_iter().map(i64::from))
            .collect(),
        functions: breakdown
            .into_iter()
            .map(|function| {
                let size = function.opcodes.iter().map(|(_, count)| i64::from(*count)).sum();
                (function.name, size)
            })
            .collect(),
        identical: session.fingerprint()?.to_string(),
    })
}

/// Largest change first.
fn changes(a: &BTreeMap<String, i64>, b: &BTreeMap<String, i64>) -> Vec<Change> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |side: &BTreeMap<String, i64>, name| side.get(name).copied().unwrap_or(0);
    let mut changes: Vec<Change> = names
        .into_iter()
        .map(|name| Change { name: name.clone(), a: value(a, name), b: value(b, name) })
        .filter(|change| change.a != change.b)
        .collect();
    changes.sort_by_key(|change| -(change.b - change.a).abs());
    changes
}

fn render(shown: &Shown) -> String {
    if shown.identical {
        return format!("{} and {} are the same program\n", shown.a, shown.b);
    }
    let mut out = String::new();
    let mut totals = Table::new(&["", ">A", ">B", ">change"]);
    if let [Some(a), Some(b)] = &shown.counts {
        for ((name, a), (_, b)) in a.iter().zip(b.iter()) {
            let change = format!("{:+}", b as i64 - a as i64);
            totals.row([name.to_owned(), grouped(a), grouped(b), change]);
        }
    }
    out.push_str(&format!("A {}\nB {}\n\n{}", shown.a, shown.b, totals.render()));
    for (title, rows) in [("opcode", &shown.opcodes), ("function", &shown.functions)] {
        let mut table = Table::new(&[title, ">A", ">B", ">change"]);
        const MOST: usize = 40;
        for row in rows.iter().take(MOST) {
            table.row([
                row.name.clone(),
                grouped(row.a as u64),
                grouped(row.b as u64),
                format!("{:+}", row.b - row.a),
            ]);
        }
        out.push('\n');
        out.push_str(&table.render());
        if rows.len() > MOST {
            out.push_str(&format!("… and {} more (--json has all)\n", rows.len() - MOST));
        }
    }
    out
}
