//! How alike two graphs are to a pass: by the runs of opcodes in them.

use std::collections::HashSet;

use xla_gym_common::fnv64;

/// The opcodes of HLO text, in order, over all computations.
pub fn opcode_sequence(text: &str) -> Vec<&str> {
    text.lines().filter_map(opcode).collect()
}

/// The opcode of a line `  [ROOT] name = type opcode(...), ...`.
fn opcode(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(" = ")?;
    let name = name.trim_start().trim_start_matches("ROOT ");
    if name.is_empty() || name.contains(' ') {
        return None;
    }
    // A type has no blank outside parentheses: `f32[2]{0}` or `(s32[], f32[2])`.
    let mut depth = 0;
    let end = rest.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' if depth == 0 => return Some(at),
            _ => {}
        }
        None
    })?;
    let opcode = rest[end + 1..].split('(').next()?;
    (!opcode.is_empty() && opcode.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        .then_some(opcode)
}

/// The distinct runs of some opcodes in a graph. Repeating a layer adds none, so that graphs
/// that differ in depth only are the same here, as they are to a pass.
pub struct Shingles(HashSet<u64>);

/// Opcodes in a run.
const RUN: usize = 5;

impl Shingles {
    /// Of HLO text.
    pub fn of(text: &str) -> Shingles {
        let sequence = opcode_sequence(text);
        Shingles(sequence.windows(RUN.min(sequence.len()).max(1)).map(hash).collect())
    }

    /// Shared runs over all runs of both: 1 for the same set, 0 for nothing in common.
    pub fn similarity(&self, other: &Shingles) -> f64 {
        let shared = self.0.intersection(&other.0).count();
        let all = self.0.len() + other.0.len() - shared;
        if all == 0 { 1.0 } else { shared as f64 / all as f64 }
    }
}

fn hash(run: &[&str]) -> u64 {
    fnv64(run.iter().flat_map(|opcode| opcode.bytes().chain([0])))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}

add {
  a = f32[] parameter(0)
  ROOT c = f32[] add(a, a)
}

ENTRY main {
  %x.1 = f32[2]{0} parameter(0)
  t = (f32[2]{0}, s32[]) custom-call(x.1), custom_call_target=\"f = g(h)\"
  ROOT y = f32[2]{0} get-tuple-element(t), index=0
}
";

    #[test]
    fn opcodes_are_read_from_text() {
        let expected = ["parameter", "add", "parameter", "custom-call", "get-tuple-element"];
        assert_eq!(opcode_sequence(TEXT), expected);
    }

    #[test]
    fn repetition_does_not_count_and_difference_does() {
        let layer = "a = f32[] add(x, x)\nb = f32[] multiply(a, a)\nc = f32[] tanh(b)\n";
        let other = "a = f32[] divide(x, x)\nb = f32[] sine(a)\nc = f32[] negate(b)\n";
        let of = |parts: &[&str]| Shingles::of(&parts.concat());
        assert_eq!(of(&[layer; 4]).similarity(&of(&[layer; 9])), 1.0);
        assert_eq!(of(&[layer; 4]).similarity(&of(&[other; 4])), 0.0);
        let mixed = of(&[layer, layer, layer, other, other]).similarity(&of(&[layer; 5]));
        assert!(0.0 < mixed && mixed < 1.0);
    }
}
