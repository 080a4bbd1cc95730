//! The optimizer, and that nothing depends on the number of threads.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_nn::{Activation, Adam, Matrix, Mlp, Shape, Space, Tape, clip_norm, clip_norms, norm};

fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
}

#[test]
fn adam_is_that_of_the_paper() {
    let count = 40_000;
    let mut parameters = random(count, 1);
    let mut exact: Vec<f64> = parameters.iter().map(|x| f64::from(*x)).collect();
    let (mut means, mut squares) = (vec![0.0; count], vec![0.0; count]);
    let mut adam = Adam::new(count, 0.1, 1e-5);
    for step in 1..=20 {
        let rate = if step > 10 { 0.01 } else { 0.1 };
        adam.set_learning_rate(rate);
        let gradient = random(count, 100 + step as u64);
        adam.step(&mut parameters, &gradient);
        for i in 0..count {
            let g = f64::from(gradient[i]);
            means[i] = 0.9 * means[i] + 0.1 * g;
            squares[i] = 0.999 * squares[i] + 0.001 * g * g;
            let mean: f64 = means[i] / (1.0 - 0.9_f64.powi(step));
            let square: f64 = squares[i] / (1.0 - 0.999_f64.powi(step));
            exact[i] -= rate * mean / (square.sqrt() + 1e-5);
        }
    }
    assert_eq!((adam.steps(), adam.learning_rate()), (20, 0.01));
    for (got, expected) in parameters.iter().zip(exact) {
        assert!((f64::from(*got) - expected).abs() < 1e-5, "{got} instead of {expected}");
    }
}

/// What `torch.optim.Adam([1.0], lr=0.1, eps=1e-8)` gives for these gradients.
#[test]
fn adam_takes_pytorchs_steps() {
    let mut adam = Adam::new(1, 0.1, 1e-8);
    let mut parameter = [1.0];
    for (gradient, expected) in [
        (0.5, 0.90000004),
        (-0.25, 0.87336636),
        (2.0, 0.806_301_6),
        (0.0, 0.751_366_2),
        (-1.0, 0.733_226_6),
    ] {
        adam.step(&mut parameter, &[gradient]);
        assert!((parameter[0] - expected).abs() < 2e-7, "{} not {expected}", parameter[0]);
    }
}

#[test]
fn adam_goes_on_where_it_was_saved() {
    let mut adam = Adam::new(100, 0.1, 1e-5);
    let mut parameters = random(100, 1);
    (0..5).for_each(|i| adam.step(&mut parameters, &random(100, i)));
    let mut restored = Adam::new(100, 0.1, 1e-5);
    let (means, squares) = adam.moments();
    restored.restore(adam.steps(), means, squares);
    assert_eq!(restored, adam);
    let text = serde_json::to_string(&adam).unwrap();
    assert_eq!(serde_json::from_str::<Adam>(&text).unwrap(), adam);
    let mut again = parameters.clone();
    adam.step(&mut parameters, &random(100, 9));
    restored.step(&mut again, &random(100, 9));
    assert_eq!(parameters, again);
}

#[test]
fn clipping_keeps_the_direction() {
    let mut short = vec![3.0, -4.0];
    assert_eq!(clip_norm(&mut short, 6.0), 5.0);
    assert_eq!(short, [3.0, -4.0]);
    assert_eq!(clip_norm(&mut short, 2.5), 5.0);
    assert_eq!(short, [1.5, -2.0]);
    assert_eq!(clip_norm(&mut [], 1.0), 0.0);

    let mut long = random(100_001, 3);
    let before = long.clone();
    let exact = long.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let length = clip_norm(&mut long, 1.0);
    assert!((f64::from(length) - exact).abs() < 1e-4, "{length} instead of {exact}");
    assert!((norm(&long) - 1.0).abs() < 1e-5);
    assert!(long.iter().zip(&before).all(|(x, y)| *x == y * (1.0 / length)));

    let (mut a, mut b) = ([3.0], [4.0]);
    assert_eq!(clip_norms(&mut [&mut a, &mut b], 1.0), 5.0);
    assert_eq!((a, b), ([3.0 * 0.2], [4.0 * 0.2]));
}

/// Everything that a few updates leave behind.
fn train(threads: usize) -> (Mlp, Vec<f32>, Vec<f32>, Vec<f32>) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let shape =
            Shape { inputs: 90, hidden: vec![520, 300], outputs: 37, activation: Activation::Tanh };
        let mut mlp = Mlp::new(shape, 1.4, 0.1, &mut rng);
        let mut adam = Adam::new(mlp.parameters().len(), 1e-2, 1e-5);
        let mut tape = Tape::default();
        let mut gradient = vec![0.0; mlp.parameters().len()];
        let mut norms = Vec::new();
        for i in 0..4 {
            let inputs = Matrix::from_vec(70, 90, random(70 * 90, i));
            mlp.forward_keeping(&inputs, &mut tape);
            let errors = tape.outputs().clone();
            mlp.backward(&mut tape, &errors, &mut gradient);
            norms.push(clip_norm(&mut gradient, 0.5));
            adam.step(mlp.parameters_mut(), &gradient);
        }
        let tangent = mlp.tangent(&tape, &gradient);
        let answer = mlp.infer(&random(90, 9), &mut Space::default()).to_vec();
        (mlp, norms, tangent.data().to_vec(), answer)
    })
}

#[test]
fn results_do_not_depend_on_threads() {
    let one = train(1);
    assert!(one.1.iter().all(|norm| norm.is_finite() && *norm > 0.0));
    for threads in [1, 2, 3, 5] {
        assert!(train(threads) == one, "{threads} threads");
    }
}
