//! The C++ side, `cc/shim.h`, as Rust sees it.

use std::ffi::{c_char, c_void};

use llvm_sys::prelude::{LLVMContextRef, LLVMModuleRef};

/// Memory of the other side; see [`Bytes::take`].
#[repr(C)]
pub struct Bytes {
    data: *mut c_char,
    length: usize,
}

impl Bytes {
    pub const fn none() -> Bytes {
        Bytes { data: std::ptr::null_mut(), length: 0 }
    }

    /// Copies it and gives it back.
    pub fn take(self) -> Vec<u8> {
        if self.data.is_null() {
            return Vec::new();
        }
        // SAFETY: the other side has filled that many bytes, and nobody else has them.
        let copy = unsafe { std::slice::from_raw_parts(self.data.cast(), self.length) }.to_vec();
        // SAFETY: it came from there and is not used any more.
        unsafe { xg_bytes_free(self) };
        copy
    }

    /// The same as text.
    pub fn take_text(self) -> String {
        String::from_utf8_lossy(&self.take()).trim_end().to_owned()
    }
}

#[repr(C)]
pub struct Hash {
    pub low: u64,
    pub high: u64,
}

#[repr(C)]
pub struct Counts {
    pub instructions: u64,
    pub blocks: u64,
    pub functions: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Node {
    pub kind: u32,
    pub opcode: u32,
    pub ty: u32,
    pub function: u32,
    pub block: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub flow: u32,
    pub position: u32,
}

#[repr(C)]
pub struct Graph {
    pub nodes: *const Node,
    pub node_count: usize,
    pub edges: *const Edge,
    pub edge_count: usize,
    pub types: *const u8,
    pub types_length: usize,
    pub functions: *const u8,
    pub functions_length: usize,
}

pub type EachFunction =
    extern "C" fn(state: *mut c_void, name: *const u8, length: usize, opcodes: *const u32);

unsafe extern "C" {
    pub fn xg_initialize(out_of_memory: extern "C" fn());
    pub fn xg_context_create() -> LLVMContextRef;
    pub fn xg_parse(
        context: LLVMContextRef,
        data: *const u8,
        length: usize,
        error: *mut Bytes,
    ) -> LLVMModuleRef;
    pub fn xg_verify(module: LLVMModuleRef, error: *mut Bytes) -> bool;
    pub fn xg_print(module: LLVMModuleRef) -> Bytes;
    pub fn xg_bitcode(module: LLVMModuleRef, use_list_order: bool) -> Bytes;
    fn xg_bytes_free(bytes: Bytes);

    pub fn xg_run(
        module: LLVMModuleRef,
        passes: *const u8,
        passes_length: usize,
        options: *const u8,
        options_length: usize,
        changed: *mut bool,
        error: *mut Bytes,
    ) -> bool;
    pub fn xg_level(text: *const u8, length: usize) -> u32;

    pub fn xg_content(module: LLVMModuleRef) -> Hash;
    pub fn xg_exact(module: LLVMModuleRef) -> Hash;
    pub fn xg_version(module: LLVMModuleRef) -> u64;

    pub fn xg_count(module: LLVMModuleRef) -> Counts;
    pub fn xg_opcodes(module: LLVMModuleRef, out: *mut u32);
    pub fn xg_inst_count(module: LLVMModuleRef, out: *mut u64);
    pub fn xg_autophase(module: LLVMModuleRef, out: *mut u64);
    pub fn xg_opcodes_by_function(module: LLVMModuleRef, each: EachFunction, state: *mut c_void);

    pub fn xg_graph_build(module: LLVMModuleRef) -> *mut Graph;
    pub fn xg_graph_free(graph: *mut Graph);

    pub fn xg_clone(module: LLVMModuleRef) -> LLVMModuleRef;

    pub fn xg_object(
        module: LLVMModuleRef,
        object: *mut Bytes,
        text_size: *mut u64,
        error: *mut Bytes,
    ) -> bool;
    pub fn xg_text_size(
        object: *const u8,
        length: usize,
        text_size: *mut u64,
        error: *mut Bytes,
    ) -> bool;
}
