//! The best pass order for a program: found, proven, shortened.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use xla_gym_engine::{
    EngineError,
    protocol::{InputSet, PassId},
};
use xla_gym_oracle::{Options, Report, Verdict};
use xla_gym_profile::{Figure, Figures};
use xla_gym_recipe::{
    Evidence, Program, Recipe, SearchRecord, StageEvidence, Timing, VERSION, gain_of,
};
use xla_gym_search::{Budget, Method, StopReason};

use crate::{
    accept::{good, holds, too_much_memory, with_certain_times, with_medians},
    clock::Clock,
    error::OptimizeError,
    fast::{FastSearch, PATIENCE},
    find::{Looked, Looking, look, send},
    front::{front, still_on_front},
    improve::Improvement,
    plan::{Judge, Judged, Plan},
    race::{self, measure},
    shorten::shorten,
    task::{Answer, Proven, Task},
    vary::Variation,
    watch::{Timed, Watch},
};

/// Which share of the time the runs of the original may take, where the time is limited: results have to
/// run too.
const PROVING: f64 = 0.2;

/// How many plans are changed and sent through the pipeline again where memory is the objective and the
/// time is not limited.
const CHANGED: usize = 64;

/// Finds the best order for a program. The answer is verified, compiled, and run beside the
/// original; where nothing beats the default, that is the answer.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use xla_gym_env::{World, WorldConfig};
/// use xla_gym_optimize::{Judge, Objective, Task, optimize};
/// use xla_gym_search::Budget;
/// use xla_gym_toy_profile::Toy;
///
/// let world = Arc::new(World::new(WorldConfig::new(Arc::new(Toy::default()))?, ["program.toy"])?);
/// let spec = world.profile().spec();
/// let task = Task {
///     objective: Objective::parse("final", spec)?,
///     budget: Budget::passes(1000),
///     ..Task::usual(spec)
/// };
/// let answer = optimize(&Judge::new(&world, 0)?, &task, &())?;
/// println!("{}: {:?}", answer.recipe.gain, answer.recipe.passes);
/// # Ok::<(), xla_gym_optimize::OptimizeError>(())
/// ```
pub fn optimize(judge: &Judge, task: &Task, watch: &dyn Watch) -> Result<Answer, OptimizeError> {
    let budget = match task.budget {
        Budget { passes: None, time: None } => task.usual_budget(judge),
        said => said,
    };
    let clock = Clock::new(task.began, budget.time);
    let watch = Timed::new(watch, clock);
    watch.doing("running the original");
    let usual = Options::default();
    let options = Options {
        trials: task.trials,
        seed: task.seed,
        patience: budget.time.map_or(usual.patience, |time| time.mul_f64(PROVING)),
        limit: clock.left(Duration::ZERO),
        ..usual
    };
    let reference = match judge.reference_unless(options, task.stop.clone()) {
        Ok(reference) => Some(reference),
        // Somebody wants an answer before anything can be proven.
        Err(OptimizeError::Engine(EngineError::Interrupted))
            if task.stop.load(Ordering::Relaxed) =>
        {
            None
        }
        Err(error) => return Err(error),
    };
    let takes = reference.as_ref().map_or(Duration::ZERO, |reference| reference.takes());
    let mut run = Run {
        judge,
        task,
        budget,
        watch: &watch,
        clock,
        // Processes end, and machines have other things to do.
        proving: takes.mul_f64(1.15)
            + budget.time.unwrap_or_default().mul_f64(0.03)
            + Duration::from_millis(500),
        options,
        inputs: match &reference {
            Some(reference) => reference.inputs().cloned().map_err(str::to_owned),
            None => Err("it was stopped before it ran".to_owned()),
        },
        default: judge.default_figures,
        dropped: Vec::new(),
    };
    let obstacle = match &reference {
        // There is no use in searching for what cannot be proven.
        Some(reference) if clock.is_limited() && !task.unproven => {
            reference.obstacle().map(|reason| (reason.to_owned(), StopReason::Time))
        }
        Some(_) => None,
        None => {
            let reason = "stopped before the original had been run".to_owned();
            Some((reason, StopReason::Interrupted))
        }
    };
    if let Some((reason, stopped)) = obstacle {
        run.dropped.push(format!("everything: {reason}"));
        let orders = Vec::new();
        let looked = Looked { orders, passes: 0, time: Duration::ZERO, stopped };
        return run.answer(&looked, None, Vec::new(), None, None);
    }
    if clock.is_limited() && !task.objective.needs_clock() && !task.objective.is_front() {
        return run.answer_in_time();
    }
    let looked = run.look(task.method, 0.5)?;
    let judged = run.judge(&looked)?;
    let nearest = nearest(&judged);
    let (chosen, front) = if task.objective.is_front() {
        run.choose_from_front(&judged)?
    } else {
        (run.choose(judged)?, Vec::new())
    };
    let (chosen, not_measured) = run.measure_if_wanted(chosen)?;
    run.answer(&looked, chosen, front, nearest, not_measured)
}

