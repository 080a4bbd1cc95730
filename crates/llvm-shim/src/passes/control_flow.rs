//! Passes over branches and blocks.

use super::{Kind::ControlFlow, Pass};

const fn flow(base: &'static str, description: &'static str) -> Pass {
    Pass::new(base, ControlFlow, description)
}

pub const PASSES: &[Pass] = &[
    flow("break-crit-edges", "Puts a block on each edge that leaves a branch and enters a meeting point."),
    flow("callbr-prepare", "Splits edges behind assembly that jumps, and gives its results names on each."),
    flow("callsite-splitting", "Doubles a call behind a branch, so that each copy knows more of its arguments."),
    flow("chr", "Merges branches that are nearly always taken into one, by profile."),
    flow("dfa-jump-threading", "Threads jumps of state machines that a switch in a loop implements."),
    flow("dfa-jump-threading", "Threads jumps of state machines at up to ten times the usual cost.").option(&["dfa-cost-threshold=500"]),
    flow("fix-irreducible", "Gives each loop with several entries a single one."),
    flow("flatten-cfg", "Turns nested branches into one on a combined condition."),
    flow("guard-widening", "Joins guards into earlier ones, in functions."),
    flow("indirectbr-expand", "Turns jumps to computed addresses into switches where the machine must not jump so."),
    flow("jump-table-to-switch", "Turns calls through a table of functions into a switch."),
    flow("jump-threading", "Jumps on at once where the way into a block decides its branch."),
    flow("jump-threading", "Threads jumps through blocks of up to 12 instructions instead of 6.").option(&["jump-threading-threshold=12"]),
    flow("jump-threading", "Threads jumps through blocks of up to 2 instructions instead of 6.").option(&["jump-threading-threshold=2"]),
    flow("lower-expect", "Turns hints on what to expect into weights of branches."),
    flow("lower-guard-intrinsic", "Turns guards into branches that leave optimised code."),
    flow("lower-switch", "Turns switches into branches."),
    flow("lower-widenable-condition", "Decides conditions that were left open for guards."),
    flow("make-guards-explicit", "Turns guards into branches on conditions that stay open."),
    flow("mergereturn", "Leaves the function at a single place."),
    flow("simplifycfg", "Merges, moves and removes blocks and branches, and keeps loops in shape."),
    flow("simplifycfg", "Simplifies branches, running up to 4 instructions needlessly to save one.").with("bonus-inst-threshold=4"),
    flow("simplifycfg", "Simplifies branches, running up to 16 instructions needlessly to save one.").with("bonus-inst-threshold=16"),
    flow("simplifycfg", "Simplifies branches and replaces the value of a switch's phi by what was switched on.").with("forward-switch-cond"),
    flow("simplifycfg", "Simplifies branches and writes switches over a range as comparisons.").with("switch-range-to-icmp"),
    flow("simplifycfg", "Simplifies branches and writes switches over constants as tables.").with("switch-to-lookup"),
    flow("simplifycfg", "Simplifies branches even where loops lose their shape.").with("no-keep-loops"),
    flow("simplifycfg", "Simplifies branches and moves what both sides begin with before them.").with("hoist-common-insts"),
    flow("simplifycfg", "Simplifies branches and moves what both sides end with behind them.").with("sink-common-insts"),
    flow("simplifycfg", "Simplifies branches and moves what both sides share before or behind them.").with("hoist-common-insts;sink-common-insts"),
    flow("simplifycfg", "Simplifies branches with all of its rewrites, as late in the default pipelines.").with(
        "bonus-inst-threshold=1;forward-switch-cond;switch-range-to-icmp;switch-to-lookup;no-keep-loops;hoist-common-insts;sink-common-insts",
    ),
    flow("simplifycfg", "Simplifies branches, merging two into one although both conditions cost something.").option(&["two-entry-phi-node-folding-threshold=16"]),
    flow("structurizecfg", "Writes any flow of control as nested branches and loops."),
    flow("unify-loop-exits", "Gives each loop a single exit."),
];
