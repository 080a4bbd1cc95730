//! XLA's profile: which of its passes optimize, what its pipeline needs, what counts, and in which words it
//! is told.
//!
//! Three comparisons, because each alone can be gamed:
//!
//! * **order ratio** `(I − R) / (I − D)`: the paper's question. `I` are the operations at the
//!   start, `R` after the given passes, `D` after the *optimization* passes that XLA's own run
//!   on this program records, in its order and with its repetitions. Legalization for the CPU,
//!   which only the default would pay for, is left out on both sides.
//! * **legal ratio** `(I′ − R′) / (I′ − D′)`: whether the gain survives. All three are counted
//!   just before layout assignment, where the program is legal for the back end: `D′` by the
//!   untouched pipeline, `I′` and `R′` by the pipeline without its optional passes, on the start
//!   and on the result of the given passes.
//! * **kernels**: operations of the final program, after the whole pipeline.

#![forbid(unsafe_code)]

mod coreset;
mod hlo_opt;
mod leave_out;
mod roles;

use std::{collections::BTreeMap, env, ffi::OsString, path::Path};

use xla_gym_engine::{Engine, EngineConfig, EngineError, protocol::PipelinePass};
use xla_gym_profile::{
    Baseline, Commands, Comparison, Figure, FigureSpec, Figures, Files, Finish, Inlining, Measure,
    Profile, Source, Spec, Stage, Start, StartPasses, Words,
};

pub use coreset::{Coreset, Covering, coreset, for_convolutions};
pub use leave_out::can_be_left_out;
pub use roles::{NORMALIZING, OPTIMIZATION, OPTIONAL, is_optimization, optional};

/// Positions among what XLA's worker counts; the first, the primary one, are operations.
pub const OPERATIONS: usize = 0;
/// Every instruction.
pub const INSTRUCTIONS: usize = 1;
/// Operations if every call were replaced by a copy of what it calls.
pub const INLINED: usize = 2;
/// Computations.
pub const COMPUTATIONS: usize = 3;

/// Positions among what XLA estimates.
pub const FLOPS: usize = 0;
/// Transcendental functions.
pub const TRANSCENDENTALS: usize = 1;
/// Bytes read and written.
pub const BYTES: usize = 2;

/// Stages of the pipeline.
const LEGAL_STAGE: usize = 0;
const FINAL_STAGE: usize = 1;

/// Figures of a result: operations at the end of the order.
pub const ORDER: Figure = Figure::Counted(0);
/// Operations just before layout assignment, where the program is legal for the back end.
pub const LEGAL: Figure = Figure::Counted(1);
/// Operations of the final program.
pub const KERNELS: Figure = Figure::Counted(2);
/// Floating-point operations and transcendental functions of the final program.
pub const WORK: Figure = Figure::Counted(3);
/// Bytes that the final program reads and writes.
pub const TRAFFIC: Figure = Figure::Counted(4);
/// What the final program needs beside inputs and outputs.
pub const MEMORY: Figure = Figure::Counted(5);

/// The start after [`NORMALIZING`].
pub const NORMALIZED: &str = "normalized";
/// The start at the program made legal.
pub const MADE_LEGAL: &str = "legal";

/// XLA's profile.
pub struct Xla {
    spec: Spec,
}

/// Starts XLA with the default configuration.
pub fn engine() -> Result<Engine, EngineError> {
    Engine::start(engine_config()?)
}

/// How to run XLA's worker.
pub fn engine_config() -> Result<EngineConfig, EngineError> {
    Xla::default().engine_config()
}

impl Default for Xla {
    fn default() -> Xla {
        Xla { spec: spec() }
    }
}

impl Profile for Xla {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn environment(&self) -> Vec<(OsString, Option<OsString>)> {
        let set = |name: &str, value: OsString| (name.into(), Some(value));
        let mut environment = vec![
            set("TF_CPP_MIN_LOG_LEVEL", "3".into()),
            // Results must not depend on what the caller's shell sets for XLA.
            ("XLA_FLAGS".into(), None),
            ("TF_XLA_FLAGS".into(), None),
        ];
        // An engine that was moved after the build is not where the worker looks for it.
        if let Some(engines) = env::var_os("XLA_GYM_ENGINE_DIR") {
            environment.push(set("LD_LIBRARY_PATH", library_folders(Path::new(&engines))));
        }
        environment
    }

    fn own_order(&self, ran: &[PipelinePass]) -> Vec<String> {
        let optimizes = ran.iter().filter(|pass| is_optimization(&pass.pass));
        optimizes.map(|pass| self.as_in_pipeline(&pass.pass)).collect()
    }

    fn as_in_pipeline(&self, pass: &str) -> String {
        match pass {
            // It inlines only what is called once.
            "call-inliner" => "call-inliner:single-call-site".to_owned(),
            name => name.to_owned(),
        }
    }

    fn can_be_left_out(&self) -> Vec<String> {
        can_be_left_out()
    }

    fn first_orders(&self, has_opcode: &dyn Fn(&str) -> bool) -> Vec<Vec<String>> {
        let orders = coreset();
        if has_opcode("convolution") { for_convolutions(&orders) } else { orders }
    }