/// What was chosen, with times if they were measured.
type Chosen = Option<(Proven, Option<Timing>)>;

/// A search that is under way.
pub(crate) struct Run<'a> {
    pub(crate) judge: &'a Judge,
    pub(crate) task: &'a Task,
    /// How much it may take.
    pub(crate) budget: Budget,
    pub(crate) watch: &'a dyn Watch,
    pub(crate) clock: Clock,
    /// About how long it takes to prove a plan.
    pub(crate) proving: Duration,
    pub(crate) options: Options,
    /// On which inputs the program runs, or why it does not.
    pub(crate) inputs: Result<InputSet, String>,
    /// What comes of the default, with its times where they were measured.
    pub(crate) default: Figures,
    /// Candidates that were dropped, with the reason.
    pub(crate) dropped: Vec<String>,
}

impl Run<'_> {
    fn inputs(&self) -> Result<&InputSet, OptimizeError> {
        self.inputs.as_ref().map_err(|reason| OptimizeError::NotRunnable(reason.clone()))
    }

    /// Which times have to be clear.
    fn measured(&self) -> race::Clock {
        let mut figures = self.task.objective.figures();
        if figures.any(|figure| figure == Figure::CompileTime) {
            race::Clock::Compile
        } else {
            race::Clock::Run
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.task.stop.load(Ordering::Relaxed)
    }

    /// Whether it would be too late after so many plans are judged.
    pub(crate) fn is_late(&self, until: Option<Instant>, plans: u32) -> bool {
        until.is_some_and(|until| Instant::now() + self.judge.judging() * plans > until)
    }

    /// How long everything may take, where the clock decides.
    fn patience(&self) -> Duration {
        self.budget.time.unwrap_or(PATIENCE)
    }

    /// Searches for orders, for some share of the time that is left.
    pub(crate) fn look(&self, method: Method, share: f64) -> Result<Looked, OptimizeError> {
        let Run { judge, task, .. } = self;
        let mut first: Vec<Vec<PassId>> = Vec::new();
        first.extend(task.known.iter().map(|plan| plan.passes.clone()));
        // The compiler's own order early, where there may be no time for all of them.
        if self.clock.is_limited() {
            first.push(judge.own_order.clone());
        }
        if task.coreset {
            first.extend(judge.world.first_orders(judge.benchmark)?);
        }
        if !self.clock.is_limited() {
            first.push(judge.own_order.clone());
        }
        let time = match () {
            () if !self.clock.is_limited() => None,
            () if task.objective.needs_clock() => Some(self.patience().mul_f64(0.2)),
            () => Some(self.clock.left(self.proving).mul_f64(share)),
        };
        let looking = Looking {
            goal: task.objective.goal(judge.spec()),
            method,
            budget: Budget { time, ..self.budget },
            seed: task.seed,
            policy: task.policy.clone(),
            first,
            costs: judge.costs.clone(),
            also_prepared: !task.objective.is_order_alone(judge.spec()),
            stop: &task.stop,
        };
        look(judge, &looking, self.watch)
    }

    /// Sends the best orders through the pipeline, for some share of the time that is left.
    pub(crate) fn send(
        &mut self,
        looked: &Looked,
        share: f64,
        judged: &mut Vec<Judged>,
    ) -> Result<(), OptimizeError> {
        self.watch.doing(&format!("sending the best through {}", self.judge.spec().words.pipeline));
        let until = self.clock.after(share, self.proving);
        // Variants of an order come one after another.
        let enough = || self.is_stopped() || self.is_late(until, 3);
        let order_alone = self.task.objective.is_order_alone(self.judge.spec());
        let sent = send(self.judge, &looked.orders, !order_alone, &enough)?;
        let new = |one: &Judged| !judged.iter().any(|other: &Judged| other.plan == one.plan);
        let new: Vec<Judged> = sent.judged.into_iter().filter(new).collect();
        judged.extend(new);
        let known = self.task.known.as_ref().map(|known| self.judge.judge(known)).transpose()?;
        judged.extend(known.and_then(Result::ok));
        for dropped in sent.dropped {
            if !self.dropped.contains(&dropped) {
                self.dropped.push(dropped);
            }
        }
        self.sort(judged);
        Ok(())
    }

    /// Changes the best plans a little, by what the pipeline makes of them.
    pub(crate) fn change(
        &self,
        looked: &Looked,
        judged: &mut Vec<Judged>,
        tries: usize,
        share: f64,
    ) -> Result<(), OptimizeError> {
        let Run { judge, task, .. } = *self;
        if task.objective.is_order_alone(judge.spec()) {
            return Ok(());
        }
        let until = self.clock.after(share, self.proving);
        // Four at a time, on two cores or more.
        let enough = || self.is_stopped() || self.is_late(until, 2);
        // What would not be an answer is no parent either.
        let value = |judged: &Judged| {
            let (figures, default) = (&judged.figures, &self.default);
            let refused = too_much_memory(
                judge.spec(),
                &task.objective,
                figures,
                default,
                task.memory_growth,
            )
            .is_some();
            let value = task.objective.value(figures, default);
            if refused || (value <= 1.0 && !good(judge.spec(), &task.objective, figures, default)) {
                value + 1.0
            } else {
                value
            }
        };
        let variation = Variation::new(judge, &looked.orders);
        let seed = task.seed;
        let improvement =
            Improvement { judge, variation, value: &value, tries, seed, enough: &enough };
        improvement.run(judged, self.watch)?;
        self.sort(judged);
        Ok(())
    }

    /// The best first.
    pub(crate) fn sort(&self, judged: &mut [Judged]) {
        let rank = |judged: &Judged| {
            let figures = &judged.figures;
            let value = self.task.objective.value(figures, &self.default);
            let ties = self.judge.spec().tie_break.iter();
            let ties: Vec<u64> =
                ties.map(|tie| figures.get(*tie).unwrap_or(f64::MAX) as u64).collect();
            (value, (ties, judged.plan.passes.len()))
        };
        judged.sort_by(|a, b| {
            let ((a, then_a), (b, then_b)) = (rank(a), rank(b));
            a.total_cmp(&b).then(then_a.cmp(&then_b))
        });
    }

    /// Whether a plan is good enough; if only its memory speaks against it, that is noted.
    pub(crate) fn is_good(&mut self, judged: &Judged) -> bool {
        let (objective, figures) = (&self.task.objective, &judged.figures);
        let spec = self.judge.spec();
        if judged.plan.says_nothing(spec) || !good(spec, objective, figures, &self.default) {
            return false;
        }
        match too_much_memory(spec, objective, figures, &self.default, self.task.memory_growth) {
            None => true,
            Some(reason) => {
                self.dropped.push(format!("{}: {reason}", judged.plan));
                false
            }
        }
    }

    /// Finds out what the compiler makes of the best orders; the best first.
    fn judge(&mut self, looked: &Looked) -> Result<Vec<Judged>, OptimizeError> {
        let Run { judge, task, .. } = *self;
        self.watch.doing(&format!("sending the best through {}", self.judge.spec().words.pipeline));
        let mut judged = if task.objective.needs_clock() {
            let orders = &looked.orders[..looked.orders.len().min(8)];
            let mut plans: Vec<Plan> = task.known.iter().cloned().collect();
            plans.extend(promising(judge, send(judge, orders, true, &|| false)?.judged));
            let stopped = || self.is_stopped();
            let search = FastSearch {
                judge,
                objective: &task.objective,
                inputs: self.inputs()?,
                seed: task.seed,
                // The rest is for proving and for measuring again.
                deadline: task.began + self.patience().mul_f64(0.75),
                stop: &stopped,
            };
            let fast = search.run(plans, orders, self.watch)?;
            self.default = fast.default;
            self.dropped.extend(fast.dropped);
            fast.plans
        } else {
            // Where only the end of the order counts, the first that the pipeline takes is the best.
            let order_alone = task.objective.is_order_alone(judge.spec());
            let usual = if order_alone { 2 } else { finalists(judge.initial) };
            let count = looked.orders.len().min(task.finalists.unwrap_or(usual));
            let sent = send(judge, &looked.orders[..count], !order_alone, &|| false)?;
            self.dropped.extend(sent.dropped);
            let mut judged = sent.judged;
            if let Some(known) = &task.known {
                judged.extend(judge.judge(known)?);
            }
            if task.objective.figures().any(|figure| Some(figure) == judge.spec().memory) {
                self.change(looked, &mut judged, CHANGED, 0.0)?;
            }
            judged
        };
        self.sort(&mut judged);
        Ok(judged)
    }

    /// Whether a plan computes the same; a plan that does not is dropped.
    pub(crate) fn prove(&mut self, judged: Judged) -> Result<Option<Proven>, OptimizeError> {
        let outputs = self.judge.compare(&judged.plan, self.options)?;
        let unproven = matches!(outputs.verdict, Verdict::NotComparable { .. });
        if outputs.is_equal() || unproven && self.task.unproven {
            return Ok(Some(Proven { judged, outputs }));
        }
        self.dropped.push(format!("{}: {}", judged.plan, outputs.summary()));
        Ok(None)
    }

    /// The best that is good enough and can be proven.
    fn choose(&mut self, judged: Vec<Judged>) -> Result<Chosen, OptimizeError> {
        let Run { judge, task, watch, .. } = *self;
        let clock = task.objective.needs_clock();
        for judged in judged {
            if !self.is_good(&judged) {
                continue;
            }
            let judged = if clock {
                judged
            } else {
                watch.doing("leaving out what can be left out");
                shorten(judge, judged, task.shortening)?
            };
            watch.doing("running the result");
            let Some(proven) = self.prove(judged)? else { continue };
            if !clock {
                return Ok(Some((proven, None)));
            }
            watch.doing("measuring again, beside a control");
            let time = self.patience().mul_f64(0.25).max(Duration::from_secs(2));
            let plan = &proven.judged.plan;
            // One is measured again, and no more: who tries often enough is lucky once.
            return match measure(judge, plan, self.inputs()?, time, self.measured(), &|| {
                self.is_stopped()
            })? {
                Ok(timing)
                    if holds(&task.objective, &proven.judged.figures, &self.default, &timing) =>
                {
                    Ok(Some((proven, Some(timing))))
                }
                Ok(timing) => {
                    self.dropped.push(fast_at_first(plan, &timing));
                    Ok(None)
                }
                Err(reason) => {
                    self.dropped.push(reason);
                    Ok(None)
                }
            };
        }
        Ok(None)
    }

    /// The proven front, and the best compromise on it.
    fn choose_from_front(
        &mut self,
        judged: &[Judged],
    ) -> Result<(Chosen, Vec<Proven>), OptimizeError> {
        let Run { judge, task, watch, default, .. } = *self;
        watch.doing("proving the front");
        let mut proven = Vec::new();
        for judged in front(judge.spec(), &task.objective, judged, &default) {
            if judged.plan.is_default || judged.plan.says_nothing(judge.spec()) {
                continue;
            }
            let reason = too_much_memory(
                judge.spec(),
                &task.objective,
                &judged.figures,
                &default,
                task.memory_growth,
            );
            // Where the clock decides, the rest of the time is for this anyway.
            let late =
                !task.objective.needs_clock() && self.clock.left(Duration::ZERO) < self.proving;
            let late = late.then(|| "no time was left to prove it".to_owned());
            match reason.or(late) {
                Some(reason) => self.dropped.push(format!("{}: {reason}", judged.plan)),
                None => proven.extend(self.prove(judged)?),
            }
        }
        let value = |proven: &Proven| task.objective.value(&proven.judged.figures, &default);
        let best = (0..proven.len())
            .filter(|index| value(&proven[*index]) < 1.0)
            .min_by(|a, b| value(&proven[*a]).total_cmp(&value(&proven[*b])));
        if task.objective.needs_clock() {
            return self.measure_front(proven, best);
        }
        let Some(best) = best else { return Ok((None, proven)) };
        watch.doing("leaving out what can be left out");
        let short = shorten(judge, proven[best].judged.clone(), task.shortening)?;
        if let Some(short) = self.prove(short)? {
            proven[best] = short;
        }
        Ok((Some((proven[best].clone(), None)), proven))
    }

    /// Measures a front again. Which of it is chosen was decided before: who takes the best of many
    /// measurements takes the luckiest.
    fn measure_front(
        &mut self,
        proven: Vec<Proven>,
        best: Option<usize>,
    ) -> Result<(Chosen, Vec<Proven>), OptimizeError> {
        let Run { judge, task, watch, default, .. } = *self;
        let share = self.patience().mul_f64(0.25) / proven.len().max(1) as u32;
        let time = share.max(Duration::from_secs(2));
        let (mut chosen, mut measured) = (None, Vec::new());
        for (index, mut proven) in proven.into_iter().enumerate() {
            watch.doing("measuring the front again, beside a control");
            let plan = &proven.judged.plan;
            let timing = match measure(judge, plan, self.inputs()?, time, self.measured(), &|| {
                self.is_stopped()
            })? {
                Ok(timing) => timing,
                Err(reason) => {
                    self.dropped.push(reason);
                    continue;
                }
            };
            let holds = holds(&task.objective, &proven.judged.figures, &default, &timing);
            if Some(index) == best && !holds {
                self.dropped.push(fast_at_first(plan, &timing));
            }
            proven.judged.figures = with_certain_times(&proven.judged.figures, &default, &timing);
            if Some(index) == best && holds {
                chosen = Some((proven.clone(), Some(timing)));
            }
            measured.push(proven);
        }
        Ok((chosen, still_on_front(judge.spec(), &task.objective, measured, &default)))
    }

    /// Measures times where they are wanted and not known; why not, if they cannot be had.
    pub(crate) fn measure_if_wanted(
        &self,
        chosen: Chosen,
    ) -> Result<(Chosen, Option<String>), OptimizeError> {
        let (Some(time), Some((proven, None))) = (self.task.measuring, &chosen) else {
            return Ok((chosen, None));
        };
        self.watch.doing("measuring run time and compile time");
        let plan = &proven.judged.plan;
        let measured = match &self.inputs {
            Ok(inputs) => {
                measure(self.judge, plan, inputs, time, self.measured(), &|| self.is_stopped())?
            }
            Err(reason) => Err(reason.clone()),
        };
        Ok(match measured {
            Ok(timing) => (chosen.map(|(proven, _)| (proven, Some(timing))), None),
            Err(reason) => (chosen, Some(reason)),
        })
    }

    /// Puts everything down in writing.
    pub(crate) fn answer(
        self,
        looked: &Looked,
        chosen: Chosen,
        front: Vec<Proven>,
        nearest: Option<Figures>,
        not_measured: Option<String>,
    ) -> Result<Answer, OptimizeError> {
        let mut default = self.default;
        let (plan, mut figures, outputs, timing) = match chosen {
            Some((Proven { judged, outputs }, timing)) => {
                (judged.plan, judged.figures, Some(outputs), timing)
            }
            None => (Plan::default_way(self.judge.spec()), default, None, None),
        };
        // Those on a front have times beside the same default already.
        let on_front = self.task.objective.is_front() && self.task.objective.needs_clock();
        if let Some(timing) = timing.as_ref().filter(|_| !on_front) {
            (figures, default) = with_medians(&figures, &default, timing);
        }
        let recipe = self.recipe(looked, &plan, &figures, &default, outputs, timing)?;
        Ok(Answer { plan, figures, default, recipe, front, nearest, not_measured })
    }

    fn recipe(
        self,
        looked: &Looked,
        plan: &Plan,
        figures: &Figures,
        default: &Figures,
        outputs: Option<Report>,
        timing: Option<Timing>,
    ) -> Result<Recipe, OptimizeError> {
        let Run { judge, task, .. } = self;
        let gain = match &timing {
            _ if plan.is_default => 1.0,
            // The ratio of neighbours says more than that of medians.
            Some(timing) if task.objective.is_only(Figure::RunTime) => timing.run.speedup,
            Some(timing) if task.objective.is_only(Figure::CompileTime) => timing.compile.speedup,
            _ => gain_of(task.objective.value(figures, default)),
        };
        let spec = judge.spec();
        let all = spec.all_figures().filter_map(|figure| {
            let name = spec.figure_name(figure).to_owned();
            Some((name, (default.get(figure)?, figures.get(figure)?)))
        });
        let stages = spec.stages.iter().map(|stage| StageEvidence {
            stage: stage.name.to_owned(),
            ratio: judge.ratio(stage.figure, figures),
            value: judge.worth(stage, figures),
        });
        let pipelines = &judge.world.engine().hello().pipelines;
        let pipeline = match plan.finish.pipeline {
            usual if usual == spec.usual.pipeline => String::new(),
            other => pipelines[usize::from(other)].name.clone(),
        };
        let name = |pass: &PassId| judge.world.engine().pass_name(*pass).to_owned();
        Ok(Recipe {
            version: VERSION,
            engine: judge.world.engine().name(),
            program: Program {
                name: judge.world.benchmark_name(judge.benchmark).to_owned(),
                fingerprint: judge.emitted()?.fingerprint()?,
                instructions: judge.emitted_instructions()?,
            },
            start: judge.world.start_name().to_owned(),
            passes: plan.passes.iter().map(name).collect(),
            pipeline,
            disabled_passes: plan.finish.disabled.clone(),
            objective: task.objective.to_string(),
            gain,
            evidence: Evidence {
                stages: stages.collect(),
                figures: all.collect(),
                outputs,
                timing,
                search: SearchRecord {
                    method: task.method.name().to_owned(),
                    seed: task.seed,
                    passes: looked.passes,
                    pipelines: judge.pipelines(),
                    seconds: self.clock.elapsed().as_secs_f64(),
                    stopped: reason(looked.stopped).to_owned(),
                },
                dropped: self.dropped,
            },
            imported: false,
        })
    }
}

