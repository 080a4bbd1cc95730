//! Which passes change what programs compute.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    sync::Mutex,
};

use anyhow::{Context, Result};
use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use xla_gym_common::{lock, on_all_cores};
use xla_gym_data::Benchmark;
use xla_gym_engine::{
    Engine, EngineError, Session,
    protocol::{Fingerprint, Finish, Observe, PassId},
};
use xla_gym_oracle::{Options, Reference, ReferenceKind, Verdict};
use xla_gym_proof::first_wrong;
use xla_gym_rows::{self as rows, Appender};
use xla_gym_xla_profile::INSTRUCTIONS;

use crate::{graphs, spread::spread};

/// Which passes change what programs compute: each pass alone, and after random ones.
///
/// A walk runs all passes in a random order, so that each comes after another random prefix. Where
/// outputs are still equal at its end, all of them were right; otherwise the first that was not is
/// found by bisection, left out, and the walk goes on. Results are written as they come; a run that is
/// started again goes on where it ended.
#[derive(clap::Args)]
pub struct Args {
    /// Which graphs.
    #[arg(default_values_t = ["hlo-v1".to_owned()])]
    benchmarks: Vec<String>,

    /// How many of them, spread over families, small ones first.
    #[arg(long, default_value_t = 100)]
    graphs: usize,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = 1000)]
    up_to: u64,

    /// How many walks on each graph.
    #[arg(long, default_value_t = 10)]
    walks: usize,

    /// Which orders are drawn.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Who says what a graph computes; the interpreter is asked about the graph, not about all that comes
    /// of it.
    #[arg(long, default_value_t = ReferenceKind::Both)]
    reference: ReferenceKind,

    /// Kinds of inputs at least.
    #[arg(long, default_value_t = Options::default().trials)]
    trials: u32,

    /// Print the table of what is in the file, and run nothing.
    #[arg(long)]
    only_table: bool,

    /// Where to write results, one line of JSON for each graph.
    #[arg(long, short)]
    output: PathBuf,
}

/// A program that has grown beyond this many times its size and [`ROOM`] is not walked on from.
const GROWTH: u64 = 4;
const ROOM: u64 = 500;

/// One graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    graph: String,
    instructions: u64,
    /// Why nothing can be compared with it, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unusable: Option<String>,
    /// Those that did something.
    passes: BTreeMap<String, Tried>,
}

/// What one pass did on one graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tried {
    /// What came of it alone.
    alone: Finding,
    /// After how many prefixes it changed the program and outputs were equal.
    sound: u32,
    /// After how many it failed: the compiler refused, crashed or took too long.
    failed: u32,
    /// Orders after which outputs were no longer found equal, the pass itself last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_equal: Vec<(Vec<String>, Finding)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Finding {
    /// It changes nothing.
    #[default]
    Unchanged,
    Equal,
    /// Outputs differ.
    Wrong(String),
    /// The compiler no longer takes the program.
    Rejected(String),
    /// Nobody can say.
    Unclear(String),
    /// The pass was refused, crashed or took too long.
    Failed,
}

pub fn run(args: Args) -> Result<()> {
    if !args.only_table {
        measure(&args)?;
    }
    let engine = graphs::engine(30)?;
    print(&rows::read_if_any(&args.output)?, &engine);
    Ok(())
}

