//! The process in which LLVM runs. Started by the engine client; see `xla-gym-protocol`.
//!
//! LLVM aborts on unusual input. That ends this process and nothing else.

#![forbid(unsafe_code)]

mod observe;
mod pipeline;
mod program;
mod warm_up;

use xla_gym_llvm_shim as llvm;
use xla_gym_protocol::{
    Failure, FailureKind, Form, FormSpec, FunctionCounts, Graph, Metric, MetricRole, Observation,
    Observe, Pass, PassId, PipelineOptions, PipelineReport,
};
use xla_gym_worker::{Compiler, Description, failed, serve, unsupported};

use program::Program;

struct Llvm;

fn main() {
    llvm::initialize(xla_gym_worker::exit_out_of_memory);
    serve(Llvm)
}

impl Compiler for Llvm {
    type Program = Program;
    /// Programs are not run here yet.
    type Executable = std::convert::Infallible;

    fn describe(&self) -> Description {
        let pass = |pass: &llvm::Pass| Pass {
            name: pass.name(),
            base: pass.base.to_owned(),
            kind: pass.kind.as_str().to_owned(),
            description: pass.description.to_owned(),
            is_default_action: pass.is_default_action(),
            lossy: pass.lossy,
        };
        Description {
            engine: "llvm".to_owned(),
            version: llvm::version(),
            passes: llvm::passes().iter().map(pass).collect(),
            opcodes: observe::opcode_names(),
            counts: vec![
                Metric::new("instructions", "instructions of all functions").role(MetricRole::Size),
                Metric::new("blocks", "basic blocks of all functions"),
                Metric::new("functions", "functions with a body").role(MetricRole::Functions),
            ],
            costs: Vec::new(),
            finals: vec![Metric::new("text", "size of the code in the object file").unit("bytes")],
            counting: 1,
            node_features: observe::NODE_FEATURES.map(str::to_owned).to_vec(),
            forms: vec![form("ll", "LLVM's text"), form("bc", "LLVM's bitcode")],
            pipelines: pipeline::specs(),
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
            Form::TEXT => Ok(program.module().text()),
            // With the order of uses, so that what is read back behaves the same.
            Form::BINARY => Ok(program.module().bitcode(true)),
            Form(_) => Err(unsupported("form like that")),
        }
    }

    fn breakdown(&mut self, program: &Program) -> Result<Vec<FunctionCounts>, Failure> {
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
    ) -> Result<(PipelineReport, Vec<Option<Program>>), Failure> {
        let (mut end, mut report) = pipeline::run(program, options)?;
        if let Some(stage) = &mut report.stages[0] {
            stage.observation = self.observe(&mut end, observe);
        }
        Ok((report, vec![Some(end)]))
    }
}

/// A form whose files end like its name.
fn form(name: &str, description: &str) -> FormSpec {
    FormSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        endings: vec![name.to_owned()],
    }
}
