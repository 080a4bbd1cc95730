//! The gain that a recipe's own figures speak for.

use crate::recipe::{Evidence, Recipe};

/// The most that is believed. Whoever reports more has mismeasured, or lies.
pub const MOST_GAIN: f64 = 1e6;

/// How far a speed-up may be from the ratio of the medians. It is that of neighbouring rounds,
/// which says more, but not something else altogether.
const SPREAD: f64 = 4.0;

/// How far a gain may be from what its figures give: rounding.
const ROUNDING: f64 = 1e-6;

/// The gain where what was to be made small is this share of what it was by default. Of what shrank to
/// nothing it is the most that is believed, so that it is a number.
pub fn gain_of(share: f64) -> f64 {
    if share > 0.0 { 1.0 / share } else { MOST_GAIN }
}

/// Whether the gain follows from the figures, or else what does, if anything.
pub fn check(recipe: &Recipe) -> Result<(), Option<f64>> {
    let supported = supported(&recipe.objective, &recipe.evidence);
    match supported {
        Some(supported) if (recipe.gain / supported - 1.0).abs() <= ROUNDING => Ok(()),
        _ => Err(supported),
    }
}

/// The gain by an objective as `xla-gym optimize` writes it: a figure, a weighted sum of figures
/// (`0.7*a+0.3*b`), or several side by side (`a,b`).
fn supported(objective: &str, evidence: &Evidence) -> Option<f64> {
    let timing = evidence.timing.as_ref();
    let paired = match objective {
        "run-time" => timing.map(|timing| &timing.run),
        "compile-time" => timing.map(|timing| &timing.compile),
        _ => None,
    };
    if let Some(paired) = paired {
        let off = (paired.speedup * paired.result.median / paired.default.median).ln().abs();
        return (off <= SPREAD.ln()).then_some(paired.speedup);
    }
    let share = |name: &str| match *evidence.figures.get(name.trim())? {
        (default, result) if default > 0.0 && result >= 0.0 => Some(result / default),
        (default, result) if default == 0.0 && result >= 0.0 => Some(1.0 + result),
        _ => None,
    };
    let front = objective.contains(',');
    let (mut sum, mut weights) = (0.0, 0.0);
    for part in objective.split([',', '+']) {
        let (weight, name) = match part.split_once('*') {
            Some((weight, name)) => (weight.trim().parse::<f64>().ok()?, name),
            None => (1.0, part),
        };
        let share = share(name)?;
        sum += weight * if front { share.ln() } else { share };
        weights += weight;
    }
    let mean = sum / weights;
    Some(gain_of(if front { mean.exp() } else { mean }))
}