fn measure(args: &Args) -> Result<()> {
    let done: HashSet<String> =
        rows::read_if_any::<Row>(&args.output)?.into_iter().map(|row| row.graph).collect();
    let engine = graphs::engine(10)?;
    let file = Appender::open(&args.output)?;
    let mut programs = spread(&args.benchmarks, args.up_to, args.seed)?;
    programs.truncate(args.graphs);
    programs.retain(|program| !done.contains(&program.name()));
    let bar = graphs::progress(programs.len() as u64, "graphs");
    let queue = Mutex::new(programs.iter());
    on_all_cores(programs.len(), |_| -> Result<()> {
        let next = lock(&queue).next();
        let Some(program) = next else { return Ok(()) };
        let instructions = match program {
            Benchmark::Graph(graph) => graph.size(),
            _ => 0,
        };
        let mut row =
            Row { graph: program.name(), instructions, unusable: None, passes: BTreeMap::new() };
        if let Err(error) = graph(&engine, program, args, &mut row) {
            row.unusable = Some(format!("{error:#}"));
        }
        row.passes.retain(|_, tried| *tried != Tried::default());
        file.add(&row)?;
        bar.inc(1);
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(())
}

/// A graph, and what states that come of it are compared by.
struct Judge<'a> {
    engine: &'a Engine,
    original: Session,
    reference: Reference,
    known: HashMap<Fingerprint, Finding>,
    /// By what XLA's own pipeline makes of a state: states of which it makes the same are one program
    /// by the time they run.
    compiled: HashMap<Fingerprint, Finding>,
}

fn graph(engine: &Engine, program: &Benchmark, args: &Args, row: &mut Row) -> Result<()> {
    let mut original = engine.load(&program.source()?)?;
    let (trials, seed, reference) = (args.trials, args.seed, args.reference);
    let options = Options { trials, seed, reference, ..Options::default() };
    let reference = graphs::reference(&mut original, options)?.interpreted_once();
    let mut judge =
        Judge { engine, original, reference, known: HashMap::new(), compiled: HashMap::new() };
    let itself = judge.compare(&[])?;
    if itself != Finding::Equal {
        row.unusable = Some(format!("beside itself: {itself:?}"));
        return Ok(());
    }
    let passes = graphs::usable_passes(engine);
    for &pass in &passes {
        let mut session = judge.original.fork()?;
        let alone = match session.apply(pass, Observe::NOTHING) {
            Ok(applied) if !applied.changed => Finding::Unchanged,
            Ok(_) => judge.compare_session(&mut session)?,
            Err(EngineError::Pass(_)) => Finding::Failed,
            Err(error) => return Err(error.into()),
        };
        row.passes.entry(engine.pass_name(pass).to_owned()).or_default().alone = alone;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    rng.set_stream(program.name().bytes().fold(7, |hash, byte| hash * 31 + u64::from(byte)));
    for _ in 0..args.walks {
        let mut order = passes.clone();
        order.shuffle(&mut rng);
        judge.walk(&order, row)?;
    }
    Ok(())
}

impl Judge<'_> {
    /// Runs passes one after the other; those after which outputs are wrong are left out.
    fn walk(&mut self, order: &[PassId], row: &mut Row) -> Result<()> {
        let mut taken: Vec<PassId> = Vec::new();
        // How many of them are known to be right.
        let mut proven = 0;
        let mut rest = order.to_vec();
        let most = GROWTH * row.instructions + ROOM;
        loop {
            let mut session = self.after(&taken)?;
            for &pass in &rest {
                match session.apply(pass, Observe::COUNTS) {
                    Ok(applied) if applied.changed => {
                        let counts = applied.observation.counts.context("no counts")?;
                        if counts[INSTRUCTIONS] <= most {
                            taken.push(pass);
                        } else {
                            session = self.after(&taken)?;
                        }
                    }
                    Ok(_) => {}
                    Err(EngineError::Pass(_)) => self.tried(row, pass).failed += 1,
                    Err(error) => return Err(error.into()),
                }
            }
            let found = self.compare(&taken)?;
            let wrong = match found {
                Finding::Equal => taken.len() + 1,
                _ => {
                    let steps = taken.len() - proven;
                    let asked = |length: usize| -> Result<bool> {
                        Ok(self.compare(&taken[..proven + length])? != Finding::Equal)
                    };
                    proven + first_wrong(steps, asked)?
                }
            };
            for &pass in &taken[proven..wrong - 1] {
                self.tried(row, pass).sound += 1;
            }
            if wrong > taken.len() {
                return Ok(());
            }
            let guilty = taken[wrong - 1];
            let names: Vec<String> =
                taken[..wrong].iter().map(|pass| self.engine.pass_name(*pass).to_owned()).collect();
            let found = self.compare(&taken[..wrong])?;
            self.tried(row, guilty).not_equal.push((names, found));
            // The same walk without it.
            taken.truncate(wrong - 1);
            proven = taken.len();
            let place = order.iter().position(|pass| *pass == guilty).unwrap_or_default();
            rest = order[place + 1..].to_vec();
        }
    }

    fn tried<'r>(&self, row: &'r mut Row, pass: PassId) -> &'r mut Tried {
        row.passes.entry(self.engine.pass_name(pass).to_owned()).or_default()
    }

    fn after(&mut self, passes: &[PassId]) -> Result<Session> {
        let mut session = self.original.fork()?;
        for &pass in passes {
            session.apply(pass, Observe::NOTHING)?;
        }
        Ok(session)
    }

    fn compare(&mut self, passes: &[PassId]) -> Result<Finding> {
        let mut session = self.after(passes)?;
        self.compare_session(&mut session)
    }

    fn compare_session(&mut self, session: &mut Session) -> Result<Finding> {
        let fingerprint = session.observe(Observe::FINGERPRINT)?.fingerprint;
        if let Some(known) = fingerprint.as_ref().and_then(|found| self.known.get(found)) {
            return Ok(known.clone());
        }
        let optimized = graphs::optimized(session);
        let same = optimized.as_ref().and_then(|found| self.compiled.get(found)).cloned();
        let finding = match same {
            Some(finding) => finding,
            None => self.run(session)?,
        };
        self.known.extend(fingerprint.map(|found| (found, finding.clone())));
        self.compiled.extend(optimized.map(|found| (found, finding.clone())));
        Ok(finding)
    }

    fn run(&mut self, session: &mut Session) -> Result<Finding> {
        Ok(match self.reference.compare_until_different(session, &Finish::default()) {
            Ok(report) => match &report.verdict {
                Verdict::Equal => Finding::Equal,
                Verdict::NotComparable { reason } => Finding::Unclear(reason.clone()),
                Verdict::Rejected { reason } => Finding::Rejected(reason.clone()),
                _ => Finding::Wrong(report.summary()),
            },
            Err(EngineError::Refused { message, .. }) => Finding::Unclear(message),
            Err(error) => return Err(error.into()),
        })
    }
}

