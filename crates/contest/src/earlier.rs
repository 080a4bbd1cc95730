//! Outcomes as they were written before stages had names.

use serde::Deserialize;
use xla_gym_report::results::{Kind, Outcome, Outputs, Stage};

use crate::header::END;

/// The stages of that time; such files are of the one compiler that there was.
const ORDER: &str = "order";
const LEGAL: &str = "legal";
const KERNELS: &str = "kernels";

/// Operations: as the program came, after XLA's own order, and after the order in question.
#[derive(Deserialize)]
struct Counts {
    initial: f64,
    default: f64,
    result: f64,
}

/// What would have counted, had outputs been found equal.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Claimed {
    order: Option<f64>,
    end: Option<f64>,
    legal: Option<f64>,
    kernels: Option<f64>,
}

/// A line of such a file.
#[derive(Deserialize)]
pub struct EarlierOutcome {
    graph: String,
    splits: Vec<String>,
    contestant: String,
    kind: Kind,
    seed: u64,
    weights: Option<String>,
    budget: u64,
    charged: u64,
    order: Counts,
    end: Option<Counts>,
    legal: Option<Counts>,
    kernels: Option<f64>,
    kernels_default: Option<f64>,
    seconds: f64,
    #[serde(default)]
    passes: Vec<String>,
    legal_passes: Option<Vec<String>>,
    refused: Option<String>,
    #[serde(default)]
    outputs: Outputs,
    end_outputs: Option<Outputs>,
    legal_outputs: Option<Outputs>,
    #[serde(default)]
    claimed: Claimed,
    why: Option<String>,
    guilty: Option<String>,
}

impl From<EarlierOutcome> for Outcome {
    fn from(earlier: EarlierOutcome) -> Outcome {
        let Claimed { order, end, legal, kernels } = earlier.claimed;
        let stage = |name: &str, counts: Counts, claimed, outputs, passes| {
            let Counts { initial, default, result } = counts;
            Stage { claimed, outputs, passes, ..Stage::new(name, initial, default, result) }
        };
        let (outputs, passes) = (Some(earlier.outputs), Some(earlier.passes));
        let mut stages = vec![stage(ORDER, earlier.order, order, outputs, passes)];
        stages.extend(earlier.end.map(|counts| stage(END, counts, end, earlier.end_outputs, None)));
        stages.extend(earlier.legal.map(|counts| {
            stage(LEGAL, counts, legal, earlier.legal_outputs, earlier.legal_passes)
        }));
        if let (Some(default), Some(result)) = (earlier.kernels_default, earlier.kernels) {
            stages.push(Stage { claimed: kernels, ..Stage::left(KERNELS, default, result) });
        }
        Outcome {
            graph: earlier.graph,
            splits: earlier.splits,
            contestant: earlier.contestant,
            kind: earlier.kind,
            seed: earlier.seed,
            weights: earlier.weights,
            budget: earlier.budget,
            charged: earlier.charged,
            stages,
            seconds: earlier.seconds,
            refused: earlier.refused,
            why: earlier.why,
            guilty: earlier.guilty,
        }
    }
}
