//! What the protocol asks of a program, in LLVM's terms. The only file that knows both.

use xla_gym_llvm_shim::{Flow, Module, NodeKind, OPCODES};
use xla_gym_protocol::{
    Cost, Counts, Fingerprint, FunctionCounts, Graph, GraphEdge, Observation, Observe,
};

use crate::program::Program;

/// Nodes of the graph that are no instructions, as opcodes behind LLVM's. No program counts them.
const OTHER_NODES: [&str; 3] = ["variable", "constant", "external"];

/// What a node of the graph says of itself. Types are numbered within the program; functions, and blocks
/// within a function, from 1, so that 0 is none.
pub const NODE_FEATURES: [&str; 4] = ["opcode", "type", "function", "block"];

/// What [`Observation::opcodes`] counts, in order.
pub fn opcode_names() -> Vec<String> {
    OPCODES.iter().chain(&OTHER_NODES).map(|name| (*name).to_owned()).collect()
}

pub fn observe(program: &Program, observe: Observe) -> Observation {
    let module = program.module();
    Observation {
        counts: observe.has(Observe::COUNTS).then(|| counts(module)),
        opcodes: observe.has(Observe::OPCODES).then(|| opcodes(module)),
        // LLVM has no estimate of a whole program's work, and declares none.
        cost: observe.has(Observe::COST).then(|| Ok(Cost::default())),
        fingerprint: observe.has(Observe::FINGERPRINT).then(|| Fingerprint(module.content())),
        verdict: observe.has(Observe::VERDICT).then(|| module.verify()),
        exact: observe.has(Observe::EXACT).then(|| Fingerprint(program.exact())),
    }
}

/// In the order in which the worker declares them.
fn counts(module: &Module) -> Counts {
    let counts = module.counts();
    Counts::new(&[counts.instructions, counts.blocks, counts.functions])
}

fn opcodes(module: &Module) -> Vec<u32> {
    let mut counts = module.opcodes().to_vec();
    counts.extend([0; OTHER_NODES.len()]);
    counts
}

/// Opcodes of each function with a body.
pub fn breakdown(module: &Module) -> Vec<FunctionCounts> {
    let functions = module.functions().into_iter().map(|function| {
        let counts = (0u32..).zip(function.opcodes).filter(|(_, count)| *count > 0);
        FunctionCounts { name: function.name, runs: true, opcodes: counts.collect() }
    });
    functions.collect()
}

/// The program graph. Edges keep their meaning in another order: data, control, calls.
pub fn graph(module: &Module) -> Graph {
    let graph = module.graph();
    let other = |which: usize| (OPCODES.len() + which) as u32;
    let place = |place: Option<u32>| place.map_or(0, |place| u64::from(place) + 1);
    let nodes = graph.nodes.iter().flat_map(|node| -> [u64; NODE_FEATURES.len()] {
        let opcode = match node.kind {
            NodeKind::Instruction => node.opcode,
            NodeKind::Variable => other(0),
            NodeKind::Constant => other(1),
            NodeKind::External => other(2),
        };
        [opcode.into(), node.ty.into(), place(node.function), place(node.block)]
    });
    let edges = graph.edges.iter().map(|edge| GraphEdge {
        from: edge.from,
        to: edge.to,
        kind: match edge.flow {
            Flow::Data => 0,
            Flow::Control => 1,
            Flow::Call => 2,
        },
        position: edge.position,
    });
    Graph { nodes: nodes.collect(), edges: edges.collect() }
}
