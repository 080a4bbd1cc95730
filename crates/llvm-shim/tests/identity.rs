//! What the two identities see and what they leave out.

mod common;

use common::{LOOP, load, run};
use xla_gym_llvm_shim as llvm;

/// Content and exact identity after a change of the text: whether each moved.
fn moved(before: &str, after: &str) -> (bool, bool) {
    let (before, after) = (load(before), load(after));
    (before.content() != after.content(), before.exact() != after.exact())
}

fn check(from: &str, to: &str, expected: (bool, bool)) {
    assert!(LOOP.contains(from), "{from}");
    let changed = LOOP.replacen(from, to, 1);
    assert_eq!(moved(LOOP, &changed), expected, "{from} -> {to}");
}

#[test]
fn names_of_local_values_mean_nothing() {
    let renamed = LOOP.replace("%more", "%other").replace("%head", "%top").replace("head:", "top:");
    assert_eq!(moved(LOOP, &renamed), (false, false));
}

#[test]
fn what_a_program_consists_of_counts() {
    let both = (true, true);
    check("add i32 %i, 1", "add i32 %i, 2", both);
    check("add i32 %i, 1", "add nsw i32 %i, 1", both);
    check("add i32 %i, 1", "sub i32 %i, 1", both);
    check("icmp slt", "icmp ult", both);
    check("getelementptr i32, ptr %p, i64 1", "getelementptr i64, ptr %p, i64 1", both);
    check("getelementptr i32", "getelementptr inbounds i32", both);
    check("load i32, ptr %at", "load i32, ptr %at, align 1", both);
    check("load i32, ptr %at", "load volatile i32, ptr %at", both);
    check("alloca i32", "alloca i32, i32 2", both);
    check("label %body, label %out", "label %out, label %body", both);
    check("call i32 @twice", "tail call i32 @twice", both);
    check("call i32 @twice(i32 %v)", "call i32 @twice(i32 %v) nounwind", both);
    check("i32 @twice(i32 %x) {", "i32 @twice(i32 %x) nounwind {", both);
    check("define internal", "define", both);
    check("define i32 @main(i32 %n", "define i32 @main(i32 noundef %n", both);
    check("define i32 @main(i32 %n", "define i32 @main(i32 range(i32 0, 9) %n", both);
    check("[ 0, %entry ]", "[ 1, %entry ]", both);
}

#[test]
fn data_counts() {
    let check = |before: &str, after: &str| {
        assert_eq!(moved(before, after), (true, true), "{before} {after}");
    };
    check("@a = global i32 1", "@a = global i32 2");
    check("@a = global i32 1", "@a = constant i32 1");
    check("@a = global i32 1", "@b = global i32 1");
    check("@a = global i128 1", "@a = global i128 18446744073709551617");
    check("@a = global float 1.0", "@a = global float -1.0");
    check("@a = global [2 x i8] c\"ab\"", "@a = global [2 x i8] c\"ba\"");
    check(
        "@a = global { i32, ptr } { i32 1, ptr null }",
        "@a = global <{ i32, ptr }> <{ i32 1, ptr null }>",
    );
    check(
        "@a = global [4 x i32] zeroinitializer\n@p = global ptr getelementptr (i32, ptr @a, i64 1)",
        "@a = global [4 x i32] zeroinitializer\n@p = global ptr getelementptr (i32, ptr @a, i64 2)",
    );
    check(
        "define <2 x i32> @f(<2 x i32> %v) {\n %r = shufflevector <2 x i32> %v, <2 x i32> poison, <2 x i32> <i32 0, i32 1>\n ret <2 x i32> %r\n}",
        "define <2 x i32> @f(<2 x i32> %v) {\n %r = shufflevector <2 x i32> %v, <2 x i32> poison, <2 x i32> <i32 1, i32 0>\n ret <2 x i32> %r\n}",
    );
    check(
        "define i32 @f({ i32, i32 } %v) {\n %r = extractvalue { i32, i32 } %v, 0\n ret i32 %r\n}",
        "define i32 @f({ i32, i32 } %v) {\n %r = extractvalue { i32, i32 } %v, 1\n ret i32 %r\n}",
    );
}

