//! Which passes did it.

use xla_gym_engine::{
    EngineError, Session,
    protocol::{self, Hello, Observation, Observe, PassId, PipelineOptions},
};
use xla_gym_env::Walk;
use xla_gym_profile::{Comparison, Figure, Figures, Finish, Spec};
use xla_gym_recipe::{Recipe, Timing};
use xla_gym_report::{
    Baseline, Contribution, Explanation, FrontPoint, Metric, OpcodeRow, OpcodeTable, StepRow,
    SummaryRow, Timeline, TimingRows,
};

use crate::{
    error::OptimizeError,
    plan::{Judge, Plan, walk},
    task::Answer,
    watch::Watch,
};

/// An explanation of nothing yet, with the words for what the compiler does by itself.
pub fn explanation(spec: &Spec) -> Explanation {
    Explanation {
        compiler: spec.words.title.to_owned(),
        baseline: Baseline::new(spec.words.baseline_short, spec.words.baseline),
        final_figure: spec
            .tie_break
            .first()
            .map_or("", |figure| spec.figure_name(*figure))
            .to_owned(),
        ..Explanation::default()
    }
}

/// What [`step_figures`] gives: counts, then costs.
fn metrics(hello: &Hello) -> Vec<Metric> {
    let metric = |metric: &protocol::Metric| Metric::new(&metric.name, &metric.name, &metric.unit);
    hello.counts.iter().chain(&hello.costs).map(metric).collect()
}

/// What each pass does, one after the other.
pub fn timeline(judge: &Judge, passes: &[PassId]) -> Result<Timeline, OptimizeError> {
    let mut session = Walk::begin(&judge.world, judge.benchmark)?.into_session()?;
    let hello = judge.world.engine().hello();
    let look = Observe::COUNTS.and(Observe::COST);
    let start = step_figures(hello, &session.observe(look)?);
    let mut steps = Vec::new();
    let mut figures = start.clone();
    for &pass in passes {
        let name = judge.world.engine().pass_name(pass).to_owned();
        let (changed, nanos) = match session.apply(pass, look) {
            Ok(applied) => {
                if applied.changed {
                    figures = step_figures(hello, &applied.observation);
                }
                (applied.changed, applied.nanos)
            }
            // It is left out, as everywhere.
            Err(EngineError::Pass(_)) => (false, 0),
            Err(error) => return Err(error.into()),
        };
        steps.push(StepRow { pass: name, changed, figures: figures.clone(), nanos });
    }
    Ok(Timeline { metrics: metrics(hello), start, steps })
}

/// What each pass contributed: in its own step, and to the end, which is what is missing there if
/// it is left out. With `to_the_end`, also to the final program, by a run of the pipeline for each.
pub fn attribute(
    judge: &Judge,
    plan: &Plan,
    to_the_end: bool,
    watch: &dyn Watch,
) -> Result<Vec<Contribution>, OptimizeError> {
    let timeline = timeline(judge, &plan.passes)?;
    let whole = judge.judge(plan)?;
    let at_end = timeline.end().unwrap_or_default();
    let mut before = timeline.start().unwrap_or_default();
    let mut contributions = Vec::new();
    watch.counting(plan.passes.len() as u64, "passes");
    for (index, step) in timeline.steps.iter().enumerate() {
        let mut rest = plan.clone();
        rest.passes.remove(index);
        let state = walk(&judge.world, judge.benchmark, &rest.passes)?;
        let left_out = state.state().counts.primary() as f64 - at_end;
        drop(state);
        let left_out_final = match (&whole, to_the_end) {
            (Ok(whole), true) => {
                let last = judge.spec().tie_break.first();
                let value = |figures: &Figures| last.and_then(|last| figures.get(*last));
                let without = judge.judge(&rest)?.ok().and_then(|without| value(&without.figures));
                without.zip(value(&whole.figures)).map(|(without, whole)| without - whole)
            }
            _ => None,
        };
        let after = step.primary().unwrap_or_default();
        contributions.push(Contribution {
            position: index + 1,
            pass: step.pass.clone(),
            by_step: before - after,
            left_out: Some(left_out),
            left_out_final,
            seconds: step.nanos as f64 / 1e9,
        });
        before = after;
        watch.at(index as u64 + 1);
    }
    watch.done_counting();
    Ok(contributions)
}

