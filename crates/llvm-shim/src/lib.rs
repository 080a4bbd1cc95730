//! LLVM 19 behind a safe interface: programs, passes, features, the program graph, machine code.
//!
//! The only crate that sees LLVM; no type of LLVM's leaves it. Errors are LLVM's own words.
//!
//! LLVM aborts on some input, whatever is written here: only a process that may die should run its
//! passes. It starts no thread, so that such a process can be forked.
//!
//! ```
//! use xla_gym_llvm_shim as llvm;
//!
//! llvm::initialize(|| std::process::abort());
//! let text = b"define i32 @twice(i32 %x) {
//!   %slot = alloca i32
//!   store i32 %x, ptr %slot
//!   %a = load i32, ptr %slot
//!   %b = add i32 %a, %a
//!   ret i32 %b
//! }";
//! let mut program = llvm::Module::parse(text).unwrap();
//! assert_eq!(program.counts().instructions, 5);
//! let pass = llvm::find_pass("mem2reg").unwrap();
//! assert!(program.run(pass).unwrap());
//! assert_eq!(program.counts().instructions, 2);
//! ```

mod features;
mod ffi;
mod graph;
mod module;
pub mod passes;

pub use features::{AUTOPHASE, INST_COUNT, OPCODES};
pub use graph::{Edge, Flow, Graph, Node, NodeKind};
pub use module::{Counts, FunctionCounts, Module, Object, initialize, text_size, version};
pub use passes::{Kind, Level, Pass, find_pass, passes};
