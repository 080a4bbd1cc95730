//! Single changes to a program that matter: what a wrong pass might do.
//!
//! Kinds are drawn in turn, so that rare ones occur, and only where the program's results can hang
//! on what is changed. What the compiler does not take is for the caller to sort out.

use std::collections::HashSet;

use rand::{Rng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use crate::{
    hlo_text::{Instruction, Program},
    mutations,
};

/// A program with one change in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutant {
    /// Of what kind the change is.
    pub kind: &'static str,
    /// Where.
    pub instruction: String,
    /// The lines in place of the old one.
    pub change: String,
    /// The whole program.
    pub text: String,
}

/// What stands in place of one line, if the change can be made there.
pub type Change = fn(&Program, &Instruction, &mut ChaCha8Rng) -> Option<String>;

/// All kinds of changes.
pub const KINDS: &[(&str, Change)] = &[
    ("swapped-operands", mutations::swapped_operands),
    ("swapped-product", mutations::swapped_product),
    ("other-arithmetic", mutations::other_arithmetic),
    ("other-extreme", mutations::other_extreme),
    ("other-function", mutations::other_function),
    ("other-root", mutations::other_root),
    ("other-rounding", mutations::other_rounding),
    ("other-logic", mutations::other_logic),
    ("other-shift", mutations::other_shift),
    ("dropped-sign", mutations::dropped_sign),
    ("dropped-operation", mutations::dropped_operation),
    ("other-operand", mutations::other_operand),
    ("comparison", mutations::comparison),
    ("constant-scaled", mutations::constant_scaled),
    ("constant-plus-one", mutations::constant_plus_one),
    ("constant-sign", mutations::constant_sign),
    ("constant-one-percent", mutations::constant_one_percent),
    ("constant-special", mutations::constant_special),
    ("constant-element", mutations::constant_element),
    ("slice-start", mutations::slice_start),
    ("pad-amount", mutations::pad_amount),
    ("pad-value", mutations::pad_value),
    ("transpose-dimensions", mutations::transpose_dimensions),
    ("broadcast-dimensions", mutations::broadcast_dimensions),
    ("reduce-operator", mutations::reduce_operator),
    ("reduce-dimensions", mutations::reduce_dimensions),
    ("reduce-first-value", mutations::reduce_first_value),
    ("iota-dimension", mutations::iota_dimension),
    ("concatenate-order", mutations::concatenate_order),
    ("reverse-dimensions", mutations::reverse_dimensions),
    ("select-branches", mutations::select_branches),
    ("clamp-bound", mutations::clamp_bound),
    ("narrow-float", mutations::narrow_float),
    ("narrow-integer", mutations::narrow_integer),
    ("dot-dimensions", mutations::dot_dimensions),
    ("index-plus-one", mutations::index_plus_one),
    ("window-padding", mutations::window_padding),
    ("window-dilation", mutations::window_dilation),
    ("scatter-combiner", mutations::scatter_combiner),
    ("sort-direction", mutations::sort_direction),
    ("conditional-branches", mutations::conditional_branches),
    ("loop-bound", mutations::loop_bound),
    ("tuple-order", mutations::tuple_order),
    ("tuple-element", mutations::tuple_element),
    ("fft-kind", mutations::fft_kind),
    ("triangle", mutations::triangle),
    ("random-algorithm", mutations::random_algorithm),
];

/// A change of the line that begins a module.
type HeaderChange = fn(&Program, &mut ChaCha8Rng) -> Option<String>;

/// Changes to the first line.
pub const HEADER_KINDS: &[(&str, HeaderChange)] =
    &[("alias-dropped", mutations::alias_dropped), ("alias-added", mutations::alias_added)];

/// Draws mutants of one program, each another.
pub struct Mutants {
    program: Program,
    /// Kinds that can be made, each with where; none for the first line.
    sites: Vec<(usize, Vec<usize>)>,
    /// The kinds of this round that are still to come.
    round: Vec<usize>,
    seen: HashSet<String>,
    rng: ChaCha8Rng,
}

impl Mutants {
    /// Of a program as the engine prints it.
    pub fn new(text: &str, mut rng: ChaCha8Rng) -> Mutants {
        let program = Program::read(text);
        let mut sites = Vec::new();
        for (kind, (_, change)) in KINDS.iter().enumerate() {
            let can = |place: &usize| {
                let instruction = &program.instructions[*place];
                program.is_live(*place) && change(&program, instruction, &mut rng).is_some()
            };
            let places: Vec<usize> = (0..program.instructions.len()).filter(can).collect();
            if !places.is_empty() {
                sites.push((kind, places));
            }
        }
        for (kind, (_, change)) in HEADER_KINDS.iter().enumerate() {
            if change(&program, &mut rng).is_some() {
                sites.push((KINDS.len() + kind, Vec::new()));
            }
        }
        Mutants { program, sites, round: Vec::new(), seen: HashSet::new(), rng }
    }

