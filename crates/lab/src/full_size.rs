//! What `xla-gym optimize` does with programs of real size, as a user calls it: how long it takes, how
//! much memory all of its processes take together, and what comes of it.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xla_gym_data::Benchmarks;
use xla_gym_rows::{self as rows, Appender};
use xla_gym_search::Predictions;

use crate::graphs;

/// How often memory is looked at.
const PAUSE: Duration = Duration::from_millis(300);

/// Run `xla-gym optimize` on programs of real size, one after another, and note how long it takes, how much
/// memory all of its processes take, and what comes of it.
#[derive(clap::Args)]
pub struct Args {
    /// Which programs.
    #[arg(default_values = ["hlo-full-v1"])]
    benchmarks: Vec<String>,

    /// What is to be made small.
    #[arg(long, default_value = "legal")]
    objective: String,

    /// Seconds for everything; what is usual if nobody says.
    #[arg(long)]
    seconds: Option<f64>,

    /// Print the table of a file, and run nothing.
    #[arg(long)]
    only_table: bool,

    /// Where to write results, one line of JSON each; what is in it is done.
    #[arg(long, short)]
    output: PathBuf,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Row {
    program: String,
    objective: String,
    /// Seconds that were given, if any.
    asked: Option<f64>,
    /// Seconds that it took.
    took: f64,
    /// Most bytes of all processes together, shared pages counted once.
    all_bytes: u64,
    /// Most bytes of the process that the user started.
    host_bytes: u64,
    exit: Option<i32>,
    /// `equal`, `default` or what went wrong.
    outcome: String,
    gain: f64,
    /// Passes that were run, and runs of the whole pipeline.
    passes: u64,
    pipelines: u64,
    /// Sets of inputs on which outputs were compared.
    trials: u64,
    /// Default and result, by name.
    figures: BTreeMap<String, (f64, f64)>,
    predictions: Predictions,
}

pub fn run(args: Args) -> Result<()> {
    if !args.only_table {
        let done = rows::read_if_any::<Row>(&args.output)?;
        let same = |row: &Row| row.objective == args.objective && row.asked == args.seconds;
        let mut programs: Vec<String> =
            Benchmarks::find(&args.benchmarks)?.programs.iter().map(|one| one.name()).collect();
        programs.retain(|name| !done.iter().any(|row| same(row) && row.program == *name));
        let file = Appender::open(&args.output)?;
        let bar = graphs::progress(programs.len() as u64, "programs");
        for program in programs {
            let row = optimize(&program, &args)?;
            file.add(&row)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
    }
    print(&rows::read_if_any(&args.output)?);
    Ok(())
}

fn optimize(program: &str, args: &Args) -> Result<Row> {
    let own = std::env::current_exe()?.with_file_name("xla-gym");
    let mut command = Command::new(&own);
    command.args(["optimize", program, "--objective", &args.objective, "--json", "--no-store"]);
    if let Some(seconds) = args.seconds {
        command.args(["--seconds", &seconds.to_string()]);
    }
    // A group of its own: that is how its processes are found.
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = command.spawn().with_context(|| format!("{} does not start", own.display()))?;
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let read = move |from: Option<&mut dyn Read>| {
        let mut text = String::new();
        from.map(|from| from.read_to_string(&mut text));
        text
    };
    let (stdout, stderr, status, all_bytes, host_bytes) = thread::scope(|scope| {
        let stdout = scope.spawn(|| read(out.as_mut().map(|from| from as &mut dyn Read)));
        let stderr = scope.spawn(|| read(err.as_mut().map(|from| from as &mut dyn Read)));
        let (mut all, mut host) = (0, 0);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let (now, its) = memory_of_group(child.id());
            (all, host) = (all.max(now), host.max(its));
            thread::sleep(PAUSE);
        };
        let text = |thread: thread::ScopedJoinHandle<'_, String>| thread.join().unwrap_or_default();
        anyhow::Ok((text(stdout), text(stderr), status, all, host))
    })?;
    let row = Row {
        program: program.to_owned(),
        objective: args.objective.clone(),
        asked: args.seconds,
        took: begin.elapsed().as_secs_f64(),
        all_bytes,
        host_bytes,
        exit: status.code(),
        ..Row::default()
    };
    let Ok(told) = serde_json::from_str::<Value>(&stdout) else {
        return Ok(Row { outcome: stderr.trim().chars().take(400).collect(), ..row });
    };
    let evidence = &told["evidence"];
    let count = |name: &str| evidence["search"][name].as_u64().unwrap_or(0);
    Ok(Row {
        outcome: evidence["outputs"]["verdict"].as_str().unwrap_or("default").to_owned(),
        gain: told["gain"].as_f64().unwrap_or(1.0),
        passes: count("passes"),
        pipelines: count("pipelines"),
        trials: evidence["outputs"]["trials"].as_u64().unwrap_or(0),
        figures: serde_json::from_value(evidence["figures"].clone()).unwrap_or_default(),
        predictions: serde_json::from_value(told["predictions"].clone()).unwrap_or_default(),
        ..row
    })
}

/// Bytes of all processes of a group, and of its leader; pages that several share count once.
fn memory_of_group(leader: u32) -> (u64, u64) {
    let (mut all, mut host) = (0, 0);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // After the name, which may hold anything: state, parent, group.
        let group = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(2));
        if group.and_then(|group| group.parse().ok()) != Some(leader) {
            continue;
        }
        let rollup = fs::read_to_string(entry.path().join("smaps_rollup")).unwrap_or_default();
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
        let bytes = kib.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * 1024;
        all += bytes;
        if pid == leader {
            host = bytes;
        }
    }
    (all, host)
}

