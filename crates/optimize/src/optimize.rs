//! The best pass order for a program: found, proven, shortened.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use xla_gym_engine::protocol::{Array, PassId};
use xla_gym_oracle::{Options, Report, Verdict};
use xla_gym_recipe::{Evidence, Program, Recipe, SearchRecord, Timing, VERSION};
use xla_gym_search::{Budget, Method, Policy, StopReason};

use crate::{
    coreset::{coreset, for_convolutions},
    error::OptimizeError,
    fast::{FastSearch, PATIENCE},
    find::{Looking, look, send},
    front::front,
    objective::{Figure, Figures, Objective},
    plan::{Judge, Judged, Plan},
    race::measure,
    shorten::shorten,
    watch::Watch,
};

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Task {
    /// What is to be made small.
    pub objective: Objective,
    /// How to search.
    pub method: Method,
    /// How much the search may take. Where the clock decides, its time is that of everything.
    pub budget: Budget,
    /// Seed of the search and of the inputs.
    pub seed: u64,
    /// Which passes look promising, if somebody knows.
    pub policy: Option<Arc<dyn Policy>>,
    /// Whether orders that did well on other programs are tried first.
    pub coreset: bool,
    /// Passes of a recipe that is known for this program, tried before everything else.
    pub known: Option<Plan>,
    /// How many of the best by operations go through the pipeline; by the program's size, if nobody
    /// says.
    pub finalists: Option<usize>,
    /// How long the answer may be shortened.
    pub shortening: Duration,
    /// Sets of inputs on which outputs are compared.
    pub trials: u32,
    /// How long run time and compile time may be measured, if they are wanted.
    pub measuring: Option<Duration>,
    /// Set by whoever wants the search to end; the best so far is still proven.
    pub stop: Arc<AtomicBool>,
}

impl Default for Task {
    fn default() -> Task {
        Task {
            objective: Objective::one(Figure::Legal),
            method: Method::Evolve,
            budget: Budget::passes(2000),
            seed: 0,
            policy: None,
            coreset: true,
            known: None,
            finalists: None,
            shortening: Duration::from_secs(15),
            trials: 3,
            measuring: None,
            stop: Arc::default(),
        }
    }
}

/// A plan that was proven.
#[derive(Clone, Debug)]
pub struct Proven {
    /// The plan, and what comes of it.
    pub judged: Judged,
    /// Whether it computes the same.
    pub outputs: Report,
}

/// What came of it.
#[derive(Debug)]
pub struct Answer {
    /// What to do.
    pub plan: Plan,
    /// What comes of it.
    pub figures: Figures,
    /// What comes of the default.
    pub default: Figures,
    /// The same in writing, with what speaks for it.
    pub recipe: Recipe,
    /// If several objectives were asked for: proven plans of which none beats another in all.
    pub front: Vec<Proven>,
    /// The best by operations at the end of the order that was not good enough later, if nothing
    /// was.
    pub nearest: Option<Figures>,
    /// Why times were not measured that should have been.
    pub not_measured: Option<String>,
}

/// Everything that is needed to prove a plan.
struct Proof<'a> {
    judge: &'a Judge,
    options: Options,
    dropped: Vec<String>,
}

impl Proof<'_> {
    /// Whether a plan computes the same; a plan that does not is dropped.
    fn prove(&mut self, judged: Judged) -> Result<Option<Proven>, OptimizeError> {
        let outputs = self.judge.compare(&judged.plan, self.options)?;
        match &outputs.verdict {
            Verdict::Equal | Verdict::NotComparable { .. } => Ok(Some(Proven { judged, outputs })),
            verdict => {
                let reason = match verdict {
                    Verdict::Rejected { reason } => format!("the compiler rejects it: {reason}"),
                    _ => format!("outputs differ by {:.1} tolerances", outputs.worst),
                };
                let passes = judged.plan.passes.len();
                self.dropped.push(format!("an order of {passes} passes: {reason}"));
                Ok(None)
            }
        }
    }
}

