//! LLVM's own pipelines, by the names that clang has for them.

use std::time::Instant;

use xla_gym_protocol::{
    Cost, Failure, FailureKind, Observation, PipelineOptions, PipelinePass, PipelineReport,
    PipelineSpec, StageReport,
};
use xla_gym_worker::failed;

use crate::program::Program;

/// Name, pass that runs all of it, and description. The first is what others are compared with unless
/// a request names another.
const PIPELINES: [(&str, Option<&str>, &str); 7] = [
    ("Oz", Some("default<Oz>"), "as small as possible"),
    ("O0", Some("default<O0>"), "only what must be"),
    ("O1", Some("default<O1>"), "what is cheap"),
    ("O2", Some("default<O2>"), "what is mostly worth it"),
    ("O3", Some("default<O3>"), "as fast as possible"),
    ("Os", Some("default<Os>"), "small, and not slow"),
    ("as-is", None, "no passes, only code generation"),
];

pub fn specs() -> Vec<PipelineSpec> {
    let specs = PIPELINES.iter().map(|(name, _, description)| PipelineSpec {
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        // All of LLVM's work on its IR is independent of the machine, and is one stage.
        stages: vec!["ir".to_owned()],
    });
    specs.collect()
}

/// What comes of the program, and a report without a look at it.
pub fn run(
    program: &Program,
    options: &PipelineOptions,
) -> Result<(Program, PipelineReport), Failure> {
    let place = usize::from(options.finish.pipeline);
    let (name, pass, _) = PIPELINES.get(place).ok_or_else(|| {
        failed(FailureKind::Misuse, format!("there is no pipeline number {place}"))
    })?;
    if let Some(pass) = options.finish.disabled.first() {
        let message = format!("`{pass}` cannot be left out: LLVM's pipelines run whole");
        return Err(failed(FailureKind::Unsupported, message));
    }
    let mut end = program.clone();
    let mut passes = Vec::new();
    let begin = Instant::now();
    if let Some(pass) = pass {
        let changed =
            end.run_pipeline(pass).map_err(|message| failed(FailureKind::Refused, message))?;
        let (pipeline, pass) = ((*name).to_owned(), (*pass).to_owned());
        passes.push(PipelinePass { pipeline, pass, changed });
    }
    let nanos = begin.elapsed().as_nanos() as u64;
    let stage = StageReport {
        observation: Observation::default(),
        passes: passes.len() as u32,
        program: None,
    };
    // There may be no code for the program's machine here; its states are known all the same.
    let finals = match options.first_stage_only {
        true => None,
        false => end.module().object().ok().map(|object| Cost::new(&[object.text_size as f64])),
    };
    Ok((end, PipelineReport { passes, nanos, stages: vec![Some(stage)], finals }))
}
