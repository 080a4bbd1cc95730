//! Whether orders in committed files still compute what they should.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xla_gym_common::{fnv64, on_all_cores};
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_env::{Walk, World};
use xla_gym_proof::{Options, Outputs, Pipeline, Prover};
use xla_gym_rows::{self as rows, Appender};
use xla_gym_xla_profile::{Coreset, MADE_LEGAL};

use crate::graphs;

/// Whether orders in files compute what they should: each is replayed, run beside the program as
/// emitted, and compared.
///
/// Reads outcomes of `xla-gym eval`, of `xla-gym-lab evaluate`, demonstrations and coresets. A line
/// is written for each order, with the verdict and, where outputs are not equal, the pass to blame. A
/// call that is made again goes on where it ended. With `--keep-equal`, the rows themselves are
/// written instead, but only those whose orders were all found equal.
#[derive(clap::Args)]
pub struct Args {
    /// Files with orders.
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// So many rows, drawn at random.
    #[arg(long)]
    sample: Option<usize>,

    /// Seed of the draw.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    up_to: u64,

    /// Only orders of this contestant or method.
    #[arg(long)]
    contestant: Option<String>,

    /// On how many kinds of inputs at least.
    #[arg(long, default_value_t = Options::default().trials)]
    trials: u32,

    /// Write the rows that were proven, with `outputs`, and not the verdicts.
    #[arg(long)]
    keep_equal: bool,

    /// Verdicts that are known, and where new ones go, with `--keep-equal` [default: the output with
    /// `.verdicts` behind its name].
    #[arg(long, requires = "keep_equal")]
    verdicts: Option<PathBuf>,

    /// Where to write: verdicts, or rows.
    #[arg(long, short)]
    output: PathBuf,
}

/// One order of a row.
#[derive(Clone, Debug, PartialEq)]
struct Order {
    /// Of which file and line, or which order of a coreset, counted from 1.
    row: (usize, usize),
    part: &'static str,
    graph: String,
    contestant: String,
    seed: u64,
    /// Whether it begins at the program made legal.
    legal: bool,
    /// Passes before it that nobody recommends.
    after: Vec<String>,
    passes: Vec<String>,
    pipeline: Pipeline,
    /// Operations that it should leave.
    claimed: Option<u64>,
}

/// What came of an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Checked {
    file: String,
    line: usize,
    part: String,
    graph: String,
    contestant: String,
    seed: u64,
    outputs: Outputs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guilty: Option<String>,
    /// Operations that it should leave, and does.
    claimed: Option<u64>,
    operations: u64,
    /// Tells its graph and passes from others.
    order: String,
    seconds: f64,
}

/// File, line, part and the order itself.
type Key = (String, usize, String, String);

impl Checked {
    fn key(&self) -> Key {
        (named(Path::new(&self.file)), self.line, self.part.clone(), self.order.clone())
    }
}

/// A file's name without its folder and whether it is packed, so that what is known of a file stays known
/// when it is moved or packed.
fn named(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".zst").unwrap_or(&name).to_owned()
}

pub fn run(args: Args) -> Result<()> {
    let files: Vec<Vec<Value>> = args.files.iter().map(|path| rows(path)).collect::<Result<_>>()?;
    let orders = chosen(&args, &files)?;
    let beside = || PathBuf::from(format!("{}.verdicts", args.output.display()));
    let path = match args.keep_equal {
        true => args.verdicts.clone().unwrap_or_else(beside),
        false => args.output.clone(),
    };
    let key = |order: &Order| {
        let (file, line) = order.row;
        (named(&args.files[file]), line, order.part.to_owned(), order.fingerprint())
    };
    let mut known: HashMap<Key, Checked> = rows::read_if_any::<Checked>(&path)?
        .into_iter()
        .map(|checked| (checked.key(), checked))
        .collect();
    let missing: Vec<&Order> =
        orders.iter().filter(|order| !known.contains_key(&key(order))).collect();
    check(&args, &missing, &path)?;
    known.extend(
        rows::read_if_any::<Checked>(&path)?.into_iter().map(|checked| (checked.key(), checked)),
    );
    let wanted: Vec<&Checked> = orders.iter().filter_map(|order| known.get(&key(order))).collect();
    print!("{}", table(&wanted));
    if args.keep_equal {
        let equal = |row: (usize, usize)| {
            let mut of_row = orders.iter().filter(|order| order.row == row).peekable();
            of_row.peek().is_some()
                && of_row.all(|order| {
                    known.get(&key(order)).is_some_and(|c| c.outputs == Outputs::Equal)
                })
        };
        keep(&args, &files, equal)?;
    }
    Ok(())
}

