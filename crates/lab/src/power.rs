//! Whether small differences in run time are told from noise.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use xla_gym_engine::{Engine, Session, Source};
use xla_gym_optimize::compare_speed;
use xla_gym_oracle::{Calm, inputs};
use xla_gym_rows::{self as rows, Appender};

use crate::graphs;

/// Programs whose time is known to be in proportion to how often a loop turns: for each, the width of the
/// matrices in it, and about how long it runs.
const PROGRAMS: [(&str, u32); 3] = [("short", 8), ("middle", 64), ("long", 256)];

/// How often the loop of the slower one turns.
const TURNS: u32 = 1000;

/// How much faster the other one is, in percent.
const PLANTED: [u32; 3] = [0, 2, 5];

/// Plants speedups of 0, 2 and 5% into programs of about 1 ms to 2 s and asks, again and again, which of
/// two is faster, as `xla-gym exec --against` and the objective run-time do.
#[derive(clap::Args)]
pub struct Args {
    /// How often each question is asked.
    #[arg(long, default_value_t = 20)]
    repeats: u32,

    /// Seconds for each answer at most.
    #[arg(long, default_value_t = 120.0)]
    seconds: f64,

    /// Which programs: short, middle, long [default: all].
    programs: Vec<String>,

    /// Print the table of what is in the file, and run nothing.
    #[arg(long)]
    only_table: bool,

    /// Where to write results, one line of JSON each; what is there is not done again.
    #[arg(long, short)]
    output: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Row {
    program: String,
    /// How much faster the second is in truth, in percent.
    planted: u32,
    repeat: u32,
    /// Nanoseconds of a run of the first.
    nanos: f64,
    speedup: f64,
    interval: (f64, f64),
    /// The first beside itself.
    control: f64,
    /// Whether a difference was found.
    found: bool,
    seconds: f64,
}

impl Row {
    fn is_right(&self) -> bool {
        match self.planted {
            0 => !self.found,
            _ => self.found && self.speedup > 1.0,
        }
    }
}

pub fn run(args: Args) -> Result<()> {
    let mut known: Vec<Row> = rows::read_if_any(&args.output)?;
    if !args.only_table {
        let engine = Engine::start(graphs::fresh()?)?;
        let file = Appender::open(&args.output)?;
        for repeat in 0..args.repeats {
            for (program, width) in PROGRAMS {
                if !args.programs.is_empty() && !args.programs.iter().any(|name| name == program) {
                    continue;
                }
                for planted in PLANTED {
                    let same = |row: &Row| {
                        row.program == program && row.planted == planted && row.repeat == repeat
                    };
                    if known.iter().any(same) {
                        continue;
                    }
                    let row = ask(&engine, program, width, planted, repeat, args.seconds)?;
                    file.add(&row)?;
                    known.push(row);
                }
            }
        }
    }
    print(&known);
    Ok(())
}

fn ask(
    engine: &Engine,
    program: &str,
    width: u32,
    planted: u32,
    repeat: u32,
    seconds: f64,
) -> Result<Row> {
    let begin = Instant::now();
    let load = |turns: u32| -> Result<Session> {
        let text = looping(width, turns);
        Ok(engine.load(&Source::from_bytes(program, text.into_bytes())?)?)
    };
    let mut first = load(TURNS)?;
    let mut second = load(TURNS * 100 / (100 + planted))?;
    let inputs = inputs(&first.signature()?, u64::from(repeat), 0, Calm::FLOATS);
    let patience = Duration::from_secs_f64(seconds);
    let timing = compare_speed(first, &mut second, &inputs, patience, &|| false)?
        .map_err(|reason| anyhow!("{program} does not run: {reason}"))?;
    let row = Row {
        program: program.to_owned(),
        planted,
        repeat,
        nanos: timing.run.default.median,
        speedup: timing.run.speedup,
        interval: timing.run.interval,
        control: timing.run.controls.first().map_or(f64::NAN, |control| control.speedup),
        found: !timing.run.within_noise,
        seconds: begin.elapsed().as_secs_f64(),
    };
    eprintln!(
        "{program}, {planted}% planted: {:.4} ({:.4} to {:.4}), {} in {:.1} s",
        row.speedup,
        row.interval.0,
        row.interval.1,
        if row.is_right() { "right" } else { "wrong" },
        row.seconds
    );
    Ok(row)
}

/// A program that multiplies matrices in a loop.
fn looping(width: u32, turns: u32) -> String {
    let matrix = format!("f32[{width},{width}]");
    let state = format!("(s32[], {matrix}, {matrix})");
    format!(
        "HloModule loop

body {{
  state = {state} parameter(0)
  turn = s32[] get-tuple-element(state), index=0
  x = {matrix} get-tuple-element(state), index=1
  weight = {matrix} get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(turn, one)
  product = {matrix} dot(x, weight), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  y = {matrix} tanh(product)
  ROOT out = {state} tuple(next, y, weight)
}}

condition {{
  state = {state} parameter(0)
  turn = s32[] get-tuple-element(state), index=0
  turns = s32[] constant({turns})
  ROOT goes-on = pred[] compare(turn, turns), direction=LT
}}

ENTRY main {{
  x = {matrix} parameter(0)
  weight = {matrix} parameter(1)
  zero = s32[] constant(0)
  begin = {state} tuple(zero, x, weight)
  end = {state} while(begin), condition=condition, body=body
  ROOT y = {matrix} get-tuple-element(end), index=1
}}
"
    )
}

fn print(rows: &[Row]) {
    println!("| program | a run | planted | right | measured, middle | seconds, middle and most |");
    println!("|---|---|---|---|---|---|");
    for (program, _) in PROGRAMS {
        for planted in PLANTED {
            let of: Vec<&Row> = rows
                .iter()
                .filter(|row| row.program == program && row.planted == planted)
                .collect();
            if of.is_empty() {
                continue;
            }
            let middle = |value: fn(&Row) -> f64| {
                let mut values: Vec<f64> = of.iter().map(|row| value(row)).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            let right = of.iter().filter(|row| row.is_right()).count();
            let most = of.iter().map(|row| row.seconds).fold(0.0, f64::max);
            println!(
                "| {program} | {:.2} ms | {planted}% | {right} of {} | {:.4} | {:.1}, {most:.1} |",
                middle(|row| row.nanos) / 1e6,
                of.len(),
                middle(|row| row.speedup),
                middle(|row| row.seconds),
            );
        }
    }
}
