//! What the tests share.

#![allow(dead_code, reason = "each test program uses its own part")]

use xla_gym_llvm_shim as llvm;

/// A loop with a branch in it, a call, memory and constants of two widths.
pub const LOOP: &str = r#"
define internal i32 @twice(i32 %x) {
entry:
  %r = shl i32 %x, 1
  ret i32 %r
}
define i32 @main(i32 %n, ptr %p) {
entry:
  %slot = alloca i32
  store i32 0, ptr %slot
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %next, %back ]
  %more = icmp slt i32 %i, %n
  br i1 %more, label %body, label %out
body:
  %at = getelementptr i32, ptr %p, i64 1
  %v = load i32, ptr %at
  %odd = and i32 %v, 1
  %isodd = icmp eq i32 %odd, 1
  br i1 %isodd, label %then, label %back
then:
  %d = call i32 @twice(i32 %v)
  store i32 %d, ptr %slot
  br label %back
back:
  %next = add i32 %i, 1
  br label %head
out:
  %sum = load i32, ptr %slot
  ret i32 %sum
}
"#;

pub fn load(text: &str) -> llvm::Module {
    llvm::initialize(|| std::process::abort());
    let module = llvm::Module::parse(text.as_bytes()).unwrap();
    module.verify().unwrap();
    module
}

pub fn run(module: &mut llvm::Module, pass: &str) -> bool {
    let before = module.exact();
    module.run(llvm::find_pass(pass).unwrap()).unwrap();
    module.verify().unwrap();
    module.exact() != before
}