/// Finds the best order for a program. The answer is verified, compiled, and run beside the
/// original; where nothing beats the default, that is the answer.
pub fn optimize(judge: &Judge, task: &Task, watch: &dyn Watch) -> Result<Answer, OptimizeError> {
    let begin = Instant::now();
    let stopped = || task.stop.load(Ordering::Relaxed);
    let clock = task.objective.needs_clock();
    let patience = task.budget.time.unwrap_or(PATIENCE);

    watch.doing("running the original");
    let options = Options { trials: task.trials, seed: task.seed };
    let mut proof = Proof { judge, options, dropped: Vec::new() };
    let inputs: Result<Vec<Array>, String> =
        judge.reference(options)?.inputs().map(<[Array]>::to_vec).map_err(str::to_owned);
    let to_run = || match &inputs {
        Ok(inputs) => Ok(&inputs[..]),
        Err(reason) => Err(OptimizeError::NotRunnable(reason.clone())),
    };

    let mut first: Vec<Vec<PassId>> = Vec::new();
    first.extend(task.known.iter().map(|plan| plan.passes.clone()));
    if task.coreset {
        let orders = coreset(judge.world.engine());
        first.extend(if judge.has("convolution")? {
            for_convolutions(judge.world.engine(), &orders)
        } else {
            orders
        });
    }
    first.push(judge.own_order.clone());
    let budget = if clock {
        Budget { time: Some(patience.mul_f64(0.2)), ..task.budget }
    } else {
        task.budget
    };
    let looking = Looking {
        goal: task.objective.goal(),
        method: task.method,
        budget,
        seed: task.seed,
        policy: task.policy.clone(),
        first,
        also_legal: !task.objective.is_order_alone(),
        stop: &task.stop,
    };
    let looked = look(judge, &looking, watch)?;

    let mut default = judge.default_figures;
    let mut judged = if clock {
        let search = FastSearch {
            judge,
            objective: &task.objective,
            inputs: to_run()?,
            seed: task.seed,
            // The rest is for proving and for measuring again.
            deadline: begin + patience.mul_f64(0.75),
            stop: &stopped,
        };
        let orders = &looked.orders[..looked.orders.len().min(8)];
        watch.doing("sending the best through XLA's pipeline");
        let fast = search.run(promising(send(judge, orders, true)?.judged), orders, watch)?;
        default = fast.default;
        proof.dropped.extend(fast.dropped);
        fast.plans
    } else {
        watch.doing("sending the best through XLA's pipeline");
        // Where only the end of the order counts, the first that is legal is the best.
        let order_alone = task.objective.is_order_alone();
        let usual = if order_alone { 2 } else { finalists(judge.initial) };
        let count = looked.orders.len().min(task.finalists.unwrap_or(usual));
        let sent = send(judge, &looked.orders[..count], !order_alone)?;
        proof.dropped.extend(sent.dropped);
        sent.judged
    };
    if let Some(known) = &task.known
        && !clock
        && let Ok(known) = judge.judge(known)?
    {
        judged.push(known);
    }

    let nearest = judged.iter().map(|judged| judged.figures).min_by_key(|f| f.operations);
    let rank = |judged: &Judged| {
        let figures = &judged.figures;
        let value = task.objective.value(figures, &default);
        (value, figures.kernels, figures.legal, judged.plan.passes.len())
    };
    judged.sort_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        a.0.total_cmp(&b.0).then((a.1, a.2, a.3).cmp(&(b.1, b.2, b.3)))
    });

    let mut chosen: Option<(Proven, Option<Timing>)> = None;
    let mut proven_front = Vec::new();
    if task.objective.is_front() {
        watch.doing("proving the front");
        for judged in front(&task.objective, &judged, &default) {
            proven_front.extend(proof.prove(judged)?);
        }
        proven_front.retain(|proven| !proven.judged.plan.is_default);
        let best = proven_front.iter().min_by(|a, b| {
            let value = |p: &Proven| task.objective.value(&p.judged.figures, &default);
            value(a).total_cmp(&value(b))
        });
        let best =
            best.filter(|best| task.objective.value(&best.judged.figures, &default) < 1.0).cloned();
        if let Some(best) = best {
            chosen = Some((shortened(&mut proof, task, best, &mut proven_front)?, None));
        }
    } else {
        for judged in judged.into_iter().filter(|judged| good(task, &judged.figures, &default)) {
            let judged = if clock {
                judged
            } else {
                watch.doing("leaving out what can be left out");
                shorten(judge, judged, task.shortening)?
            };
            watch.doing("running the result");
            let Some(proven) = proof.prove(judged)? else { continue };
            if clock {
                watch.doing("measuring again, beside two controls");
                let time = patience.mul_f64(0.25).max(Duration::from_secs(2));
                match measure(judge, &proven.judged.plan, to_run()?, time, &stopped)? {
                    Ok(timing) if holds(&task.objective, &timing) => {
                        chosen = Some((proven, Some(timing)));
                    }
                    Ok(timing) => proof.dropped.push(format!(
                        "an order of {} passes, fast at first: {:.3}× when measured again",
                        proven.judged.plan.passes.len(),
                        timing.run.speedup,
                    )),
                    Err(reason) => proof.dropped.push(reason),
                }
                // One is measured again, and no more: who tries often enough is lucky once.
                break;
            }
            chosen = Some((proven, None));
            break;
        }
    }

    let mut not_measured = None;
    if let (Some(time), Some((proven, timing @ None))) = (task.measuring, &mut chosen) {
        watch.doing("measuring run time and compile time");
        let measured = match &inputs {
            Ok(inputs) => measure(judge, &proven.judged.plan, inputs, time, &stopped)?,
            Err(reason) => Err(reason.clone()),
        };
        match measured {
            Ok(measured) => *timing = Some(measured),
            Err(reason) => not_measured = Some(reason),
        }
    }

    let (plan, mut figures, outputs, timing) = match chosen {
        Some((Proven { judged, outputs }, timing)) => {
            (judged.plan, judged.figures, Some(outputs), timing)
        }
        None => (Plan::default_way(), default, None, None),
    };
    if let Some(timing) = &timing {
        figures.run_nanos = Some(timing.run.result.median);
        figures.compile_nanos = Some(timing.compile.result.median);
        default.run_nanos = Some(timing.run.default.median);
        default.compile_nanos = Some(timing.compile.default.median);
    }
    let record = SearchRecord {
        method: task.method.name().to_owned(),
        seed: task.seed,
        passes: looked.passes,
        pipelines: judge.pipelines(),
        seconds: begin.elapsed().as_secs_f64(),
        stopped: reason(looked.stopped).to_owned(),
    };
    let gain = match &timing {
        Some(timing) if task.objective == Objective::one(Figure::RunTime) => timing.run.speedup,
        _ => 1.0 / task.objective.value(&figures, &default),
    };
    let order = judge.order(&figures);
    let legal = judge.legal(&figures);
    let all = Figure::ALL.into_iter().filter_map(|figure| {
        Some((figure.name().to_owned(), (default.get(figure)?, figures.get(figure)?)))
    });
    let name = |pass: &PassId| judge.world.engine().pass_name(*pass).to_owned();
    let mut emitted = judge.emitted()?;
    let recipe = Recipe {
        version: VERSION,
        engine: judge.world.engine().name(),
        program: Program {
            name: judge.world.benchmark_name(judge.benchmark).to_owned(),
            fingerprint: emitted.fingerprint()?,
            instructions: judge.emitted_instructions()?,
        },
        start: judge.world.start(),
        passes: plan.passes.iter().map(name).collect(),
        disabled_passes: plan.disabled.clone(),
        objective: task.objective.to_string(),
        gain: if plan.is_default { 1.0 } else { gain },
        evidence: Evidence {
            order,
            order_ratio: order.value(),
            legal,
            legal_ratio: legal.value(),
            figures: all.collect(),
            outputs,
            timing,
            search: record,
            dropped: proof.dropped,
        },
    };
    Ok(Answer { plan, figures, default, recipe, front: proven_front, nearest, not_measured })
}

