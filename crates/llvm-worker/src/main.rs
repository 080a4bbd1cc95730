//! The process in which LLVM runs. Started by the engine client; see `xla-gym-protocol`.
//!
//! LLVM aborts on unusual input. That ends this process and nothing else.

#![forbid(unsafe_code)]

mod observe;
mod program;
mod warm_up;

use xla_gym_llvm_shim as llvm;
use xla_gym_protocol::{
    ComputationCounts, Failure, FailureKind, Form, Graph, Observation, Observe, Pass, PassId,
    PipelineOptions, PipelinePass, PipelineReport,
};
use xla_gym_worker::{Compiler, Description, failed, serve, unsupported};

use program::Program;

/// What LLVM's own pipelines are called, by the text that runs them.
const PIPELINES: [&str; 6] = ["O0", "O1", "O2", "O3", "Os", "Oz"];

/// The one that others are compared with unless a request names another.
const DEFAULT_PIPELINE: &str = "Oz";

struct Llvm;

fn main() {
    llvm::initialize(xla_gym_worker::exit_out_of_memory);
    serve(Llvm)
}

fn refused(error: impl ToString) -> Failure {
    failed(FailureKind::Refused, error)
}

impl Compiler for Llvm {
    type Program = Program;
    /// Programs are not run here yet.
    type Executable = std::convert::Infallible;

    fn describe(&self) -> Description {
        let pass = |pass: &llvm::Pass| Pass {
            name: pass.name(),
            kind: pass.kind.as_str().to_owned(),
            description: pass.description.to_owned(),
            // What this list calls "not for here": no default action.
            after_layout: !pass.is_default_action(),
            lossy: pass.lossy,
        };
        Description {
            engine: "llvm".to_owned(),
            version: llvm::version(),
            passes: llvm::passes().iter().map(pass).collect(),
            opcodes: observe::opcode_names(),
        }
    }

    fn warm_up(&mut self) {
        warm_up::run();
    }

    fn load(&mut self, bytes: &[u8]) -> Result<Program, Failure> {
        let malformed = |message: String| failed(FailureKind::Malformed, message);
        if bytes.is_empty() {
            return Err(malformed("the file is empty".to_owned()));
        }
        llvm::Module::parse(bytes).map(Program::new).map_err(malformed)
    }

    fn apply(&mut self, program: &mut Program, pass: PassId) -> Result<bool, String> {
        let pass = llvm::passes().get(usize::from(pass.0)).ok_or("there is no such pass")?;
        program.run(pass)
    }

    fn observe(&mut self, program: &mut Program, observe: Observe) -> Observation {
        observe::observe(program, observe)
    }

    fn verify(&mut self, program: &mut Program) -> Result<(), String> {
        program.module().verify()
    }

    fn copy(&mut self, program: &Program) -> Program {
        program.clone()
    }

    fn print(&mut self, program: &Program, form: Form) -> Result<Vec<u8>, Failure> {
        match form {
            Form::Text => Ok(program.module().text()),
            // With the order of uses, so that what is read back behaves the same.
            Form::Binary => Ok(program.module().bitcode(true)),
            Form::PortableText | Form::PortableBinary => Err(unsupported("portable form")),
            Form::Reduced => Err(unsupported("reduced programs")),
        }
    }

    fn breakdown(&mut self, program: &Program) -> Result<Vec<ComputationCounts>, Failure> {
        Ok(observe::breakdown(program.module()))
    }

    fn graph(&mut self, program: &Program) -> Result<Graph, Failure> {
        Ok(observe::graph(program.module()))
    }

    fn pipeline(
        &mut self,
        program: &Program,
        options: &PipelineOptions,
        observe: Observe,
    ) -> Result<(PipelineReport, Option<Program>, Option<Program>), Failure> {
        let name = named_pipeline(&options.disable)?;
        let mut end = program.clone();
        let begin = std::time::Instant::now();
        let changed = end.run_pipeline(&format!("default<{name}>")).map_err(refused)?;
        let nanos = begin.elapsed().as_nanos() as u64;
        let ran =
            PipelinePass { pipeline: name.to_owned(), pass: format!("default<{name}>"), changed };
        // All of LLVM's work on its IR is independent of the target, so that middle and end are one.
        let seen = self.observe(&mut end, observe);
        let middle = (options.middle || options.until_middle).then(|| end.clone());
        let report = PipelineReport {
            passes: vec![ran],
            nanos,
            middle: middle.is_some().then(|| seen.clone()),
            end: Some(seen),
            memory: None,
            middle_program: None,
            end_program: None,
        };
        Ok((report, middle, Some(end)))
    }
}

/// The pipeline that a request asks for. The message has no field for it yet: it stands, as
/// `pipeline=O3`, among the names of passes to leave out, none of which can be left out here.
fn named_pipeline(words: &[String]) -> Result<&'static str, Failure> {
    let mut name = DEFAULT_PIPELINE;
    for word in words {
        let wanted = word.strip_prefix("pipeline=");
        name = PIPELINES.into_iter().find(|known| Some(*known) == wanted).ok_or_else(|| {
            failed(
                FailureKind::Unsupported,
                format!(
                    "`{word}`: LLVM's pipelines run whole, and are {}",
                    PIPELINES.map(|name| format!("pipeline={name}")).join(", ")
                ),
            )
        })?;
    }
    Ok(name)
}
