//! The process in which XLA runs. Started by the engine client; see `xla-gym-protocol`.
//!
//! XLA aborts on unusual input. That ends this process and nothing else.

#![forbid(unsafe_code)]

mod about;
mod dump;
mod format;
mod message;
mod warm_up;

use xla_gym_protocol::{
    Alias, Array, ArraySpec, CompileOptions, Cost, Counts, Executor, Failure, FailureKind,
    Fingerprint, Form, FunctionCounts, Graph, GraphEdge, MemoryEstimate, Observation, Observe,
    PassId, PipelineOptions, PipelinePass, PipelineReport, Role, Signature, StageReport,
};
use xla_gym_worker::{Compiler, Description, failed, serve};
use xla_gym_xla_shim::{self as xla, UniquePtr};

use dump::DumpDir;
use format::{Format, elided_constant};
use message::readable;

/// Counts must not depend on the machine's number of cores, which the CPU pipeline looks at.
const COUNTING_THREADS: i32 = 1;

const ELIDED: &str = "the value of a constant was left out, `{...}`: print the program with its large \
    constants (as_hlo_text(print_large_constants=True) in JAX, --xla_dump_large_constants in XLA)";

const NEITHER: &str = "\n(the text starts neither with `HloModule` nor like an MLIR module, so it was read as bare HLO)";

struct Xla;

fn main() {
    xla::prepare_process(xla_gym_worker::exit_out_of_memory);
    serve(Xla)
}

fn fingerprint([low, high]: [u64; 2]) -> Fingerprint {
    Fingerprint(u128::from(high) << 64 | u128::from(low))
}

fn refused(error: impl ToString) -> Failure {
    failed(FailureKind::Refused, error)
}

impl Compiler for Xla {
    type Program = UniquePtr<xla::Module>;
    type Executable = UniquePtr<xla::Executable>;

    fn describe(&self) -> Description {
        about::description()
    }

    fn warm_up(&mut self) {
        warm_up::run(self);
    }

    fn load(&mut self, bytes: &[u8]) -> Result<Self::Program, Failure> {
        let malformed = |message: String| failed(FailureKind::Malformed, message);
        let format = Format::of(bytes);
        let loaded = match format {
            Format::HloText | Format::OtherText => {
                // XLA would make numbers up.
                if let Some(line) = elided_constant(bytes) {
                    return Err(malformed(format!("line {line}: {ELIDED}")));
                }
                xla::load_hlo_text(bytes)
            }
            Format::StableHlo => xla::load_stablehlo(bytes),
            Format::Proto => xla::load_proto(bytes),
            Format::Empty => return Err(malformed("the file is empty".to_owned())),
        };
        loaded.map_err(|error| {
            let mut message = readable(error.what());
            if format == Format::OtherText {
                message.push_str(NEITHER);
            }
            malformed(message)
        })
    }

    fn apply(&mut self, program: &mut Self::Program, pass: PassId) -> Result<bool, String> {
        xla::run_pass(program.pin_mut(), pass.0.into()).map_err(|error| error.to_string())
    }

    fn version(&self, program: &Self::Program) -> (u64, u64) {
        let version = xla::version(program);
        (version.size, version.ids)
    }

    fn observe(&mut self, program: &mut Self::Program, observe: Observe) -> Observation {
        let mut seen = Observation::default();
        if observe.has(Observe::COUNTS) {
            let counts = xla::counts(program);
            // In the order of `about::counts`.
            seen.counts = Some(Counts::new(&[
                counts.operations,
                counts.instructions,
                counts.inlined,
                counts.computations,
            ]));
        }
        if observe.has(Observe::OPCODES) {
            seen.opcodes = Some(xla::opcode_counts(program));
        }
        if observe.has(Observe::FINGERPRINT) {
            seen.fingerprint = Some(fingerprint(xla::fingerprint(program)));
        }
        let [cost, exact, verdict] =
            [Observe::COST, Observe::EXACT, Observe::VERDICT].map(|part| observe.has(part));
        if cost || exact || verdict {
            // All three come out of one walk over the program.
            let together = xla::look(program.pin_mut(), cost, verdict);
            let or_error = |error: String| if error.is_empty() { Ok(()) } else { Err(error) };
            seen.exact = exact.then(|| fingerprint(together.exact));
            seen.verdict =
                verdict.then(|| or_error(together.verdict).map_err(|message| readable(&message)));
            seen.cost = cost.then(|| {
                // In the order of `about::costs`.
                or_error(together.cost_error).map(|()| {
                    let cost = together.cost;
                    Cost::new(&[cost.flops, cost.transcendentals, cost.bytes_accessed])
                })
            });
        }
        seen
    }

