//! How long one update of an actor and a critic takes, and one answer.
//!
//!     cargo run --release -p xla-gym-nn --example update [-- --json] [--updates 20] [--threads 2]
//!
//! An update is what PPO does with one minibatch: answers of both networks to 256 observations, the
//! gradient of the clipped objective and of the squared error, clipping to one norm, and Adam.
//! `tools/bench_learner.py` times the same in PyTorch, by turns with this.

use std::time::Instant;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use xla_gym_nn::{Activation, Adam, Matrix, Mlp, Shape, Space, Tape, clip_norms};

const BATCH: usize = 256;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: usize| {
        let at = arguments.iter().position(|argument| argument == name);
        at.map_or(default, |at| arguments[at + 1].parse().expect("a number"))
    };
    let updates = number("--updates", 20);
    let threads = number("--threads", 2);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("threads");

    let mut results = Vec::new();
    for (name, inputs, hidden, outputs) in
        [("wide", 150, vec![2048, 2048], 60), ("narrow", 600, vec![256, 256], 116)]
    {
        let mut learner = Learner::new(inputs, hidden, outputs);
        let update = (0..updates + 2).map(|_| learner.update()).skip(2).collect();
        results.push((name, "new", vec![learner.setup]));
        results.push((name, "update", update));
        for (part, times) in ["forward", "backward", "clip", "adam"].iter().zip(&mut learner.parts)
        {
            results.push((name, part, times.split_off(2)));
        }
        results.push((name, "infer 1", (0..10 * updates).map(|_| learner.infer()).collect()));
        results.push((name, "forward 8", (0..4 * updates).map(|_| learner.forward(8)).collect()));
    }
    if arguments.iter().any(|argument| argument == "--json") {
        let entry = |(network, what, times): &(&str, &str, Vec<f64>)| json!({ "network": network, "what": what, "ms": times });
        println!("{}", json!(results.iter().map(entry).collect::<Vec<_>>()));
        return;
    }
    for (network, what, mut times) in results {
        times.sort_by(f64::total_cmp);
        let (median, best) = (times[times.len() / 2], times[0]);
        println!("{network:7} {what:10} {median:9.3} ms   (best {best:.3})");
    }
}

/// An actor and a critic, and a minibatch.
struct Learner {
    networks: [Mlp; 2],
    optimizers: [Adam; 2],
    tapes: [Tape; 2],
    gradients: [Vec<f32>; 2],
    errors: [Matrix; 2],
    inputs: Matrix,
    actions: Vec<usize>,
    advantages: Vec<f32>,
    old: Option<Vec<f32>>,
    space: Space,
    /// How long it took to make both networks, in ms.
    setup: f64,
    /// How long each part of each update took, in ms.
    parts: [Vec<f64>; 4],
}

impl Learner {
    fn new(inputs: usize, hidden: Vec<usize>, outputs: usize) -> Learner {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let shape = |outputs| Shape {
            inputs,
            hidden: hidden.clone(),
            outputs,
            activation: Activation::Tanh,
        };
        let begin = Instant::now();
        let root = 2.0_f32.sqrt();
        let networks = [
            Mlp::new(shape(outputs), root, 0.01, &mut rng),
            Mlp::new(shape(1), root, 1.0, &mut rng),
        ];
        let setup = begin.elapsed().as_secs_f64() * 1e3;
        let sizes = networks.each_ref().map(|mlp| mlp.parameters().len());
        let mut numbers = |count| (0..count).map(|_| rng.random_range(-1.0..1.0)).collect();
        Learner {
            inputs: Matrix::from_vec(BATCH, inputs, numbers(BATCH * inputs)),
            advantages: numbers(BATCH),
            actions: (0..BATCH).map(|i| i * 7 % outputs).collect(),
            optimizers: sizes.map(|size| Adam::new(size, 3e-4, 1e-5)),
            gradients: sizes.map(|size| vec![0.0; size]),
            errors: [Matrix::zeros(BATCH, outputs), Matrix::zeros(BATCH, 1)],
            tapes: [Tape::default(), Tape::default()],
            networks,
            old: None,
            space: Space::default(),
            setup,
            parts: Default::default(),
        }
    }

    /// One update; how long it took, in ms.
    fn update(&mut self) -> f64 {
        let begin = Instant::now();
        for (mlp, tape) in self.networks.iter().zip(&mut self.tapes) {
            mlp.forward_keeping(&self.inputs, tape);
        }
        let forward = Instant::now();
        self.loss();
        for i in 0..2 {
            self.networks[i].backward(&mut self.tapes[i], &self.errors[i], &mut self.gradients[i]);
        }
        let backward = Instant::now();
        let [actor, critic] = &mut self.gradients;
        clip_norms(&mut [actor, critic], 0.5);
        let clip = Instant::now();
        for i in 0..2 {
            self.optimizers[i].step(self.networks[i].parameters_mut(), &self.gradients[i]);
        }
        let end = Instant::now();
        let times = [forward - begin, backward - forward, clip - backward, end - clip];
        for (part, time) in self.parts.iter_mut().zip(times) {
            part.push(time.as_secs_f64() * 1e3);
        }
        (end - begin).as_secs_f64() * 1e3
    }

    /// The gradient of PPO's loss with respect to the outputs.
    fn loss(&mut self) {
        let [policy, value] = &mut self.errors;
        let mut logs = Vec::new();
        for i in 0..BATCH {
            let logits = self.tapes[0].outputs().row(i);
            let most = logits.iter().copied().fold(f32::MIN, f32::max);
            let sum: f32 = logits.iter().map(|x| (x - most).exp()).sum();
            let log = logits[self.actions[i]] - most - sum.ln();
            logs.push(log);
            let ratio = self.old.as_ref().map_or(1.0, |old| (log - old[i]).exp());
            let advantage = self.advantages[i];
            let clipped = ratio.clamp(0.8, 1.2) * advantage < ratio * advantage;
            let scale = if clipped { 0.0 } else { -ratio * advantage / BATCH as f32 };
            for (j, to) in policy.row_mut(i).iter_mut().enumerate() {
                let chosen = f32::from(j == self.actions[i]);
                *to = scale * (chosen - (logits[j] - most).exp() / sum);
            }
            let error = self.tapes[1].outputs().row(i)[0] - advantage;
            value.row_mut(i)[0] = error / BATCH as f32;
        }
        self.old.get_or_insert(logs);
    }

    fn infer(&mut self) -> f64 {
        let begin = Instant::now();
        self.networks[0].infer(self.inputs.row(0), &mut self.space);
        begin.elapsed().as_secs_f64() * 1e3
    }

    fn forward(&mut self, rows: usize) -> f64 {
        let columns = self.inputs.columns();
        let some = self.inputs.data()[..rows * columns].to_vec();
        let inputs = Matrix::from_vec(rows, columns, some);
        let begin = Instant::now();
        self.networks[0].forward(&inputs);
        begin.elapsed().as_secs_f64() * 1e3
    }
}
