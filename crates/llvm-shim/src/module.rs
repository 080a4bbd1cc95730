//! A program that LLVM has loaded.

use std::{
    ffi::c_void,
    fmt,
    rc::Rc,
    sync::{
        Mutex, MutexGuard, Once, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use llvm_sys::{
    core::{LLVMContextDispose, LLVMDisposeModule, LLVMGetVersion},
    prelude::{LLVMContextRef, LLVMModuleRef},
};

use crate::{
    features::{AUTOPHASE, INST_COUNT, OPCODES},
    ffi::{self, Bytes},
    graph::Graph,
    passes::{Level, Pass},
};

static OUT_OF_MEMORY: OnceLock<fn()> = OnceLock::new();
static READY: AtomicBool = AtomicBool::new(false);

extern "C" fn out_of_memory() {
    if let Some(handler) = OUT_OF_MEMORY.get() {
        handler();
    }
}

/// To be called before anything else. LLVM calls the handler when an allocation fails, and aborts
/// if it comes back. Only the first call counts.
///
/// From then on, LLVM's fatal errors are written to standard error before the process aborts.
pub fn initialize(handler: fn()) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = OUT_OF_MEMORY.set(handler);
        // SAFETY: called once, before LLVM is used otherwise; the callback lives for ever.
        unsafe { ffi::xg_initialize(out_of_memory) };
        READY.store(true, Ordering::Release);
    });
}

/// The version of the library that runs, such as `19.1.7`.
pub fn version() -> String {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three places that live long enough.
    unsafe { LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    format!("{major}.{minor}.{patch}")
}

/// Passes and code generation read options that belong to the whole process, and share what is
/// costly to make; so only one of them runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Where types, constants and metadata of programs live.
struct Context(LLVMContextRef);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `Module::parse`, and the last program in it is gone.
        unsafe { LLVMContextDispose(self.0) }
    }
}

/// A program. Copies of it share its context.
pub struct Module {
    raw: LLVMModuleRef,
    context: Rc<Context>,
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: this is its only owner, and its context, a field, is still there.
        unsafe { LLVMDisposeModule(self.raw) }
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({:?})", self.counts())
    }
}

/// Sizes of a program, without what debuggers need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions of all functions.
    pub instructions: u64,
    /// Basic blocks of all functions.
    pub blocks: u64,
    /// Functions with a body.
    pub functions: u64,
}

/// Instructions of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCounts {
    /// Its name.
    pub name: String,
    /// Instructions per opcode, in the order of [`OPCODES`].
    pub opcodes: [u32; OPCODES.len()],
}

/// Machine code.
#[derive(Clone, Debug)]
pub struct Object {
    /// An object file, ready to be linked.
    pub bytes: Vec<u8>,
    /// Size of the code in it, in bytes.
    pub text_size: u64,
}

impl Module {
    /// Reads bitcode or text. A program that names no machine gets this one's.
    pub fn parse(bytes: &[u8]) -> Result<Module, String> {
        assert!(READY.load(Ordering::Acquire), "initialize() comes first");
        // SAFETY: LLVM is initialised; the result has one owner.
        let context = Rc::new(Context(unsafe { ffi::xg_context_create() }));
        let mut error = Bytes::none();
        // SAFETY: the bytes live for the call, which copies them; the context lives as long as the
        // program, by the reference beside it.
        let raw = unsafe { ffi::xg_parse(context.0, bytes.as_ptr(), bytes.len(), &raw mut error) };
        if raw.is_null() { Err(error.take_text()) } else { Ok(Module { raw, context }) }
    }

    /// Whether LLVM's verifier accepts the program, or why not.
    pub fn verify(&self) -> Result<(), String> {
        let mut error = Bytes::none();
        // SAFETY: the program is alive; the verifier does not change it.
        match unsafe { ffi::xg_verify(self.raw, &raw mut error) } {
            true => Ok(()),
            false => Err(error.take_text()),
        }
    }

    /// Runs a pass; whether the pass says that it changed something. Some say so without having
    /// done it; compare [`Module::exact`]. After an error the program may be half changed.
    pub fn run(&mut self, pass: &Pass) -> Result<bool, String> {
        self.run_text(&pass.pipeline(), &pass.options.join("\n"))
    }

    /// Runs a pipeline by LLVM's own text, such as `default<Oz>`.
    pub fn run_pipeline(&mut self, text: &str) -> Result<bool, String> {
        self.run_text(text, "")
    }

    fn run_text(&mut self, text: &str, options: &str) -> Result<bool, String> {
        let (mut changed, mut error) = (false, Bytes::none());
        let _alone = alone();
        // SAFETY: the program is alive and borrowed by nobody else, no other pass runs, and both
        // texts live for the call.
        let fine = unsafe {
            ffi::xg_run(
                self.raw,
                text.as_ptr(),
                text.len(),
                options.as_ptr(),
                options.len(),
                &raw mut changed,
                &raw mut error,
            )
        };
        if fine { Ok(changed) } else { Err(error.take_text()) }
    }

    /// The program as text, readable back.
    pub fn text(&self) -> Vec<u8> {
        // SAFETY: the program is alive; printing does not change it.
        unsafe { ffi::xg_print(self.raw) }.take()
    }

    /// The program as bitcode. With the order of uses, reading it back gives the same
    /// [`Module::exact`]; without, it is what `opt` writes.
    pub fn bitcode(&self, use_list_order: bool) -> Vec<u8> {
        // SAFETY: as for text.
        unsafe { ffi::xg_bitcode(self.raw, use_list_order) }.take()
    }

