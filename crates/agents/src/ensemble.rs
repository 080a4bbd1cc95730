//! Several policies as one: what one of them misjudges, the others outvote.

use xla_gym_nn::{Mlp, Shape};

use crate::policy::{Card, TrainedPolicy};

/// Makes one policy out of several that see and do the same. Its logits are the means of theirs, so
/// that the probabilities are the geometric means. It is a network as any other: the members lie
/// beside one another in it, and between them are zeros.
pub fn together(
    name: &str,
    command: &str,
    members: &[TrainedPolicy],
) -> Result<TrainedPolicy, String> {
    let [first, rest @ ..] = members else { return Err("there is no policy".to_owned()) };
    for other in rest {
        if other.interface != first.interface {
            return Err("they do not see and do the same".to_owned());
        }
        let (shape, own) = (other.network.shape(), first.network.shape());
        if shape.hidden.len() != own.hidden.len() || shape.activation != own.activation {
            return Err("their networks are of different kinds".to_owned());
        }
    }
    let networks: Vec<&Mlp> = members.iter().map(|member| &member.network).collect();
    let sum = |figure: fn(&Card) -> f64| members.iter().map(|member| figure(&member.card)).sum();
    let steps = members.iter().map(|member| member.card.steps).sum();
    Ok(TrainedPolicy {
        network: side_by_side(&networks).ok_or("their networks do not fit")?,
        interface: first.interface.clone(),
        card: Card {
            name: name.to_owned(),
            algorithm: format!("{} of {}", members.len(), first.card.algorithm),
            steps,
            seconds: sum(|card| card.seconds),
            validation: None,
            command: command.to_owned(),
            members: members.iter().map(|member| member.card.clone()).collect(),
            ..first.card.clone()
        },
    })
}

/// One network whose outputs are the means of those of several.
fn side_by_side(networks: &[&Mlp]) -> Option<Mlp> {
    let first = networks.first()?.shape();
    let width = |layer: usize| networks.iter().map(|network| network.shape().hidden[layer]).sum();
    let shape = Shape { hidden: (0..first.hidden.len()).map(width).collect(), ..first.clone() };
    let mut parameters = vec![0.0; shape.parameters()];
    let (last, share) = (first.hidden.len(), 1.0 / networks.len() as f32);
    for (number, layer) in shape.layers().enumerate() {
        // Where the outputs and inputs of a member begin among those of all.
        let (mut row, mut column) = (0, 0);
        for network in networks {
            let own = network.shape().layers().nth(number)?;
            let numbers = network.parameters();
            let scale = if number == last { share } else { 1.0 };
            for output in 0..own.outputs {
                let weights = &numbers[own.weights.clone()][output * own.inputs..][..own.inputs];
                let at = layer.weights.start + (row + output) * layer.inputs + column;
                for (slot, weight) in parameters[at..].iter_mut().zip(weights) {
                    *slot += scale * weight;
                }
                let bias = numbers[own.biases.clone()][output];
                parameters[layer.biases.start + row + output] += scale * bias;
            }
            // All see the same inputs and share the outputs; only what lies between is their own.
            row += if number == last { 0 } else { own.outputs };
            column += if number == 0 { 0 } else { own.inputs };
        }
    }
    Mlp::from_parameters(shape, parameters)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use xla_gym_nn::{Activation, Matrix};

    use super::*;

    #[test]
    fn the_outputs_are_the_means() {
        let mut luck = ChaCha8Rng::seed_from_u64(1);
        for hidden in [vec![], vec![4], vec![3, 5], vec![2, 6, 3]] {
            let members: Vec<Mlp> = (0..3)
                .map(|member| {
                    let hidden = hidden.iter().map(|width| width + member).collect();
                    let activation = Activation::Tanh;
                    let shape = Shape { inputs: 7, hidden, outputs: 4, activation };
                    let mut network = Mlp::new(shape, 1.0, 1.0, &mut luck);
                    let parameters = network.parameters_mut().iter_mut().enumerate();
                    parameters.for_each(|(index, p)| *p += (index % 5) as f32 * 0.1);
                    network
                })
                .collect();
            let all = side_by_side(&members.iter().collect::<Vec<_>>()).unwrap();
            let inputs = Matrix::from_vec(2, 7, (0..14).map(|i| (i % 6) as f32 - 2.5).collect());
            let outputs: Vec<Matrix> = members.iter().map(|m| m.forward(&inputs)).collect();
            let merged = all.forward(&inputs);
            for row in 0..2 {
                for column in 0..4 {
                    let mean = outputs.iter().map(|o| o.row(row)[column]).sum::<f32>() / 3.0;
                    assert!((merged.row(row)[column] - mean).abs() < 1e-5, "{hidden:?}");
                }
            }
        }
    }
}