    fn known_baseline(&self, manifest: &BTreeMap<String, f64>) -> Option<Baseline> {
        let figures = |order: &str, legal: &str, kernels: &str| {
            let value = |name| manifest.get(name).copied();
            let known = [Some(value(order)?), Some(value(legal)?), Some(value(kernels)?)];
            let [work, traffic, memory] = [None; 3];
            let [order, legal, kernels] = known;
            Some(Figures::counted(&[order, legal, kernels, work, traffic, memory]))
        };
        Some(Baseline {
            initial: figures("initial", "legal_initial", "kernels_without_optional")?,
            default: figures("optimised", "legal_default", "kernels")?,
        })
    }

    fn commands(&self, start: &str, passes: &[String], finish: &Finish) -> Commands {
        hlo_opt::commands(start, passes, finish)
    }
}

/// The library folders of all engines below an engine folder.
fn library_folders(engines: &Path) -> OsString {
    let folders = std::fs::read_dir(engines)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("lib"))
        .filter(|lib| lib.is_dir());
    env::join_paths(folders).unwrap_or_default()
}

fn spec() -> Spec {
    let operations = || vec![(Measure::PRIMARY, 1.0)];
    let bytes = Measure::costs(&[BYTES as u8]);
    let figure = |name, label, unit, source, guess| FigureSpec { name, label, unit, source, guess };
    let counted = |stage| Source::Count { stage, count: OPERATIONS };
    let estimated = |costs| Source::Costs { stage: FINAL_STAGE, costs };
    let work = vec![(Measure::costs(&[FLOPS as u8, TRANSCENDENTALS as u8]), 1.0)];
    Spec {
        engine: "xla",
        words: Words {
            title: "XLA",
            baseline: "XLA's own order",
            baseline_short: "XLA's own",
            pipeline: "XLA's pipeline",
            program: "graph",
        },
        figures: vec![
            figure("operations", "operations, order", "", Source::Order, operations()),
            figure("legal", "operations, legal", "", counted(LEGAL_STAGE), operations()),
            figure("kernels", "kernels", "", counted(FINAL_STAGE), operations()),
            figure(
                "flops",
                "flops of the final program",
                "",
                estimated(&[FLOPS, TRANSCENDENTALS]),
                work,
            ),
            figure(
                "bytes",
                "bytes of the final program",
                "bytes",
                estimated(&[BYTES]),
                vec![(bytes, 1.0)],
            ),
            // The schedule and the reuse of buffers come later; what is read and written is most of it.
            figure(
                "memory",
                "memory of the final program, bytes",
                "bytes",
                Source::Finals(&[0, 1]),
                vec![(bytes, 1.0)],
            ),
        ],
        guarded: vec![LEGAL, KERNELS],
        tie_break: vec![KERNELS, LEGAL],
        promising: vec![KERNELS, TRAFFIC, LEGAL],
        memory: Some(MEMORY),
        usual_objective: "legal",
        run_time_guess: vec![(Measure::PRIMARY, 0.5), (bytes, 0.5)],
        stages: vec![
            Stage {
                name: "order",
                title: "at the best state on the way",
                things: "operations",
                note: "",
                figure: ORDER,
                comparison: Comparison::Reduction,
                explanation: "operations removed by the order, over those that XLA's own optimization passes remove",
            },
            Stage {
                name: "legal",
                title: "legal programs",
                things: "operations",
                note: "",
                figure: LEGAL,
                comparison: Comparison::Reduction,
                explanation: "the same just before layout assignment, where the program is legal for the back end",
            },
            Stage {
                name: "kernels",
                title: "kernels",
                things: "kernels",
                note: "after the whole pipeline",
                figure: KERNELS,
                comparison: Comparison::Quotient,
                explanation: "operations of the final program by XLA's own order, over those of the result",
            },
        ],
        starts: vec![
            Start {
                name: "emitted",
                description: "the program as the framework emitted it",
                passes: StartPasses::Fixed(&[]),
                counts_as: ORDER,
            },
            Start {
                name: NORMALIZED,
                description: "after passes that bring it into a form on which other orders rarely crash",
                passes: StartPasses::Fixed(NORMALIZING),
                counts_as: ORDER,
            },
            Start {
                name: MADE_LEGAL,
                description: "after what XLA's pipeline needs in order to make it legal for the back end",
                passes: StartPasses::AsPipeline,
                counts_as: LEGAL,
            },
        ],
        usual: Finish::default(),
        instead: Finish { pipeline: 0, disabled: optional() },
        cleaning: &["algsimp", "constant_folding", "cse", "dce"],
        inlining: Some(Inlining { copies: "call-inliner", moves: "call-inliner:single-call-site" }),
        work: &[("flops", 1.0), ("transcendentals", 2.0)],
        usual_policy: Some("general"),
        files: Files {
            endings: &["hlo", "txt", "pb", "mlir", "mlirbc", "bc"],
            dump_marker: Some("before_optimizations"),
        },
        data_sets: &["hlo-v1", "hlo-full-v1"],
    }
}