/// Everything that a report shows.
pub fn explain(
    judge: &Judge,
    answer: &Answer,
    command: String,
    watch: &dyn Watch,
) -> Result<Explanation, OptimizeError> {
    watch.doing("finding out which passes did it");
    let plan = &answer.plan;
    let order = timeline(judge, &plan.passes)?;
    let default_order = timeline(judge, &judge.own_order)?;
    let contributions =
        if plan.is_default { Vec::new() } else { attribute(judge, plan, true, watch)? };
    watch.doing("counting opcodes");
    let opcodes = opcodes(judge, plan)?;
    let recipe = &answer.recipe;
    Ok(Explanation {
        title: recipe.program.name.clone(),
        engine: recipe.engine.clone(),
        objective: recipe.objective.clone(),
        command,
        summary: summary(judge, &answer.figures, &answer.default, recipe.evidence.timing.as_ref()),
        verdicts: verdicts(judge.spec(), recipe),
        order,
        default_order,
        contributions,
        opcodes,
        timing: timing(judge.spec(), recipe),
        disabled_passes: recipe.disabled_passes.clone(),
        recipe_json: serde_json::to_string_pretty(recipe).unwrap_or_default(),
        notes: recipe.evidence.dropped.iter().map(|note| format!("Dropped: {note}")).collect(),
        front: front_points(judge.spec(), answer),
        front_axes: recipe.objective.split(',').map(str::to_owned).collect(),
        ..explanation(judge.spec())
    })
}

fn step_figures(hello: &Hello, seen: &Observation) -> Vec<Option<f64>> {
    let counts = seen.counts.unwrap_or_default();
    let cost = seen.cost.as_ref().and_then(|cost| cost.as_ref().ok());
    let costs = (0..hello.costs.len()).map(|at| cost.and_then(|cost| cost.get(at)).copied());
    counts.iter().map(|count| Some(*count as f64)).chain(costs).collect()
}

/// The figures side by side; `start` where it means something.
pub fn summary(
    judge: &Judge,
    figures: &Figures,
    default: &Figures,
    timing: Option<&Timing>,
) -> Vec<SummaryRow> {
    let spec = judge.spec();
    let mut rows = Vec::new();
    for figure in spec.all_figures() {
        let (Some(before), Some(now)) = (default.get(figure), figures.get(figure)) else {
            continue;
        };
        let (name, unit) = match figure {
            Figure::Counted(_) => (spec.label(figure), 1.0),
            Figure::RunTime => ("run-time, µs", 1e-3),
            Figure::CompileTime => ("compile-time, ms", 1e-6),
        };
        let stage = spec.stages.iter().find(|stage| stage.figure == figure);
        let (start, ratio) = match stage {
            Some(stage) => (
                // Where something is left over something, what was there at first says nothing.
                judge
                    .bare_figures
                    .get(figure)
                    .filter(|_| stage.comparison == Comparison::Reduction),
                judge.worth(stage, figures),
            ),
            None => (None, share(before, now)),
        };
        let note = match (figure, timing) {
            _ if Some(figure) == spec.memory && now > before => "grew".to_owned(),
            (Figure::RunTime, Some(timing)) => noise(timing.run.within_noise),
            (Figure::CompileTime, Some(timing)) => noise(timing.compile.within_noise),
            _ => String::new(),
        };
        rows.push(SummaryRow {
            name: name.to_owned(),
            start,
            default: before * unit,
            result: now * unit,
            ratio,
            note,
        });
    }
    rows
}

fn share(before: f64, now: f64) -> Option<f64> {
    (now > 0.0).then(|| before / now)
}

fn noise(within: bool) -> String {
    if within { "within the noise".to_owned() } else { String::new() }
}

fn verdicts(spec: &Spec, recipe: &Recipe) -> Vec<(String, bool, String)> {
    let Some(outputs) = &recipe.evidence.outputs else {
        return Vec::new();
    };
    let compared = match &outputs.verdict {
        xla_gym_oracle::Verdict::NotComparable { reason } => {
            ("outputs are equal".to_owned(), false, format!("not comparable: {reason}"))
        }
        _ => (
            "outputs are equal".to_owned(),
            outputs.is_equal(),
            format!(
                "{} elements on {} sets of inputs, largest difference {:.1e} of what is allowed",
                outputs.elements, outputs.trials, outputs.worst
            ),
        ),
    };
    vec![
        (
            format!("the verifier of {} accepts it", spec.words.title),
            true,
            "after every pass".to_owned(),
        ),
        (
            format!("{} compiles it", spec.words.title),
            true,
            "with the passes left out that it replaces".to_owned(),
        ),
        compared,
    ]
}