    fn draw(&mut self) -> Option<Mutant> {
        if self.round.is_empty() {
            self.round = (0..self.sites.len()).collect();
            self.round.shuffle(&mut self.rng);
        }
        let (kind, places) = &self.sites[self.round.pop()?];
        if *kind >= KINDS.len() {
            let (kind, change) = HEADER_KINDS[kind - KINDS.len()];
            let change = change(&self.program, &mut self.rng)?;
            let text = self.program.with_line(0, &change);
            return Some(Mutant { kind, instruction: String::new(), change, text });
        }
        let (kind, change) = KINDS[*kind];
        let place = places[self.rng.random_range(0..places.len())];
        let instruction = &self.program.instructions[place];
        let change = change(&self.program, instruction, &mut self.rng)?;
        let text = self.program.with_line(instruction.line, &change);
        Some(Mutant { kind, instruction: instruction.name.clone(), change, text })
    }
}

impl Iterator for Mutants {
    type Item = Mutant;

    /// The next one; none where many draws in a row bring nothing new.
    fn next(&mut self) -> Option<Mutant> {
        for _ in 0..200 {
            if let Some(mutant) = self.draw()
                && self.seen.insert(format!("{} {}", mutant.instruction, mutant.change))
            {
                return Some(mutant);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    /// A program with one instruction of interest, the kind of change, and all that may come out.
    fn check(kind: &str, body: &str, expected: &[&str]) {
        let text = format!("HloModule m\n\nENTRY %e () -> f32[] {{\n{body}\n}}\n");
        let program = Program::read(&text);
        let change = KINDS.iter().find(|(name, _)| *name == kind).expect("the kind exists").1;
        let mut found = HashSet::new();
        for seed in 0..40 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let made = |i: &Instruction| change(&program, i, &mut rng);
            found.extend(program.instructions.iter().filter_map(made));
        }
        let mut found: Vec<String> = found.into_iter().map(|line| line.trim().to_owned()).collect();
        found.sort();
        let mut expected: Vec<&str> = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{kind}");
    }

    #[test]
    fn operands_and_operators_change() {
        check(
            "swapped-operands",
            "  %r = f32[2]{0} subtract(%a, %b)",
            &["%r = f32[2]{0} subtract(%b, %a)"],
        );
        check("swapped-operands", "  %r = f32[2]{0} add(%a, %b)", &[]);
        check(
            "other-extreme",
            "  %r = f32[2]{0} maximum(%a, %b)",
            &["%r = f32[2]{0} minimum(%a, %b)"],
        );
        check("other-function", "  %r = f32[2]{0} log-plus-one(%a)", &["%r = f32[2]{0} log(%a)"]);
        check(
            "dropped-sign",
            "  ROOT %r = f32[2]{0} negate(%a)",
            &["ROOT %r = f32[2]{0} copy(%a)"],
        );
        check(
            "comparison",
            "  %r = pred[] compare(%a, %b), direction=EQ, type=TOTALORDER",
            &["%r = pred[] compare(%a, %b), direction=NE, type=TOTALORDER"],
        );
    }

    #[test]
    fn constants_change() {
        check("constant-scaled", "  %r = f32[] constant(2)", &["%r = f32[] constant(3e0)"]);
        check("constant-scaled", "  %r = s32[] constant(-4)", &["%r = s32[] constant(-6)"]);
        check(
            "constant-plus-one",
            "  %r = pred[] constant(true)",
            &["%r = pred[] constant(false)"],
        );
        check("constant-sign", "  %r = f32[] constant(-inf)", &["%r = f32[] constant(inf)"]);
        check("constant-sign", "  %r = u8[] constant(3)", &[]);
        check(
            "constant-one-percent",
            "  %r = f32[] constant(100)",
            &["%r = f32[] constant(1.01e2)"],
        );
        check(
            "constant-element",
            "  %r = s32[2]{0} constant({1, -5})",
            &["%r = s32[2]{0} constant({2, -5})", "%r = s32[2]{0} constant({1, -4})"],
        );
    }

    #[test]
    fn positions_change() {
        check(
            "slice-start",
            "  %a = f32[9]{0} parameter(0)
  %r = f32[4]{0} slice(%a), slice={[5:9]}",
            &["%r = f32[4]{0} slice(%a), slice={[4:8]}"],
        );
        check(
            "pad-amount",
            "  %r = f32[6]{0} pad(%a, %z), padding=0_2",
            &["%r = f32[6]{0} pad(%a, %z), padding=1_1"],
        );
        check(
            "transpose-dimensions",
            "  %a = f32[3,4,4]{2,1,0} parameter(0)
  %r = f32[4,4,3]{2,1,0} transpose(%a), dimensions={1,2,0}",
            &["%r = f32[4,4,3]{2,1,0} transpose(%a), dimensions={2,1,0}"],
        );
        check(
            "broadcast-dimensions",
            "  %r = f32[4,4,3]{2,1,0} broadcast(%a), dimensions={0,2}",
            &["%r = f32[4,4,3]{2,1,0} broadcast(%a), dimensions={1,2}"],
        );
        check(
            "window-padding",
            "  %r = f32[1,8]{1,0} reduce-window(%a, %z), window={size=1x3 pad=0_0x2_0}, to_apply=%s",
            &[
                "%r = f32[1,8]{1,0} reduce-window(%a, %z), window={size=1x3 pad=0_0x1_1}, to_apply=%s",
            ],
        );
        check(
            "window-dilation",
            "  %r = f32[1,8]{1,0} convolution(%a, %k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
            &[
                "%r = f32[1,8]{1,0} convolution(%a, %k), window={size=3 pad=1_3 rhs_dilate=2}, dim_labels=b0f_0io->b0f",
            ],
        );
        check(
            "concatenate-order",
            "  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %r = f32[8]{0} concatenate(%a, %b), dimensions={0}",
            &["%r = f32[8]{0} concatenate(%b, %a), dimensions={0}"],
        );
    }

    #[test]
    fn lines_are_put_in_before() {
        check(
            "narrow-float",
            "  %a = f32[2]{0} parameter(0)\n  %r = f32[2]{0} tanh(%a)",
            &["%mutant.0 = bf16[2]{0} convert(%a)\n  %mutant.1 = f32[2]{0} convert(%mutant.0)\n  \
             %r = f32[2]{0} tanh(%mutant.1)"],
        );
        check(
            "index-plus-one",
            "  %x = f32[9]{0} parameter(0)\n  %i = s32[] parameter(1)
  %r = f32[2]{0} dynamic-slice(%x, %i), dynamic_slice_sizes={2}",
            &["%mutant.0 = s32[] constant(1)\n  %mutant.1 = s32[] add(%i, %mutant.0)\n  \
             %r = f32[2]{0} dynamic-slice(%x, %mutant.1), dynamic_slice_sizes={2}"],
        );
    }

    #[test]
    fn aliases_are_dropped_and_added() {
        let body = "ENTRY %e (a: f32[2]) -> (f32[2], f32[3]) {\n  %a = f32[2]{0} parameter(0)
  %b = f32[3]{0} parameter(1)\n  ROOT %t = (f32[2]{0}, f32[3]{0}) tuple(%a, %b)\n}\n";
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let aliased = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }, x={}";
        let program = Program::read(&format!("{aliased}\n\n{body}"));
        let header = mutations::alias_dropped(&program, &mut rng).unwrap();
        assert!(
            header.matches("may-alias").count() == 1 && header.ends_with("}, x={}"),
            "{header}"
        );
        assert_eq!(mutations::alias_added(&program, &mut rng), None);
        let program = Program::read(&format!("HloModule m, x={{}}\n\n{body}"));
        let header = mutations::alias_added(&program, &mut rng).unwrap();
        assert!(header.starts_with("HloModule m, input_output_alias={ {"), "{header}");
        assert_eq!(mutations::alias_dropped(&program, &mut rng), None);
    }

    #[test]
    fn kinds_come_in_turn_and_the_same_for_the_same_seed() {
        let text = "HloModule m\n\nENTRY %e () -> f32[] {\n  %a = f32[] parameter(0)
  %b = f32[] constant(2)\n  %c = f32[] subtract(%a, %b)\n  ROOT %d = f32[] negate(%c)\n}\n";
        let draw = || Mutants::new(text, ChaCha8Rng::seed_from_u64(3)).take(9).collect::<Vec<_>>();
        let kinds: HashSet<&str> = draw().iter().map(|mutant| mutant.kind).collect();
        assert!(kinds.len() >= 8, "{kinds:?}");
        assert_eq!(draw(), draw());
        assert!(Mutants::new(text, ChaCha8Rng::seed_from_u64(3)).count() > 9);
    }
}
