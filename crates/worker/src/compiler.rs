//! The trait that a new compiler implements.

use xla_gym_protocol::{
    Array, CompileOptions, Failure, FailureKind, Form, FormSpec, FunctionCounts, Graph,
    MemoryEstimate, Metric, Observation, Observe, Pass, PassId, PipelineOptions, PipelineReport,
    PipelineSpec, Signature,
};

/// What a compiler says about itself. What it has none of stays empty.
#[derive(Default)]
pub struct Description {
    /// Short name, such as `xla`.
    pub engine: String,
    /// Exact version.
    pub version: String,
    /// The passes; a pass's id is its position.
    pub passes: Vec<Pass>,
    /// What [`Observation::opcodes`] counts.
    pub opcodes: Vec<String>,
    /// What [`Observation::counts`] holds; the first is what passes are to make small.
    pub counts: Vec<Metric>,
    /// What [`Observation::cost`] holds.
    pub costs: Vec<Metric>,
    /// What is known only at the end of a pipeline: [`PipelineReport::finals`].
    pub finals: Vec<Metric>,
    /// Raised whenever counts or costs come out differently for the same program.
    pub counting: u32,
    /// What a node of a [`Graph`] says of itself.
    pub node_features: Vec<String>,
    /// In which forms a program can be written; the first two are the compiler's own text and binary.
    pub forms: Vec<FormSpec>,
    /// The compiler's own pipelines.
    pub pipelines: Vec<PipelineSpec>,
}

/// A compiler that can load programs and run its passes one by one.
///
/// The required methods are enough for an environment. The others have bodies that answer
/// "unsupported", for compilers that cannot do it.
pub trait Compiler {
    /// A loaded program.
    type Program;
    /// A compiled program, with its inputs.
    type Executable;

    /// Name, version, passes, and what can be counted, written and run.
    fn describe(&self) -> Description;

    /// Called once, before the first request: touches what later work needs, so that forked
    /// workers find it ready.
    fn warm_up(&mut self) {}

    /// Reads a program from a file's bytes.
    fn load(&mut self, bytes: &[u8]) -> Result<Self::Program, Failure>;

    /// Runs one pass; whether the program changed, or the compiler's error.
    fn apply(&mut self, program: &mut Self::Program, pass: PassId) -> Result<bool, String>;

    /// Numbers that move when the program changes, for compilers whose passes change programs
    /// and keep quiet about it; cheap, since it is asked for around every pass. The first moves
    /// only if the program did change, the second also if it may have.
    fn version(&self, _: &Self::Program) -> (u64, u64) {
        (0, 0)
    }

    /// Looks at the program.
    fn observe(&mut self, program: &mut Self::Program, observe: Observe) -> Observation;

    /// Whether the compiler's verifier accepts the program.
    fn verify(&mut self, program: &mut Self::Program) -> Result<(), String>;

    /// Copies the program.
    fn copy(&mut self, program: &Self::Program) -> Self::Program;

    /// Writes the program out.
    fn print(&mut self, program: &Self::Program, form: Form) -> Result<Vec<u8>, Failure>;

    /// Counts per function.
    fn breakdown(&mut self, _: &Self::Program) -> Result<Vec<FunctionCounts>, Failure> {
        Err(unsupported("counts per function"))
    }

    /// The program as a graph.
    fn graph(&mut self, _: &Self::Program) -> Result<Graph, Failure> {
        Err(unsupported("programs as graphs"))
    }

    /// Runs one of the compiler's own pipelines on a copy. Returns the report, with an entry for each
    /// stage, and the programs of those stages in the same places.
    fn pipeline(
        &mut self,
        _: &Self::Program,
        _: &PipelineOptions,
        _: Observe,
    ) -> Result<(PipelineReport, Vec<Option<Self::Program>>), Failure> {
        Err(unsupported("pipeline of its own"))
    }

    /// What the program takes and gives.
    fn signature(&mut self, _: &Self::Program) -> Result<Signature, Failure> {
        Err(unsupported("execution"))
    }

    /// Copies the program with all floating point in the widest type. If asked, the copy has two
    /// more outputs, that say which decisions were ever true and ever false; their names. If asked,
    /// its constants are moved by one unit in the last place.
    fn promote(
        &mut self,
        _: &Self::Program,
        _decisions: bool,
        _nudge: Option<u64>,
    ) -> Result<(Self::Program, Vec<String>), Failure> {
        Err(unsupported("programs of higher precision"))
    }

    /// Makes a program ready to run; also the time it took, in nanoseconds.
    fn compile(
        &mut self,
        _: &Self::Program,
        _: &CompileOptions,
    ) -> Result<(Self::Executable, u64, Option<MemoryEstimate>), Failure> {
        Err(unsupported("execution"))
    }

    /// Sets one input of later runs, in order: with the first, those before are forgotten.
    fn set_input(&mut self, _: &mut Self::Executable, _: usize, _: Array) -> Result<(), Failure> {
        Err(unsupported("execution"))
    }

    /// Runs compiled code once; the time it took, in nanoseconds.
    fn execute(&mut self, _: &mut Self::Executable) -> Result<u64, Failure> {
        Err(unsupported("execution"))
    }

    /// How many elements each output of the last run has.
    fn output_sizes(&mut self, _: &Self::Executable) -> Result<Vec<u64>, Failure> {
        Err(unsupported("execution"))
    }

    /// One output of the last run.
    fn output(&mut self, _: &Self::Executable, _: usize) -> Result<Array, Failure> {
        Err(unsupported("execution"))
    }
}

/// A failure of the given kind.
pub fn failed(kind: FailureKind, message: impl ToString) -> Failure {
    Failure { kind, message: message.to_string() }
}

/// The answer to a request that a compiler has no ability for.
pub fn unsupported(ability: &str) -> Failure {
    failed(FailureKind::Unsupported, format!("this compiler offers no {ability}"))
}
