//! Passes that write something in simpler terms, most of them for code generation.

use super::{Kind::Lowering, Pass};

const fn lower(base: &'static str, description: &'static str) -> Pass {
    Pass::new(base, Lowering, description)
}

pub const PASSES: &[Pass] = &[
    lower("atomic-expand", "Writes atomic operations as those that the machine has."),
    lower("codegenprepare", "Rearranges blocks and addresses for code generation."),
    lower("coro-cleanup", "Removes what is left of coroutines."),
    lower("coro-early", "Writes the queries of coroutines that need no analysis as instructions."),
    lower("coro-elide", "Puts the frame of a coroutine into its caller's."),
    lower("coro-split", "Splits coroutines into functions at the points where they wait."),
    lower("coro-split", "Splits coroutines, and shares memory between variables of their frame.")
        .with("reuse-storage"),
    lower("dwarf-eh-prepare", "Ends unwinding by a call of the runtime."),
    lower("expand-large-div-rem", "Writes divisions of very wide integers as loops."),
    lower("expand-large-fp-convert", "Writes conversions of very wide integers as instructions."),
    lower("expand-memcmp", "Writes comparisons of a few bytes as loads."),
    lower("gc-lowering", "Writes reads and writes of garbage collectors as plain ones."),
    lower(
        "shadow-stack-gc-lowering",
        "Keeps a list of roots for a garbage collector, in functions that ask for it.",
    ),
    lower("jump-table-to-switch", "Turns calls through a large table of functions into a switch.")
        .option(&["jump-table-to-switch-size-threshold=100"]),
    lower(
        "kcfi",
        "Writes the checks of the kernel's control flow integrity, if the program asks for it.",
    ),
    lower("cfguard", "Adds Windows' checks of calls by address, if the program asks for it.")
        .with("check"),
    lower("lower-allow-check", "Decides which checks of sanitizers stay."),
    lower(
        "lower-atomic",
        "Writes atomic operations as plain ones, which is wrong where threads share memory.",
    )
    .lossy(),
    lower("lower-emutls", "Writes thread-local variables as calls of a runtime library.").lossy(),
    lower("lower-global-dtors", "Registers functions to run at the end by a call at the start.")
        .lossy(),
    lower("lower-ifunc", "Chooses among versions of a function by code that runs at the start."),
    lower("lower-invoke", "Writes calls that may throw as plain ones, which is wrong if one does.")
        .lossy(),
    lower("lower-matrix-intrinsics", "Writes operations on matrices as those on vectors."),
    lower(
        "lower-matrix-intrinsics",
        "Writes operations on matrices as those on vectors, without fusing them.",
    )
    .with("minimal"),
    lower("lowertypetests", "Writes tests of types as tests of addresses, in whole programs."),
    lower(
        "place-safepoints",
        "Adds calls at which a garbage collector may run, in functions that ask for it.",
    ),
    lower(
        "pre-isel-intrinsic-lowering",
        "Writes intrinsics that every machine lacks as calls or loops.",
    ),
    lower(
        "rewrite-statepoints-for-gc",
        "Writes down where pointers lie when a garbage collector may run.",
    ),
    lower("rewrite-symbols", "Renames symbols as a file says, which is none."),
    lower("safe-stack", "Moves arrays to a second stack, in functions that ask for it."),
    lower("select-optimize", "Turns selections into branches where that is expected to be faster."),
    lower("sjlj-eh-prepare", "Writes exceptions as long jumps, which other code must do as well.")
        .lossy(),
    lower("stack-protector", "Guards the return address, in functions that ask for it."),
    lower("strip-gc-relocates", "Removes what garbage collectors have changed of pointers.")
        .lossy(),
    lower(
        "typepromotion",
        "Computes in the machine's own width where narrower types were asked for.",
    ),
    lower("wasm-eh-prepare", "Writes exceptions in WebAssembly's form.").lossy(),
    lower("win-eh-prepare", "Writes exceptions in Windows' form, in functions that use it."),
];