    fn verify(&mut self, program: &mut Self::Program) -> Result<(), String> {
        xla::verify(program.pin_mut()).map_err(|error| readable(error.what()))
    }

    fn copy(&mut self, program: &Self::Program) -> Self::Program {
        xla::clone_module(program)
    }

    fn print(&mut self, program: &Self::Program, form: Form) -> Result<Vec<u8>, Failure> {
        match form {
            Form::TEXT => Ok(xla::print_text(program)),
            Form::BINARY => xla::print_proto(program).map_err(refused),
            about::STABLEHLO_TEXT => xla::print_stablehlo(program, false).map_err(refused),
            about::STABLEHLO_BYTECODE => xla::print_stablehlo(program, true).map_err(refused),
            about::FEWER_LAYERS => {
                xla::reduce(program).map(|reduced| xla::print_text(&reduced)).map_err(refused)
            }
            Form(other) => Err(failed(FailureKind::Misuse, format!("there is no form {other}"))),
        }
    }

    fn breakdown(&mut self, program: &Self::Program) -> Result<Vec<FunctionCounts>, Failure> {
        let mut computations: Vec<FunctionCounts> = Vec::new();
        for row in xla::opcode_counts_by_computation(program) {
            if computations.last().is_none_or(|last| last.name != row.computation) {
                computations.push(FunctionCounts {
                    name: row.computation,
                    runs: row.runs,
                    opcodes: Vec::new(),
                });
            }
            let last = computations.last_mut().expect("one was just pushed");
            last.opcodes.push((row.opcode, row.count));
        }
        Ok(computations)
    }

    fn graph(&mut self, program: &Self::Program) -> Result<Graph, Failure> {
        let graph = xla::graph(program);
        // In the order of `about::NODE_FEATURES`.
        let node = |node: xla::GraphNode| {
            let [opcode, dtype, rank, computation] =
                [node.opcode, node.dtype, node.rank, node.computation].map(u64::from);
            [opcode, dtype, rank, computation, node.elements]
        };
        let edge = |edge: xla::GraphEdge| GraphEdge {
            from: edge.from,
            to: edge.to,
            kind: edge.kind,
            position: edge.position,
        };
        Ok(Graph {
            nodes: graph.nodes.into_iter().flat_map(node).collect(),
            edges: graph.edges.into_iter().map(edge).collect(),
        })
    }

    fn pipeline(
        &mut self,
        program: &Self::Program,
        options: &PipelineOptions,
        observe: Observe,
    ) -> Result<(PipelineReport, Vec<Option<Self::Program>>), Failure> {
        // XLA hands the state before layout assignment out only as a dump file.
        let dump = (options.stages || options.first_stage_only)
            .then(DumpDir::new)
            .transpose()
            .map_err(refused)?;
        let dump_dir = dump.as_ref().map_or("", |dir| dir.path().to_str().unwrap_or_default());
        let mut run = xla::run_pipeline(
            program,
            &options.finish.disabled,
            dump_dir,
            options.first_stage_only,
            COUNTING_THREADS,
        )
        .map_err(refused)?;
        let passes: Vec<PipelinePass> = xla::pipeline_passes(&run)
            .into_iter()
            .map(|pass| PipelinePass {
                pipeline: pass.pipeline,
                pass: pass.pass,
                changed: pass.changed,
            })
            .collect();
        let nanos = xla::pipeline_nanos(&run);
        let bytes = (xla::pipeline_temporaries(&run), xla::pipeline_constants(&run));
        // In the order of `about`'s finals; negative where XLA does not say.
        let known = bytes.0 >= 0 && bytes.1 >= 0;
        let finals = known.then(|| Cost::new(&[bytes.0 as f64, bytes.1 as f64]));
        let legal_after = passes.iter().position(|pass| pass.pass == about::LAYOUT_ASSIGNMENT);
        let ran = [legal_after.unwrap_or(passes.len()), passes.len()];
        let legal = dump.as_ref().map(|_| xla::take_middle(run.pin_mut()));
        let end = Some(xla::take_end(run.pin_mut())).filter(|end| !end.is_null());
        let mut programs = vec![legal, end];
        let stages = programs
            .iter_mut()
            .zip(ran)
            .map(|(program, ran)| {
                let observation = self.observe(program.as_mut()?, observe);
                Some(StageReport { observation, passes: ran as u32, program: None })
            })
            .collect();
        Ok((PipelineReport { passes, nanos, stages, finals }, programs))
    }

