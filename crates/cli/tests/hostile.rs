//! Input that is large, deep or lies about its size: refused or loaded, within the limits.

mod common;

use common::Home;

const MEGABYTES: usize = 1_000_000;

#[track_caller]
fn refused(name: &str, text: &[u8], options: &[&str], words: &[&str]) {
    let home = Home::new();
    home.write(name, text);
    let mut arguments = vec!["show", name];
    arguments.extend(options);
    home.run(&arguments).expect(3).says(&[name]).says(words);
    home.expect_clean(1);
}

#[track_caller]
fn loads(text: &[u8], instructions: u64) {
    let home = Home::new();
    home.write("a.hlo", text);
    assert_eq!(home.json(&["show", "a.hlo"])["counts"]["instructions"], instructions);
}

fn hlo(instructions: &str) -> Vec<u8> {
    format!("HloModule m\n\nENTRY e {{\n{instructions}\n}}\n").into_bytes()
}

/// A chain of negations, as long as asked for.
fn chain(length: usize) -> Vec<u8> {
    let mut text = "  x0 = f32[2] parameter(0)\n".to_owned();
    for i in 1..length {
        text.push_str(&format!("  x{i} = f32[2] negate(x{})\n", i - 1));
    }
    hlo(&text)
}

#[test]
fn a_hundred_megabytes() {
    refused("a.hlo", &b"a".repeat(100 * MEGABYTES), &[], &["line 1"]);
    let comment = "a".repeat(100 * MEGABYTES);
    loads(&hlo(&format!("  /*{comment}*/ ROOT a = f32[2] parameter(0)")), 1);
}

#[test]
fn hundreds_of_thousands_of_instructions() {
    let chain = chain(200_000);
    loads(&chain, 200_000);
    let slow = ["--request-limit", "0.2"];
    refused("slow.hlo", &chain, &slow, &["did not finish within 200ms"]);
}

#[test]
fn deep_nesting() {
    let nest = |open: &str, middle: &str, close: &str| {
        open.repeat(200_000) + middle + &close.repeat(200_000)
    };
    let crashed = ["crashed"];
    let tuple = nest("(", "f32[2]", ")");
    refused("tuple.hlo", &hlo(&format!("  ROOT a = {tuple} parameter(0)")), &[], &crashed);
    let literal = nest("{", "1", "}");
    refused(
        "literal.hlo",
        &hlo(&format!("  ROOT a = f32[2] constant({literal})")),
        &[],
        &["line 4"],
    );
    refused("modules.mlir", nest("module {\n", "", "}\n").as_bytes(), &[], &crashed);
    let list = nest("[", "", "]");
    refused(
        "list.mlir",
        format!("module attributes {{a = {list}}} {{}}").as_bytes(),
        &[],
        &crashed,
    );
}

#[test]
fn computations_that_call_themselves() {
    let call = |of: &str| {
        format!("{{\n  a = f32[2] parameter(0)\n  ROOT b = f32[2] call(a), to_apply={of}\n}}\n")
    };
    let itself = format!("HloModule m\n\nf {}\nENTRY e {}", call("f"), call("f"));
    refused("itself.hlo", itself.as_bytes(), &[], &["line 5", "to_apply=f"]);
    let mutual = format!("HloModule m\n\nf {}\ng {}\nENTRY e {}", call("g"), call("f"), call("f"));
    refused("mutual.hlo", mutual.as_bytes(), &[], &["line 5", "to_apply=g"]);
}

#[test]
fn sizes_that_do_not_exist() {
    let largest = i64::MAX;
    let parameter = |shape: &str| hlo(&format!("  ROOT a = {shape} parameter(0)"));
    refused("one.hlo", &parameter(&format!("f32[{largest}]")), &[], &["overflow"]);
    refused("two.hlo", &parameter(&format!("f32[{largest},{largest}]")), &[], &["overflow"]);
    refused("more.hlo", &parameter(&format!("f32[{largest}0]")), &[], &["line 4"]);
    let constant = |size: &str| hlo(&format!("  ROOT a = f32[{size}] constant({{1, 2, 3}})"));
    // Within the default limit of 8 GiB, XLA would spend ten seconds on filling 4 GB.
    let little = ["--memory-limit", "2"];
    refused("giga.hlo", &constant("1000000000"), &little, &["allocate"]);
    refused("tera.hlo", &constant("1000000000000"), &[], &["allocate"]);
    refused("max.hlo", &constant(&largest.to_string()), &[], &["overflow"]);
}
