//! The program graph, on a program small enough to draw.

mod common;

use common::load;
use xla_gym_llvm_shim::{Flow, Graph, NodeKind, OPCODES};

const PROGRAM: &str = "
declare void @out(i32)
define internal i32 @inc(i32 %x) {
  %y = add i32 %x, 1
  ret i32 %y
}
define void @main(i1 %c) {
entry:
  br i1 %c, label %yes, label %no
yes:
  %a = call i32 @inc(i32 1)
  call void @out(i32 %a)
  br label %no
no:
  ret void
}
";

/// A node as `kind:what`, which is unique in the program above but for branches.
fn name(graph: &Graph, node: u32) -> String {
    let node = &graph.nodes[node as usize];
    let place = node.function.map_or("", |function| &graph.functions[function as usize]);
    let block = node.block.map_or(String::new(), |block| block.to_string());
    let what = match node.kind {
        NodeKind::Instruction => OPCODES[node.opcode as usize],
        NodeKind::Variable => "var",
        NodeKind::Constant => "const",
        NodeKind::External => "external",
    };
    format!("{place}{block}.{what} {}", graph.types[node.ty as usize])
}

fn edges(graph: &Graph, flow: Flow) -> Vec<String> {
    let mut found: Vec<String> = graph
        .edges
        .iter()
        .filter(|edge| edge.flow == flow)
        .map(|edge| {
            format!("{} -{}-> {}", name(graph, edge.from), edge.position, name(graph, edge.to))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn nodes_are_instructions_variables_and_constants() {
    let graph = load(PROGRAM).graph();
    assert_eq!(graph.functions, ["out", "inc", "main"]);
    let names: Vec<String> = (0..graph.nodes.len() as u32).map(|at| name(&graph, at)).collect();
    let expected = [
        ".external void",
        "out.external void",
        "inc.var i32",
        "inc0.add i32",
        "inc0.var i32",
        "inc0.ret void",
        "main.var i1",
        "main0.br void",
        "main1.call i32",
        "main1.var i32",
        "main1.call void",
        "main1.br void",
        "main2.ret void",
        // One node for the 1 of both functions.
        ".const i32",
    ];
    assert_eq!(names, expected);
}

#[test]
fn edges_are_control_data_and_calls() {
    let graph = load(PROGRAM).graph();
    assert_eq!(
        edges(&graph, Flow::Control),
        [
            "inc0.add i32 -0-> inc0.ret void",
            "main0.br void -0-> main1.call i32",
            "main0.br void -1-> main2.ret void",
            "main1.br void -0-> main2.ret void",
            "main1.call i32 -0-> main1.call void",
            "main1.call void -0-> main1.br void",
        ]
    );
    assert_eq!(
        edges(&graph, Flow::Data),
        [
            ".const i32 -0-> main1.call i32",
            ".const i32 -1-> inc0.add i32",
            "inc.var i32 -0-> inc0.add i32",
            "inc0.add i32 -0-> inc0.var i32",
            "inc0.var i32 -0-> inc0.ret void",
            "main.var i1 -0-> main0.br void",
            "main1.call i32 -0-> main1.var i32",
            "main1.var i32 -0-> main1.call void",
        ]
    );
    assert_eq!(
        edges(&graph, Flow::Call),
        [
            ".external void -0-> main0.br void",
            "inc0.ret void -0-> main1.call i32",
            "main1.call i32 -0-> inc0.add i32",
            "main1.call void -0-> out.external void",
            "main2.ret void -0-> .external void",
            "out.external void -0-> main1.call void",
        ]
    );
}

#[test]
fn edges_lead_from_node_to_node() {
    for text in [common::LOOP, PROGRAM, "", "@g = global i32 0", "declare void @f()"] {
        let graph = load(text).graph();
        let nodes = graph.nodes.len() as u32;
        assert!(graph.edges.iter().all(|edge| edge.from < nodes && edge.to < nodes), "{text}");
        assert!(graph.nodes.iter().all(|node| (node.ty as usize) < graph.types.len()), "{text}");
    }
}

#[test]
fn a_call_by_address_leads_outside() {
    let graph = load("define void @f(ptr %p) {\n call void %p()\n ret void\n}").graph();
    assert!(edges(&graph, Flow::Call).contains(&"f0.call void -0-> .external void".to_owned()));
    assert!(edges(&graph, Flow::Data).contains(&"f.var ptr -0-> f0.call void".to_owned()));
}
