//! Training runs of one algorithm as one curve.

use std::collections::{BTreeMap, BTreeSet};

use xla_gym_records::Progress;

/// The steps are divided into this many windows. What lies in one is averaged.
pub const WINDOWS: u64 = 60;

/// An algorithm's runs.
#[derive(Debug, PartialEq)]
pub struct Curve {
    pub algorithm: String,
    pub runs: usize,
    /// Whether some runs end before others, so that means at the end are of fewer.
    pub ragged: bool,
    pub points: Vec<CurvePoint>,
}

/// What the runs came to around a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    pub step: f64,
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    pub runs: usize,
}

/// A training run: what was measured at which step.
type Run = BTreeMap<u64, f64>;

/// By algorithm; each run gives what `measure` finds.
pub fn curves(progress: &[Progress], measure: impl Fn(&Progress) -> Option<f64>) -> Vec<Curve> {
    let mut algorithms: BTreeMap<&str, BTreeMap<(&str, u64), Run>> = BTreeMap::new();
    for line in progress {
        let run = algorithms.entry(&line.algorithm).or_default();
        let run = run.entry((&line.run, line.seed)).or_default();
        // A run that was resumed goes on from an earlier step; what it once did later is void.
        run.split_off(&line.step);
        if let Some(value) = measure(line).filter(|value| value.is_finite()) {
            run.insert(line.step, value);
        }
    }
    let longest = progress.iter().map(|line| line.step).max().unwrap_or(0);
    let width = longest.div_ceil(WINDOWS).max(1);
    let curves = algorithms.into_iter().map(|(algorithm, runs)| {
        let runs: Vec<Vec<(f64, f64)>> = runs
            .into_values()
            .map(|run| averaged(&run, width))
            .filter(|run| !run.is_empty())
            .collect();
        curve(algorithm, &runs)
    });
    curves.filter(|curve| !curve.points.is_empty()).collect()
}

/// The mean step and the mean value of every window that has any.
fn averaged(run: &Run, width: u64) -> Vec<(f64, f64)> {
    let mut windows: BTreeMap<u64, (f64, f64, f64)> = BTreeMap::new();
    for (step, value) in run {
        let (steps, values, count) = windows.entry(step.saturating_sub(1) / width).or_default();
        (*steps, *values, *count) = (*steps + *step as f64, *values + value, *count + 1.0);
    }
    windows.into_values().map(|(steps, values, count)| (steps / count, values / count)).collect()
}

fn curve(algorithm: &str, runs: &[Vec<(f64, f64)>]) -> Curve {
    // Steps are not negative, so that their bits sort as they do.
    let steps: BTreeSet<u64> = runs.iter().flatten().map(|(step, _)| step.to_bits()).collect();
    let points: Vec<CurvePoint> = steps
        .into_iter()
        .map(f64::from_bits)
        .filter_map(|step| {
            let values: Vec<f64> = runs.iter().filter_map(|run| between(run, step)).collect();
            let count = values.len();
            (count > 0).then(|| CurvePoint {
                step,
                mean: values.iter().sum::<f64>() / count as f64,
                low: values.iter().copied().fold(f64::INFINITY, f64::min),
                high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                runs: count,
            })
        })
        .collect();
    let ragged = points.last().is_some_and(|last| last.runs < runs.len());
    Curve { algorithm: algorithm.to_owned(), runs: runs.len(), ragged, points }
}

/// A run's value at a step, on the straight line between its neighbours. Nothing outside.
fn between(run: &[(f64, f64)], step: f64) -> Option<f64> {
    let after = run.partition_point(|(at, _)| *at < step);
    let (to, high) = *run.get(after)?;
    if to == step {
        return Some(high);
    }
    let (from, low) = run[after.checked_sub(1)?];
    Some(low + (high - low) * (step - from) / (to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(run: &str, step: u64, ratio: f64) -> Progress {
        let (run, algorithm) = (run.to_owned(), "ppo".to_owned());
        Progress { run, algorithm, step, ratio, ..Progress::default() }
    }

    #[test]
    fn runs_are_averaged_step_by_step() {
        let lines = [
            line("a", 10, 1.0),
            line("a", 20, 2.0),
            line("b", 10, 3.0),
            line("b", 30, 5.0),
            line("b", 40, f64::NAN),
        ];
        let curves = curves(&lines, |line| Some(line.ratio));
        let found: Vec<_> =
            curves[0].points.iter().map(|p| (p.step, p.mean, p.low, p.high, p.runs)).collect();
        assert_eq!(
            found,
            [(10.0, 2.0, 1.0, 3.0, 2), (20.0, 3.0, 2.0, 4.0, 2), (30.0, 5.0, 5.0, 5.0, 1)]
        );
        assert!(curves[0].ragged && curves[0].runs == 2);
    }

    #[test]
    fn what_a_resumed_run_did_before_is_void() {
        let lines =
            [line("a", 10, 1.0), line("a", 20, 9.0), line("a", 30, 9.0), line("a", 20, 2.0)];
        let curves = curves(&lines, |line| Some(line.ratio));
        let found: Vec<_> = curves[0].points.iter().map(|p| (p.step, p.mean)).collect();
        assert_eq!(found, [(10.0, 1.0), (20.0, 2.0)]);
    }

    #[test]
    fn long_runs_are_smoothed_by_windows() {
        let lines: Vec<Progress> =
            (0..6000).map(|step| line("a", step, (step % 2) as f64)).collect();
        let curves = curves(&lines, |line| Some(line.ratio));
        assert_eq!(curves[0].points.len(), 60);
        assert!(curves[0].points.iter().all(|point| (point.mean - 0.5).abs() < 0.02));
        assert!(super::curves(&lines, |line| line.validation).is_empty());
        assert!(super::curves(&[], |line| Some(line.ratio)).is_empty());
    }
}