/// How often each thing was found.
#[derive(Default)]
struct Found {
    changed: usize,
    wrong: usize,
    rejected: usize,
    unclear: usize,
}

impl Found {
    fn add(&mut self, finding: &Finding) {
        self.changed += usize::from(!matches!(finding, Finding::Unchanged | Finding::Failed));
        match finding {
            Finding::Wrong(_) => self.wrong += 1,
            Finding::Rejected(_) => self.rejected += 1,
            Finding::Unclear(_) => self.unclear += 1,
            Finding::Equal | Finding::Unchanged | Finding::Failed => {}
        }
    }
}

fn print(rows: &[Row], engine: &Engine) {
    let usable: Vec<&Row> = rows.iter().filter(|row| row.unusable.is_none()).collect();
    println!(
        "# {} graphs. Alone: on how many the pass changes something, and of these how often outputs are wrong, the\n\
         # compiler no longer takes the program, or nobody can say. After: the same over all random prefixes.\n\
         # Failed: how often the pass itself was refused, crashed or took too long.\n\
         pass\talone\twrong\trejected\tunclear\tafter\twrong\trejected\tunclear\tfailed\tverdict",
        usable.len()
    );
    for pass in &engine.hello().passes {
        let tried: Vec<&Tried> =
            usable.iter().filter_map(|row| row.passes.get(&pass.name)).collect();
        let (mut alone, mut after) = (Found::default(), Found::default());
        let mut failed = 0;
        for tried in &tried {
            alone.add(&tried.alone);
            after.changed += tried.sound as usize;
            tried.not_equal.iter().for_each(|(_, found)| after.add(found));
            failed += tried.failed as usize + usize::from(tried.alone == Finding::Failed);
        }
        let is = |wanted: fn(&Finding) -> bool| {
            let any = |tried: &&&Tried| {
                wanted(&tried.alone) || tried.not_equal.iter().any(|(_, found)| wanted(found))
            };
            tried.iter().filter(any).count()
        };
        let wrong = is(|found| matches!(found, Finding::Wrong(_)));
        let rejected = is(|found| matches!(found, Finding::Rejected(_)));
        let verdict = match (wrong, rejected) {
            _ if !graphs::is_usable(pass) => "not tried: only after layouts are chosen".to_owned(),
            (0, 0) if alone.changed + after.changed == 0 => "not applicable".to_owned(),
            (0, 0) => "sound".to_owned(),
            (0, rejected) => format!("sound, but rejected on {rejected}"),
            (wrong, _) => format!("unsound on {wrong}"),
        };
        println!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{failed}\t{verdict}",
            pass.name,
            alone.changed,
            alone.wrong,
            alone.rejected,
            alone.unclear,
            after.changed,
            after.wrong,
            after.rejected,
            after.unclear,
        );
    }
    for row in rows.iter().filter(|row| row.unusable.is_some()) {
        println!("# left out: {}: {}", row.graph, row.unusable.as_deref().unwrap_or_default());
    }
    for row in &usable {
        for (pass, tried) in &row.passes {
            if let Finding::Wrong(why) = &tried.alone {
                println!("# {pass} alone on {}: {why}", row.graph);
            }
            for (order, found) in &tried.not_equal {
                if let Finding::Wrong(why) = found {
                    println!("# {} on {}: {why}", order.join(","), row.graph);
                }
            }
        }
    }
}