#[test]
fn order_and_metadata_count_only_exactly() {
    let (twice, main) = LOOP.split_at(LOOP.find("define i32 @main").unwrap());
    assert_eq!(moved(LOOP, &format!("{main}{twice}")), (false, true));
    // The block that the branch leads to first is visited first, wherever it stands.
    let start = LOOP.find("out:").unwrap();
    let end = start + LOOP[start..].find('}').unwrap();
    let out = &LOOP[start..end];
    let moved_up = LOOP.replacen(out, "", 1).replacen("then:", &format!("{out}then:"), 1);
    assert_eq!(moved(LOOP, &moved_up), (false, true));

    let marked = |text: &str| {
        format!(
            "{}\n!0 = {text}\n",
            LOOP.replacen("load i32, ptr %at", "load i32, ptr %at, !range !0", 1)
        )
    };
    assert_eq!(moved(LOOP, &marked("!{i32 0, i32 5}")), (false, true));
    assert_eq!(moved(&marked("!{i32 0, i32 5}"), &marked("!{i32 0, i32 6}")), (false, true));
}

#[test]
fn the_order_of_uses_counts_exactly() {
    let text = "define i32 @f(i32 %x) {\n %a = add i32 %x, 1\n %b = mul i32 %x, %a\n ret i32 %b\n";
    let turned = format!("{text}uselistorder i32 %x, {{ 1, 0 }}\n}}");
    assert_eq!(moved(&format!("{text}}}"), &turned), (false, true));
}

#[test]
fn copies_and_files_are_exact() {
    // Passes leave the uses of values in orders that nobody would have written.
    let mut module = load(LOOP);
    for pass in [
        "mem2reg",
        "inline",
        "gvn",
        "loop-rotate",
        "licm",
        "simplifycfg",
        "loop-unroll:unroll-count=4",
    ] {
        run(&mut module, pass);
        let check = |other: &llvm::Module, what: &str| {
            assert_eq!(other.exact(), module.exact(), "{what} after {pass}");
            assert_eq!(other.content(), module.content(), "{what} after {pass}");
            assert_eq!(other.text(), module.text(), "{what} after {pass}");
        };
        check(&module.clone(), "a copy");
        check(&llvm::Module::parse(&module.bitcode(true)).unwrap(), "bitcode");
    }
    let read = llvm::Module::parse(&module.text()).unwrap();
    assert_eq!(read.content(), module.content(), "text");
}

#[test]
fn equal_exact_identities_go_the_same_way() {
    let mut module = load(LOOP);
    let passes = ["mem2reg", "inline", "gvn", "loop-rotate", "licm", "instcombine", "simplifycfg"];
    for pass in passes {
        let mut copy = module.clone();
        let mut read = llvm::Module::parse(&module.bitcode(true)).unwrap();
        for other in [&mut module, &mut copy, &mut read] {
            run(other, pass);
        }
        assert_eq!(copy.exact(), module.exact(), "{pass}");
        assert_eq!(read.exact(), module.exact(), "{pass}");
    }
}

#[test]
fn identities_are_the_same_in_every_process() {
    // Written down once: a hash that took addresses or context numbers in would not come out again.
    let module = load(
        "target triple = \"x86_64-pc-linux-gnu\"\n\
         define i32 @f(i32 %x) {\n %y = add i32 %x, 1, !mark !0\n ret i32 %y\n}\n!0 = !{!\"text\"}",
    );
    let found = [module.content(), module.exact()].map(|hash| format!("{hash:032x}"));
    assert_eq!(found, ["2d748001ccf57c6526f8e50753b4a4e9", "17d8726f9207674c594640502df80677"]);
}

#[test]
fn the_version_moves_when_the_program_does() {
    let mut module = load(LOOP);
    let mut known = module.version();
    for pass in ["mem2reg", "mem2reg", "inline", "gvn", "instcombine", "gvn", "infer-alignment"] {
        let changed = run(&mut module, pass);
        assert_eq!(module.version() != known, changed, "{pass}");
        known = module.version();
    }
    // Attributes, alignments and metadata as well, by passes that keep quiet about it.
    let text = "define internal i32 @f(i32 %x) {\n ret i32 7\n}\n\
                define i32 @g(ptr %p) {\n %slot = alloca i32, align 16\n %y = load i32, ptr %slot, align 1\n\
                %z = call i32 @f(i32 %y)\n ret i32 %z\n}";
    for pass in ["infer-alignment", "function-attrs", "ipsccp", "globalsplit"] {
        let mut module = load(text);
        let known = module.version();
        let changed = run(&mut module, pass);
        assert_eq!(module.version() != known, changed, "{pass}");
        assert_eq!(changed, pass != "globalsplit", "{pass}");
    }
}
