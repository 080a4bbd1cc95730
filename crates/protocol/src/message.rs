//! The messages, and the plain data they carry.

use std::{fmt, ops::BitOr, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    execution::{Array, CompileOptions, InputSet, MemoryEstimate, Signature},
    metric::{Cost, Counts, Metric, MetricRole},
};

/// A program loaded into one worker; means nothing to another worker, unless that was forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProgramId(pub u32);

/// A compiled program inside one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExecutableId(pub u32);

/// The position of a pass in the worker's [`Hello::passes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PassId(pub u16);

/// What the client asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// First message; answered by [`Reply::Hello`].
    Hello {
        /// The client's [`crate::PROTOCOL_VERSION`].
        protocol: u32,
    },
    /// Sets the limits under which every later request runs; answered by [`Reply::Done`].
    Limits(Limits),
    /// Splits the worker in two; comes with two file descriptors. Answered by
    /// [`Reply::Forked`] on this connection, and by nothing on the new one.
    Fork,
    /// Reads a program; answered by [`Reply::Loaded`].
    Load {
        /// The uncompressed file.
        bytes: Vec<u8>,
        /// Whether to refuse a program that the compiler's own verifier refuses.
        verify: bool,
    },
    /// Runs passes in order; answered by one [`Reply::Step`] a pass, until one fails.
    Apply {
        /// On which program.
        program: ProgramId,
        /// Which passes, in order.
        passes: Vec<PassId>,
        /// What to report after each.
        observe: Observe,
        /// Whether to look out for the next request for a moment before falling asleep; see
        /// [`crate::look_out`].
        look_out: bool,
    },
    /// Looks at a program; answered by [`Reply::Observation`].
    Observe {
        /// Which program.
        program: ProgramId,
        /// What to report.
        observe: Observe,
    },
    /// Counts per function; answered by [`Reply::Breakdown`].
    Breakdown {
        /// Which program.
        program: ProgramId,
    },
    /// The program as a graph; answered by [`Reply::Graph`].
    Graph {
        /// Which program.
        program: ProgramId,
    },
    /// Writes a program out; answered by [`Reply::Bytes`].
    Print {
        /// Which program.
        program: ProgramId,
        /// In which form.
        form: Form,
    },
    /// Copies a program; answered by [`Reply::Program`].
    Clone {
        /// Which program.
        program: ProgramId,
    },
    /// Makes `program` a copy of `from`; answered by [`Reply::Done`].
    Restore {
        /// The program that is overwritten; its id stays valid.
        program: ProgramId,
        /// The program that is copied.
        from: ProgramId,
    },
    /// Forgets a program; answered by [`Reply::Done`].
    Drop {
        /// Which program.
        program: ProgramId,
    },
    /// Runs the compiler's own pipeline on a copy; answered by [`Reply::Pipeline`].
    Pipeline {
        /// Which program.
        program: ProgramId,
        /// With which of its passes left out.
        options: PipelineOptions,
        /// What to report of the states on the way and at the end.
        observe: Observe,
    },
    /// What the program takes and gives; answered by [`Reply::Signature`].
    Signature {
        /// Which program.
        program: ProgramId,
    },
    /// Copies a program with all floating point in the widest type; answered by
    /// [`Reply::Promoted`].
    Promote {
        /// Which program.
        program: ProgramId,
        /// Whether it also reports which decisions fell on which side.
        decisions: bool,
        /// If set, every float constant is moved by one unit in the last place of its own type, up or
        /// down by this number: passes compute with constants, and round them.
        nudge: Option<u64>,
    },
    /// Makes a program ready to run; answered by [`Reply::Compiled`].
    Compile {
        /// Which program.
        program: ProgramId,
        /// How.
        options: CompileOptions,
    },
    /// Makes the inputs of later runs, in the worker; answered by [`Reply::Done`].
    MakeInputs {
        /// Which compiled program.
        executable: ExecutableId,
        /// One for each of [`Signature::inputs`].
        inputs: InputSet,
    },
    /// Runs compiled code; answered by [`Reply::Executed`].
    Execute {
        /// Which compiled program.
        executable: ExecutableId,
        /// How often.
        runs: u32,
        /// Whether to send the outputs of the last run.
        outputs: bool,
    },
    /// Runs several compiled programs in turn, so that what slows the machine for a while slows all of
    /// them; answered by [`Reply::Raced`].
    Race {
        /// Which compiled programs.
        executables: Vec<ExecutableId>,
        /// How often each, at most.
        rounds: u32,
        /// No round begins later than this after the first, in nanoseconds.
        nanos: u64,
    },
}

