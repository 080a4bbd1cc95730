//! Choosing among the actions that a mask allows.

use rand::Rng;

/// Logarithms of the probabilities that logits stand for; minus infinity where the mask forbids.
pub fn log_probabilities(logits: &[f32], mask: &[bool], out: &mut [f32]) {
    let allowed = || logits.iter().zip(mask).filter(|(_, allowed)| **allowed).map(|(l, _)| *l);
    let most = allowed().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = allowed().map(|logit| f64::from(logit - most).exp()).sum();
    let log_sum = sum.ln() as f32;
    for ((out, logit), allowed) in out.iter_mut().zip(logits).zip(mask) {
        *out = if *allowed { logit - most - log_sum } else { f32::NEG_INFINITY };
    }
}

/// How undecided a choice is, in nats.
pub fn entropy(log_probabilities: &[f32]) -> f32 {
    let part = |log: &f32| if log.is_finite() { -log.exp() * log } else { 0.0 };
    log_probabilities.iter().map(part).sum()
}

/// An action, each as often as its probability says.
pub fn sample(log_probabilities: &[f32], rng: &mut impl Rng) -> usize {
    let mut left: f32 = rng.random_range(0.0..1.0);
    let mut last = 0;
    for (action, log) in log_probabilities.iter().enumerate() {
        if log.is_finite() {
            last = action;
            left -= log.exp();
            if left < 0.0 {
                break;
            }
        }
    }
    last
}

/// The allowed action with the largest value; the first among equals.
pub fn best(values: &[f32], mask: &[bool]) -> usize {
    let mut best: Option<usize> = None;
    for (action, value) in values.iter().enumerate().filter(|(action, _)| mask[*action]) {
        if best.is_none_or(|best| *value > values[best]) {
            best = Some(action);
        }
    }
    best.unwrap_or_default()
}

/// Any allowed action, each as often as any other.
pub fn any(mask: &[bool], rng: &mut impl Rng) -> usize {
    let allowed: Vec<usize> = (0..mask.len()).filter(|action| mask[*action]).collect();
    if allowed.is_empty() { 0 } else { allowed[rng.random_range(0..allowed.len())] }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn forbidden_actions_have_no_part() {
        let mut logs = [0.0; 4];
        log_probabilities(&[1.0, 100.0, 2.0, 1.0], &[true, false, true, true], &mut logs);
        let naive = |x: f32| (x.exp() / (2.0 * 1.0_f32.exp() + 2.0_f32.exp())).ln();
        assert!((logs[0] - naive(1.0)).abs() < 1e-6);
        assert!((logs[2] - naive(2.0)).abs() < 1e-6);
        assert_eq!(logs[1], f32::NEG_INFINITY);
        let naive: f32 = [0, 2, 3].iter().map(|i| -logs[*i].exp() * logs[*i]).sum();
        assert!((entropy(&logs) - naive).abs() < 1e-6);
        assert_eq!(best(&[1.0, 100.0, 2.0, 2.0], &[true, false, true, true]), 2);
    }

    #[test]
    fn each_comes_as_often_as_it_should() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut logs = [0.0; 3];
        log_probabilities(&[0.7_f32.ln(), 0.0, 0.3_f32.ln()], &[true, false, true], &mut logs);
        let mut seen = [0; 3];
        for _ in 0..10_000 {
            seen[sample(&logs, &mut rng)] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!((6_800..7_200).contains(&seen[0]), "{seen:?}");
    }
}
