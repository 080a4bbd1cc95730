//! Files that are no program: each is refused with exit code 3 and a message that names it.

mod common;
#[path = "common/proto.rs"]
mod proto;

use std::{fs, io::Write};

use common::{Home, graph, mlp, testdata};
use proto::Value;

/// Every file is refused, with these words, and nothing is left behind.
#[track_caller]
fn check(cases: &[(&str, Vec<u8>, &[&str])]) {
    let home = Home::new();
    for (name, bytes, words) in cases {
        home.write(name, bytes);
        let ran = home.run(&["show", name]).expect(3).says(&[&format!("xla-gym: {name}")]);
        assert_eq!(ran.stdout, "", "{ran:#?}");
        ran.says(words);
    }
    home.expect_clean(cases.len());
}

/// The bytes of a file with the small perceptron, up to a percentage.
fn cut(extension: &str, percent: usize) -> Vec<u8> {
    let mut bytes = fs::read(mlp(extension)).unwrap();
    bytes.truncate(bytes.len() * percent / 100);
    bytes
}

/// Bytes without a pattern, the same in every run (xorshift).
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A module of one computation; its instructions start at line 4.
fn hlo(instructions: &str) -> Vec<u8> {
    format!("HloModule m\n\nENTRY e {{\n{instructions}\n}}\n").into_bytes()
}

fn stablehlo(operation: &str) -> Vec<u8> {
    format!(
        "module {{\n  func.func @main(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<2xf32> {{\n    \
         %0 = {operation} : tensor<2xf32>\n    return %0 : tensor<2xf32>\n  }}\n}}\n"
    )
    .into_bytes()
}

#[test]
fn nothing_and_noise() {
    let no_format = &["not a known program format"][..];
    check(&[
        ("empty.hlo", Vec::new(), &["empty"]),
        ("blank.hlo", b" \n\t\r\n ".to_vec(), &["empty"]),
        ("comment.hlo", b"// nothing else\n".to_vec(), &["empty"]),
        ("noise.hlo", noise(4096), no_format),
        ("noise.pb", [b"\x0a\x05", &noise(4096)[..]].concat(), no_format),
        ("noise.bc", [b"ML\xefR", &noise(4096)[..]].concat(), &[]),
        ("letter.txt", b"Dear Sir or Madam,\n".to_vec(), &["line 1", "neither with `HloModule`"]),
        ("nul.hlo", b"HloModule m\n\0\0\0".to_vec(), &["line 2"]),
        ("latin.hlo", b"HloModule m\n\xe4\xff\n".to_vec(), &["line 2"]),
    ]);
}

#[test]
fn broken_compression() {
    let zst = fs::read(graph("mlp-train")).unwrap();
    check(&[
        ("noise.hlo.gz", gzip(&noise(4096)), &["not a known program format"]),
        ("magic.hlo.gz", [b"\x1f\x8b", &noise(4096)[..]].concat(), &["gzip data is broken"]),
        ("cut.hlo.gz", cut("hlo.gz", 50), &["gzip data is broken"]),
        ("cut.hlo.zst", zst[..zst.len() / 2].to_vec(), &["zstd data is broken"]),
        ("magic.hlo.zst", b"\x28\xb5\x2f\xfd".to_vec(), &["zstd data is broken"]),
    ]);
}

#[test]
fn truncated_text() {
    check(&[
        ("1.hlo", cut("hlo", 1), &["line 1"]),
        ("25.hlo", cut("hlo", 25), &["line 25"]),
        ("50.hlo", cut("hlo", 50), &["line 38"]),
        ("90.hlo", cut("hlo", 90), &["line 62"]),
        ("99.hlo", cut("hlo", 99), &["line 67"]),
        ("50.mlir", cut("stablehlo.mlir", 50), &["line 15"]),
        ("99.mlir", cut("stablehlo.mlir", 99), &["line 37"]),
    ]);
}

#[test]
fn truncated_binaries() {
    let no_format = &["not a known program format"][..];
    check(&[
        ("50.pb", cut("pb", 50), no_format),
        ("99.pb", cut("pb", 99), no_format),
        ("50.hlo_proto.pb", cut("hlo_proto.pb", 50), no_format),
        ("50.bc", cut("stablehlo.bc", 50), &["bytes when only", "StableHLO_v1"]),
    ]);
}