/// What the worker answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello(Hello),
    /// The request was carried out and has no result.
    Done,
    /// To [`Request::Fork`]: the process id of the new worker.
    Forked {
        /// As the kernel knows it.
        pid: i32,
    },
    /// To [`Request::Load`].
    Loaded {
        /// The new program.
        program: ProgramId,
        /// Threads that run in the worker now. A worker with more than one must not be forked.
        threads: u32,
    },
    /// To [`Request::Apply`], for each pass.
    Step(Step),
    /// To [`Request::Observe`].
    Observation(Observation),
    /// To [`Request::Breakdown`].
    Breakdown(Vec<FunctionCounts>),
    /// To [`Request::Graph`].
    Graph(Graph),
    /// To [`Request::Print`].
    Bytes(Vec<u8>),
    /// To [`Request::Clone`].
    Program(ProgramId),
    /// To [`Request::Pipeline`].
    Pipeline(Box<PipelineReport>),
    /// To [`Request::Signature`].
    Signature(Signature),
    /// To [`Request::Promote`].
    Promoted {
        /// The new program.
        program: ProgramId,
        /// The decisions that it reports, by the compiler's names, in two more outputs: which of
        /// them were ever true, and which ever false. Empty if nobody asked.
        decisions: Vec<String>,
    },
    /// To [`Request::Compile`].
    Compiled {
        /// The new executable.
        executable: ExecutableId,
        /// Time of the compilation.
        nanos: u64,
        /// What it needs, if the compiler says.
        memory: Option<MemoryEstimate>,
    },
    /// To [`Request::Execute`].
    Executed {
        /// Time of each run.
        nanos: Vec<u64>,
        /// Outputs of the last run, if asked for.
        outputs: Vec<Array>,
    },
    /// To [`Request::Race`].
    Raced {
        /// Time of each run, by program.
        nanos: Vec<Vec<u64>>,
    },
    /// The request failed in an orderly way; the worker goes on.
    Failed(Failure),
}

/// An orderly failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// The compiler's own words, or ours.
    pub message: String,
}

/// The kinds of orderly failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// The input is no program that the compiler reads.
    Malformed,
    /// The compiler's verifier refuses the program.
    Invalid,
    /// The compiler refused the request for this program.
    Refused,
    /// This worker has no such ability.
    Unsupported,
    /// The request makes no sense (unknown id, wrong protocol); a bug of the client.
    Misuse,
}

/// How a worker introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The worker's [`crate::PROTOCOL_VERSION`].
    pub protocol: u32,
    /// Short name of the compiler, such as `xla`.
    pub engine: String,
    /// Exact version of the compiler; results are comparable within one.
    pub version: String,
    /// The passes, in the order of their ids.
    pub passes: Vec<Pass>,
    /// What [`Observation::opcodes`] counts, in order.
    pub opcodes: Vec<String>,
    /// What [`Observation::counts`] holds, in order. The first is the primary metric.
    pub counts: Vec<Metric>,
    /// What [`Observation::cost`] holds, in order.
    pub costs: Vec<Metric>,
    /// What [`PipelineReport::finals`] holds, in order: what is known only at the end of a pipeline.
    pub finals: Vec<Metric>,
    /// Raised whenever counts or costs come out differently for the same program: what was
    /// remembered under another number means something else.
    pub counting: u32,
    /// What a node of a [`Graph`] says of itself, in order; the first is its opcode.
    pub node_features: Vec<String>,
    /// In which forms a program can be written. The first is the compiler's own text, the second its
    /// own binary form; both are complete and can be read back.
    pub forms: Vec<FormSpec>,
    /// The compiler's own pipelines; the first is the usual one.
    pub pipelines: Vec<PipelineSpec>,
    /// The worker's process id.
    pub pid: i32,
}

impl Hello {
    /// The position of a count by name.
    pub fn count(&self, name: &str) -> Option<usize> {
        self.counts.iter().position(|metric| metric.name == name)
    }

    /// The position of a cost by name.
    pub fn cost(&self, name: &str) -> Option<usize> {
        self.costs.iter().position(|metric| metric.name == name)
    }

    /// The position of the count with a role.
    pub fn role(&self, role: MetricRole) -> Option<usize> {
        self.counts.iter().position(|metric| metric.role == role)
    }

    /// What a program costs of one kind, zero where the worker does not estimate it.
    pub fn cost_of(&self, cost: &Cost, role: MetricRole) -> f64 {
        let kind = self.costs.iter().zip(&cost[..]).filter(|(metric, _)| metric.role == role);
        kind.map(|(_, value)| value).sum()
    }

