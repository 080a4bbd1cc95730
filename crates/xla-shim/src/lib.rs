//! The only crate that sees XLA.
//!
//! The C++ side (`cc/`) is a thin shim over the XLA that ships inside the TensorFlow wheel; this
//! file is the `cxx` bridge to it. Everything here may abort the process: only the worker binary
//! may depend on this crate.
//!
//! Invariant: no XLA type leaves this crate, and no Rust error type enters it; C++ reports errors
//! by exception, which `cxx` turns into [`cxx::Exception`].

#![allow(
    missing_docs,
    reason = "the bridge's fields are documented with the protocol types they become"
)]

#[cxx::bridge(namespace = "xla_gym")]
#[allow(unsafe_code, reason = "cxx declares the foreign functions")]
pub mod ffi {
    /// One entry of the pass table: a real XLA pass with one choice of options.
    struct PassInfo {
        /// XLA's own name, as the pass object reports it.
        name: String,
        /// Which options were chosen; empty for those of XLA's CPU compiler.
        variant: String,
        kind: String,
        description: String,
        /// Meant for after layout assignment; here only for completeness.
        after_layout: bool,
        /// May change what the program computes beyond rounding (drops precision, say).
        lossy: bool,
    }

    struct Counts {
        instructions: u64,
        operations: u64,
        /// Operations if every call were replaced by a copy of what it calls.
        inlined: u64,
        computations: u64,
    }

    /// Both move when a pass makes or removes instructions, whatever it says.
    struct Version {
        size: u64,
        ids: u64,
    }

    struct Cost {
        flops: f64,
        transcendentals: f64,
        bytes_accessed: f64,
    }

    /// What one walk over the program finds out.
    struct Together {
        exact: [u64; 2],
        cost: Cost,
        /// Empty if there is none, as for the verdict.
        cost_error: String,
        verdict: String,
    }

    /// One array that a program takes or gives.
    struct ArraySpec {
        /// XLA's lower-case name of the element type, such as `f32`.
        dtype: String,
        dims: Vec<i64>,
        /// For values that end as indices: those worth passing are `0..index_bound`. 0 if nothing
        /// is known.
        index_bound: i64,
        positive: bool,
        loop_bound: bool,
    }

    /// An output that is written into the memory of an input.
    struct AliasSpec {
        output: u32,
        input: u32,
        must: bool,
    }

    struct Signature {
        inputs: Vec<ArraySpec>,
        outputs: Vec<ArraySpec>,
        /// The arguments are the leaves of one tuple parameter.
        tupled: bool,
        aliases: Vec<AliasSpec>,
        donated: Vec<u32>,
        /// Opcodes that need more than this process.
        not_comparable: Vec<String>,
        random: Vec<String>,
        unknown_calls: Vec<String>,
        collectives: Vec<String>,
        can_be_promoted: bool,
        narrow_floats: bool,
        interpretable: bool,
    }

    struct OpcodeCount {
        computation: String,
        /// Whether its instructions count as operations.
        runs: bool,
        opcode: u32,
        count: u32,
    }

    struct GraphNode {
        opcode: u32,
        dtype: u32,
        rank: u32,
        computation: u32,
        elements: u64,
    }

    struct GraphEdge {
        from: u32,
        to: u32,
        kind: u32,
        position: u32,
    }

    struct ProgramGraph {
        nodes: Vec<GraphNode>,
        edges: Vec<GraphEdge>,
    }

    struct PipelinePass {
        pipeline: String,
        pass: String,
        changed: bool,
    }

    struct Array {
        dtype: String,
        dims: Vec<i64>,
        bytes: Vec<u8>,
    }

    struct MemoryStats {
        peak: i64,
        temporaries: i64,
        arguments: i64,
        outputs: i64,
        code: i64,
    }

    extern "Rust" {
        fn copy_bytes(bytes: &[u8]) -> Vec<u8>;
    }

