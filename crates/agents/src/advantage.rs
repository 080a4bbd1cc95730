//! How much better an action was than expected.

/// What an episode's actions were worth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worth {
    /// Generalised advantages.
    pub advantages: Vec<f32>,
    /// What the value function should have said: advantage plus value.
    pub returns: Vec<f32>,
}

/// Generalised advantage estimation over one episode. `values` are those of the states before each
/// action, and `after` is that of the state after the last one: 0 if the episode ended there by
/// itself, the value function's word if only the limit of steps was reached.
pub fn generalised(rewards: &[f32], values: &[f32], after: f32, gamma: f64, lambda: f64) -> Worth {
    let mut advantages = vec![0.0; rewards.len()];
    let mut following = 0.0;
    let mut next = f64::from(after);
    for step in (0..rewards.len()).rev() {
        let value = f64::from(values[step]);
        let surprise = f64::from(rewards[step]) + gamma * next - value;
        following = surprise + gamma * lambda * following;
        advantages[step] = following as f32;
        next = value;
    }
    let returns = advantages.iter().zip(values).map(|(a, v)| a + v).collect();
    Worth { advantages, returns }
}

/// Shifts and scales to mean 0 and deviation 1.
pub fn normalise(values: &mut [f32]) {
    if values.len() < 2 {
        return;
    }
    let count = values.len() as f64;
    let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
    let square = values.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>();
    let deviation = (square / (count - 1.0)).sqrt();
    for value in values {
        *value = ((f64::from(*value) - mean) / (deviation + 1e-8)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: the weighted mean of the advantages over all horizons.
    fn naive(rewards: &[f32], values: &[f32], after: f32, gamma: f64, lambda: f64) -> Vec<f64> {
        let value = |t: usize| f64::from(values.get(t).copied().unwrap_or(after));
        let surprise = |t: usize| f64::from(rewards[t]) + gamma * value(t + 1) - value(t);
        (0..rewards.len())
            .map(|t| {
                (t..rewards.len())
                    .map(|l| (gamma * lambda).powi((l - t) as i32) * surprise(l))
                    .sum()
            })
            .collect()
    }

    #[test]
    fn it_is_what_the_definition_says() {
        let rewards: Vec<f32> = (0..17).map(|i| ((i * 7) % 5) as f32 - 1.5).collect();
        let values: Vec<f32> = (0..17).map(|i| ((i * 3) % 4) as f32 * 0.7).collect();
        for (gamma, lambda, after) in [(0.99, 0.95, 2.0), (1.0, 1.0, 0.0), (0.9, 0.0, -3.0)] {
            let worth = generalised(&rewards, &values, after, gamma, lambda);
            let expected = naive(&rewards, &values, after, gamma, lambda);
            for (advantage, expected) in worth.advantages.iter().zip(&expected) {
                assert!((f64::from(*advantage) - expected).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn with_lambda_one_the_returns_are_the_discounted_sums() {
        let (rewards, values) = ([1.0, -2.0, 3.0, 0.5], [0.3, 0.1, -0.4, 0.9]);
        let worth = generalised(&rewards, &values, 4.0, 0.9, 1.0);
        for (t, value) in worth.returns.iter().enumerate() {
            let mut sum = 0.9_f64.powi((rewards.len() - t) as i32) * 4.0;
            for (l, reward) in rewards.iter().enumerate().skip(t) {
                sum += 0.9_f64.powi((l - t) as i32) * f64::from(*reward);
            }
            assert!((f64::from(*value) - sum).abs() < 1e-5);
        }
    }

    #[test]
    fn normalised_values_have_mean_zero_and_deviation_one() {
        let mut values = [3.0, 5.0, 10.0, -2.0];
        normalise(&mut values);
        let mean: f32 = values.iter().sum::<f32>() / 4.0;
        let square: f32 = values.iter().map(|v| v * v).sum::<f32>() / 3.0;
        assert!(mean.abs() < 1e-6 && (square - 1.0).abs() < 1e-5);
        let mut one = [7.0];
        normalise(&mut one);
        assert_eq!(one, [7.0]);
    }
}