    /// The name of the primary metric.
    pub fn primary(&self) -> &str {
        self.counts.first().map_or("size", |metric| &metric.name)
    }

    /// A form by its name.
    pub fn form(&self, name: &str) -> Option<Form> {
        self.forms.iter().position(|form| form.name == name).map(|at| Form(at as u8))
    }

    /// The form of files with an ending.
    pub fn form_of_ending(&self, ending: &str) -> Option<Form> {
        let writes = |form: &FormSpec| form.endings.iter().any(|known| known == ending);
        self.forms.iter().position(writes).map(|at| Form(at as u8))
    }
}

/// One pass with one choice of options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// As users write it; one of its kind.
    pub name: String,
    /// The compiler's own name of the pass, without parameters.
    pub base: String,
    /// What sort of pass.
    pub kind: String,
    /// One sentence.
    pub description: String,
    /// Whether it is an action unless somebody says otherwise. Passes are not that belong elsewhere
    /// in the pipeline, that lose precision or that are wrong on some programs.
    pub is_default_action: bool,
    /// May change results beyond rounding: drops precision, or is known to be wrong on some
    /// programs.
    pub lossy: bool,
}

/// Limits for each request. A worker that runs into one ends itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time for one pass, in milliseconds.
    pub pass_millis: u64,
    /// Wall-clock time for any other request, in milliseconds.
    pub request_millis: u64,
    /// Address space beyond what the worker had when it started, in bytes.
    pub memory_bytes: u64,
}

/// A set of things to report about a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observe(u8);

impl Observe {
    /// Nothing.
    pub const NOTHING: Observe = Observe(0);
    /// [`Observation::counts`].
    pub const COUNTS: Observe = Observe(1);
    /// [`Observation::opcodes`].
    pub const OPCODES: Observe = Observe(2);
    /// [`Observation::cost`].
    pub const COST: Observe = Observe(4);
    /// [`Observation::fingerprint`].
    pub const FINGERPRINT: Observe = Observe(8);
    /// [`Observation::verdict`].
    pub const VERDICT: Observe = Observe(16);
    /// [`Observation::exact`].
    pub const EXACT: Observe = Observe(32);

    /// Whether all of `other` is asked for.
    pub fn has(self, other: Observe) -> bool {
        self.0 & other.0 == other.0
    }

    /// What is asked for here or there. As `|`, where constants are made.
    pub const fn and(self, other: Observe) -> Observe {
        Observe(self.0 | other.0)
    }

    /// What is asked for here and not there.
    pub fn without(self, other: Observe) -> Observe {
        Observe(self.0 & !other.0)
    }
}

impl BitOr for Observe {
    type Output = Observe;
    fn bitor(self, other: Observe) -> Observe {
        self.and(other)
    }
}

/// What was asked for by an [`Observe`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Sizes of the program.
    pub counts: Option<Counts>,
    /// Instructions per opcode, in the order of [`Hello::opcodes`], over the whole program.
    pub opcodes: Option<Vec<u32>>,
    /// The compiler's own estimate of work, or why it gives none.
    pub cost: Option<Result<Cost, String>>,
    /// Identity of the program.
    pub fingerprint: Option<Fingerprint>,
    /// Whether the compiler's verifier accepts the program, or why not.
    pub verdict: Option<Result<(), String>>,
    /// Identity down to the order in which the compiler keeps the program. Two programs of one
    /// [`Observation::fingerprint`] may still be told apart by a pass, that walks them in order;
    /// two of the same exact identity may not.
    pub exact: Option<Fingerprint>,
}

impl Observation {
    /// What is known.
    pub fn known(&self) -> Observe {
        let part = |known: bool, part: Observe| if known { part } else { Observe::NOTHING };
        part(self.counts.is_some(), Observe::COUNTS)
            | part(self.opcodes.is_some(), Observe::OPCODES)
            | part(self.cost.is_some(), Observe::COST)
            | part(self.fingerprint.is_some(), Observe::FINGERPRINT)
            | part(self.verdict.is_some(), Observe::VERDICT)
            | part(self.exact.is_some(), Observe::EXACT)
    }

    /// Adds what another observation of the same state knows.
    pub fn add(&mut self, other: Observation) {
        self.counts = other.counts.or(self.counts.take());
        self.opcodes = other.opcodes.or(self.opcodes.take());
        self.cost = other.cost.or(self.cost.take());
        self.fingerprint = other.fingerprint.or(self.fingerprint.take());
        self.verdict = other.verdict.or(self.verdict.take());
        self.exact = other.exact.or(self.exact.take());
    }