    /// Identity of what the program consists of: functions and variables by name, instructions
    /// with their types, flags, attributes and operands. It ignores names of local values and of
    /// types, metadata and debug information, the order of functions in the module and the order
    /// of blocks in a function. The same in every process.
    pub fn content(&self) -> u128 {
        // SAFETY: the program is alive and not changed.
        join(unsafe { ffi::xg_content(self.raw) })
    }

    /// Identity of everything that a pass can see: the content in the order in which LLVM keeps
    /// it, metadata, and the order of the uses of every value. The same in every process.
    pub fn exact(&self) -> u128 {
        // SAFETY: as for the content.
        join(unsafe { ffi::xg_exact(self.raw) })
    }

    /// A number that stays the same while nobody touches the program, and means nothing to any other
    /// program or process. Several times as fast as [`Module::exact`].
    pub fn version(&self) -> u64 {
        // SAFETY: as for the content.
        unsafe { ffi::xg_version(self.raw) }
    }

    /// Sizes.
    pub fn counts(&self) -> Counts {
        // SAFETY: the program is alive.
        let ffi::Counts { instructions, blocks, functions } = unsafe { ffi::xg_count(self.raw) };
        Counts { instructions, blocks, functions }
    }

    /// Instructions per opcode, in the order of [`OPCODES`].
    pub fn opcodes(&self) -> [u32; OPCODES.len()] {
        let mut counts = [0; OPCODES.len()];
        // SAFETY: the program is alive, and the other side fills as many places.
        unsafe { ffi::xg_opcodes(self.raw, counts.as_mut_ptr()) };
        counts
    }

    /// Instructions per opcode of each function with a body, in the module's order.
    pub fn functions(&self) -> Vec<FunctionCounts> {
        extern "C" fn each(state: *mut c_void, name: *const u8, length: usize, counts: *const u32) {
            // SAFETY: the state is the vector below; name and counts live for this call.
            let (found, name, counts) = unsafe {
                (
                    &mut *state.cast::<Vec<FunctionCounts>>(),
                    match length {
                        0 => &[],
                        length => std::slice::from_raw_parts(name, length),
                    },
                    &*counts.cast::<[u32; OPCODES.len()]>(),
                )
            };
            let name = String::from_utf8_lossy(name).into_owned();
            found.push(FunctionCounts { name, opcodes: *counts });
        }
        let mut found: Vec<FunctionCounts> = Vec::new();
        // SAFETY: the program is alive, and the vector lives for the call.
        unsafe { ffi::xg_opcodes_by_function(self.raw, each, (&raw mut found).cast()) };
        found
    }

    /// The 70 features of InstCount, in the order of [`INST_COUNT`].
    pub fn inst_count(&self) -> [u64; INST_COUNT.len()] {
        let mut features = [0; INST_COUNT.len()];
        // SAFETY: as for opcodes.
        unsafe { ffi::xg_inst_count(self.raw, features.as_mut_ptr()) };
        features
    }

    /// The 56 features of Autophase, in the order of [`AUTOPHASE`].
    pub fn autophase(&self) -> [u64; AUTOPHASE.len()] {
        let mut features = [0; AUTOPHASE.len()];
        // SAFETY: as for opcodes.
        unsafe { ffi::xg_autophase(self.raw, features.as_mut_ptr()) };
        features
    }

    /// The program as a graph.
    pub fn graph(&self) -> Graph {
        // SAFETY: the program is alive; the graph is copied and then given back.
        unsafe {
            let raw = ffi::xg_graph_build(self.raw);
            let graph = Graph::from_raw(&*raw);
            ffi::xg_graph_free(raw);
            graph
        }
    }

    /// Machine code for the machine that the program names, made as `clang -O2` does from here on.
    /// The program itself stays as it is.
    pub fn object(&self) -> Result<Object, String> {
        let (mut bytes, mut text_size, mut error) = (Bytes::none(), 0, Bytes::none());
        let _alone = alone();
        // SAFETY: the program is alive and copied before anything changes; no pass runs meanwhile.
        let fine =
            unsafe { ffi::xg_object(self.raw, &raw mut bytes, &raw mut text_size, &raw mut error) };
        match fine {
            true => Ok(Object { bytes: bytes.take(), text_size }),
            false => Err(error.take_text()),
        }
    }
}

impl Clone for Module {
    /// An exact copy: with the order of uses, which passes see.
    fn clone(&self) -> Module {
        // SAFETY: the program is alive; the copy lives in the same context.
        let raw = unsafe { ffi::xg_clone(self.raw) };
        Module { raw, context: self.context.clone() }
    }
}

/// What LLVM runs the pass over, by its text.
pub(crate) fn level(text: &str) -> Level {
    assert!(READY.load(Ordering::Acquire), "initialize() comes first");
    let _alone = alone();
    // SAFETY: LLVM is initialised, no pass runs, and the text lives for the call.
    match unsafe { ffi::xg_level(text.as_ptr(), text.len()) } {
        0 => Level::Module,
        1 => Level::CallGraph,
        2 => Level::Function,
        _ => Level::Loop,
    }
}

/// Size of the code in an object file, in bytes.
pub fn text_size(object: &[u8]) -> Result<u64, String> {
    let (mut size, mut error) = (0, Bytes::none());
    // SAFETY: the bytes live for the call.
    let fine =
        unsafe { ffi::xg_text_size(object.as_ptr(), object.len(), &raw mut size, &raw mut error) };
    if fine { Ok(size) } else { Err(error.take_text()) }
}

fn join(hash: ffi::Hash) -> u128 {
    u128::from(hash.high) << 64 | u128::from(hash.low)
}
