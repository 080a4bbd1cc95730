//! Which of XLA's passes optimize, which can be left out, which normalize.

/// Passes of XLA's CPU pipeline, before layout assignment, that make a program smaller or
/// cheaper. All others there make it acceptable to the back end.
pub const OPTIMIZATION: &[&str] = &[
    "algsimp",
    "batch-dot-simplification",
    "call-inliner",
    "conditional-to-select",
    "constant_folding",
    "cse",
    "dce",
    "dynamic-dimension-simplifier",
    "map-inline",
    "reshape-mover",
    "simplify-conditional",
    "simplify-sorts",
    "simplify-while-loops",
    "transpose-folding",
    "tree_reduction_rewriter",
    "tuple-simplifier",
    "while-loop-constant-sinking",
    "while-loop-invariant-code-motion",
    "while-loop-trip-count-annotator",
    "zero_sized_hlo_elimination",
];

/// Passes that the pipeline can do without: a sequence that replaces them goes together with
/// this list as `xla_disable_hlo_passes`. A name acts on every occurrence, also after layout
/// assignment. The evidence is in `shipped/xla/optional-passes.json`, which a test compares with this list.
pub const OPTIONAL: &[&str] = &[
    "algsimp",
    "batch-dot-simplification",
    "constant_folding",
    "cse",
    "reshape-mover",
    "simplify-conditional",
    "simplify-sorts",
    "simplify-while-loops",
    "transpose-folding",
    "tree_reduction_rewriter",
    "tuple-simplifier",
    "while-loop-constant-sinking",
    "while-loop-invariant-code-motion",
    "zero_sized_hlo_elimination",
];

/// The passes that the pipeline can do without, as a list to hand on.
pub fn optional() -> Vec<String> {
    OPTIONAL.iter().map(|&name| name.to_owned()).collect()
}

/// A start state normalized by these passes is one on which other orders rarely crash.
pub const NORMALIZING: &[&str] =
    &["batched_gather_scatter_normalizer", "dot_decomposer", "call-inliner", "dce"];

/// Whether a pass of XLA's pipeline optimizes.
pub fn is_optimization(pass: &str) -> bool {
    OPTIMIZATION.contains(&pass)
}