    /// Only what is asked for.
    pub fn select(&self, observe: Observe) -> Observation {
        fn part<T: Clone>(wanted: bool, value: &Option<T>) -> Option<T> {
            if wanted { value.clone() } else { None }
        }
        Observation {
            counts: part(observe.has(Observe::COUNTS), &self.counts),
            opcodes: part(observe.has(Observe::OPCODES), &self.opcodes),
            cost: part(observe.has(Observe::COST), &self.cost),
            fingerprint: part(observe.has(Observe::FINGERPRINT), &self.fingerprint),
            verdict: part(observe.has(Observe::VERDICT), &self.verdict),
            exact: part(observe.has(Observe::EXACT), &self.exact),
        }
    }
}

/// Identity of a program: what it consists of, whatever its instructions are called. The same
/// in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub u128);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Fingerprint)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            text.parse().map_err(serde::de::Error::custom)
        } else {
            u128::deserialize(deserializer).map(Fingerprint)
        }
    }
}

/// Counts of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCounts {
    /// Its name.
    pub name: String,
    /// Whether its instructions count for the primary metric.
    pub runs: bool,
    /// Opcode (position in [`Hello::opcodes`]) and number of instructions, none of them 0.
    pub opcodes: Vec<(u32, u32)>,
}

/// A program as a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    /// The nodes, row by row: as many numbers each as [`Hello::node_features`] has names. Called
    /// functions come before their callers.
    pub nodes: Vec<u64>,
    /// What leads where.
    pub edges: Vec<GraphEdge>,
}

/// An edge of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphEdge {
    /// Position of the node that comes first.
    pub from: u32,
    /// Position of the node that needs it.
    pub to: u32,
    /// 0: a value; 1: an order; 2: a call.
    pub kind: u32,
    /// Which operand, or which called function.
    pub position: u32,
}

/// Result of one pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Whether the program changed, or the compiler's error. After an error the program may be
    /// half changed: the worker refuses to touch it again.
    pub outcome: Result<bool, String>,
    /// Time of the pass alone.
    pub nanos: u64,
    /// The state after it, as asked for; empty after an error.
    pub observation: Observation,
}

/// In which form to write a program out: a position in [`Hello::forms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Form(pub u8);

impl Form {
    /// The compiler's own text, complete and readable back.
    pub const TEXT: Form = Form(0);
    /// The compiler's own binary form, complete and readable back.
    pub const BINARY: Form = Form(1);
}

/// The name of the form that holds the text of a smaller program, in which what repeats (the layers
/// of a model) stands only a few times: for looking for orders, not for running. A worker may have it.
pub const REDUCED: &str = "reduced";

/// A form in which a program can be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormSpec {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Endings of files that hold it, without the dot, the usual one first.
    pub endings: Vec<String>,
}

/// One of the compiler's own pipelines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineSpec {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// The states at which it can be looked at, in order; the last one is its end.
    pub stages: Vec<String>,
}

/// Which of the compiler's own pipelines a program goes through, and what is left out there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finish {
    /// Which of [`Hello::pipelines`].
    pub pipeline: u16,
    /// Passes to leave out, by the compiler's own names.
    pub disabled: Vec<String>,
}

/// How to run one of the compiler's own pipelines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineOptions {
    /// Which one, and without which passes.
    pub finish: Finish,
    /// Whether to look at the stages before the end too, which may take time.
    pub stages: bool,
    /// Whether a failure after the first stage does not matter; the end is then not reported.
    pub first_stage_only: bool,
    /// Whether to keep the states as programs of the worker.
    pub keep: bool,
}

/// What the compiler's own pipeline did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PipelineReport {
    /// Every pass that ran, in order.
    pub passes: Vec<PipelinePass>,
    /// Time of the whole pipeline.
    pub nanos: u64,
    /// For each of [`PipelineSpec::stages`], what was asked for, if it was reached.
    pub stages: Vec<Option<StageReport>>,
    /// What is known only at the end, for each of [`Hello::finals`], if the compiler says.
    pub finals: Option<Cost>,
}

impl PipelineReport {
    /// The last state, if it was reached.
    pub fn end(&self) -> Option<&StageReport> {
        self.stages.last()?.as_ref()
    }
}

/// A state of a program on its way through a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// As asked for.
    pub observation: Observation,
    /// How many of [`PipelineReport::passes`] had run.
    pub passes: u32,
    /// The state as a program, if kept.
    pub program: Option<ProgramId>,
}

/// One pass that the compiler's own pipeline ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelinePass {
    /// The (inner) pipeline it ran in.
    pub pipeline: String,
    /// Its name.
    pub pass: String,
    /// Whether it changed the program.
    pub changed: bool,
}
