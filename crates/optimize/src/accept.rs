//! When a result is good enough to be an answer.

use xla_gym_recipe::Timing;

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

/// Whether what was measured again is better, and not by chance.
pub fn holds(objective: &Objective, timing: &Timing) -> bool {
    let part = |figure: Figure| match figure {
        Figure::RunTime => Some(&timing.run),
        Figure::CompileTime => Some(&timing.compile),
        _ => None,
    };
    let mut timed = objective.figures().filter_map(part).peekable();
    timed.peek().is_some() && timed.all(|paired| paired.speedup > 1.0 && !paired.within_noise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_legal_operations_nor_kernels_may_grow() {
        let figures = |operations, legal, kernels| Figures {
            operations,
            legal,
            kernels,
            flops: Some(1.0),
            bytes: Some(1.0),
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
