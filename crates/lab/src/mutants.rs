//! How often the oracle calls a wrong program equal.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use anyhow::{Result, bail};
use indicatif::ProgressBar;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use xla_gym_common::{fnv64, lock, on_all_cores};
use xla_gym_data::Benchmark;
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session, Source,
    protocol::{Fingerprint, Finish, Form, Limits, Observe},
};
use xla_gym_oracle::{Options, Reference, ReferenceKind, Report, Verdict, interpreter_seconds};
use xla_gym_rows::{self as rows, Appender};

use crate::{
    graphs,
    mutate::Mutants,
    referee::{APART, Apart, Referee},
    spread::spread,
};

/// How often the oracle calls a wrong program equal: many graphs, each with single changes made to
/// it, compared with the original.
///
/// What the oracle does not tell apart goes to a referee and to a heavier run of the oracle, unless
/// XLA makes the same program of both. If one of them does, it was missed; if none does, it is
/// taken for the same program. Results are written as they come; a run that is started again goes on where it ended.
#[derive(clap::Args)]
pub struct Args {
    /// Which graphs.
    #[arg(default_values_t = ["hlo-v1".to_owned()])]
    benchmarks: Vec<String>,

    /// How many of them, spread over families.
    #[arg(long, default_value_t = 150)]
    graphs: usize,

    /// How many mutants in all.
    #[arg(long, default_value_t = 5000)]
    mutants: usize,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = 1500)]
    up_to: u64,

    /// Which graphs and changes are drawn.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Kinds of inputs at least.
    #[arg(long, default_value_t = Options::default().trials)]
    trials: u32,

    /// Who says what the original computes: auto, compiled, interpreter, both.
    #[arg(long, default_value_t = ReferenceKind::Auto)]
    reference: ReferenceKind,

    /// Time limit for one answer of the compiler, in seconds.
    #[arg(long, default_value_t = 60)]
    limit: u64,

    /// Write the text of every mutant that is missed into this folder.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,

    /// Print the table of what is in the file, and run nothing.
    #[arg(long)]
    only_table: bool,

    /// Where to write results, one line of JSON each.
    #[arg(long, short)]
    output: PathBuf,
}

/// The heavier run: other inputs, and many of them.
const HEAVY: Options =
    Options { trials: 14, seed: 0x5eed, reference: ReferenceKind::Both, ..Options::DEFAULT };

/// What the second score is of.
const TEN: Options = Options { trials: 10, reference: ReferenceKind::Both, ..Options::DEFAULT };

/// Instructions beside which the time to load and compile a graph hardly grows.
const LIGHT: f64 = 200.0;

/// A difference that is at most so many times the original's own error by rounding in that output is
/// one of rounding: where constants of another rounding mean the same (a rotation by other angles whose
/// differences are the same, say), it is a few times as large.
const ROUNDINGS: f64 = 4.0;

/// Where the interpreter should take longer than this for a run, it is not asked.
const INTERPRETER_SECONDS: f64 = 0.3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    /// The compiler does not take the text: no mutant.
    Invalid,
    /// Told apart from the original.
    Killed,
    /// Refused by code generation, or it crashed.
    Rejected,
    /// Not told apart, and wrong.
    Missed,
    /// Not told apart, and not the same, but on all inputs about as near to the original as the original's
    /// own rounding.
    WithinRounding,
    /// Not told apart, and nothing else tells it apart either.
    Equivalent,
    /// The original itself.
    Original,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    graph: String,
    /// Which of the graph's mutants; 0 is the original itself.
    draw: usize,
    kind: String,
    instruction: String,
    /// The lines in place of the old one, shortened.
    change: String,
    outcome: Outcome,
    /// What the oracle says.
    verdict: String,
    /// What it says with 10 trials and both references, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ten: Option<String>,
    /// With 14 trials of another seed and both, where nothing else had told it apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heavy: Option<String>,
    /// The largest relative difference that the referee sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    referee: Option<f64>,
    /// And the largest in units of the original's own rounding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    roundings: Option<f64>,
    /// The first difference, or why there is no answer.
    note: String,
    seconds: f64,
}

pub fn run(args: Args) -> Result<()> {
    let rows = rows::read_if_any(&args.output)?;
    if !args.only_table {
        measure(&args, &rows)?;
    }
    print(&rows::read_if_any(&args.output)?);
    Ok(())
}

struct Lab<'a> {
    args: &'a Args,
    engine: Engine,
    file: Appender,
    bar: ProgressBar,
}

