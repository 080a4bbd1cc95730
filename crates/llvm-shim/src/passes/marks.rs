//! Passes that keep what programs mean and are no default actions all the same.
//!
//! `crates/llvm-worker/tests/isolation.rs` runs every pass on small programs and insists that those
//! which crash, hang or break them stand here; `walks.rs` beside it finds those that do so only after
//! others.

const SLOW: &str = "it took more than 10 s on a real program (lz4.c)";

/// Name of a pass, and what was seen of it.
pub const UNFIT: &[(&str, &str)] = &[
    ("codegenprepare", "it crashes: it wants what only the code generator sets up"),
    (
        "select-optimize",
        "it crashes where there are selections: it wants a cost model that is not set up",
    ),
    ("structurizecfg", "it miscompiles ordinary code (crc32, interpreter): it is meant for GPUs"),
    (
        "unify-loop-exits",
        "it miscompiles ordinary code (sort, interpreter) and leaves what the verifier refuses",
    ),
    ("loop-fusion", "it leaves what the verifier refuses (matrix, cipher, after other passes)"),
    ("newgvn", "it miscompiled fft after 13 other passes, and LLVM does not use it"),
    ("attributor", SLOW),
    ("attributor-cgscc", SLOW),
    ("attributor-light-cgscc", SLOW),
    ("iroutliner", SLOW),
];
