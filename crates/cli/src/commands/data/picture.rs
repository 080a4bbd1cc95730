//! Sizes and opcodes by family, as SVG.

use std::{collections::BTreeMap, fmt::Write};

use xla_gym_data::Graph;

/// What most instructions are about, with a colour for each.
const GROUPS: [(&str, &str, &[&str]); 7] = [
    (
        "arithmetic",
        "#4c78a8",
        &[
            "add",
            "subtract",
            "multiply",
            "divide",
            "maximum",
            "minimum",
            "negate",
            "power",
            "exponential",
            "log",
            "tanh",
            "sqrt",
            "rsqrt",
            "sine",
            "cosine",
            "erf",
            "select",
            "compare",
            "clamp",
            "abs",
            "sign",
            "and",
            "or",
            "xor",
            "not",
            "remainder",
            "is-finite",
        ],
    ),
    (
        "dots and convolutions",
        "#e45756",
        &["dot", "convolution", "cholesky", "triangular-solve", "fft", "custom-call"],
    ),
    (
        "reductions, sorts",
        "#f58518",
        &["reduce", "reduce-window", "select-and-scatter", "sort", "topk"],
    ),
    (
        "shape",
        "#72b7b2",
        &[
            "reshape",
            "transpose",
            "broadcast",
            "slice",
            "concatenate",
            "pad",
            "reverse",
            "convert",
            "bitcast-convert",
            "iota",
            "copy",
        ],
    ),
    (
        "gather, scatter, dynamic",
        "#54a24b",
        &["gather", "scatter", "dynamic-slice", "dynamic-update-slice"],
    ),
    (
        "control and communication",
        "#b279a2",
        &[
            "while",
            "conditional",
            "call",
            "all-reduce",
            "all-gather",
            "reduce-scatter",
            "collective-permute",
            "all-to-all",
            "partition-id",
            "opt-barrier",
        ],
    ),
    (
        "parameters, constants, tuples",
        "#bab0ac",
        &["parameter", "constant", "tuple", "get-tuple-element"],
    ),
];
const OTHER: (&str, &str) = ("other", "#9d755d");

const ROW: f64 = 24.0;
const TOP: f64 = 92.0;
const LABEL: f64 = 120.0;
const PANEL: f64 = 430.0;
const GAP: f64 = 50.0;

/// One row a family: its graphs by size on the left, the share of kinds of opcodes on the right.
pub fn draw(graphs: &[Graph]) -> String {
    let mut families: BTreeMap<&str, Vec<&Graph>> = BTreeMap::new();
    for graph in graphs {
        families.entry(&graph.family).or_default().push(graph);
    }
    let height = TOP + ROW * families.len() as f64 + 50.0;
    let width = LABEL + PANEL + GAP + PANEL + 90.0;
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' \
         font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n"
    );
    let right = LABEL + PANEL + GAP;
    text(&mut svg, LABEL, 22.0, "start", 15.0, "Size of each graph (instructions)");
    text(&mut svg, right, 22.0, "start", 15.0, "Share of instructions");
    legend(&mut svg, right);
    let bottom = TOP + ROW * families.len() as f64;
    for size in [30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, 30_000.0] {
        let x = x_of(size);
        let _ =
            writeln!(svg, "<line x1='{x:.1}' x2='{x:.1}' y1='{TOP}' y2='{bottom}' stroke='#ddd'/>");
        text(&mut svg, x, bottom + 18.0, "middle", 12.0, &xla_gym_common::grouped(size as u64));
    }
    for (row, (family, graphs)) in families.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let label = format!("{family} ({})", graphs.len());
        text(&mut svg, LABEL - 8.0, y + ROW * 0.68, "end", 12.0, &label);
        for graph in graphs {
            let x = x_of(graph.size() as f64);
            let middle = y + ROW / 2.0;
            let _ = writeln!(
                svg,
                "<circle cx='{x:.1}' cy='{middle:.1}' r='4' fill='#4c78a8' fill-opacity='0.45'>\
                 <title>{}: {}</title></circle>",
                graph.id,
                graph.size()
            );
        }
        shares(&mut svg, right, y, graphs);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Logarithmic from 20 to 40,000.
fn x_of(size: f64) -> f64 {
    let (low, high) = (20f64.ln(), 40_000f64.ln());
    LABEL + PANEL * (size.max(20.0).ln() - low) / (high - low)
}

fn legend(svg: &mut String, left: f64) {
    let entries = GROUPS.iter().map(|(name, colour, _)| (*name, *colour)).chain([OTHER]);
    for (index, (name, colour)) in entries.enumerate() {
        let x = left + (index % 3) as f64 * 180.0;
        let y = 36.0 + (index / 3) as f64 * 17.0;
        let _ = writeln!(svg, "<rect x='{x}' y='{y}' width='11' height='11' fill='{colour}'/>");
        text(svg, x + 15.0, y + 10.0, "start", 11.0, name);
    }
}

fn shares(svg: &mut String, left: f64, y: f64, graphs: &[&Graph]) {
    let mut counts = [0u64; GROUPS.len() + 1];
    for (opcode, count) in graphs.iter().flat_map(|graph| &graph.opcodes) {
        let group = GROUPS.iter().position(|(_, _, opcodes)| opcodes.contains(&opcode.as_str()));
        counts[group.unwrap_or(GROUPS.len())] += u64::from(*count);
    }
    let total = counts.iter().sum::<u64>().max(1) as f64;
    let mut x = left;
    for (index, count) in counts.into_iter().enumerate() {
        let colour = GROUPS.get(index).map_or(OTHER.1, |(_, colour, _)| colour);
        let width = PANEL * count as f64 / total;
        let _ = writeln!(
            svg,
            "<rect x='{x:.1}' y='{:.1}' width='{width:.1}' height='{}' fill='{colour}'/>",
            y + 3.0,
            ROW - 6.0
        );
        x += width;
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, size: f64, content: &str) {
    let _ = writeln!(
        svg,
        "<text x='{x:.1}' y='{y:.1}' text-anchor='{anchor}' font-size='{size}'>{content}</text>"
    );
}