#[test]
fn text_that_xla_refuses() {
    let a = "  a = f32[2] parameter(0)\n";
    let with_a = |text: &str| hlo(&format!("{a}{text}"));
    check(&[
        ("opcode.hlo", with_a("  ROOT b = f32[2] frobnicate(a)"), &["line 5", "frobnicate"]),
        ("undefined.hlo", with_a("  ROOT b = f32[2] negate(c)"), &["line 5", "negate(c)"]),
        ("twice.hlo", with_a("  a = f32[2] parameter(1)"), &["line 5", "already exists"]),
        ("cycle.hlo", with_a("  b = f32[2] add(a, c)\n  c = f32[2] add(a, b)"), &["line 5"]),
        ("elided.hlo", with_a("  ROOT b = f32[2] constant({...})"), &["line 5", "large constants"]),
        ("parameters.hlo", with_a("  ROOT b = f32[2] parameter(7)"), &["parameter_count"]),
        ("negative.hlo", hlo("  ROOT a = f32[-3] parameter(0)"), &["error"]),
        ("no-body.hlo", hlo(""), &["line 5"]),
        ("no-entry.hlo", b"HloModule m\n".to_vec(), &["line 2"]),
        // Parses, but the verifier refuses it.
        (
            "shapes.hlo",
            with_a("  b = f32[3] parameter(1)\n  ROOT c = f32[2] add(a, b)"),
            &["f32[2] and f32[3]", "%c"],
        ),
        // XLA's parser aborts.
        ("reshape.hlo", with_a("  ROOT b = f32[3] reshape(a)"), &["aborted", "Check failed"]),
    ]);
}

#[test]
fn stablehlo_that_xla_refuses() {
    check(&[
        ("operation.mlir", stablehlo("stablehlo.frobnicate %a"), &["line 3", "frobnicate"]),
        ("shapes.mlir", stablehlo("stablehlo.add %a, %b"), &["line 3", "tensor<3xf32>"]),
        ("elided.mlir", stablehlo("stablehlo.constant dense_resource<__elided__>"), &["line 3"]),
        ("no-main.mlir", b"module {}\n".to_vec(), &["line 1", "`main`"]),
    ]);
}

#[test]
fn protos_with_bogus_content() {
    // Field numbers of HloModuleProto, HloComputationProto and HloInstructionProto.
    const COMPUTATIONS: u64 = 3;
    const INSTRUCTIONS: u64 = 2;
    let whole = fs::read(mlp("pb")).unwrap();
    let instruction = |field: u64, value: Value| {
        proto::edit(&whole, &[COMPUTATIONS, INSTRUCTIONS, field], &value)
    };
    let computation = |field: u64, value| proto::edit(&whole, &[COMPUTATIONS, field], &value);
    let number = |value: i64| Value::Number(value as u64);
    let word = |value: &str| Value::Bytes(value.into());
    check(&[
        ("entry-id.pb", proto::edit(&whole, &[6], &number(999)), &["entry"]),
        ("root-id.pb", computation(6, number(999)), &["Root instruction not found"]),
        ("computation-id.pb", computation(5, number(7)), &["computation_id"]),
        ("operand-id.pb", instruction(36, number(999_999)), &["invalid operand id"]),
        ("negative-id.pb", instruction(36, number(-1)), &["invalid operand id"]),
        ("called-id.pb", instruction(38, number(999_999)), &["invalid computation id"]),
        ("parameter.pb", instruction(9, number(-7)), &["got -7"]),
        ("opcode.pb", instruction(2, word("frobnicate")), &["frobnicate"]),
        ("arity.pb", instruction(2, word("while")), &["operands"]),
        ("no-shape.pb", instruction(3, word("")), &["shape"]),
    ]);
}

#[test]
fn what_is_no_file() {
    let home = Home::new();
    home.run(&["show", "nowhere.hlo"]).expect(3).says(&["nowhere.hlo", "No such file"]);
    fs::create_dir(home.path("folder.hlo")).unwrap();
    home.run(&["show", "folder.hlo"]).expect(3).says(&["folder.hlo is a directory"]);
    home.run(&["show", "/dev/null"]).expect(3).says(&["/dev/null: the file is empty"]);
    home.run(&["show", "-"]).expect(3).says(&["standard input: the file is empty"]);
}

#[test]
fn every_command_refuses_what_is_no_program() {
    let home = Home::new();
    home.write("bad.hlo", hlo("  ROOT b = f32[2] frobnicate()"));
    let good = mlp("hlo");
    for arguments in [
        &["show", "bad.hlo", "--json"][..],
        &["run", "bad.hlo", "--passes", "dce"],
        &["default", "bad.hlo"],
        &["score", "bad.hlo", "--passes", "dce"],
        &["exec", "bad.hlo"],
        &["diff", &good, "bad.hlo"],
        &["check", &good, "bad.hlo"],
    ] {
        let ran = home.run(arguments).expect(3).says(&["bad.hlo", "line 4"]);
        assert_eq!(ran.stdout, "", "{ran:#?}");
    }
}

#[test]
fn content_decides_not_the_name() {
    let home = Home::new();
    let expected = home.fingerprint(&mlp("hlo"));
    for (file, name) in [
        ("mlp.stablehlo.mlir", "mlp.pb"),
        ("mlp.pb", "mlp.mlir"),
        ("mlp.pb.zst", "mlp.hlo.gz"),
        ("mlp.hlo.gz", "mlp.txt"),
    ] {
        fs::copy(testdata("formats").join(file), home.path(name)).unwrap();
        assert_eq!(home.fingerprint(name), expected, "{file} as {name}");
    }
}