/// Plans that leave few kernels, few bytes or few operations, the best of each in turn: neither tells
/// how fast a program is, but what is best in one of them is worth a run.
fn promising(judged: Vec<Judged>) -> Vec<Plan> {
    let by = |figure: Figure| {
        let mut sorted: Vec<&Judged> = judged.iter().collect();
        sorted.sort_by(|a, b| {
            let value = |judged: &Judged| judged.figures.get(figure).unwrap_or(f64::INFINITY);
            value(a).total_cmp(&value(b))
        });
        sorted
    };
    let sorted = [Figure::Kernels, Figure::Bytes, Figure::Legal].map(by);
    let mut plans: Vec<Plan> = Vec::new();
    for rank in 0..judged.len().min(4) {
        for judged in sorted.iter().filter_map(|sorted| sorted.get(rank)) {
            if !plans.contains(&judged.plan) {
                plans.push(judged.plan.clone());
            }
        }
    }
    plans
}

/// The chosen one of a front with fewer passes, where it is still right without them.
fn shortened(
    proof: &mut Proof<'_>,
    task: &Task,
    best: Proven,
    front: &mut [Proven],
) -> Result<Proven, OptimizeError> {
    if task.objective.needs_clock() {
        return Ok(best);
    }
    let short = shorten(proof.judge, best.judged.clone(), task.shortening)?;
    let Some(short) = proof.prove(short)? else { return Ok(best) };
    for proven in front.iter_mut().filter(|proven| proven.judged.plan == best.judged.plan) {
        *proven = short.clone();
    }
    Ok(short)
}

