//! A throw-away copy of a session's program.

use std::time::Duration;

use xla_gym_protocol::{
    Array, CompileOptions, ExecutableId, Finish, Form, InputSet, MemoryEstimate, Observe,
    PipelineOptions, PipelineReport, ProgramId, Reply, Request,
};

use crate::{
    engine::{expect, unexpected},
    error::EngineError,
    worker::Worker,
};

/// A copy of a program on which anything may be done; it is gone afterwards, and whatever
/// happens to it does not touch the session it came from.
pub struct Scratch {
    worker: Worker,
    program: ProgramId,
}

/// A compiled program inside a [`Scratch`].
#[derive(Clone, Copy, Debug)]
pub struct Compiled {
    executable: ExecutableId,
    /// Time of the compilation.
    pub nanos: u64,
    /// What it needs, if the compiler says.
    pub memory: Option<MemoryEstimate>,
}

impl Scratch {
    pub(crate) fn new(worker: Worker, program: ProgramId) -> Scratch {
        Scratch { worker, program }
    }

    pub(crate) fn ask(&mut self, request: &Request, doing: &str) -> Result<Reply, EngineError> {
        expect(self.worker.call(request), doing)
    }

    /// Copies the program within the worker, by the compiler's own means. Slower than a fork of
    /// the session from some size on, and not to the letter: later passes may name instructions
    /// differently.
    pub fn clone_program(&mut self) -> Result<ProgramId, EngineError> {
        match self.ask(&Request::Clone { program: self.program }, "copying")? {
            Reply::Program(copy) => Ok(copy),
            other => Err(unexpected("copying", &other)),
        }
    }

    /// Reads another program into the same worker.
    pub fn load(&mut self, bytes: Vec<u8>) -> Result<ProgramId, EngineError> {
        match self.ask(&Request::Load { bytes, verify: false }, "loading")? {
            Reply::Loaded { program, .. } => Ok(program),
            other => Err(unexpected("loading", &other)),
        }
    }

    /// Makes the program a copy of an earlier [`Scratch::clone_program`].
    pub fn restore(&mut self, from: ProgramId) -> Result<(), EngineError> {
        self.ask(&Request::Restore { program: self.program, from }, "restoring").map(drop)
    }

    /// Runs the compiler's own pipeline.
    pub fn pipeline(
        &mut self,
        options: &PipelineOptions,
        observe: Observe,
    ) -> Result<PipelineReport, EngineError> {
        let doing = "the compiler's own pipeline";
        let request =
            Request::Pipeline { program: self.program, options: options.clone(), observe };
        match self.ask(&request, doing)? {
            Reply::Pipeline(report) => Ok(*report),
            other => Err(unexpected(doing, &other)),
        }
    }

    /// Writes out a program that [`PipelineOptions::keep`] left here.
    pub fn print(&mut self, program: ProgramId, form: Form) -> Result<Vec<u8>, EngineError> {
        match self.ask(&Request::Print { program, form }, "printing")? {
            Reply::Bytes(bytes) => Ok(bytes),
            other => Err(unexpected("printing", &other)),
        }
    }

    /// Copies the program with all floating point in the widest type, with the names of the decisions
    /// that its two last outputs report if that was asked for. With a nudge, constants are moved by one
    /// unit in the last place.
    pub fn promote(
        &mut self,
        decisions: bool,
        nudge: Option<u64>,
    ) -> Result<(ProgramId, Vec<String>), EngineError> {
        let doing = "raising the precision";
        match self.ask(&Request::Promote { program: self.program, decisions, nudge }, doing)? {
            Reply::Promoted { program, decisions } => Ok((program, decisions)),
            other => Err(unexpected(doing, &other)),
        }
    }

    /// Generates code by one of the compiler's own pipelines.
    pub fn compile(&mut self, finish: &Finish) -> Result<Compiled, EngineError> {
        self.compile_with(&CompileOptions { finish: finish.clone(), ..CompileOptions::default() })
    }

    /// Generates code in a way that the options say.
    pub fn compile_with(&mut self, options: &CompileOptions) -> Result<Compiled, EngineError> {
        self.compile_program(self.program, options)
    }

    /// Makes a program of this worker ready to run.
    pub fn compile_program(
        &mut self,
        program: ProgramId,
        options: &CompileOptions,
    ) -> Result<Compiled, EngineError> {
        let request = Request::Compile { program, options: options.clone() };
        match self.ask(&request, "compiling")? {
            Reply::Compiled { executable, nanos, memory } => {
                Ok(Compiled { executable, nanos, memory })
            }
            other => Err(unexpected("compiling", &other)),
        }
    }

    /// Makes the inputs of later runs.
    pub fn make_inputs(
        &mut self,
        compiled: &Compiled,
        inputs: &InputSet,
    ) -> Result<(), EngineError> {
        let request =
            Request::MakeInputs { executable: compiled.executable, inputs: inputs.clone() };
        self.ask(&request, "making the inputs").map(drop)
    }

    /// Runs compiled code; times in nanoseconds and the outputs of the last run.
    pub fn execute(
        &mut self,
        compiled: &Compiled,
        runs: u32,
        outputs: bool,
    ) -> Result<(Vec<u64>, Vec<Array>), EngineError> {
        let request = Request::Execute { executable: compiled.executable, runs, outputs };
        match self.ask(&request, "executing")? {
            Reply::Executed { nanos, outputs } => Ok((nanos, outputs)),
            other => Err(unexpected("executing", &other)),
        }
    }

    /// Runs compiled programs of this worker in turn, so many rounds at most, and for about so long;
    /// nanoseconds of each run, by program.
    pub fn race(
        &mut self,
        programs: &[Compiled],
        rounds: u32,
        time: Duration,
    ) -> Result<Vec<Vec<u64>>, EngineError> {
        let executables = programs.iter().map(|program| program.executable).collect();
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self.ask(&Request::Race { executables, rounds, nanos }, "executing")? {
            Reply::Raced { nanos } => Ok(nanos),
            other => Err(unexpected("executing", &other)),
        }
    }
}
