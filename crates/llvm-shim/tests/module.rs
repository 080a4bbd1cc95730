//! Reading, writing, running passes, machine code.

mod common;

use common::{LOOP, load, run};
use xla_gym_llvm_shim as llvm;

#[test]
fn the_version_is_that_of_the_build() {
    assert!(llvm::version().starts_with("19."), "{}", llvm::version());
}

fn check_refused(bytes: &[u8], words: &[&str]) {
    llvm::initialize(|| std::process::abort());
    let error = llvm::Module::parse(bytes).unwrap_err();
    for word in words {
        assert!(error.contains(word), "{word:?} is missing in: {error}");
    }
}

#[test]
fn broken_programs_are_refused_with_the_place() {
    check_refused(b"define i32 @f() {\n  ret i64 1\n}", &["line 2", "ret i64 1"]);
    check_refused(b"no program", &["line 1"]);
    check_refused(b"BC\xc0\xde and then nonsense", &[]);
    let bitcode = load(LOOP).bitcode(false);
    check_refused(&bitcode[..bitcode.len() / 2], &[]);
}

#[test]
fn what_the_verifier_refuses_is_said() {
    llvm::initialize(|| std::process::abort());
    let text = b"define i32 @f(i1 %c) {\nentry:\n br i1 %c, label %a, label %b\na:\n %x = add i32 1, 2\n br label %b\nb:\n ret i32 %x\n}";
    let module = llvm::Module::parse(text).unwrap();
    let error = module.verify().unwrap_err();
    assert!(error.contains("does not dominate"), "{error}");
}

#[test]
fn a_program_that_names_no_machine_gets_this_one() {
    let text = String::from_utf8(load(LOOP).text()).unwrap();
    assert!(text.contains("target triple = ") && text.contains("target datalayout = "), "{text}");
    let named = load("target triple = \"aarch64-linux-gnu\"\ndefine void @f() {\n ret void\n}");
    assert!(String::from_utf8(named.text()).unwrap().contains("aarch64"));
    // Its code is not made here, and that is an error, not an end.
    assert!(named.object().is_err());
}

#[test]
fn passes_run_one_by_one() {
    let mut module = load(LOOP);
    assert!(run(&mut module, "mem2reg"));
    assert!(!run(&mut module, "mem2reg"));
    assert!(run(&mut module, "inline"));
    assert_eq!(module.counts().functions, 1);
}

#[test]
fn options_hold_for_one_pass() {
    // The function costs about 100, so that only the usual threshold inlines it.
    let body = "  store volatile i32 %x, ptr %p\n".repeat(20);
    let text = format!(
        "define internal void @f(i32 %x, ptr %p) {{\n{body}  ret void\n}}\n\
         define void @g(i32 %x, ptr %p) {{\n  call void @f(i32 %x, ptr %p)\n  \
         call void @f(i32 1, ptr %p)\n  ret void\n}}"
    );
    for _ in 0..2 {
        let mut module = load(&text);
        run(&mut module, "inline:inline-threshold=0");
        assert_eq!(module.counts().functions, 2);
        run(&mut module, "inline");
        assert_eq!(module.counts().functions, 1);
    }
}

#[test]
fn pipelines_are_llvms_own() {
    for level in ["O0", "O1", "O2", "O3", "Os", "Oz"] {
        let mut module = load(LOOP);
        module.run_pipeline(&format!("default<{level}>")).unwrap();
        module.verify().unwrap();
        let functions = module.counts().functions;
        assert_eq!(functions, if level == "O0" { 2 } else { 1 }, "{level}");
    }
    let error = load(LOOP).run_pipeline("no-such-pass").unwrap_err();
    assert!(error.contains("no-such-pass"), "{error}");
}

#[test]
fn a_pass_that_reports_an_error_fails() {
    // The backend refuses the constraint; the process goes on.
    let text = "define void @f() {\n call void asm \"nonsense_instruction\", \"\"()\n ret void\n}";
    let error = load(text).object().unwrap_err();
    assert!(
        error.contains("nonsense_instruction") || error.contains("invalid instruction"),
        "{error}"
    );
    assert!(load(LOOP).object().is_ok());
}

#[test]
fn code_is_made_from_a_copy() {
    let module = load(LOOP);
    let before = (module.exact(), module.text());
    let object = module.object().unwrap();
    assert_eq!((module.exact(), module.text()), before);
    assert!(object.bytes.starts_with(b"\x7fELF"));
    assert_eq!(llvm::text_size(&object.bytes).unwrap(), object.text_size);
    // A loop and a call in x86: more than nothing, less than a page.
    assert!((30..300).contains(&object.text_size), "{}", object.text_size);
    let mut small = load(LOOP);
    small.run_pipeline("default<Oz>").unwrap();
    assert!(small.object().unwrap().text_size < object.text_size);
    assert!(llvm::text_size(b"no object").is_err());
}
