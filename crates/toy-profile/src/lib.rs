//! The toy compiler's profile: the smallest complete example of one.
//!
//! Together with the toy worker it is all that a new compiler takes: every command works on programs that
//! end in `.toy`.

#![forbid(unsafe_code)]

use xla_gym_engine::protocol::PipelinePass;
use xla_gym_profile::{
    Commands, Comparison, Figure, FigureSpec, Files, Finish, Measure, Profile, Source, Spec, Stage,
    Start, StartPasses, Words, quoted,
};

/// Passes of the toy's pipeline that it can do without; `lower` it cannot.
const REMOVABLE: [&str; 4] = ["dead", "simplify", "fold", "copy-elim"];

/// Lines at the end of the order.
const LINES: Figure = Figure::Counted(0);
/// Lines of the final program.
const FINAL: Figure = Figure::Counted(1);
/// Registers that the final program needs.
const REGISTERS: Figure = Figure::Counted(3);

/// The toy compiler's profile.
pub struct Toy {
    spec: Spec,
}

impl Default for Toy {
    fn default() -> Toy {
        Toy { spec: spec() }
    }
}

impl Profile for Toy {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn own_order(&self, ran: &[PipelinePass]) -> Vec<String> {
        let removable = ran.iter().filter(|pass| REMOVABLE.contains(&&*pass.pass));
        removable.map(|pass| pass.pass.clone()).collect()
    }

    fn can_be_left_out(&self) -> Vec<String> {
        REMOVABLE.map(str::to_owned).to_vec()
    }

    fn first_orders(&self, _: &dyn Fn(&str) -> bool) -> Vec<Vec<String>> {
        vec![["fold", "simplify", "copy-elim", "dead"].map(str::to_owned).to_vec()]
    }

    fn commands(&self, _: &str, passes: &[String], _: &Finish) -> Commands {
        let line = format!("xla-gym run FILE.toy -p {}", quoted(&passes.join(",")));
        Commands { lines: vec![("by hand".to_owned(), line)], approximated: Vec::new() }
    }
}

fn spec() -> Spec {
    let lines = || vec![(Measure::PRIMARY, 1.0)];
    let work = Measure::costs(&[0]);
    let figure = |name, label, source, guess| FigureSpec { name, label, unit: "", source, guess };
    Spec {
        engine: "toy",
        words: Words {
            title: "the toy compiler",
            baseline: "the toy's own order",
            baseline_short: "its own",
            pipeline: "the toy's pipeline",
            program: "program",
        },
        figures: vec![
            figure("lines", "lines at the end of the order", Source::Order, lines()),
            figure(
                "final",
                "lines of the final program",
                Source::Count { stage: 0, count: 0 },
                lines(),
            ),
            figure(
                "work",
                "work of the final program",
                Source::Costs { stage: 0, costs: &[0] },
                vec![(work, 1.0)],
            ),
            figure("registers", "registers of the final program", Source::Finals(&[0]), lines()),
        ],
        guarded: vec![LINES, FINAL],
        tie_break: vec![FINAL, LINES],
        promising: vec![FINAL],
        memory: Some(REGISTERS),
        usual_objective: "final",
        run_time_guess: vec![(work, 1.0)],
        stages: vec![
            Stage {
                name: "order",
                title: "at the best state on the way",
                things: "lines",
                note: "",
                figure: LINES,
                comparison: Comparison::Reduction,
                explanation: "lines removed by the order, over those that the toy's own passes remove",
            },
            Stage {
                name: "final",
                title: "final lines",
                things: "lines",
                note: "after the whole pipeline",
                figure: FINAL,
                comparison: Comparison::Quotient,
                explanation: "lines of the final program by the toy's own order, over those of the result",
            },
        ],
        starts: vec![
            Start {
                name: "emitted",
                description: "the program as it was written",
                passes: StartPasses::Fixed(&[]),
                counts_as: LINES,
            },
            Start {
                name: "lowered",
                description: "after what the toy's pipeline needs in any case",
                passes: StartPasses::AsPipeline,
                counts_as: FINAL,
            },
        ],
        usual: Finish::default(),
        instead: Finish { pipeline: 0, disabled: REMOVABLE.map(str::to_owned).to_vec() },
        cleaning: &["copy-elim", "dead"],
        inlining: None,
        work: &[("work", 1.0)],
        usual_policy: None,
        files: Files { endings: &["toy"], dump_marker: None },
        data_sets: &[],
    }
}