/// The rows of a file: lines of JSON, or the orders of a coreset.
fn rows(path: &Path) -> Result<Vec<Value>> {
    if is_coreset(path) {
        let named = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(named)?;
        let whole: Value = serde_json::from_str(&text).with_context(named)?;
        let orders = whole.get("orders").and_then(Value::as_array);
        return orders.cloned().with_context(|| format!("{} has no orders", named()));
    }
    Ok(rows::read(path)?)
}

/// A coreset is one JSON value; everything else has a line for each row.
fn is_coreset(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// The orders that are to be checked.
fn chosen(args: &Args, files: &[Vec<Value>]) -> Result<Vec<Order>> {
    let mut by_row = Vec::new();
    for (file, rows) in files.iter().enumerate() {
        for (number, row) in rows.iter().enumerate() {
            let named = || format!("{}, line {}", args.files[file].display(), number + 1);
            let orders = orders_of(row, (file, number + 1)).with_context(named)?;
            by_row.push(orders);
        }
    }
    let mut sizes: HashMap<String, u64> = HashMap::new();
    by_row.retain(|orders| {
        let wanted = |order: &Order| {
            args.contestant.as_ref().is_none_or(|name| *name == order.contestant)
                && *sizes.entry(order.graph.clone()).or_insert_with(|| size(&order.graph))
                    <= args.up_to
        };
        orders.first().is_some_and(wanted)
    });
    if let Some(sample) = args.sample {
        by_row.shuffle(&mut ChaCha8Rng::seed_from_u64(args.seed));
        by_row.truncate(sample);
    }
    Ok(by_row.concat())
}

/// Instructions of a graph of the data set; 0 for others.
fn size(graph: &str) -> u64 {
    match Benchmarks::find([graph]).map(|found| found.programs) {
        Ok(programs) => match programs.first() {
            Some(Benchmark::Graph(graph)) => graph.size(),
            _ => 0,
        },
        Err(_) => 0,
    }
}

/// The orders of a row, whatever wrote it.
fn orders_of(row: &Value, at: (usize, usize)) -> Result<Vec<Order>> {
    let text = |name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| -> Vec<String> {
        let items = row.get(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let number = |pointer: &str| row.pointer(pointer).and_then(Value::as_u64);
    let order = Order {
        row: at,
        part: "order",
        graph: String::new(),
        contestant: String::new(),
        seed: number("/seed").unwrap_or_default(),
        legal: false,
        after: list("after"),
        passes: list("passes"),
        pipeline: Pipeline::Whole,
        claimed: None,
    };
    if let Some(graph) = text("benchmark") {
        let said = row.get("legal").and_then(Value::as_bool).unwrap_or_default();
        let legal = said || text("start").is_some_and(|start| start == MADE_LEGAL);
        let pipeline = if legal { Pipeline::Replaced } else { Pipeline::Whole };
        let (contestant, claimed) = ("demonstration".to_owned(), number("/operations"));
        return Ok(vec![Order { graph, contestant, legal, pipeline, claimed, ..order }]);
    }
    if let Some(graph) = text("found_on") {
        return Ok(vec![Order { graph, contestant: "coreset".to_owned(), ..order }]);
    }
    if is_header(row) {
        return Ok(Vec::new());
    }
    let Some(graph) = text("graph") else {
        bail!("it has no order: a graph, benchmark or found_on is needed")
    };
    if let Some(method) = text("method") {
        let replaced = number("/disabled").unwrap_or_default() > 0;
        let pipeline = if replaced { Pipeline::Replaced } else { Pipeline::Whole };
        let claimed = number("/order/result");
        return Ok(vec![Order { graph, contestant: method, pipeline, claimed, ..order }]);
    }
    let contestant = text("contestant").unwrap_or_default();
    if contestant == "default" {
        return Ok(Vec::new());
    }
    if let Some(stages) = row.get("stages").and_then(Value::as_array) {
        return Ok(stage_orders(stages, &Order { graph, contestant, ..order }));
    }
    let claimed = number("/claimed/order").or_else(|| number("/order/result"));
    let order = Order { graph, contestant, claimed, ..order };
    let mut orders = vec![order.clone()];
    if row.get("legal").is_some_and(Value::is_object) && row.get("legal_passes").is_some() {
        let passes = list("legal_passes");
        let pipeline = Pipeline::Replaced;
        orders.push(Order { part: "legal", legal: true, passes, pipeline, claimed: None, ..order });
    }
    Ok(orders)
}

/// The orders of an outcome whose stages have names: from the program as emitted, and from the program
/// made legal.
fn stage_orders(stages: &[Value], order: &Order) -> Vec<Order> {
    let stage = |name: &str| stages.iter().find(|stage| stage["name"] == name);
    let passes = |stage: &Value| -> Option<Vec<String>> {
        let items = stage.get("passes")?.as_array()?.iter();
        Some(items.filter_map(|item| item.as_str().map(str::to_owned)).collect())
    };
    let mut orders = Vec::new();
    if let Some(stage) = stage("order") {
        let number = |name: &str| stage.get(name).and_then(Value::as_f64).map(|n| n as u64);
        let claimed = number("claimed").or_else(|| number("result"));
        let passes = passes(stage).unwrap_or_default();
        orders.push(Order { passes, claimed, ..order.clone() });
    }
    if let Some(passes) = stage("legal").and_then(passes) {
        let pipeline = Pipeline::Replaced;
        orders.push(Order { part: "legal", legal: true, passes, pipeline, ..order.clone() });
    }
    orders
}

/// Whether a row says what the figures of the others are, and is none itself.
fn is_header(row: &Value) -> bool {
    row.get("header").is_some()
}

impl Order {
    /// Tells its graph and passes from others.
    fn fingerprint(&self) -> String {
        let text = format!(
            "{}\n{}\n{:?}\n{}\n{}",
            self.graph,
            self.legal,
            self.pipeline,
            self.after.join(","),
            self.passes.join(",")
        );
        format!("{:016x}", fnv64(text.bytes()))
    }
}

/// Checks orders, graph by graph, and writes each verdict as it comes.
fn check(args: &Args, orders: &[&Order], path: &Path) -> Result<()> {
    if orders.is_empty() {
        return Ok(());
    }
    let mut by_graph: BTreeMap<&str, Vec<&Order>> = BTreeMap::new();
    for order in orders {
        by_graph.entry(&order.graph).or_default().push(order);
    }
    // At random, so that the time that is left can be told from the time that went by.
    let mut graphs: Vec<Vec<&Order>> = by_graph.into_values().collect();
    graphs.shuffle(&mut ChaCha8Rng::seed_from_u64(args.seed));
    let file = Appender::open(path)?;
    let bar = graphs::progress(orders.len() as u64, "orders");
    on_all_cores(graphs.len(), |index| {
        let orders = &graphs[index];
        let mut done = 0;
        let checked = check_graph(args, orders, &mut |checked| {
            file.add(&checked)?;
            done += 1;
            bar.inc(1);
            Ok(())
        });
        // One graph that cannot be done does not end the others.
        if let Err(error) = checked {
            bar.suspend(|| eprintln!("{}: {error:#}", orders[0].graph));
            bar.inc(orders.len() as u64 - done);
        }
        Ok::<(), anyhow::Error>(())
    })?;
    bar.finish_and_clear();
    Ok(())
}

/// Checks the orders of one graph, which share its reference.
fn check_graph(
    args: &Args,
    orders: &[&Order],
    write: &mut dyn FnMut(Checked) -> Result<()>,
) -> Result<()> {
    let program = Benchmarks::find([&orders[0].graph])?;
    let world = Arc::new(World::with_programs(graphs::world("emitted")?, program)?);
    let prover = Prover::new(Options { trials: args.trials, ..Options::default() });
    for order in orders {
        let begin = Instant::now();
        let (file, line) = order.row;
        let mut checked = Checked {
            file: args.files[file].display().to_string(),
            line,
            part: order.part.to_owned(),
            graph: order.graph.clone(),
            contestant: order.contestant.clone(),
            seed: order.seed,
            outputs: Outputs::Unchecked,
            why: None,
            guilty: None,
            claimed: order.claimed,
            operations: 0,
            order: order.fingerprint(),
            seconds: 0.0,
        };
        replay(&world, &prover, order, &mut checked)?;
        checked.seconds = begin.elapsed().as_secs_f64();
        write(checked)?;
    }
    Ok(())
}

fn replay(world: &Arc<World>, prover: &Prover, order: &Order, checked: &mut Checked) -> Result<()> {
    let ids = |names: &[String]| world.engine().passes(names.iter().map(String::as_str));
    let (after, passes) = match (ids(&order.after), ids(&order.passes)) {
        (Ok(after), Ok(passes)) => (after, passes),
        (Err(error), _) | (_, Err(error)) => {
            checked.outputs = Outputs::NotComparable(error.to_string());
            return Ok(());
        }
    };
    let start = if order.legal { MADE_LEGAL } else { world.start_name() };
    let start = world.profile().spec().start(start).context("there is no such start")?;
    let mut from = Walk::begin_at(world, 0, start)?;
    for &pass in &after {
        from.step(pass)?;
    }
    let mut walk = from.fork();
    for &pass in &passes {
        walk.step(pass)?;
    }
    checked.operations = walk.state().counts.primary();
    let proof = prover.prove(&mut walk, order.pipeline)?;
    let wrong = [Outputs::Different, Outputs::OtherSignature, Outputs::Rejected];
    if proof.outputs != Outputs::Equal {
        checked.why = Some(proof.words);
    }
    if wrong.contains(&proof.outputs) {
        let guilty = prover.guilty(&from, &passes, order.pipeline)?;
        checked.guilty = guilty.map(|guilty| guilty.pass);
    }
    checked.outputs = proof.outputs;
    Ok(())
}

/// The verdicts of each file and contestant, then those that are not equal, one by one.
fn table(checked: &[&Checked]) -> String {
    const KINDS: [&str; 5] =
        ["equal", "different", "other-signature", "rejected", "not-comparable"];
    let mut text = "| file | contestant | part | orders | equal | different | other signature | \
                    rejected | not comparable | leads elsewhere |\n\
                    |---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&Checked>> = BTreeMap::new();
    for &one in checked {
        groups.entry((&one.file, &one.contestant, &one.part)).or_default().push(one);
    }
    for ((file, contestant, part), group) in groups {
        let count = |kind: &str| group.iter().filter(|one| one.outputs.kind() == kind).count();
        let counts: Vec<String> = KINDS.iter().map(|kind| count(kind).to_string()).collect();
        let elsewhere =
            group.iter().filter(|one| one.claimed.is_some_and(|ops| ops != one.operations));
        text += &format!(
            "| {file} | {contestant} | {part} | {} | {} | {} |\n",
            group.len(),
            counts.join(" | "),
            elsewhere.count()
        );
    }
    for one in checked.iter().filter(|one| !one.outputs.count()) {
        let guilty = one.guilty.as_ref().map(|pass| format!(", after {pass}")).unwrap_or_default();
        let why = one.why.clone().unwrap_or_else(|| one.outputs.to_string());
        let Checked { file, line, graph, contestant, part, .. } = one;
        text += &format!("{file}, line {line}: {graph}, {contestant} ({part}): {why}{guilty}\n");
    }
    text
}

/// Writes the rows whose orders were all found equal, as they are but for what is known now.
fn keep(args: &Args, files: &[Vec<Value>], equal: impl Fn((usize, usize)) -> bool) -> Result<()> {
    let (mut text, mut kept, mut all) = (String::new(), 0, 0);
    for ((file, rows), path) in files.iter().enumerate().zip(&args.files) {
        let proven: Vec<bool> = (1..=rows.len()).map(|line| equal((file, line))).collect();
        let headers = rows.iter().filter(|row| is_header(row)).count();
        kept += proven.iter().filter(|one| **one).count();
        all += rows.len() - headers;
        if is_coreset(path) {
            let mut coreset: Coreset = serde_json::from_str(&std::fs::read_to_string(path)?)?;
            let mut proven = proven.into_iter();
            coreset.orders.retain(|_| proven.next().unwrap_or_default());
            coreset.orders.iter_mut().for_each(|order| order.outputs = Some("equal".to_owned()));
            text += &(serde_json::to_string_pretty(&coreset)? + "\n");
            continue;
        }
        let whole = rows::text(path)?;
        for ((row, line), proven) in rows.iter().zip(whole.lines()).zip(proven) {
            if is_header(row) {
                text += &format!("{line}\n");
            } else if proven {
                text += &(said_equal(row, line) + "\n");
            }
        }
    }
    rows::write_text(&args.output, &text)?;
    println!("{kept} of {all} rows are proven and kept in {}", args.output.display());
    Ok(())
}

/// A line that says that its outputs are equal, with everything else as it was.
fn said_equal(row: &Value, line: &str) -> String {
    if row.get("stages").is_some_and(Value::is_array) {
        let mut row = row.clone();
        let stages = row["stages"].as_array_mut().into_iter().flatten();
        for stage in stages.filter(|stage| stage.get("passes").is_some()) {
            stage["outputs"] = "equal".into();
        }
        return row.to_string();
    }
    let has_legal =
        row.get("legal").is_some_and(Value::is_object) && row.get("legal_passes").is_some();
    let names = if has_legal { &["outputs", "legal_outputs"][..] } else { &["outputs"] };
    if names.iter().all(|name| row.get(name).is_none()) {
        let more: String = names.iter().map(|name| format!(",\"{name}\":\"equal\"")).collect();
        let open = line.trim_end().strip_suffix('}').unwrap_or(line);
        return format!("{open}{more}}}");
    }
    let mut row = row.clone();
    for name in names {
        row[*name] = "equal".into();
    }
    row.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_row_gives_its_orders() {
        let at = (0, 7);
        let check = |row: Value, expected: &[(&str, &str, bool, Option<u64>)]| {
            let orders = orders_of(&row, at).unwrap();
            let got: Vec<_> = orders
                .iter()
                .map(|order| (order.part, order.contestant.as_str(), order.legal, order.claimed))
                .collect();
            assert_eq!(got, expected, "{row}");
            assert!(orders.iter().all(|order| order.graph == "g" && order.row == at));
        };
        let passes = json!(["cse"]);
        check(
            json!({"benchmark": "g", "legal": true, "passes": passes, "operations": 5}),
            &[("order", "demonstration", true, Some(5))],
        );
        check(
            json!({"benchmark": "g", "start": "legal", "passes": passes, "operations": 5}),
            &[("order", "demonstration", true, Some(5))],
        );
        check(json!({"found_on": "g", "passes": passes}), &[("order", "coreset", false, None)]);
        check(
            json!({"graph": "g", "method": "evolve", "passes": passes, "disabled": 14,
                   "order": {"result": 6}}),
            &[("order", "evolve", false, Some(6))],
        );
        check(
            json!({"graph": "g", "contestant": "ppo", "passes": passes, "order": {"result": 9},
                   "claimed": {"order": 7}, "legal": {"result": 3}, "legal_passes": passes}),
            &[("order", "ppo", false, Some(7)), ("legal", "ppo", true, None)],
        );
        check(
            json!({"graph": "g", "contestant": "ppo", "stages": [
                {"name": "order", "result": 9.0, "claimed": 7.0, "passes": passes},
                {"name": "end", "result": 9.0},
                {"name": "legal", "result": 3.0, "passes": passes}]}),
            &[("order", "ppo", false, Some(7)), ("legal", "ppo", true, None)],
        );
        check(json!({"graph": "g", "contestant": "default", "passes": []}), &[]);
        check(json!({"header": {"stages": []}}), &[]);
        assert!(orders_of(&json!({"passes": passes}), at).is_err());
    }

    #[test]
    fn a_line_says_that_it_is_proven_and_keeps_the_rest() {
        let check = |line: &str, expected: &str| {
            assert_eq!(said_equal(&serde_json::from_str(line).unwrap(), line), expected);
        };
        check(r#"{"b":1,"a":[2]}"#, r#"{"b":1,"a":[2],"outputs":"equal"}"#);
        check(
            r#"{"legal":{"initial":3},"legal_passes":[]}"#,
            r#"{"legal":{"initial":3},"legal_passes":[],"outputs":"equal","legal_outputs":"equal"}"#,
        );
        check(r#"{"outputs":"unchecked","a":1}"#, r#"{"a":1,"outputs":"equal"}"#);
        check(
            r#"{"a":1,"stages":[{"name":"order","passes":[]},{"name":"end"}]}"#,
            r#"{"a":1,"stages":[{"name":"order","outputs":"equal","passes":[]},{"name":"end"}]}"#,
        );
    }
}
