//! When a result is good enough to be an answer.

use xla_gym_recipe::{Paired, Series, Timing};

use crate::objective::{Figure, Figures, Objective};

/// Whether figures are better than the default, and in nothing worse that goes with the objective.
pub fn good(objective: &Objective, figures: &Figures, default: &Figures) -> bool {
    let value = objective.value(figures, default);
    if objective.needs_clock() {
        return value < 1.0;
    }
    let counts: Vec<Figure> = objective.figures().collect();
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

/// Memory may grow by so many bytes whatever the factor: the padding of buffers.
const PADDING: f64 = 4096.0;

/// Why a result needs too much memory, if it does. Not asked where memory is what is to be made small, nor
/// where only the end of the order counts.
pub fn too_much_memory(
    objective: &Objective,
    figures: &Figures,
    default: &Figures,
    growth: f64,
) -> Option<String> {
    if objective.is_order_alone() || objective.figures().any(|figure| figure == Figure::Memory) {
        return None;
    }
    let (now, before) = (figures.memory?, default.memory?);
    (now > before * growth + PADDING).then(|| {
        let factor = now / before.max(1.0);
        format!(
            "the final program needs {now} bytes of memory where XLA's own needs {before}: {factor:.2} \
             times as much, and {growth} are allowed (--memory-growth)"
        )
    })
}

/// Whether none of the figures grew.
pub fn no_worse(figures: &Figures, most: &Figures) -> bool {
    let counted = Figure::ALL.into_iter().filter(|figure| !figure.is_time());
    counted.into_iter().all(|figure| match (figures.get(figure), most.get(figure)) {
        (Some(now), Some(most)) => now <= most,
        (_, None) => true,
        (None, Some(_)) => false,
    })
}

/// Whether what was measured again is still better by the objective, and not by chance: once by the
/// medians, which are reported, and once with no more credit for speed than is beyond doubt.
pub fn holds(objective: &Objective, figures: &Figures, default: &Figures, timing: &Timing) -> bool {
    let (medians, of_default) = with_medians(figures, default, timing);
    let certain = with_certain_times(figures, &of_default, timing);
    objective.value(&medians, &of_default) < 1.0 && objective.value(&certain, &of_default) < 1.0
}

/// Figures of a result and of the default, with the medians of what was measured.
pub fn with_medians(figures: &Figures, default: &Figures, timing: &Timing) -> (Figures, Figures) {
    let with = |figures: &Figures, run: &Series, compile: &Series| Figures {
        run_nanos: Some(run.median),
        compile_nanos: Some(compile.median),
        ..*figures
    };
    let Timing { run, compile } = timing;
    (with(figures, &run.result, &compile.result), with(default, &run.default, &compile.default))
}

/// Figures of a result, with the default's times divided by what it is faster for certain. What is
/// within the noise is no gain, though it may be a loss.
pub fn with_certain_times(figures: &Figures, default: &Figures, timing: &Timing) -> Figures {
    let certain = |paired: &Paired| {
        if paired.within_noise { paired.speedup.min(1.0) } else { paired.speedup }
    };
    Figures {
        run_nanos: default.run_nanos.map(|nanos| nanos / certain(&timing.run)),
        compile_nanos: default.compile_nanos.map(|nanos| nanos / certain(&timing.compile)),
        ..*figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Figures = Figures {
        operations: 10,
        legal: 10,
        kernels: 10,
        flops: Some(10.0),
        bytes: Some(10.0),
        memory: Some(10.0),
        run_nanos: None,
        compile_nanos: None,
    };

    fn paired(speedup: f64, within_noise: bool) -> Paired {
        let series =
            |median| Series { count: 9, median, lower_quartile: median, upper_quartile: median };
        Paired {
            default: series(100.0),
            result: series(100.0 / speedup),
            speedup,
            interval: (speedup, speedup),
            controls: Vec::new(),
            within_noise,
        }
    }

    #[test]
    fn what_is_measured_again_is_judged_by_its_own_objective() {
        let fewer = Figures { kernels: 6, ..DEFAULT };
        let more = Figures { kernels: 16, ..DEFAULT };
        let (faster, slower, luck) = (paired(1.25, false), paired(0.5, false), paired(1.25, true));
        for (objective, figures, run, expected) in [
            ("run-time", &fewer, &faster, true),
            ("run-time", &fewer, &luck, false),
            ("run-time", &fewer, &slower, false),
            // Faster, but that is not what was asked for: 0.5 * 1.6 + 0.5 * 0.8 is a loss.
            ("kernels+run-time", &more, &faster, false),
            ("kernels+run-time", &fewer, &slower, false),
            ("kernels+run-time", &fewer, &luck, true),
            ("kernels,run-time", &fewer, &faster, true),
            ("kernels,run-time", &more, &faster, false),
            ("kernels,run-time", &DEFAULT, &luck, false),
        ] {
            let timing = Timing { run: run.clone(), compile: paired(1.0, true) };
            let objective: Objective = objective.parse().unwrap();
            let holds = holds(&objective, figures, &DEFAULT, &timing);
            assert_eq!(holds, expected, "{objective}, {} kernels, {run:?}", figures.kernels);
        }
    }

    #[test]
    fn every_count_is_watched() {
        assert!(no_worse(&DEFAULT, &DEFAULT));
        for worse in [
            Figures { operations: 11, ..DEFAULT },
            Figures { legal: 11, ..DEFAULT },
            Figures { kernels: 11, ..DEFAULT },
            Figures { flops: Some(10.5), ..DEFAULT },
            Figures { bytes: Some(10.5), ..DEFAULT },
            Figures { bytes: None, ..DEFAULT },
        ] {
            assert!(!no_worse(&worse, &DEFAULT), "{worse:?}");
        }
        let unknown = Figures { flops: None, ..DEFAULT };
        assert!(no_worse(&DEFAULT, &unknown), "what nobody knew is no bound");
    }

    #[test]
    fn memory_may_grow_a_little_where_it_is_not_the_objective() {
        let needs = |memory| Figures { memory: Some(memory), ..DEFAULT };
        let default = needs(100_000.0);
        for (objective, memory, refused) in [
            ("legal", 109_000.0, false),
            ("legal", 120_000.0, true),
            ("run-time", 120_000.0, true),
            ("operations", 120_000.0, false),
            ("memory", 120_000.0, false),
            ("kernels,memory", 120_000.0, false),
        ] {
            let objective: Objective = objective.parse().unwrap();
            let said = too_much_memory(&objective, &needs(memory), &default, 1.1);
            assert_eq!(said.is_some(), refused, "{objective} {memory} {said:?}");
        }
        let legal = Objective::one(Figure::Legal);
        assert!(too_much_memory(&legal, &needs(120_000.0), &default, 1.3).is_none());
        assert!(too_much_memory(&legal, &needs(4_100.0), &needs(200.0), 1.1).is_none(), "padding");
    }

    #[test]
    fn neither_legal_operations_nor_kernels_may_grow() {
        let figures = |operations, legal, kernels| Figures {
            operations,
            legal,
            kernels,
            flops: Some(1.0),
            bytes: Some(1.0),
            memory: Some(1e6),
            run_nanos: None,
            compile_nanos: None,
        };
        let default = figures(10, 10, 10);
        for (objective, result, expected) in [
            ("legal", figures(10, 9, 10), true),
            ("legal", figures(20, 10, 9), true),
            ("legal", figures(1, 10, 10), false),
            ("legal", figures(1, 9, 11), false),
            ("kernels", figures(1, 11, 9), false),
            ("operations", figures(9, 20, 20), true),
            ("operations", figures(10, 1, 1), false),
            ("legal+kernels", figures(10, 5, 11), true),
            ("legal+kernels", figures(10, 9, 12), false),
        ] {
            let objective: Objective = objective.parse().unwrap();
            assert_eq!(good(&objective, &result, &default), expected, "{objective} {result:?}");
        }
    }
}
