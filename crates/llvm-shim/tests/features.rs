//! Counts and features, on programs small enough to count by hand.

mod common;

use common::{LOOP, load};
use xla_gym_llvm_shim::{AUTOPHASE, Counts, INST_COUNT, OPCODES};

fn check_autophase(text: &str, expected: &[(&str, u64)]) {
    let features = load(text).autophase();
    // Whatever is not named is 0.
    let mut wanted = [0; AUTOPHASE.len()];
    for (name, value) in expected {
        wanted[AUTOPHASE.iter().position(|known| known == name).expect(name)] = *value;
    }
    for (name, (found, wanted)) in AUTOPHASE.iter().zip(features.iter().zip(&wanted)) {
        assert_eq!(found, wanted, "{name} of {text}");
    }
}

#[test]
fn totals_count_functions_with_a_body() {
    let counts = load(LOOP).counts();
    assert_eq!(counts, Counts { instructions: 20, blocks: 7, functions: 2 });
    let counts = load("declare void @f()\n@g = global i32 0").counts();
    assert_eq!(counts, Counts::default());
}

#[test]
fn opcodes_are_counted_by_name() {
    let counts = load(LOOP).opcodes();
    let found: Vec<(&str, u32)> =
        OPCODES.iter().copied().zip(counts).filter(|(_, count)| *count > 0).collect();
    let expected = [
        ("ret", 2),
        ("br", 5),
        ("add", 1),
        ("shl", 1),
        ("and", 1),
        ("alloca", 1),
        ("load", 2),
        ("store", 2),
        ("getelementptr", 1),
        ("icmp", 2),
        ("phi", 1),
        ("call", 1),
    ];
    assert_eq!(found, expected);
    let functions = load(LOOP).functions();
    let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["twice", "main"]);
    let sums: Vec<u32> = functions.iter().map(|function| function.opcodes.iter().sum()).collect();
    assert_eq!(sums, [2, 18]);
}

