//! The toy's own pipeline: what it does with a program if nobody says otherwise.

use std::time::Instant;

use xla_gym_protocol::{
    Cost, Failure, FailureKind, Observation, PipelineOptions, PipelinePass, PipelineReport,
    PipelineSpec, StageReport,
};
use xla_gym_worker::failed;

use crate::program::Program;

type Run = fn(&mut Program) -> bool;

/// Not the best order, so that there is something to learn.
const PASSES: [(&str, Run); 6] = [
    ("dead", Program::dead),
    ("simplify", Program::simplify),
    ("fold", Program::fold),
    ("copy-elim", Program::copy_elim),
    ("dead", Program::dead),
    (NEEDED, Program::lower),
];

/// The back end has no negation.
const NEEDED: &str = "lower";

pub fn spec() -> PipelineSpec {
    PipelineSpec {
        name: "standard".to_owned(),
        description: "simplify once, then lower".to_owned(),
        stages: vec!["final".to_owned()],
    }
}

/// The program at the end, and a report whose only stage says nothing of it yet.
pub fn run(
    program: &Program,
    options: &PipelineOptions,
) -> Result<(Program, PipelineReport), Failure> {
    if options.finish.disabled.iter().any(|name| name == NEEDED) {
        let message = "the back end has no negation: `lower` cannot be left out";
        return Err(failed(FailureKind::Refused, message));
    }
    let begin = Instant::now();
    let mut program = program.clone();
    let mut passes = Vec::new();
    for (name, run) in PASSES {
        if !options.finish.disabled.iter().any(|disabled| disabled == name) {
            passes.push(PipelinePass {
                pipeline: "standard".to_owned(),
                pass: name.to_owned(),
                changed: run(&mut program),
            });
        }
    }
    let stage = StageReport {
        observation: Observation::default(),
        passes: passes.len() as u32,
        program: None,
    };
    let report = PipelineReport {
        passes,
        nanos: begin.elapsed().as_nanos() as u64,
        stages: vec![Some(stage)],
        finals: Some(Cost::new(&[program.registers() as f64])),
    };
    Ok((program, report))
}
