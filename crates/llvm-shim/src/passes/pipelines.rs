//! LLVM's own pipelines as passes: what they make of a program can be looked at like any other state.

use super::{Kind::Pipeline, Pass};

const fn own(level: &'static str, description: &'static str) -> Pass {
    Pass::new("default", Pipeline, description).with(level)
}

pub const PASSES: &[Pass] = &[
    own("Oz", "Runs all that clang -Oz runs before code generation: as small as possible."),
    own("Os", "Runs all that clang -Os runs before code generation: small, and not slow."),
    own("O0", "Runs all that clang -O0 runs before code generation: only what must be."),
    own("O1", "Runs all that clang -O1 runs before code generation: what is cheap."),
    own("O2", "Runs all that clang -O2 runs before code generation: what is mostly worth it."),
    own("O3", "Runs all that clang -O3 runs before code generation: as fast as possible."),
];
