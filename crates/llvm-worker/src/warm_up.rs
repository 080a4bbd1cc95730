//! A first run of what every worker will do, before the first fork: it brings the code into memory,
//! which forked workers inherit.

use xla_gym_llvm_shim::{Kind, Module, passes};

/// One of most things that passes look for.
const PROGRAM: &[u8] = br#"
%pair = type { i32, i64 }
@table = internal constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
@count = internal global i32 0
declare noalias ptr @malloc(i64)
declare void @free(ptr)
declare double @sqrt(double)
declare i32 @printf(ptr, ...)

define internal i32 @add(i32 %a, i32 %b) {
  %slot = alloca i32
  store i32 %a, ptr %slot
  %x = load i32, ptr %slot
  %y = add nsw i32 %x, %b
  ret i32 %y
}
define internal i32 @again(i32 %n) {
  %z = icmp eq i32 %n, 0
  br i1 %z, label %end, label %more
more:
  %m = add i32 %n, -1
  %r = call i32 @again(i32 %m)
  ret i32 %r
end:
  ret i32 7
}
define double @main(i32 %n, ptr %p, ptr %q, double %d) {
entry:
  %pair = alloca %pair
  %f = getelementptr %pair, ptr %pair, i32 0, i32 1
  store i64 0, ptr %f
  %heap = call ptr @malloc(i64 64)
  call void @free(ptr %heap)
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i2, %latch ]
  br label %inner
inner:
  %j = phi i32 [ 0, %outer ], [ %j2, %inner2 ]
  %k = mul i32 %i, 8
  %at = add i32 %k, %j
  %wide = sext i32 %at to i64
  %from = getelementptr inbounds i32, ptr %p, i64 %wide
  %to = getelementptr inbounds i32, ptr %q, i64 %wide
  %v = load i32, ptr %from
  %w = call i32 @add(i32 %v, i32 3)
  %small = trunc i32 %w to i8
  switch i8 %small, label %inner2 [ i8 0, label %one
                                    i8 1, label %two ]
one:
  store i32 0, ptr %to
  br label %inner2
two:
  %c = icmp ult i32 %j, %n
  %s = select i1 %c, i32 %v, i32 %w
  store i32 %s, ptr %to
  br label %inner2
inner2:
  %j2 = add nuw nsw i32 %j, 1
  %again = icmp ult i32 %j2, 8
  br i1 %again, label %inner, label %latch
latch:
  %i2 = add nuw nsw i32 %i, 1
  %goes = icmp slt i32 %i2, %n
  br i1 %goes, label %outer, label %end
end:
  %t = getelementptr [4 x i32], ptr @table, i64 0, i64 2
  %tv = load i32, ptr %t
  store i32 %tv, ptr @count
  %rec = call i32 @again(i32 %tv)
  %fp = sitofp i32 %rec to double
  %sum = fadd double %fp, %d
  %root = call double @sqrt(double %sum)
  ret double %root
}
"#;

pub fn run() {
    let Ok(start) = Module::parse(PROGRAM) else { return };
    for pass in passes() {
        if !pass.is_default_action() || pass.kind == Kind::Annotation {
            continue;
        }
        let mut program = start.clone();
        if program.run(pass).is_ok() {
            let _ = (program.opcodes(), program.content(), program.exact(), program.verify());
        }
    }
    let _ = (start.text(), start.bitcode(true), start.graph(), start.object());
}
