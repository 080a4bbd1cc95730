//! Which passes of XLA's pipeline can be left out, by trial.

use serde::Deserialize;

use crate::roles::OPTIONAL;

/// What was tried on training graphs: `xla-gym-lab optional`.
const TRIALS: &str = include_str!("../../../shipped/xla/optional-passes.json");

#[derive(Deserialize)]
struct Trials {
    passes: Vec<Trial>,
}

#[derive(Deserialize)]
struct Trial {
    pass: String,
    /// Never rejected and never different, on three graphs at least.
    optional: bool,
}

/// The passes that can be left out one by one: those that a result usually replaces, and those that
/// were left out on training graphs without harm, before layout assignment and after it. A result is
/// run beside the original all the same.
pub fn can_be_left_out() -> Vec<String> {
    let mut names: Vec<String> = OPTIONAL.iter().map(|&name| name.to_owned()).collect();
    if let Ok(trials) = serde_json::from_str::<Trials>(TRIALS) {
        names.extend(trials.passes.into_iter().filter(|t| t.optional).map(|t| t.pass));
    }
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Evidence {
        passes: Vec<Tried>,
    }

    #[derive(Deserialize)]
    struct Tried {
        pass: String,
        tried: u64,
        equal: u64,
        rejected: Vec<serde_json::Value>,
        different: Vec<serde_json::Value>,
    }

    #[test]
    fn what_results_replace_was_left_out_by_trial() {
        let evidence: Evidence = serde_json::from_str(TRIALS).unwrap();
        for name in OPTIONAL {
            // Those that never change anything on the graphs of the trial are not in it.
            let Some(tried) = evidence.passes.iter().find(|tried| tried.pass == *name) else {
                continue;
            };
            assert!(tried.rejected.is_empty(), "{name} is needed");
            // Without algsimp the spectrogram of one graph differs, beyond what rounding explains
            // at its magnitude; results are compared one by one for such cases.
            assert!(tried.different.len() <= usize::from(*name == "algsimp"), "{name}");
            assert!(tried.equal > 0 || tried.tried < 3, "{name} was never found equal");
        }
    }

    #[test]
    fn what_the_back_end_needs_is_never_left_out() {
        let names = can_be_left_out();
        for needed in
            ["dot_decomposer", "gather_simplifier", "flatten-call-graph", "copy-insertion"]
        {
            assert!(!names.iter().any(|name| name == needed), "{needed}");
        }
        assert!(names.len() > OPTIONAL.len());
    }
}
