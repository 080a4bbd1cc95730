//! The program graph, in the manner of ProGraML (Cummins et al., ICML 2021).

use crate::ffi;

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// An instruction.
    Instruction,
    /// An argument, or what an instruction gives.
    Variable,
    /// A constant, a global variable, or a function whose address is taken. One node each.
    Constant,
    /// What is not in the program: node 0 stands for everybody who may call it and for what it
    /// calls by an address, and each declared function has a node of its own.
    External,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it stands for.
    pub kind: NodeKind,
    /// Of an instruction: position in [`crate::OPCODES`]; otherwise 0.
    pub opcode: u32,
    /// Position in [`Graph::types`]: of the value, or of what the instruction or function gives.
    pub ty: u32,
    /// Position in [`Graph::functions`], if it belongs to one.
    pub function: Option<u32>,
    /// Which block of the function, if it belongs to one.
    pub block: Option<u32>,
}

/// What an edge stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// One instruction runs after the other; the position says which way a branch goes.
    Control,
    /// From a value to the instruction that reads it as the operand of that position, and from an
    /// instruction to the variable that it gives.
    Data,
    /// From a call to the first instruction of the function, and from its returns back.
    Call,
}

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Position of the node where it begins.
    pub from: u32,
    /// Position of the node where it ends.
    pub to: u32,
    /// What it stands for.
    pub flow: Flow,
    /// Which of several.
    pub position: u32,
}

/// A program as a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The nodes; those of one function stand together.
    pub nodes: Vec<Node>,
    /// The edges.
    pub edges: Vec<Edge>,
    /// The types that occur, as LLVM writes them.
    pub types: Vec<String>,
    /// All functions of the program, also those that are only declared.
    pub functions: Vec<String>,
}

impl Graph {
    /// # Safety
    ///
    /// The pointers are those of a graph that the other side has built and not freed.
    pub(crate) unsafe fn from_raw(raw: &ffi::Graph) -> Graph {
        // SAFETY: the caller promises it; the other side says how many there are.
        let (nodes, edges, types, functions) = unsafe {
            (
                slice(raw.nodes, raw.node_count),
                slice(raw.edges, raw.edge_count),
                slice(raw.types, raw.types_length),
                slice(raw.functions, raw.functions_length),
            )
        };
        Graph {
            nodes: nodes.iter().map(node).collect(),
            edges: edges.iter().map(edge).collect(),
            types: texts(types),
            functions: texts(functions),
        }
    }
}

/// # Safety
///
/// As for `std::slice::from_raw_parts`, but nothing may be anywhere.
unsafe fn slice<'a, T>(data: *const T, length: usize) -> &'a [T] {
    match length {
        0 => &[],
        // SAFETY: the caller promises it.
        length => unsafe { std::slice::from_raw_parts(data, length) },
    }
}

fn node(raw: &ffi::Node) -> Node {
    let known = |number: u32| (number != u32::MAX).then_some(number);
    let kind = match raw.kind {
        0 => NodeKind::Instruction,
        1 => NodeKind::Variable,
        2 => NodeKind::Constant,
        _ => NodeKind::External,
    };
    Node {
        kind,
        // LLVM counts its opcodes from 1.
        opcode: raw.opcode.saturating_sub(1),
        ty: raw.ty,
        function: known(raw.function),
        block: known(raw.block),
    }
}

fn edge(raw: &ffi::Edge) -> Edge {
    let flow = match raw.flow {
        0 => Flow::Control,
        1 => Flow::Data,
        _ => Flow::Call,
    };
    Edge { from: raw.from, to: raw.to, flow, position: raw.position }
}

/// Texts one after the other, each ended by a zero byte.
fn texts(bytes: &[u8]) -> Vec<String> {
    let whole = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    whole.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}