#[test]
fn every_opcode_has_the_name_that_llvm_writes() {
    // One instruction of each sort that text can hold, in the order of the table; each is told by
    // the histogram, so that a shifted table shows.
    let program = r#"
    declare i32 @personality(...)
    declare void @f()
    define void @all(ptr %p, i32 %i, float %x, <4 x i32> %v, { i32, i32 } %s) personality ptr @personality {
    entry:
      %a1 = add i32 %i, 1
      %a2 = sub i32 %a1, %i
      %a3 = sub i32 %a2, %i
      %m = mul i32 %a3, %i
      %sh = ashr i32 %m, 1
      %c1 = atomicrmw add ptr %p, i32 1 seq_cst
      %c2 = cmpxchg ptr %p, i32 1, i32 2 seq_cst seq_cst
      fence seq_cst
      %fn = fneg float %x
      %fi = fptosi float %fn to i32
      %e = extractelement <4 x i32> %v, i32 0
      %n = insertelement <4 x i32> %v, i32 %e, i32 1
      %w = shufflevector <4 x i32> %v, <4 x i32> %n, <4 x i32> zeroinitializer
      %xv = extractvalue { i32, i32 } %s, 0
      %iv = insertvalue { i32, i32 } %s, i32 %xv, 1
      %fr = freeze i32 %xv
      invoke void @f() to label %done unwind label %pad
    pad:
      %lp = landingpad { ptr, i32 } cleanup
      resume { ptr, i32 } %lp
    done:
      unreachable
    }"#;
    let counts = load(program).opcodes();
    let of = |name: &str| counts[OPCODES.iter().position(|known| *known == name).expect(name)];
    for (name, expected) in [
        ("add", 1),
        ("sub", 2),
        ("mul", 1),
        ("ashr", 1),
        ("atomicrmw", 1),
        ("cmpxchg", 1),
        ("fence", 1),
        ("fneg", 1),
        ("fptosi", 1),
        ("extractelement", 1),
        ("insertelement", 1),
        ("shufflevector", 1),
        ("extractvalue", 1),
        ("insertvalue", 1),
        ("freeze", 1),
        ("invoke", 1),
        ("landingpad", 1),
        ("resume", 1),
        ("unreachable", 1),
        ("ret", 0),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
    assert_eq!(counts.iter().sum::<u32>(), 20);
}

#[test]
fn inst_count_is_three_totals_and_the_opcodes() {
    let module = load(LOOP);
    let features = module.inst_count();
    assert_eq!(features[..3], [20, 7, 2]);
    let opcodes: Vec<u64> = module.opcodes().iter().map(|count| u64::from(*count)).collect();
    assert_eq!(features[3..], opcodes);
    // The names of both tables go together: `ICmpCount` is the number of `icmp`.
    for (name, opcode) in INST_COUNT[3..].iter().zip(OPCODES) {
        let plain = name.trim_end_matches("Count").to_lowercase();
        let expected = match opcode {
            "cmpxchg" => "atomiccmpxchg".to_owned(),
            other => other.replace('_', ""),
        };
        assert_eq!(plain, expected);
    }
}

#[test]
fn autophase_of_a_straight_line() {
    check_autophase(
        "define i32 @f(i32 %x) {\n %y = add i32 %x, 1\n ret i32 %y\n}",
        &[
            ("BBNoPhi", 1),
            ("const32Bit", 1),
            ("numConstOnes", 1),
            ("binaryConstArg", 1),
            ("NumAddInst", 1),
            ("BlockLow", 1),
            ("NumRetInst", 1),
            ("TotalBlocks", 1),
            ("TotalInsts", 2),
            ("TotalFuncs", 1),
        ],
    );
}

#[test]
fn autophase_of_a_loop() {
    check_autophase(
        LOOP,
        &[
            // head has one phi with two arguments.
            ("BBNumArgsLo", 1),
            ("BB03Phi", 1),
            ("BBNoPhi", 6),
            ("BeginPhi", 1),
            ("ArgsPhi", 2),
            // One predecessor: body, then, out. Two: head (entry, back), back (body, then).
            ("onePred", 3),
            ("twoPred", 2),
            // One successor: entry, then, back. Two: head, body.
            ("oneSuccessor", 3),
            ("twoSuccessor", 2),
            ("onePredOneSuc", 1),
            ("onePredTwoSuc", 1),
            ("twoPredOneSuc", 1),
            ("twoEach", 1),
            // body to back: body has two ways out, back two ways in.
            ("CriticalCount", 1),
            ("NumEdges", 7),
            ("BranchCount", 5),
            ("UncondBranches", 3),
            ("returnInt", 1),
            // 32 bits: shl 1; the alloca's 1; store 0; phi 0; and 1; icmp 1; add 1. 64: the address's 1.
            ("const32Bit", 7),
            ("const64Bit", 1),
            ("numConstZeroes", 2),
            ("numConstOnes", 6),
            ("binaryConstArg", 3),
            ("NumAddInst", 1),
            ("NumAllocaInst", 1),
            ("NumAndInst", 1),
            ("BlockLow", 7),
            ("NumBrInst", 5),
            ("NumCallInst", 1),
            ("NumGetElementPtrInst", 1),
            ("NumICmpInst", 2),
            ("NumLoadInst", 2),
            ("NumPHIInst", 1),
            ("NumRetInst", 2),
            ("NumShlInst", 1),
            ("NumStoreInst", 2),
            ("TotalBlocks", 7),
            ("TotalInsts", 20),
            ("TotalMemInst", 7),
            ("TotalFuncs", 2),
            // The alloca and the two loads.
            ("testUnary", 3),
        ],
    );
}

#[test]
fn autophase_of_many_ways() {
    // Four phis of three arguments behind a switch with three targets, and a block of 16.
    let mut long = String::new();
    for which in 0..14 {
        long.push_str(&format!("  %z{which} = xor i64 %a, {}\n", which + 2));
    }
    let text = format!(
        "define void @f(i64 %a) {{
entry:
  switch i64 %a, label %one [ i64 0, label %two
                              i64 7, label %three ]
one:
  br label %end
two:
  br label %end
three:
  br label %end
end:
  %p = phi i64 [ %a, %one ], [ 0, %two ], [ 1, %three ]
  %q = phi i64 [ %a, %one ], [ %a, %two ], [ %a, %three ]
  %r = phi i64 [ %a, %one ], [ %a, %two ], [ %a, %three ]
  %s = phi i64 [ %a, %one ], [ %a, %two ], [ %a, %three ]
{long}  ret void
}}"
    );
    check_autophase(
        &text,
        &[
            ("BBNumArgsHi", 1),
            ("BBHiPhi", 1),
            ("BBNoPhi", 4),
            ("BeginPhi", 1),
            ("ArgsPhi", 12),
            ("onePred", 3),
            ("onePredOneSuc", 3),
            ("oneSuccessor", 3),
            ("morePreds", 1),
            ("NumEdges", 6),
            ("BranchCount", 3),
            ("UncondBranches", 3),
            ("NumBrInst", 3),
            // The switch's 0 and 7, the phi's 0 and 1, and 14 operands of xor.
            ("const64Bit", 18),
            ("numConstZeroes", 2),
            ("numConstOnes", 1),
            ("binaryConstArg", 14),
            ("NumXorInst", 14),
            ("NumPHIInst", 4),
            ("NumRetInst", 1),
            ("BlockMid", 1),
            ("BlockLow", 4),
            ("TotalBlocks", 5),
            ("TotalInsts", 23),
            ("TotalFuncs", 1),
        ],
    );
}

#[test]
fn what_debuggers_need_is_not_counted() {
    let text = r#"
define void @f(i32 %x) !dbg !4 {
  call void @llvm.dbg.value(metadata i32 %x, metadata !6, metadata !DIExpression()), !dbg !7
  ret void, !dbg !7
}
declare void @llvm.dbg.value(metadata, metadata, metadata)
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1)
!1 = !DIFile(filename: "f.c", directory: ".")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !DISubroutineType(types: !5)
!4 = distinct !DISubprogram(name: "f", scope: !1, file: !1, type: !3, spFlags: DISPFlagDefinition, unit: !0)
!5 = !{null}
!6 = !DILocalVariable(name: "x", scope: !4, file: !1, line: 1)
!7 = !DILocation(line: 1, column: 1, scope: !4)
"#;
    let module = load(text);
    assert_eq!(module.counts().instructions, 1);
    assert_eq!(module.inst_count()[0], 1);
    assert_eq!(module.autophase()[51], 1);
    // And it is part of the exact identity, but not of the content.
    let plain = load("define void @f(i32 %x) {\n ret void\n}");
    assert_ne!(module.exact(), plain.exact());
}
