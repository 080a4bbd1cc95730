//! A toy compiler, complete: what it takes to add a compiler is what this file does.
//!
//! Its programs and its honest passes are in `program.rs`. The passes of `faults.rs` do what
//! passes of real compilers do now and then: abort, hang, eat all memory, fail half-way. The
//! engine's tests use them to show that none of that reaches the caller.

mod faults;
mod pipeline;
mod program;
mod running;

use xla_gym_common::fnv128;
use xla_gym_protocol::{
    Array, CompileOptions, Cost, Counts, Failure, FailureKind, Fingerprint, Form, FormSpec,
    MemoryEstimate, Metric, MetricRole, Observation, Observe, Pass, PassId, PipelineOptions,
    PipelineReport, Signature,
};
use xla_gym_worker::{Compiler, Description, failed, serve, unsupported};

use program::{CONST, OPCODES, Program};
use running::Executable;

/// A pass: whether it changed the program, or why it refuses.
type Run = fn(&mut Program) -> Result<bool, String>;

/// Name, kind, description and code of each pass.
const PASSES: &[(&str, &str, &str, Run)] = &[
    ("fold", "honest", "Computes what depends on constants only.", |p| Ok(p.fold())),
    ("simplify", "honest", "Finds what only repeats an operand.", |p| Ok(p.simplify())),
    ("dedup", "honest", "Finds what was computed before.", |p| Ok(p.dedup())),
    ("copy-elim", "honest", "Reads what was copied instead of the copy.", |p| Ok(p.copy_elim())),
    ("dead", "honest", "Removes what the last line does not need.", |p| Ok(p.dead())),
    ("lower", "honest", "Writes `-x` as `x * -1`, as the back end wants it.", |p| Ok(p.lower())),
    (
        "cancel",
        "honest",
        "Finds `x + -x`, and does not look closely: it is wrong on some programs.",
        |p| Ok(p.cancel()),
    ),
    ("shift", "lossy", "Adds one to every constant.", |p| Ok(p.shift())),
    ("scale", "lossy", "Multiplies every constant by three.", |p| Ok(p.scale())),
    ("slow", "lossy", "Like shift, after 50 ms.", faults::slow),
    ("half", "faulty", "Changes the program, then fails.", faults::half),
    ("abort", "faulty", "Fails a check.", |_| faults::abort()),
    ("panic", "faulty", "Panics.", |_| faults::panic()),
    ("segfault", "faulty", "Touches memory that is not there.", |_| faults::segfault()),
    ("overflow", "faulty", "Recurses without end.", |_| faults::overflow()),
    ("hang", "faulty", "Never returns.", |_| faults::hang()),
    ("hog", "faulty", "Takes all memory there is.", |_| faults::hog()),
    ("exit", "faulty", "Ends the process without a word.", |_| std::process::exit(0)),
    ("garbage", "faulty", "Writes noise where replies belong.", |_| faults::garbage()),
];

struct Toy;

fn main() {
    serve(Toy)
}

impl Compiler for Toy {
    type Program = Program;
    type Executable = Executable;

    fn describe(&self) -> Description {
        let passes = PASSES.iter().map(|(name, kind, description, _)| Pass {
            name: name.to_string(),
            kind: kind.to_string(),
            description: description.to_string(),
            base: name.to_string(),
            is_default_action: *kind == "honest",
            lossy: *kind == "lossy",
        });
        Description {
            engine: "toy".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            passes: passes.collect(),
            opcodes: OPCODES.map(str::to_owned).to_vec(),
            counts: vec![
                Metric::new("lines", "instructions of the program").role(MetricRole::Size),
                Metric::new("constants", "constants among them"),
            ],
            costs: vec![
                Metric::new("work", "instructions that compute").role(MetricRole::Arithmetic),
            ],
            finals: vec![Metric::new("registers", "values that are needed at one time, at most")],
            pipelines: vec![pipeline::spec()],
            counting: 1,
            forms: vec![FormSpec {
                name: "toy".to_owned(),
                description: "the program as text".to_owned(),
                endings: vec!["toy".to_owned()],
            }],
            ..Description::default()
        }
    }

    fn load(&mut self, bytes: &[u8]) -> Result<Program, Failure> {
        let malformed = |message: String| failed(FailureKind::Malformed, message);
        let text = str::from_utf8(bytes).map_err(|error| malformed(error.to_string()))?;
        Program::parse(text).map_err(malformed)
    }

    fn apply(&mut self, program: &mut Program, pass: PassId) -> Result<bool, String> {
        let (_, _, _, run) = PASSES.get(usize::from(pass.0)).ok_or("there is no such pass")?;
        run(program)
    }

    fn observe(&mut self, program: &mut Program, observe: Observe) -> Observation {
        let counts = Counts::new(&[program.len() as u64, program.opcodes()[CONST].into()]);
        let cost = Cost::new(&[program.work() as f64]);
        Observation {
            counts: observe.has(Observe::COUNTS).then_some(counts),
            opcodes: observe.has(Observe::OPCODES).then(|| program.opcodes().to_vec()),
            cost: observe.has(Observe::COST).then_some(Ok(cost)),
            fingerprint: observe.has(Observe::FINGERPRINT).then(|| fingerprint(program)),
            verdict: observe.has(Observe::VERDICT).then(|| self.verify(program)),
            // The text says everything that the passes see.
            exact: observe.has(Observe::EXACT).then(|| fingerprint(program)),
        }
    }

    fn verify(&mut self, program: &mut Program) -> Result<(), String> {
        if program.len() == 0 { Err("a program needs a result".to_owned()) } else { Ok(()) }
    }

    fn copy(&mut self, program: &Program) -> Program {
        program.clone()
    }

    fn print(&mut self, program: &Program, form: Form) -> Result<Vec<u8>, Failure> {
        match form {
            // Its text is all that it has.
            Form::TEXT | Form::BINARY => Ok(program.to_string().into_bytes()),
            Form(_) => Err(unsupported("form like that")),
        }
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

    fn signature(&mut self, program: &Program) -> Result<Signature, Failure> {
        Ok(running::signature(program))
    }

    fn compile(
        &mut self,
        program: &Program,
        options: &CompileOptions,
    ) -> Result<(Executable, u64, Option<MemoryEstimate>), Failure> {
        Ok((running::compile(program, options)?, 1, None))
    }

    fn set_input(
        &mut self,
        executable: &mut Executable,
        place: usize,
        array: Array,
    ) -> Result<(), Failure> {
        executable.set_input(place, &array)
    }

    fn execute(&mut self, executable: &mut Executable) -> Result<u64, Failure> {
        Ok(executable.run())
    }

    fn output_sizes(&mut self, _: &Executable) -> Result<Vec<u64>, Failure> {
        Ok(vec![1])
    }

    fn output(&mut self, executable: &Executable, _: usize) -> Result<Array, Failure> {
        Ok(executable.output())
    }
}

/// A hash of the text: the same in every process.
fn fingerprint(program: &Program) -> Fingerprint {
    Fingerprint(fnv128(program.to_string().bytes()))
}
