//! LLVM's profile: what everything above the engine must know of it.
//!
//! Orders are compared with `-Oz`, as others compare them: by the instructions that are left. Code is
//! generated in the same way after both, so that the size of the code can be compared as well.
//! Programs are not run here yet.

#![forbid(unsafe_code)]

use xla_gym_engine::protocol::PipelinePass;
use xla_gym_profile::{
    Commands, Comparison, Figure, FigureSpec, Files, Finish, Inlining, Measure, Profile, Source,
    Spec, Stage, Start, StartPasses, Words, quoted,
};

/// Instructions at the end of the order.
pub const INSTRUCTIONS: Figure = Figure::Counted(0);
/// Instructions after the pipeline.
pub const FINAL: Figure = Figure::Counted(1);
/// Bytes of code.
pub const TEXT: Figure = Figure::Counted(2);

/// The worker's pipelines, by position: the passes that run all of one, and none for code as it is.
const PIPELINES: [Option<&str>; 7] = [
    Some("default<Oz>"),
    Some("default<O0>"),
    Some("default<O1>"),
    Some("default<O2>"),
    Some("default<O3>"),
    Some("default<Os>"),
    None,
];

/// Which of them is `-Oz`.
const OZ: u16 = 0;
/// Which of them runs no passes.
const AS_IS: u16 = 6;

/// LLVM's profile.
pub struct Llvm {
    spec: Spec,
}

impl Default for Llvm {
    fn default() -> Llvm {
        Llvm { spec: spec() }
    }
}

impl Profile for Llvm {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn worker_target(&self) -> &'static str {
        "build-llvm"
    }

    /// The pipeline is itself a pass of the table.
    fn own_order(&self, ran: &[PipelinePass]) -> Vec<String> {
        ran.iter().map(|pass| pass.pass.clone()).collect()
    }

    fn first_orders(&self, _: &dyn Fn(&str) -> bool) -> Vec<Vec<String>> {
        let order = |passes: &[&str]| passes.iter().map(|pass| (*pass).to_owned()).collect();
        FIRST_ORDERS.iter().map(|passes| order(passes)).collect()
    }

    /// One run of `opt` for each pass: passes of different levels do not stand side by side in one.
    fn commands(&self, _: &str, passes: &[String], finish: &Finish) -> Commands {
        let pipeline = PIPELINES.get(usize::from(finish.pipeline)).copied().flatten();
        let runs: Vec<String> =
            passes.iter().map(String::as_str).chain(pipeline).map(opt).collect();
        let mut lines = Vec::new();
        if !runs.is_empty() {
            let line = format!("cat PROGRAM.bc | {} > RESULT.bc", runs.join(" | "));
            lines.push(("the passes".to_owned(), line));
        }
        let code = "llc-19 -O2 -filetype=obj -relocation-model=pic RESULT.bc -o RESULT.o";
        lines.push(("the code".to_owned(), code.to_owned()));
        Commands { lines, approximated: Vec::new() }
    }
}

/// A run of `opt` that does what a pass does, with its options behind colons. Passes see the order of
/// uses, so it is kept from one to the next.
fn opt(pass: &str) -> String {
    let mut parts = pass.split(':');
    let text = parts.next().unwrap_or_default();
    let options: Vec<String> =
        parts.map(|option| format!(" {}", quoted(&format!("-{option}")))).collect();
    format!("opt-19 -preserve-bc-uselistorder -passes={}{}", quoted(text), options.concat())
}

/// What is sensible before anything is known of a program: whole pipelines of today, what they do first
/// and last, and what inlining by itself makes of it.
const FIRST_ORDERS: [&[&str]; 3] = [
    &[
        "ipsccp",
        "globalopt",
        "sroa",
        "early-cse<memssa>",
        "instcombine<no-verify-fixpoint>",
        "simplifycfg",
        "inline:inline-threshold=0",
        "function-attrs",
        "sroa",
        "gvn",
        "jump-threading",
        "instcombine<no-verify-fixpoint>",
        "simplifycfg",
        "dse",
        "adce",
        "globaldce",
    ],
    &[
        "sroa",
        "simplifycfg",
        "instcombine<no-verify-fixpoint>",
        "gvn",
        "sccp",
        "dse",
        "adce",
        "deadargelim",
        "mergefunc",
        "globaldce",
    ],
    &["default<Oz>", "gvn-hoist", "gvn", "instcombine<no-verify-fixpoint>", "simplifycfg", "adce"],
];

fn spec() -> Spec {
    let instructions = || vec![(Measure::PRIMARY, 1.0)];
    let figure =
        |name, label, unit, source| FigureSpec { name, label, unit, source, guess: instructions() };
    Spec {
        engine: "llvm",
        words: Words {
            title: "LLVM",
            baseline: "-Oz",
            baseline_short: "-Oz",
            pipeline: "LLVM's pipeline",
            program: "program",
        },
        figures: vec![
            figure("instructions", "instructions, order", "", Source::Order),
            figure(
                "final",
                "instructions after the pipeline",
                "",
                Source::Count { stage: 0, count: 0 },
            ),
            figure("text", "text bytes", "bytes", Source::Finals(&[0])),
        ],
        // Fewer instructions are easily had for more code, and the other way round.
        guarded: vec![INSTRUCTIONS, TEXT],
        tie_break: vec![TEXT, INSTRUCTIONS],
        promising: vec![INSTRUCTIONS],
        memory: None,
        usual_objective: "instructions",
        run_time_guess: instructions(),
        stages: vec![
            Stage {
                name: "order",
                title: "at the best state on the way",
                things: "instructions",
                note: "",
                figure: INSTRUCTIONS,
                comparison: Comparison::Reduction,
                explanation: "instructions removed by the order, over those that -Oz removes",
            },
            Stage {
                name: "text",
                title: "bytes of code",
                things: "bytes",
                note: "in the object file",
                figure: TEXT,
                comparison: Comparison::Quotient,
                explanation: "bytes of code after -Oz, over those after the order",
            },
        ],
        starts: vec![Start {
            name: "emitted",
            description: "the program as the front end wrote it",
            passes: StartPasses::Fixed(&[]),
            counts_as: INSTRUCTIONS,
        }],
        usual: Finish { pipeline: OZ, disabled: Vec::new() },
        instead: Finish { pipeline: AS_IS, disabled: Vec::new() },
        cleaning: &["instcombine<no-verify-fixpoint>", "simplifycfg", "adce"],
        // Without a price to pay, what is called once moves; what is tiny may be copied even so.
        inlining: Some(Inlining { copies: "inline", moves: "inline:inline-threshold=0" }),
        work: &[],
        usual_policy: None,
        files: Files { endings: &["ll", "bc"], dump_marker: None },
        data_sets: &[],
    }
}
