//! Answers, gradients and tangents, against plain loops in double precision.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_nn::{Activation, Matrix, Mlp, Shape, Space, Tape};

/// Inputs, hidden layers and outputs of networks with and without tails of all kinds.
fn shapes() -> Vec<Shape> {
    let widths: [(usize, &[usize], usize); 6] = [
        (3, &[], 2),
        (1, &[1], 1),
        (7, &[13], 5),
        (150, &[64, 33], 60),
        (5, &[300, 17, 40], 1),
        (600, &[70], 116),
    ];
    let of = |activation| {
        widths.map(|(inputs, hidden, outputs)| Shape {
            inputs,
            hidden: hidden.to_vec(),
            outputs,
            activation,
        })
    };
    [of(Activation::Tanh), of(Activation::Relu)].concat()
}

fn random(count: usize, rng: &mut impl Rng) -> Vec<f32> {
    (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// A network whose biases are not 0, and inputs.
fn example(shape: Shape, rows: usize, rng: &mut impl Rng) -> (Mlp, Matrix) {
    let mut mlp = Mlp::new(shape.clone(), 1.4, 0.8, rng);
    for layer in shape.layers() {
        for bias in &mut mlp.parameters_mut()[layer.biases] {
            *bias = rng.random_range(-0.3..0.3);
        }
    }
    let inputs = Matrix::from_vec(rows, shape.inputs, random(rows * shape.inputs, rng));
    (mlp, inputs)
}

/// The network by its definition, in double precision; and for each hidden unit whether it is on.
fn exact(shape: &Shape, parameters: &[f64], input: &[f32]) -> Vec<f64> {
    let mut reads: Vec<f64> = input.iter().map(|x| f64::from(*x)).collect();
    for (i, layer) in shape.layers().enumerate() {
        let weights = parameters[layer.weights].chunks(layer.inputs);
        let sums = weights.zip(&parameters[layer.biases]).map(|(weights, bias)| {
            bias + weights.iter().zip(&reads).map(|(w, x)| w * x).sum::<f64>()
        });
        let last = i == shape.hidden.len();
        let activate = |x: f64| match shape.activation {
            _ if last => x,
            Activation::Tanh => x.tanh(),
            Activation::Relu => x.max(0.0),
        };
        reads = sums.map(activate).collect();
    }
    reads
}

fn moved(mlp: &Mlp, direction: &[f32], far: f64) -> Vec<f64> {
    let pairs = mlp.parameters().iter().zip(direction);
    pairs.map(|(p, d)| f64::from(*p) + far * f64::from(*d)).collect()
}

fn inner(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[track_caller]
fn close(got: f64, expected: f64, scale: f64) {
    assert!((got - expected).abs() <= 1e-5 * scale, "{got} instead of {expected}");
}

#[test]
fn answers_are_those_of_the_definition() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for shape in shapes() {
        for rows in [1, 5, 40] {
            let (mlp, inputs) = example(shape.clone(), rows, &mut rng);
            let parameters = moved(&mlp, mlp.parameters(), 0.0);
            let outputs = mlp.forward(&inputs);
            let mut space = Space::default();
            assert_eq!((outputs.rows(), outputs.columns()), (rows, shape.outputs));
            for i in 0..rows {
                let expected = exact(&shape, &parameters, inputs.row(i));
                let inferred = mlp.infer(inputs.row(i), &mut space);
                for (j, expected) in expected.iter().enumerate() {
                    close(f64::from(outputs.row(i)[j]), *expected, 1.0);
                    close(f64::from(inferred[j]), *expected, 1.0);
                }
            }
        }
    }
}

/// A loss that is not linear would test nothing more: the gradient is taken of one that is.
#[test]
fn gradients_are_those_of_small_moves() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for shape in shapes() {
        let rows = 19;
        let (mlp, inputs) = example(shape.clone(), rows, &mut rng);
        let weights = Matrix::from_vec(rows, shape.outputs, random(rows * shape.outputs, &mut rng));
        let (mut tape, mut gradient) = (Tape::default(), vec![f32::NAN; shape.parameters()]);
        mlp.forward_keeping(&inputs, &mut tape);
        assert_eq!(tape.outputs(), &mlp.forward(&inputs));
        mlp.backward(&mut tape, &weights, &mut gradient);

        let loss = |parameters: &[f64]| -> f64 {
            let row = |i: usize| -> f64 {
                let outputs = exact(&shape, parameters, inputs.row(i));
                outputs.iter().zip(weights.row(i)).map(|(y, w)| y * f64::from(*w)).sum()
            };
            (0..rows).map(row).sum()
        };
        // A step so small that no unit of a rectifier is switched.
        let step = 1e-7;
        let parameters = moved(&mlp, &gradient, 0.0);
        let mut each: Vec<usize> =
            shape.layers().flat_map(|l| [l.weights.start, l.biases.start]).collect();
        each.extend((0..40).map(|_| rng.random_range(0..gradient.len())));
        for i in each {
            let at = |far: f64| {
                let mut parameters = parameters.clone();
                parameters[i] += far;
                loss(&parameters)
            };
            close(f64::from(gradient[i]), (at(step) - at(-step)) / (2.0 * step), 10.0);
        }
        // And all parameters at once.
        let direction = random(gradient.len(), &mut rng);
        let slope = (loss(&moved(&mlp, &direction, step)) - loss(&moved(&mlp, &direction, -step)))
            / (2.0 * step);
        let length = inner(&gradient, &gradient).sqrt() * inner(&direction, &direction).sqrt();
        close(inner(&gradient, &direction), slope, length);

        let tangent = mlp.tangent(&tape, &direction);
        for i in 0..rows {
            let ahead = exact(&shape, &moved(&mlp, &direction, step), inputs.row(i));
            let behind = exact(&shape, &moved(&mlp, &direction, -step), inputs.row(i));
            for j in 0..shape.outputs {
                let expected = (ahead[j] - behind[j]) / (2.0 * step);
                close(f64::from(tangent.row(i)[j]), expected, 10.0 + expected.abs());
            }
        }
        close(inner(tangent.data(), weights.data()), inner(&gradient, &direction), length);
    }
}

#[test]
fn a_tape_can_be_used_for_other_sizes() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut tape = Tape::default();
    for shape in shapes() {
        for rows in [64, 3] {
            let (mlp, inputs) = example(shape.clone(), rows, &mut rng);
            let weights =
                Matrix::from_vec(rows, shape.outputs, random(rows * shape.outputs, &mut rng));
            let gradient = |tape: &mut Tape| {
                let mut gradient = vec![0.0; shape.parameters()];
                mlp.forward_keeping(&inputs, tape);
                mlp.backward(tape, &weights, &mut gradient);
                gradient
            };
            assert_eq!(gradient(&mut tape), gradient(&mut Tape::default()));
        }
    }
}

