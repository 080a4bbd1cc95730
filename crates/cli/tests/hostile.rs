//! Input that is large, deep or lies about its size: refused or loaded, within the limits.

mod common;

use common::{Home, Ran, mlp};

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

/// Runs a command on a program whose input would be 4 TB, and insists that it ends in good order:
/// by itself, with a sentence if it fails, and without taking the memory.
#[track_caller]
fn survives(home: &Home, arguments: &[&str]) -> Ran {
    let ran = home.run(arguments);
    assert!(ran.status.code().is_some(), "killed by a signal: {arguments:?} {ran:#?}");
    for word in ["panicked", "abort", "memory allocation of", "stack backtrace", "SIG"] {
        assert!(!ran.stderr.contains(word), "{arguments:?} {ran:#?}");
    }
    assert!(
        ran.peak_kib > 0 && ran.peak_kib < 2_000_000,
        "{arguments:?} took {} KiB",
        ran.peak_kib
    );
    if !ran.status.success() {
        let said =
            ran.stderr.lines().any(|line| line.starts_with("xla-gym: ") && line.contains(' '));
        assert!(said || !ran.stdout.is_empty(), "{arguments:?} {ran:#?}");
    }
    ran
}

/// The same, of a command that has to run the program and cannot.
#[track_caller]
fn gives_up(home: &Home, arguments: &[&str]) {
    let ran = survives(home, arguments);
    assert!(!ran.status.success(), "{arguments:?} {ran:#?}");
}

fn home_with_a_program_of_terabytes() -> Home {
    let home = Home::new();
    home.write("tera.hlo", "HloModule m\nENTRY e { ROOT p = f32[1000000000000] parameter(0) }\n");
    home
}

#[test]
fn a_program_of_terabytes_can_be_looked_at() {
    let home = home_with_a_program_of_terabytes();
    let passes = ["-p", "dce,algsimp"];
    for command in ["show", "run", "default", "score"] {
        let mut arguments = vec![command, "tera.hlo"];
        match command {
            "run" => arguments.extend(passes),
            "score" => arguments.extend(["-p", "dce", "--no-check"]),
            _ => {}
        }
        survives(&home, &arguments);
    }
    for command in ["minimize", "attribute"] {
        survives(&home, &[command, "tera.hlo", "--passes", "dce,algsimp"]);
    }
    survives(&home, &["diff", "tera.hlo", "tera.hlo"]);
    survives(&home, &["data", "scan", "tera.hlo"]);
    survives(&home, &["eval", "--benchmarks", "tera.hlo", "--against", "default", "--seeds", "0"]);
}

#[test]
fn a_program_of_terabytes_is_not_run() {
    let home = home_with_a_program_of_terabytes();
    gives_up(&home, &["exec", "tera.hlo"]);
    gives_up(&home, &["check", "tera.hlo", "tera.hlo"]);
    survives(&home, &["score", "tera.hlo", "-p", "dce"]);
}

#[test]
fn a_program_of_terabytes_is_not_optimised_by_what_nobody_ran() {
    let home = home_with_a_program_of_terabytes();
    let ran = survives(&home, &["optimize", "tera.hlo", "--budget", "20", "--json"]);
    // That XLA's own order is the best needs no proof; anything else does.
    if ran.status.success() {
        assert_eq!(ran.json()["passes"], serde_json::json!([]), "{ran:#?}");
    }
    gives_up(&home, &["optimize", "tera.hlo", "--objective", "run-time", "--seconds", "5"]);
}

#[test]
fn a_recipe_for_a_program_of_terabytes_is_not_verified() {
    let home = home_with_a_program_of_terabytes();
    home.json(&["optimize", &mlp("hlo"), "--budget", "3", "--no-store", "--recipe", "r.json"]);
    let mut recipe: serde_json::Value = serde_json::from_slice(&home.read("r.json")).unwrap();
    recipe["passes"] = serde_json::json!(["dce"]);
    home.write("r.json", recipe.to_string());
    survives(&home, &["apply", "r.json", "tera.hlo", "--force", "--unproven"]);
    gives_up(&home, &["apply", "r.json", "tera.hlo", "--force"]);
}