fn timing(spec: &Spec, recipe: &Recipe) -> Option<TimingRows> {
    let timing = recipe.evidence.timing.as_ref()?;
    let own = spec.words.baseline_short;
    let mut rows = Vec::new();
    let mut sentences = Vec::new();
    for (name, paired) in [("run", &timing.run), ("compile", &timing.compile)] {
        for (side, series) in [(own, paired.default), ("result", paired.result)] {
            rows.push((
                format!("{name}, {side}"),
                series.median,
                series.lower_quartile,
                series.upper_quartile,
            ));
        }
        let controls: Vec<String> =
            paired.controls.iter().map(|control| format!("{:.3}", control.speedup)).collect();
        sentences.push(format!(
            "{name}: {:.3}× as fast (95% interval {:.3} to {:.3}); {own} beside itself: {}.{}",
            paired.speedup,
            paired.interval.0,
            paired.interval.1,
            controls.join(", "),
            if paired.within_noise { " The difference is within the noise." } else { "" },
        ));
    }
    Some(TimingRows { rows, sentences })
}

fn front_points(spec: &Spec, answer: &Answer) -> Vec<FrontPoint> {
    let figures: Vec<Figure> =
        answer.recipe.objective.split(',').filter_map(|name| spec.figure(name)).collect();
    let point = |label: &str, values: &Figures, chosen: bool| FrontPoint {
        label: label.to_owned(),
        values: figures.iter().map(|figure| values.get(*figure).unwrap_or(f64::NAN)).collect(),
        chosen,
    };
    if answer.front.is_empty() {
        return Vec::new();
    }
    let mut points =
        vec![point(spec.words.baseline_short, &answer.default, answer.plan.is_default)];
    for proven in &answer.front {
        let plan = &proven.judged.plan;
        let label =
            format!("{} passes, {} left out", plan.passes.len(), plan.finish.disabled.len());
        points.push(point(&label, &proven.judged.figures, *plan == answer.plan));
    }
    points
}

/// Opcodes at the end of the order, and of the final program: start, default, result.
fn opcodes(judge: &Judge, plan: &Plan) -> Result<Vec<OpcodeTable>, OptimizeError> {
    let mut emitted = judge.emitted()?;
    let start = counts(&mut Walk::begin(&judge.world, judge.benchmark)?.into_session()?)?;
    let default =
        counts(&mut walk(&judge.world, judge.benchmark, &judge.own_order)?.into_session()?)?;
    let default_end = final_counts(&mut emitted, &judge.spec().usual)?;
    let table = |stage: &str, start: &[u32], default: &[u32], result: &[u32]| OpcodeTable {
        stage: stage.to_owned(),
        rows: rows(judge, start, default, result),
    };
    let (result, result_end) = if plan.is_default {
        (default.clone(), default_end.clone())
    } else {
        let mut session = judge.session(plan)?;
        (counts(&mut session)?, final_counts(&mut session, &plan.finish)?)
    };
    Ok(vec![
        table("at the end of the order", &start, &default, &result),
        table("of the final programs", &[], &default_end, &result_end),
    ])
}

fn counts(session: &mut Session) -> Result<Vec<u32>, OptimizeError> {
    Ok(session.observe(Observe::OPCODES)?.opcodes.unwrap_or_default())
}

fn final_counts(session: &mut Session, how: &Finish) -> Result<Vec<u32>, OptimizeError> {
    let options = PipelineOptions { finish: how.clone(), ..PipelineOptions::default() };
    let report = session.scratch()?.pipeline(&options, Observe::OPCODES)?;
    Ok(report.end().and_then(|end| end.observation.opcodes.clone()).unwrap_or_default())
}

fn rows(judge: &Judge, start: &[u32], default: &[u32], result: &[u32]) -> Vec<OpcodeRow> {
    let at = |counts: &[u32], index: usize| u64::from(counts.get(index).copied().unwrap_or(0));
    let names = &judge.world.engine().hello().opcodes;
    let row = |(index, name): (usize, &String)| OpcodeRow {
        opcode: name.clone(),
        start: at(start, index),
        default: at(default, index),
        result: at(result, index),
    };
    let any = |row: &OpcodeRow| row.start + row.default + row.result > 0;
    names.iter().enumerate().map(row).filter(any).collect()
}