    unsafe extern "C++" {
        include!("shim.h");

        type Module;
        type PipelineRun;
        type Executable;
        type Promoted;

        // module.cc
        /// Quietens logging, and has `on_out_of_memory` called when an allocation fails.
        fn prepare_process(on_out_of_memory: fn());
        fn opcode_names() -> Vec<String>;
        fn load_hlo_text(text: &[u8]) -> Result<UniquePtr<Module>>;
        fn load_proto(bytes: &[u8]) -> Result<UniquePtr<Module>>;
        fn load_stablehlo(bytes: &[u8]) -> Result<UniquePtr<Module>>;
        fn clone_module(module: &Module) -> UniquePtr<Module>;
        fn print_text(module: &Module) -> Vec<u8>;
        fn print_proto(module: &Module) -> Result<Vec<u8>>;
        fn print_stablehlo(module: &Module, bytecode: bool) -> Result<Vec<u8>>;
        fn counts(module: &Module) -> Counts;
        fn opcode_counts(module: &Module) -> Vec<u32>;
        fn opcode_counts_by_computation(module: &Module) -> Vec<OpcodeCount>;
        fn version(module: &Module) -> Version;
        fn graph(module: &Module) -> ProgramGraph;

        // signature.cc
        fn signature(module: &Module) -> Result<Signature>;

        // identity.cc
        fn fingerprint(module: &Module) -> [u64; 2];
        fn verify(module: Pin<&mut Module>) -> Result<()>;
        fn look(module: Pin<&mut Module>, cost: bool, verdict: bool) -> Together;

        // passes.cc
        fn pass_table() -> Vec<PassInfo>;
        fn run_pass(module: Pin<&mut Module>, pass: u32) -> Result<bool>;

        // pipeline.cc
        fn run_pipeline(
            module: &Module,
            disable: &[String],
            dump_dir: &str,
            until_middle: bool,
            intra_op_threads: i32,
        ) -> Result<UniquePtr<PipelineRun>>;
        fn pipeline_passes(run: &PipelineRun) -> Vec<PipelinePass>;
        fn pipeline_nanos(run: &PipelineRun) -> u64;
        /// Bytes of intermediate values; -1 if not known.
        fn pipeline_temporaries(run: &PipelineRun) -> i64;
        /// Bytes of constants, likewise.
        fn pipeline_constants(run: &PipelineRun) -> i64;
        fn take_middle(run: Pin<&mut PipelineRun>) -> UniquePtr<Module>;
        /// Null if the pipeline failed after the middle.
        fn take_end(run: Pin<&mut PipelineRun>) -> UniquePtr<Module>;

        // promote.cc
        /// Constants are moved by one unit in the last place unless `nudge` is 0.
        fn promote(module: &Module, decisions: bool, nudge: u64) -> Result<UniquePtr<Promoted>>;
        fn take_promoted(promoted: Pin<&mut Promoted>) -> UniquePtr<Module>;
        fn promoted_decisions(promoted: &Promoted) -> Vec<String>;

        // reduce.cc
        /// A smaller program in which what repeats stands a few times.
        fn reduce(module: &Module) -> Result<UniquePtr<Module>>;

        // execute.cc
        fn compile(
            module: &Module,
            disable: &[String],
            interpreter: bool,
            quick: bool,
        ) -> Result<UniquePtr<Executable>>;
        fn compile_nanos(executable: &Executable) -> u64;
        fn memory_stats(executable: &Executable) -> Result<MemoryStats>;
        /// In order: with the first, those before are forgotten.
        fn set_input(executable: Pin<&mut Executable>, place: usize, input: &Array) -> Result<()>;
        fn execute(executable: Pin<&mut Executable>) -> Result<u64>;
        fn output_sizes(executable: &Executable) -> Vec<u64>;
        fn output(executable: &Executable, place: usize) -> Result<Array>;
    }
}

/// All at once: C++ can only push byte by byte.
fn copy_bytes(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

pub use cxx::UniquePtr;
pub use ffi::*;