fn measure(args: &Args, rows: &[Row]) -> Result<()> {
    if args.graphs == 0 {
        bail!("--graphs must be at least 1");
    }
    let mut done: HashMap<&str, Vec<&Row>> = HashMap::new();
    for row in rows {
        done.entry(&row.graph).or_default().push(row);
    }
    let limits =
        Limits { pass_millis: 30_000, request_millis: args.limit * 1000, memory_bytes: 6 << 30 };
    let lab = Lab {
        args,
        engine: Engine::start(EngineConfig { limits, ..graphs::fresh()? })?,
        file: Appender::open(&args.output)?,
        bar: graphs::progress(args.mutants as u64, "mutants"),
    };
    let queue =
        Mutex::new(with_quotas(spread(&args.benchmarks, args.up_to, args.seed)?, args).into_iter());
    let skipped = Mutex::new(Vec::new());
    on_all_cores(args.graphs, |_| -> Result<()> {
        loop {
            let next = lock(&queue).next();
            let Some((program, quota)) = next else {
                return Ok(());
            };
            let name = program.name();
            let known = done.get(&*name).map_or(&[][..], |rows| rows);
            match lab.graph(&program, quota, known) {
                Ok(Some(reason)) => {
                    lock(&skipped).push(format!("{name}: {reason}"));
                }
                Ok(None) => return Ok(()),
                // One graph that cannot be done does not end the others.
                Err(error) => {
                    lock(&skipped).push(format!("{name}: {error:#}"));
                }
            }
        }
    })?;
    lab.bar.finish_and_clear();
    let skipped = skipped.into_inner().unwrap_or_else(PoisonError::into_inner);
    for line in &skipped {
        eprintln!("left out: {line}");
    }
    Ok(())
}

/// How many mutants each graph gets: fewer of those that take long to compile. Graphs that turn out
/// to be unusable are replaced by later ones.
fn with_quotas(programs: Vec<Benchmark>, args: &Args) -> Vec<(Benchmark, usize)> {
    let weight = |program: &Benchmark| match program {
        Benchmark::Graph(graph) => 1.0 / (graph.size() as f64 + LIGHT),
        _ => 1.0 / LIGHT,
    };
    let sum: f64 = programs.iter().take(args.graphs).map(weight).sum();
    let share = |weight: f64| (args.mutants as f64 * weight / sum).ceil() as usize;
    programs
        .into_iter()
        .map(|program| {
            let quota = share(weight(&program));
            (program, quota)
        })
        .collect()
}

/// A graph and all that its mutants are held against; the heavier things once they are needed.
struct Original {
    session: Session,
    reference: Reference,
    /// About how long the interpreter takes for a run.
    interpreter_seconds: f64,
    /// What XLA's own pipeline makes of it.
    optimized: Option<Fingerprint>,
    ten: Option<Reference>,
    heavy: Option<Reference>,
    referee: Option<Referee>,
}

