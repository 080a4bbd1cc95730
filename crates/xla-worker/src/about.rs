//! What XLA says about itself: its passes, and what of a program can be counted, written and run.

use xla_gym_protocol::{Form, FormSpec, Metric, MetricRole, Pass, PipelineSpec, REDUCED};
use xla_gym_worker::Description;
use xla_gym_xla_shim as xla;

/// The version of the wheel that carries XLA; set-up pins the same.
const VERSION: &str = "tensorflow-2.21.0";

/// Raised whenever counts or costs come out differently for the same program. A test of the engine
/// knows what is counted under this one.
const COUNTING: u32 = 1;

/// Positions in [`forms`], after the compiler's own text and binary.
pub const STABLEHLO_TEXT: Form = Form(2);
pub const STABLEHLO_BYTECODE: Form = Form(3);
pub const FEWER_LAYERS: Form = Form(4);

/// The pass before which the first stage of the pipeline lies.
pub const LAYOUT_ASSIGNMENT: &str = "layout-assignment";

/// What is said of a node of a graph.
const NODE_FEATURES: [&str; 5] = ["opcode", "dtype", "rank", "computation", "elements"];

pub fn description() -> Description {
    Description {
        engine: "xla".to_owned(),
        version: VERSION.to_owned(),
        passes: passes(),
        opcodes: xla::opcode_names(),
        counts: counts(),
        costs: costs(),
        finals: vec![
            Metric::new("temporaries", "memory for intermediate values").unit("bytes"),
            Metric::new("constants", "memory for constants").unit("bytes"),
        ],
        counting: COUNTING,
        node_features: NODE_FEATURES.map(str::to_owned).to_vec(),
        forms: forms(),
        pipelines: vec![PipelineSpec {
            name: "cpu".to_owned(),
            description: "the passes of XLA's CPU compiler".to_owned(),
            stages: vec!["legal".to_owned(), "final".to_owned()],
        }],
    }
}

fn passes() -> Vec<Pass> {
    let pass = |pass: xla::PassInfo| Pass {
        name: match pass.variant.as_str() {
            "" => pass.name.clone(),
            variant => format!("{}:{variant}", pass.name),
        },
        base: pass.name,
        kind: pass.kind,
        description: pass.description,
        is_default_action: !pass.after_layout && !pass.lossy,
        lossy: pass.lossy,
    };
    xla::pass_table().into_iter().map(pass).collect()
}

/// The first is what passes are to make small.
fn counts() -> Vec<Metric> {
    vec![
        Metric::new(
            "operations",
            "instructions that run one by one: those of the entry, of loop bodies and conditions, of \
             branches and called functions, without parameters, constants and tuple handling",
        ),
        Metric::new("instructions", "every instruction of every computation")
            .role(MetricRole::Size),
        Metric::new(
            "inlined",
            "operations if every call were replaced by a copy of the function that it calls, cut at 10^15",
        )
        .role(MetricRole::Expanded),
        Metric::new("computations", "computations (functions)").role(MetricRole::Functions),
    ]
}

fn costs() -> Vec<Metric> {
    vec![
        Metric::new("flops", "floating-point operations").role(MetricRole::Arithmetic),
        Metric::new("transcendentals", "evaluations of transcendental functions")
            .role(MetricRole::Transcendental),
        Metric::new("bytes_accessed", "bytes read and written")
            .unit("bytes")
            .role(MetricRole::Traffic),
    ]
}

fn forms() -> Vec<FormSpec> {
    let form = |name: &str, description: &str, endings: &[&str]| FormSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        endings: endings.iter().map(|ending| (*ending).to_owned()).collect(),
    };
    vec![
        form("hlo", "HLO text", &["hlo", "txt"]),
        form("pb", "HLO as a protocol buffer", &["pb"]),
        form("mlir", "StableHLO text", &["mlir"]),
        form("mlirbc", "StableHLO bytecode", &["mlirbc", "bc"]),
        form(REDUCED, "HLO text of a program with fewer of the layers that are alike", &[]),
    ]
}