#[test]
fn no_rows_give_no_answers_and_no_gradient() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for shape in shapes() {
        let (mlp, inputs) = example(shape.clone(), 0, &mut rng);
        let (mut tape, mut gradient) = (Tape::default(), vec![1.0; shape.parameters()]);
        mlp.forward_keeping(&inputs, &mut tape);
        mlp.backward(&mut tape, &Matrix::zeros(0, shape.outputs), &mut gradient);
        assert!(gradient.iter().all(|x| *x == 0.0));
        assert_eq!(mlp.tangent(&tape, &gradient).rows(), 0);
    }
}

#[test]
fn first_weights_are_orthogonal() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let shape =
        Shape { inputs: 100, hidden: vec![200, 200, 30], outputs: 1, activation: Activation::Tanh };
    let mlp = Mlp::new(shape.clone(), 1.5, 0.01, &mut rng);
    for (i, layer) in shape.layers().enumerate() {
        let gain = if i == 3 { 0.01 } else { 1.5_f64 };
        let weights = &mlp.parameters()[layer.weights.clone()];
        let short = layer.inputs.min(layer.outputs);
        let entry = |i: usize, k: usize| match layer.outputs <= layer.inputs {
            true => f64::from(weights[i * layer.inputs + k]),
            false => f64::from(weights[k * layer.inputs + i]),
        };
        for i in 0..short {
            for j in 0..=i {
                let product: f64 =
                    (0..layer.inputs.max(layer.outputs)).map(|k| entry(i, k) * entry(j, k)).sum();
                close(product, if i == j { gain * gain } else { 0.0 }, gain * gain);
            }
        }
        assert!(mlp.parameters()[layer.biases].iter().all(|bias| *bias == 0.0));
    }
    // Numbers of a random orthogonal matrix are as often positive as negative.
    let positive = mlp.parameters()[..20_000].iter().filter(|x| **x > 0.0).count();
    assert!((9_500..10_500).contains(&positive), "{positive} of 20000");
    let again = Mlp::new(shape.clone(), 1.5, 0.01, &mut ChaCha8Rng::seed_from_u64(5));
    assert_eq!(mlp, again);
    assert_ne!(mlp, Mlp::new(shape, 1.5, 0.01, &mut rng));
}