impl Lab<'_> {
    /// Does one graph; a reason if it cannot be compared at all.
    fn graph(&self, program: &Benchmark, quota: usize, known: &[&Row]) -> Result<Option<String>> {
        let source = program.source()?;
        let mut session = self.engine.load(&source)?;
        let signature = session.signature()?;
        if !signature.not_comparable.is_empty() || !signature.collectives.is_empty() {
            return Ok(Some("it cannot be compared with anything".to_owned()));
        }
        let text = String::from_utf8(session.print(Form::TEXT)?)?;
        let valid = |row: &&&Row| !matches!(row.outcome, Outcome::Invalid | Outcome::Original);
        let mut count = known.iter().filter(valid).count();
        self.bar.inc(count as u64);
        if count >= quota {
            return Ok(None);
        }
        let (trials, reference) = (self.args.trials, self.args.reference);
        let options = Options { trials, reference, ..Options::DEFAULT };
        let begin = Instant::now();
        let reference = graphs::reference(&mut session, options)?;
        let cost = session.observe(Observe::COST)?.cost;
        let interpreter_seconds = match cost {
            Some(Ok(cost)) => interpreter_seconds(self.engine.hello(), &cost),
            _ => f64::INFINITY,
        };
        let optimized = graphs::optimized(&mut session);
        let mut original = Original {
            session,
            reference,
            interpreter_seconds,
            optimized,
            ten: None,
            heavy: None,
            referee: None,
        };
        let report = original.reference.compare(&mut self.load(&text)?, &Finish::default())?;
        if matches!(report.verdict, Verdict::NotComparable { .. }) {
            return Ok(Some(report.summary()));
        }
        let empty = Row {
            graph: program.name(),
            draw: 0,
            kind: "original".to_owned(),
            instruction: String::new(),
            change: String::new(),
            outcome: Outcome::Original,
            verdict: name(&report).to_owned(),
            ten: None,
            heavy: None,
            referee: None,
            roundings: None,
            note: note(&report),
            seconds: begin.elapsed().as_secs_f64(),
        };
        if !known.iter().any(|row| row.draw == 0) {
            self.file.add(&empty)?;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.args.seed);
        rng.set_stream(fnv64(program.name().bytes()));
        for (draw, mutant) in Mutants::new(&text, rng).enumerate().take(4 * quota) {
            if count >= quota {
                break;
            }
            if known.iter().any(|row| row.draw == draw + 1) {
                continue;
            }
            let begin = Instant::now();
            let mut row = Row {
                draw: draw + 1,
                kind: mutant.kind.to_owned(),
                instruction: mutant.instruction,
                change: mutant.change.chars().take(400).collect(),
                ..empty.clone()
            };
            match self.load(&mutant.text) {
                Ok(mut session) => {
                    self.judge(&mut original, &mut session, &mut row)?;
                    if let (Outcome::Missed, Some(folder)) = (row.outcome, &self.args.keep) {
                        let name = program.name().replace('/', "-");
                        std::fs::create_dir_all(folder)?;
                        let file = folder.join(format!("{name}-{}.hlo", draw + 1));
                        std::fs::write(file, &mutant.text)?;
                    }
                    count += 1;
                    self.bar.inc(1);
                }
                Err(error) => {
                    row.outcome = Outcome::Invalid;
                    row.verdict = String::new();
                    row.note = shorten(&format!("{error:#}"));
                }
            }
            row.seconds = begin.elapsed().as_secs_f64();
            self.file.add(&row)?;
        }
        Ok(None)
    }

    /// A text that XLA's parser and verifier take.
    fn load(&self, text: &str) -> Result<Session> {
        let source = Source::from_bytes("mutant", text.as_bytes().to_vec())?;
        let mut session = self.engine.load(&source)?;
        match session.observe(Observe::VERDICT)?.verdict {
            Some(Err(reason)) => bail!("{reason}"),
            _ => Ok(session),
        }
    }

    fn judge(&self, original: &mut Original, mutant: &mut Session, row: &mut Row) -> Result<()> {
        let report = original.reference.compare_until_different(mutant, &Finish::default())?;
        row.verdict = name(&report).to_owned();
        row.note = note(&report);
        row.outcome = match &report.verdict {
            Verdict::Different { .. } | Verdict::OtherSignature { .. } => Outcome::Killed,
            Verdict::Rejected { .. } => Outcome::Rejected,
            Verdict::Equal | Verdict::NotComparable { .. } => Outcome::Equivalent,
        };
        if row.outcome != Outcome::Equivalent {
            return Ok(());
        }
        if original.optimized.is_some() && graphs::optimized(mutant) == original.optimized {
            row.note = "XLA makes the same program of both".to_owned();
            return Ok(());
        }
        let mut notes = vec![row.note.clone()];
        let limited = |options: Options, seconds: f64| match original.interpreter_seconds < seconds
        {
            true => options,
            false => Options { reference: ReferenceKind::Compiled, ..options },
        };
        let ten = limited(TEN, INTERPRETER_SECONDS);
        let heavy = limited(HEAVY, INTERPRETER_SECONDS / 10.0);
        let (mut wrong, mut seen) = (false, false);
        match ask(&mut original.ten, &mut original.session, ten, mutant) {
            Ok(report) => {
                row.ten = Some(name(&report).to_owned());
                notes.push(note(&report));
                wrong |= report.is_different();
            }
            Err(error) => notes.push(shorten(&error.to_string())),
        }
        match refer(&mut original.referee, &mut original.session, mutant) {
            Ok(apart) => {
                row.referee = Some(apart.relative);
                row.roundings = Some(apart.roundings);
                notes.push(apart.place);
                seen |= apart.relative > APART;
                wrong |= seen && apart.roundings > ROUNDINGS;
            }
            Err(error) => notes.push(shorten(&error.to_string())),
        }
        if !wrong {
            match ask(&mut original.heavy, &mut original.session, heavy, mutant) {
                Ok(report) => {
                    row.heavy = Some(name(&report).to_owned());
                    notes.push(note(&report));
                    wrong |= report.is_different();
                }
                Err(error) => notes.push(shorten(&error.to_string())),
            }
        }
        if wrong {
            row.outcome = Outcome::Missed;
        } else if seen {
            row.outcome = Outcome::WithinRounding;
        }
        notes.retain(|note| !note.is_empty());
        row.note = notes.join("; ");
        Ok(())
    }
}

fn ask(
    slot: &mut Option<Reference>,
    original: &mut Session,
    options: Options,
    mutant: &mut Session,
) -> Result<Report, EngineError> {
    let reference = match slot {
        Some(reference) => reference,
        slot => slot.insert(graphs::reference(original, options)?),
    };
    reference.compare_until_different(mutant, &Finish::default())
}

