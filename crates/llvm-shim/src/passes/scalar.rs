//! Passes over values and memory within functions, and those that make vectors.

use super::{
    Kind::{Memory, Scalar, Vector},
    Pass,
};

const fn scalar(base: &'static str, description: &'static str) -> Pass {
    Pass::new(base, Scalar, description)
}

const fn memory(base: &'static str, description: &'static str) -> Pass {
    Pass::new(base, Memory, description)
}

const fn vector(base: &'static str, description: &'static str) -> Pass {
    Pass::new(base, Vector, description)
}

pub const PASSES: &[Pass] = &[
    scalar("adce", "Removes instructions and branches that nothing visible depends on, assuming all dead until shown otherwise."),
    scalar("aggressive-instcombine", "Combines patterns of several instructions that are too costly to look for everywhere."),
    scalar("alignment-from-assumptions", "Raises the alignment of loads and stores where an assumption allows it."),
    scalar("assume-builder", "Writes down as assumptions what instructions imply, so that it outlives them."),
    scalar("assume-simplify", "Merges and removes assumptions that say nothing new."),
    scalar("bdce", "Removes instructions none of whose bits are needed."),
    scalar("consthoist", "Loads constants that are costly to make once instead of at each use."),
    scalar("constraint-elimination", "Decides comparisons that follow from those before them by linear arithmetic."),
    scalar("correlated-propagation", "Uses what is known of a value's range where it is read."),
    scalar("dce", "Removes instructions whose results nobody reads."),
    scalar("div-rem-pairs", "Computes remainder and quotient of the same numbers together, or one from the other, as the machine prefers."),
    scalar("early-cse", "Removes what was computed before on the way from the entry, in one quick walk."),
    scalar("early-cse", "Removes what was computed before, and loads, with MemorySSA to tell which memory may have changed.").with("memssa"),
    scalar("float2int", "Computes in integers where floating point numbers hold nothing else."),
    scalar("gvn", "Removes what has the same value as something before, loads and partly redundant ones included."),
    scalar("gvn", "Removes what has the same value as something before, and nothing that is only partly redundant.").with("no-pre"),
    scalar("gvn", "Removes what has the same value as something before, without adding loads on some paths.").with("no-load-pre"),
    scalar("gvn", "Removes what has the same value as something before, without analysing memory.").with("no-memdep"),
    scalar("gvn", "Removes what has the same value as something before, and splits back edges of loops for partly redundant loads.").with("split-backedge-load-pre"),
    scalar("newgvn", "Removes what has the same value as something before, by congruence classes of the whole function."),
    scalar("infer-address-spaces", "Finds the address space of pointers into the generic one."),
    scalar("infer-alignment", "Raises alignments where the pointer's origin shows them."),
    scalar("instcombine", "Replaces instructions by fewer or simpler ones, in one round.").with("no-verify-fixpoint"),
    scalar("instcombine", "Replaces instructions by fewer or simpler ones, in up to four rounds.").with("max-iterations=4;no-verify-fixpoint"),
    scalar("instcombine", "Replaces instructions by fewer or simpler ones, and looks at loops for it.").with("no-verify-fixpoint;use-loop-info"),
    scalar("instsimplify", "Replaces instructions by constants or values that exist already, and makes no new ones."),
    scalar("libcalls-shrinkwrap", "Calls functions of the C library only for arguments for which the call can do something."),
    scalar("lower-constant-intrinsics", "Answers what asks whether something is constant or how large it is."),
    scalar("nary-reassociate", "Regroups sums of several terms so that parts computed elsewhere are found."),
    scalar("partially-inline-libcalls", "Makes the machine compute square roots, and calls the library only for the rest."),
    scalar("reassociate", "Regroups sums and products so that constants meet and common parts show."),
    scalar("sccp", "Finds constants and branches that are never taken, together."),
    scalar("separate-const-offset-from-gep", "Takes constants out of addresses, so that the rest is shared."),
    scalar("separate-const-offset-from-gep", "Takes constants out of addresses and writes the rest as single steps.").with("lower-gep"),
    scalar("sink", "Moves instructions into the only branch that needs them."),
    scalar("slsr", "Computes products and addresses from similar ones before them by addition."),
    scalar("speculative-execution", "Moves cheap instructions before the branch that guards them."),
    scalar("speculative-execution", "Moves cheap instructions before the branch, on machines whose threads diverge.").with("only-if-divergent-target"),
    scalar("tailcallelim", "Turns calls of the function itself at its end into loops, and marks calls that need no frame."),
    scalar("objc-arc", "Removes pairs of Objective-C's retain and release."),
    scalar("objc-arc-contract", "Merges Objective-C's reference counting calls into fewer."),
    scalar("objc-arc-expand", "Makes the arguments of Objective-C's reference counting calls plain."),
    memory("dse", "Removes stores that are overwritten before anybody reads them."),
    memory("gvn-hoist", "Moves what all branches compute before the branch."),
    memory("gvn-sink", "Moves what all branches compute behind where they meet."),
    memory("mem2reg", "Turns local variables whose address nobody needs into values."),
    memory("memcpyopt", "Removes copies of memory, or makes them of fewer bytes."),
    memory("mergeicmps", "Compares consecutive fields by one comparison of memory."),
    memory("mldst-motion", "Moves loads and stores that both branches have before or behind the branch."),
    memory("mldst-motion", "Moves loads and stores of both branches, and splits the block behind for it.").with("split-footer-bb"),
    memory("move-auto-init", "Moves the filling of fresh variables to where they are needed."),
    memory("reg2mem", "Turns values that live across blocks into local variables: the opposite of mem2reg."),
    memory("sroa", "Splits local structures and arrays into their parts and turns them into values."),
    memory("sroa", "Splits local structures into values without new branches.").with("preserve-cfg"),
    memory("tlshoist", "Takes the address of a thread-local variable once."),
    memory("interleaved-load-combine", "Loads what several strided loads read as one wide load."),
    vector("inject-tli-mappings", "Says of calls of mathematical functions which vector versions exist."),
    vector("load-store-vectorizer", "Merges neighbouring loads or stores into vectors."),
    vector("scalarizer", "Takes operations on vectors apart into their elements."),
    vector("scalarize-masked-mem-intrin", "Writes masked loads and stores that the machine lacks as branches."),
    vector("slp-vectorizer", "Makes vectors of similar instructions that stand side by side."),
    vector("slp-vectorizer", "Makes vectors of similar instructions even where each is expected to cost a little.").option(&["slp-threshold=-10"]),
    vector("vector-combine", "Merges operations on vectors by what they cost on the machine."),
    vector("interleaved-access", "Writes interleaved loads and stores as the machine's own."),
];
