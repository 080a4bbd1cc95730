//! What is to be made small.

use std::fmt;

use xla_gym_profile::{Figure, Figures, Measure, Spec};
use xla_gym_search::Goal;

use crate::error::OptimizeError;

/// What is to be made small: one figure, a weighted sum (`0.7*a+0.3*b`), or several at
/// once (`a,run-time`), which gives a front of results of which none beats another in all.
///
/// ```
/// use xla_gym_optimize::Objective;
/// use xla_gym_profile::Profile;
/// use xla_gym_toy_profile::Toy;
///
/// let toy = Toy::default();
/// let sum = Objective::parse("0.7*final+0.3*work", toy.spec())?;
/// let front = Objective::parse("registers,run-time", toy.spec())?;
/// assert!(!sum.is_front() && front.is_front() && front.needs_clock());
/// assert!(Objective::parse("speed-of-light", toy.spec()).is_err());
/// # Ok::<(), xla_gym_optimize::OptimizeError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Figures with their weights, which add up to 1.
    parts: Vec<(Figure, f64)>,
    /// How they are called, one after the other.
    names: Vec<&'static str>,
    /// Whether they are wanted side by side.
    front: bool,
}

impl Objective {
    /// One figure.
    pub fn one(spec: &Spec, figure: Figure) -> Objective {
        let names = vec![spec.figure_name(figure)];
        Objective { parts: vec![(figure, 1.0)], names, front: false }
    }

    /// What is made small if nobody says what.
    pub fn usual(spec: &Spec) -> Objective {
        let figure = spec.figure(spec.usual_objective).unwrap_or(Figure::PRIMARY);
        Objective::one(spec, figure)
    }

    /// Whether it is one figure alone, and this one.
    pub fn is_only(&self, figure: Figure) -> bool {
        matches!(self.parts[..], [(only, _)] if only == figure)
    }

    /// The figures in it.
    pub fn figures(&self) -> impl Iterator<Item = Figure> {
        self.parts.iter().map(|(figure, _)| *figure)
    }

    /// Whether a front is wanted.
    pub fn is_front(&self) -> bool {
        self.front
    }

    /// Whether some part has to be measured by the clock.
    pub fn needs_clock(&self) -> bool {
        self.figures().any(Figure::is_time)
    }

    /// Whether only the end of the order counts, whatever the pipeline makes of it later.
    pub fn is_order_alone(&self, spec: &Spec) -> bool {
        self.figures().all(|figure| spec.is_of_order(figure))
    }

    /// How good figures are beside those of the default: 1 is as good, less is better. For a front
    /// it is the geometric mean, by which one of it is chosen.
    pub fn value(&self, figures: &Figures, default: &Figures) -> f64 {
        let share = |figure: Figure| match (figures.get(figure), default.get(figure)) {
            (Some(now), Some(before)) if before > 0.0 => now / before,
            (Some(now), Some(_)) => 1.0 + now,
            _ => f64::INFINITY,
        };
        if self.front {
            self.parts
                .iter()
                .map(|(figure, weight)| weight * share(*figure).ln())
                .sum::<f64>()
                .exp()
        } else {
            self.parts.iter().map(|(figure, weight)| weight * share(*figure)).sum()
        }
    }

    /// What a search can see of it before the pipeline runs, as the profile guesses.
    pub fn goal(&self, spec: &Spec) -> Goal {
        let mut parts: Vec<(Measure, f64)> = Vec::new();
        for &(figure, weight) in &self.parts {
            for &(measure, share) in spec.guess(figure) {
                match parts.iter_mut().find(|(other, _)| *other == measure) {
                    Some((_, sum)) => *sum += weight * share,
                    None => parts.push((measure, weight * share)),
                }
            }
        }
        Goal { parts }
    }

    /// Reads an objective as people write it.
    pub fn parse(text: &str, spec: &Spec) -> Result<Objective, OptimizeError> {
        let front = text.contains(',');
        if front && text.contains(['+', '*']) {
            return Err(OptimizeError::Objective(format!(
                "{text:?} mixes a weighted sum (with + and *) and a front (with commas); use one"
            )));
        }
        let mut parts: Vec<(Figure, f64)> = Vec::new();
        for part in text.split([',', '+']) {
            let (weight, name) = match part.split_once('*') {
                None => (1.0, part),
                Some((weight, name)) => {
                    let weight = weight.trim().parse::<f64>().ok();
                    let weight = weight.filter(|weight| weight.is_finite() && *weight > 0.0);
                    let weight = weight.ok_or_else(|| {
                        OptimizeError::Objective(format!(
                            "the weight in {part:?} is no positive number"
                        ))
                    })?;
                    (weight, name)
                }
            };
            let figure = figure(name.trim(), spec)?;
            if parts.iter().any(|(other, _)| *other == figure) {
                let name = spec.figure_name(figure);
                return Err(OptimizeError::Objective(format!("{name} is named twice")));
            }
            parts.push((figure, weight));
        }
        let total: f64 = parts.iter().map(|(_, weight)| weight).sum();
        for (_, weight) in &mut parts {
            *weight /= total;
        }
        let names = parts.iter().map(|(figure, _)| spec.figure_name(*figure)).collect();
        Ok(Objective { parts, names, front })
    }
}

fn figure(name: &str, spec: &Spec) -> Result<Figure, OptimizeError> {
    spec.figure(name).ok_or_else(|| {
        let names: Vec<&str> = spec.all_figures().map(|figure| spec.figure_name(figure)).collect();
        OptimizeError::Objective(format!(
            "{name:?} is no objective; there are {}",
            names.join(", ")
        ))
    })
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = self.parts.len() == 1 || self.front;
        for (index, ((_, weight), name)) in self.parts.iter().zip(&self.names).enumerate() {
            if index > 0 {
                f.write_str(if self.front { "," } else { "+" })?;
            }
            if !one {
                write!(f, "{weight}*")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla_gym_profile::Profile;
    use xla_gym_toy_profile::Toy;

    fn spec() -> Spec {
        Toy::default().spec().clone()
    }

    fn parse(text: &str) -> Result<Objective, OptimizeError> {
        Objective::parse(text, &spec())
    }

    fn default() -> Figures {
        Figures::counted(&[100.0, 50.0, 400.0, 80.0].map(Some))
    }

    #[test]
    fn objectives_are_read_and_written() {
        for text in ["lines", "run-time", "0.75*final+0.25*work", "final,run-time"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        let weights = parse("3*final+work").unwrap();
        assert_eq!(weights.to_string(), "0.75*final+0.25*work");
    }

    #[test]
    fn what_is_no_objective_is_refused_with_what_there_is() {
        for (text, says) in [
            ("speed", "run-time"),
            ("", "registers"),
            ("final+final", "twice"),
            ("0*final", "positive"),
            ("nan*final", "positive"),
            ("final,2*work", "use one"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn values_are_shares_of_the_default() {
        let [last, work] = ["final", "work"].map(|name| spec().figure(name).unwrap());
        let better = default().with(last, Some(25.0)).with(work, Some(800.0));
        let value = |text: &str| parse(text).unwrap().value(&better, &default());
        assert_eq!(value("final"), 0.5);
        assert_eq!(value("work"), 2.0);
        assert_eq!(value("final+work"), 1.25);
        assert!((value("final,work") - 1.0).abs() < 1e-12);
        assert_eq!(value("run-time"), f64::INFINITY, "not measured is never better");
    }
}