fn refer(
    slot: &mut Option<Referee>,
    original: &mut Session,
    mutant: &mut Session,
) -> Result<Apart, EngineError> {
    let referee = match slot {
        Some(referee) => referee,
        slot => slot.insert(Referee::new(original)?),
    };
    referee.difference(mutant)
}

fn name(report: &Report) -> &'static str {
    match &report.verdict {
        Verdict::Equal => "equal",
        Verdict::Different { .. } => "different",
        Verdict::OtherSignature { .. } => "other-signature",
        Verdict::Rejected { .. } => "rejected",
        Verdict::NotComparable { .. } => "not-comparable",
    }
}

fn note(report: &Report) -> String {
    match &report.verdict {
        Verdict::Equal => format!("worst {:.2}", report.worst),
        Verdict::Different { differences } => {
            let Some(first) = differences.first() else { return String::new() };
            format!(
                "output {} {} [{}]: {:e} {:e} ({:.1e} of what is allowed, {:?})",
                first.output,
                first.dtype,
                first.element,
                first.expected,
                first.got,
                first.excess,
                first.precision
            )
        }
        Verdict::OtherSignature { reason }
        | Verdict::Rejected { reason }
        | Verdict::NotComparable { reason } => shorten(reason),
    }
}

fn shorten(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

/// Mutants of one kind, or of all.
#[derive(Default)]
struct Group {
    mutants: usize,
    killed: usize,
    rejected: usize,
    missed: usize,
    /// Of the missed, those that were not called equal either.
    unclear: usize,
    /// Of the missed, those that 10 trials with both references tell apart.
    ten: usize,
    within: usize,
    equivalent: usize,
    invalid: usize,
}

impl Group {
    fn add(&mut self, row: &Row) {
        self.mutants += usize::from(row.outcome != Outcome::Invalid);
        match row.outcome {
            Outcome::Killed => self.killed += 1,
            Outcome::Rejected => self.rejected += 1,
            Outcome::Missed => {
                self.missed += 1;
                self.unclear += usize::from(row.verdict == "not-comparable");
                let told = row
                    .ten
                    .as_deref()
                    .is_some_and(|ten| matches!(ten, "different" | "other-signature" | "rejected"));
                self.ten += usize::from(told);
            }
            Outcome::WithinRounding => self.within += 1,
            Outcome::Equivalent => self.equivalent += 1,
            Outcome::Invalid => self.invalid += 1,
            Outcome::Original => {}
        }
    }

    /// What share of wrong programs is told apart, by default and with 10 trials and both; and by
    /// default, if what is within rounding counts as wrong.
    fn scores(&self) -> [f64; 3] {
        let told = self.killed + self.rejected;
        let wrong = (told + self.missed).max(1) as f64;
        let strict = (told + self.missed + self.within).max(1) as f64;
        [told as f64 / wrong, (told + self.ten) as f64 / wrong, told as f64 / strict]
    }
}

fn print(rows: &[Row]) {
    let mut kinds: BTreeMap<&str, Group> = BTreeMap::new();
    let mut all = Group::default();
    let (mut seconds, mut originals, mut alarms) = (0.0, 0, Vec::new());
    for row in rows {
        seconds += row.seconds;
        if row.outcome == Outcome::Original {
            originals += 1;
            if row.verdict != "equal" {
                alarms.push(row);
            }
            continue;
        }
        kinds.entry(&row.kind).or_default().add(row);
        all.add(row);
    }
    println!(
        "| kind | mutants | killed | rejected | missed | of those unclear | within rounding | equivalent | no mutant |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (kind, group) in kinds.iter().map(|(kind, group)| (*kind, group)).chain([("all", &all)]) {
        println!(
            "| {kind} | {} | {} | {} | {} | {} | {} | {} | {} |",
            group.mutants,
            group.killed,
            group.rejected,
            group.missed,
            group.unclear,
            group.within,
            group.equivalent,
            group.invalid
        );
    }
    let [score, ten, strict] = all.scores();
    println!(
        "\n{} mutants of {originals} graphs, {} kinds, {:.0} s of work.\n\
         Score: {score:.4} by default, {ten:.4} with 10 trials and both references; {strict:.4} if what is\n\
         nearer to the original than its own rounding counted as wrong too.",
        all.mutants,
        kinds.values().filter(|group| group.mutants > 0).count(),
        seconds
    );
    println!("{} of {originals} graphs are equal to themselves.", originals - alarms.len());
    for row in alarms {
        println!("  {}: {} ({})", row.graph, row.verdict, row.note);
    }
}