    fn signature(&mut self, program: &Self::Program) -> Result<Signature, Failure> {
        let signature = xla::signature(program).map_err(refused)?;
        let array = |spec: xla::ArraySpec| ArraySpec {
            dtype: spec.dtype,
            dims: spec.dims,
            role: Role {
                index_bound: (spec.index_bound > 0).then_some(spec.index_bound as u64),
                positive: spec.positive,
                loop_bound: spec.loop_bound,
            },
        };
        let alias = |alias: xla::AliasSpec| Alias {
            output: alias.output,
            input: alias.input,
            must: alias.must,
        };
        Ok(Signature {
            inputs: signature.inputs.into_iter().map(array).collect(),
            outputs: signature.outputs.into_iter().map(array).collect(),
            aliases: signature.aliases.into_iter().map(alias).collect(),
            donated: signature.donated,
            not_comparable: signature.not_comparable,
            random: signature.random,
            unknown_calls: signature.unknown_calls,
            collectives: signature.collectives,
            can_be_promoted: signature.can_be_promoted,
            narrow_floats: signature.narrow_floats,
            interpretable: signature.interpretable,
        })
    }

    fn promote(
        &mut self,
        program: &Self::Program,
        decisions: bool,
        nudge: Option<u64>,
    ) -> Result<(Self::Program, Vec<String>), Failure> {
        let seed = nudge.map_or(0, |nudge| nudge + 1);
        let mut promoted = xla::promote(program, decisions, seed).map_err(refused)?;
        let names = xla::promoted_decisions(&promoted);
        Ok((xla::take_promoted(promoted.pin_mut()), names))
    }

    fn compile(
        &mut self,
        program: &Self::Program,
        options: &CompileOptions,
    ) -> Result<(Self::Executable, u64, Option<MemoryEstimate>), Failure> {
        let interpreter = options.executor == Executor::Interpreter;
        let executable =
            xla::compile(program, &options.finish.disabled, interpreter, options.quick)
                .map_err(refused)?;
        let nanos = xla::compile_nanos(&executable);
        let memory = xla::memory_stats(&executable).ok().map(|stats| MemoryEstimate {
            peak: stats.peak,
            temporaries: stats.temporaries,
            arguments: stats.arguments,
            outputs: stats.outputs,
            code: stats.code,
        });
        Ok((executable, nanos, memory))
    }

    fn set_input(
        &mut self,
        executable: &mut Self::Executable,
        place: usize,
        array: Array,
    ) -> Result<(), Failure> {
        let array = xla::Array { dtype: array.dtype, dims: array.dims, bytes: array.bytes };
        xla::set_input(executable.pin_mut(), place, &array).map_err(refused)
    }

    fn execute(&mut self, executable: &mut Self::Executable) -> Result<u64, Failure> {
        xla::execute(executable.pin_mut()).map_err(refused)
    }

    fn output_sizes(&mut self, executable: &Self::Executable) -> Result<Vec<u64>, Failure> {
        Ok(xla::output_sizes(executable))
    }

    fn output(&mut self, executable: &Self::Executable, place: usize) -> Result<Array, Failure> {
        let array = xla::output(executable, place).map_err(refused)?;
        Ok(Array { dtype: array.dtype, dims: array.dims, bytes: array.bytes, block: 0 })
    }
}
