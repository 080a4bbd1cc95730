//! Results of which none beats another in everything.

use xla_gym_profile::{Figures, Spec};

use crate::{
    objective::Objective,
    plan::{Judged, Plan},
    task::Proven,
};

/// The most that are returned: each is proven by running it.
const MOST: usize = 8;

/// Those of which no other is as good in all figures of the objective and better in one. The
/// default takes part.
pub fn front(
    spec: &Spec,
    objective: &Objective,
    judged: &[Judged],
    default: &Figures,
) -> Vec<Judged> {
    let own = Judged { plan: Plan::default_way(spec), figures: *default, end: None };
    // First, so that what is no better is not listed beside it.
    let mut all = vec![own];
    all.extend_from_slice(judged);
    let values = |judged: &Judged| -> Vec<f64> {
        let value = |figure| judged.figures.get(figure).unwrap_or(f64::INFINITY);
        objective.figures().map(value).collect()
    };
    let mut front: Vec<(Vec<f64>, Judged)> = Vec::new();
    for judged in &all {
        let own = values(judged);
        let beaten = |other: &Judged| {
            let other = values(other);
            other.iter().zip(&own).all(|(a, b)| a <= b) && other != own
        };
        let known = front.iter().any(|(other, _)| *other == own);
        if !known && !all.iter().any(beaten) {
            front.push((own, judged.clone()));
        }
    }
    front.sort_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    // Evenly along the front, its ends included.
    if front.len() > MOST {
        let last = front.len() - 1;
        let kept: Vec<usize> = (0..MOST).map(|i| i * last / (MOST - 1)).collect();
        front = kept.into_iter().map(|index| front[index].clone()).collect();
    }
    front.into_iter().map(|(_, judged)| judged).collect()
}

/// Those of a front that are still on it by the figures that they have now.
pub fn still_on_front(
    spec: &Spec,
    objective: &Objective,
    proven: Vec<Proven>,
    default: &Figures,
) -> Vec<Proven> {
    let judged: Vec<Judged> = proven.iter().map(|proven| proven.judged.clone()).collect();
    let left = front(spec, objective, &judged, default);
    let is_left = |proven: &Proven| left.iter().any(|left| left.plan == proven.judged.plan);
    proven.into_iter().filter(is_left).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla_gym_profile::{Figure, Finish, Profile};
    use xla_gym_toy_profile::Toy;

    /// Positions of the toy's figures.
    const FINAL: Figure = Figure::Counted(1);
    const WORK: Figure = Figure::Counted(2);

    #[test]
    fn what_is_beaten_in_everything_is_not_on_the_front() {
        let figures = |last: i32, work: i32| {
            Figures::counted(&[0.0, f64::from(last), f64::from(work)].map(Some))
        };
        let judged =
            |last, work| Judged { plan: Plan::default(), figures: figures(last, work), end: None };
        let all = [judged(10, 5), judged(9, 6), judged(10, 6), judged(8, 9), judged(9, 6)];
        let spec = Toy::default().spec().clone();
        let objective = Objective::parse("final,work", &spec).unwrap();
        let kept = |default| -> Vec<(i32, i32)> {
            let value = |judged: &Judged, figure| judged.figures.get(figure).unwrap() as i32;
            let front = front(&spec, &objective, &all, &default);
            front.iter().map(|judged| (value(judged, FINAL), value(judged, WORK))).collect()
        };
        assert_eq!(kept(figures(12, 12)), [(8, 9), (9, 6), (10, 5)]);
        assert_eq!(kept(figures(1, 1)), [(1, 1)]);
    }

    #[test]
    fn who_was_fast_only_at_first_leaves_the_front() {
        let judged = |work: i32, run_nanos| {
            let finish = Finish { pipeline: 0, disabled: vec![format!("{work}")] };
            let figures = Figures::counted(&[0.0, 0.0, f64::from(work)].map(Some));
            Judged {
                plan: Plan { finish, ..Plan::default() },
                figures: figures.with_times(Some(run_nanos), None),
                end: None,
            }
        };
        let proven = |work, run_nanos| Proven {
            judged: judged(work, run_nanos),
            outputs: xla_gym_oracle::Report::rejected(String::new()),
        };
        let spec = Toy::default().spec().clone();
        let objective = Objective::parse("work,run-time", &spec).unwrap();
        let default = judged(10, 100.0).figures;
        // The second was at 60 in the heats; now the first beats it, and the default the last.
        let measured = vec![proven(8, 90.0), proven(9, 95.0), proven(12, 70.0), proven(13, 100.0)];
        let left = still_on_front(&spec, &objective, measured, &default);
        let work = |proven: &Proven| proven.judged.figures.get(WORK);
        assert_eq!(left.iter().map(work).collect::<Vec<_>>(), [Some(8.0), Some(12.0)]);
    }
}