/// The figures with the least of the primary one.
pub(crate) fn nearest(judged: &[Judged]) -> Option<Figures> {
    judged.iter().map(|judged| judged.figures).min_by(|a, b| a.primary().total_cmp(&b.primary()))
}

fn fast_at_first(plan: &Plan, timing: &Timing) -> String {
    format!("{plan}, good at first: {:.3}× as fast when measured again", timing.run.speedup)
}

/// Plans that are best in one of what the pipeline leaves, the best of each in turn: no count tells
/// how fast a program is, but what is best in one of them is worth a run.
fn promising(judge: &Judge, judged: Vec<Judged>) -> Vec<Plan> {
    let by = |figure: Figure| {
        let mut sorted: Vec<&Judged> = judged.iter().collect();
        sorted.sort_by(|a, b| {
            let value = |judged: &Judged| judged.figures.get(figure).unwrap_or(f64::INFINITY);
            value(a).total_cmp(&value(b))
        });
        sorted
    };
    let sorted: Vec<Vec<&Judged>> = judge.spec().promising.iter().copied().map(by).collect();
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

/// The pipeline takes long on large programs.
fn finalists(size: u64) -> usize {
    match size {
        0..1500 => 12,
        1500..5000 => 6,
        _ => 4,
    }
}

fn reason(stopped: StopReason) -> &'static str {
    match stopped {
        StopReason::Exhausted => "exhausted",
        StopReason::Passes => "passes",
        StopReason::Time => "time",
        StopReason::Interrupted => "interrupted",
    }
}