/// The pipeline takes long on large programs.
fn finalists(operations: u64) -> usize {
    match operations {
        0..1500 => 12,
        1500..5000 => 6,
        _ => 4,
    }
}

/// Whether figures are better than the default, and in nothing worse that goes with the objective.
fn good(task: &Task, figures: &Figures, default: &Figures) -> bool {
    let value = task.objective.value(figures, default);
    if task.objective.needs_clock() {
        return value < 1.0;
    }
    let counts: Vec<Figure> = task.objective.figures().collect();
    let guarded = match counts[..] {
        [Figure::Legal | Figure::Kernels] => &[Figure::Legal, Figure::Kernels][..],
        _ => &counts[..],
    };
    let shares = guarded.iter().map(|figure| (figures.get(*figure), default.get(*figure)));
    let (mut worse, mut better) = (false, false);
    for (now, before) in shares {
        let (Some(now), Some(before)) = (now, before) else { return false };
        worse |= now > before;
        better |= now < before;
    }
    // In a weighted sum one may be paid for by another.
    value <= 1.0 && (better || value < 1.0) && (!worse || guarded.len() != 2 || counts.len() > 1)
}

/// Whether what was measured again is better, and not by chance.
fn holds(objective: &Objective, timing: &Timing) -> bool {
    let part = |figure: Figure| match figure {
        Figure::RunTime => Some(&timing.run),
        Figure::CompileTime => Some(&timing.compile),
        _ => None,
    };
    let mut timed = objective.figures().filter_map(part).peekable();
    timed.peek().is_some() && timed.all(|paired| paired.speedup > 1.0 && !paired.within_noise)
}

fn reason(stopped: StopReason) -> &'static str {
    match stopped {
        StopReason::Exhausted => "exhausted",
        StopReason::Passes => "passes",
        StopReason::Time => "time",
        StopReason::Interrupted => "interrupted",
    }
}