#[test]
fn parameters_lie_behind_one_another() {
    for shape in shapes() {
        let mut end = 0;
        for layer in shape.layers() {
            assert_eq!((layer.weights.start, layer.biases.start), (end, layer.weights.end));
            assert_eq!(layer.weights.len(), layer.inputs * layer.outputs);
            assert_eq!(layer.biases.len(), layer.outputs);
            end = layer.biases.end;
        }
        assert_eq!(end, shape.parameters());
        assert!(Mlp::from_parameters(shape.clone(), vec![0.0; end]).is_some());
        assert!(Mlp::from_parameters(shape.clone(), vec![0.0; end + 1]).is_none());
        let text = serde_json::to_string(&shape).unwrap();
        assert_eq!(serde_json::from_str::<Shape>(&text).unwrap(), shape);
    }
}

#[track_caller]
fn refused(call: impl FnOnce()) {
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
}

#[test]
fn wrong_lengths_are_refused() {
    let shape = Shape { inputs: 3, hidden: vec![4], outputs: 2, activation: Activation::Relu };
    let mlp = Mlp::new(shape, 1.0, 1.0, &mut ChaCha8Rng::seed_from_u64(6));
    let mut tape = Tape::default();
    mlp.forward_keeping(&Matrix::zeros(5, 3), &mut tape);
    let size = mlp.parameters().len();
    let mut gradient = vec![0.0; size];
    refused(|| drop(Matrix::from_vec(2, 2, vec![0.0; 3])));
    refused(|| drop(Matrix::zeros(2, 0).row(2).to_vec()));
    refused(|| drop(mlp.infer(&[0.0; 4], &mut Space::default()).to_vec()));
    refused(|| drop(mlp.forward(&Matrix::zeros(5, 4))));
    refused(|| drop(mlp.forward(&Matrix::zeros(50, 4))));
    refused(|| drop(mlp.tangent(&Tape::default(), &gradient)));
    refused(|| drop(mlp.tangent(&tape, &gradient[1..])));
    refused(|| mlp.backward(&mut tape.clone(), &Matrix::zeros(5, 2), &mut vec![0.0; size - 1]));
    refused(|| mlp.backward(&mut tape.clone(), &Matrix::zeros(4, 2), &mut gradient.clone()));
    // And the right ones are not.
    mlp.backward(&mut tape, &Matrix::zeros(5, 2), &mut gradient);
    assert_eq!(mlp.tangent(&tape, &gradient), Matrix::zeros(5, 2));
}