fn print(rows: &[Row]) {
    let mut tables: Vec<(String, Option<f64>)> = Vec::new();
    for row in rows {
        let key = (row.objective.clone(), row.asked);
        if !tables.contains(&key) {
            tables.push(key);
        }
    }
    for (objective, asked) in tables {
        let given = asked.map_or("as usual".to_owned(), |seconds| format!("--seconds {seconds}"));
        println!("\n--objective {objective}, {given}:\n");
        println!(
            "| program | seconds | GB | outcome | sets | operations | legal | kernels | bytes | memory |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
        let of_table = |row: &&Row| row.objective == objective && row.asked == asked;
        let rows: Vec<&Row> = rows.iter().filter(of_table).collect();
        for row in &rows {
            let pair = |name: &str| match row.figures.get(name) {
                Some((before, now)) => format!("{} → {}", short(*before), short(*now)),
                None => String::new(),
            };
            println!(
                "| {} | {:.0} | {:.1} | {} | {} | {} | {} | {} | {} | {} |",
                row.program.trim_start_matches("hlo-full-v1/"),
                row.took,
                row.all_bytes as f64 / 1e9,
                row.outcome,
                row.trials,
                pair("operations"),
                pair("legal"),
                pair("kernels"),
                pair("bytes"),
                pair("memory"),
            );
        }
        println!();
        for name in ["legal", "kernels", "bytes", "memory"] {
            let ratios: Vec<f64> = rows
                .iter()
                .filter_map(|row| row.figures.get(name))
                .filter(|(before, now)| *before > 0.0 && *now > 0.0)
                .map(|(before, now)| before / now)
                .collect();
            let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>()
                / ratios.len().max(1) as f64)
                .exp();
            let best = ratios.iter().copied().fold(0.0, f64::max);
            let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            println!(
                "{name}: default over result {mean:.3} (geometric mean), {worst:.3} to {best:.3}"
            );
        }
        let sum = |of: &dyn Fn(&Row) -> f64| rows.iter().map(|row| of(row)).sum::<f64>();
        let runs = sum(&|row| row.predictions.runs as f64);
        println!(
            "passes that had run before: {runs} runs, {:.0} s expected, {:.0} s real, {:.0}% within a factor of two",
            sum(&|row| row.predictions.expected),
            sum(&|row| row.predictions.real),
            100.0 * sum(&|row| row.predictions.within_two as f64) / runs.max(1.0),
        );
        let most = |of: &dyn Fn(&Row) -> f64| rows.iter().map(|row| of(row)).fold(0.0, f64::max);
        println!(
            "longest {:.0} s; most memory {:.1} GB, of which the host at most {:.2} GB",
            most(&|row| row.took),
            most(&|row| row.all_bytes as f64) / 1e9,
            most(&|row| row.host_bytes as f64) / 1e9,
        );
    }
}

/// A number with as many digits as a table needs.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e12 => format!("{:.2}T", v / 1e12),
        v if v >= 1e9 => format!("{:.2}G", v / 1e9),
        v if v >= 1e6 => format!("{:.1}M", v / 1e6),
        v => format!("{v}"),
    }
}
