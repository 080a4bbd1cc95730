//! Which inputs to try.
//!
//! One kind of input proves little: under random numbers of size 1 a step of an optimiser drowns in
//! the weights it is added to, counters never overflow, nothing is ever equal to anything. So each
//! trial has a kind of its own, and what a parameter feeds decides what makes sense for it.

use xla_gym_arrays::{Element, Kind, bytes_of};
use xla_gym_common::splitmix;
use xla_gym_engine::protocol::{ArraySpec, Fill, Input, InputSet, Signature};

/// A kind of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Floats within ±1, small integers, ids within bounds, half of the masks on.
    Typical,
    /// Some state zero, as at the beginning of training, and weights of many sizes.
    Beginning,
    /// Typical floats, with ids from the end, and integers at the ends of their range.
    Edges,
    /// Typical floats, with a few ids past either end.
    Beyond,
    /// Whole numbers, with many zeros and equal elements.
    Ties,
    /// Large floats and integers, most masks on.
    Wide,
    /// Only positive floats.
    Positive,
    /// Floats near zero.
    Small,
    /// All elements of an input equal.
    Equal,
    /// Only negative numbers, most masks off.
    Negative,
    /// Floats up to hundreds, for programs with limits of that size in them.
    Large,
}

/// What may be taken from a style where a program gives no numbers on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calm {
    /// Floats are positive and at most 1, for programs that take roots and logarithms of what they
    /// are given.
    pub floats: bool,
    /// The same for single numbers alone: a time or a rate, where weights would make a wide program
    /// overflow if all of them were positive.
    pub numbers: bool,
    /// Integers are zeros and ones, for programs that take them for masks.
    pub integers: bool,
    /// Whatever could be weights is drawn like weights: otherwise a deep and wide program overflows, or
    /// is decided by rounding.
    pub weights: bool,
}

impl Calm {
    /// Nothing is taken from it.
    pub const NOT: Calm = Calm { floats: false, numbers: false, integers: false, weights: false };
    /// Floats alone.
    pub const FLOATS: Calm = Calm { floats: true, ..Calm::NOT };
    /// Integers alone.
    pub const INTEGERS: Calm = Calm { integers: true, ..Calm::NOT };
    /// Both.
    pub const BOTH: Calm = Calm { floats: true, integers: true, ..Calm::NOT };
    /// What is taken for a large program from the beginning, and then one by one.
    pub const LARGE: [Calm; 4] = [
        Calm { weights: true, ..Calm::NOT },
        Calm { weights: true, numbers: true, ..Calm::NOT },
        Calm { weights: true, integers: true, ..Calm::NOT },
        Calm { weights: true, integers: true, numbers: true, ..Calm::NOT },
    ];
}

impl Style {
    /// In the order in which they are tried.
    pub const ALL: [Style; 11] = [
        Style::Typical,
        Style::Beginning,
        Style::Edges,
        Style::Ties,
        Style::Large,
        Style::Small,
        Style::Positive,
        Style::Beyond,
        Style::Wide,
        Style::Equal,
        Style::Negative,
    ];

    /// And then those that are for some inputs once more, for the others.
    const AGAIN: [Style; 6] =
        [Style::Small, Style::Large, Style::Equal, Style::Wide, Style::Positive, Style::Negative];

    /// Whether only some floats are of this kind and others as in training: where all are small, say,
    /// what one of them does to others that are not is never seen.
    fn is_for_some(self) -> bool {
        Style::AGAIN.contains(&self)
    }

    /// Whether many values are exactly equal, which is the point of it and which a nudge would undo.
    pub fn has_ties(self) -> bool {
        self == Style::Ties
    }

    /// The style of a trial; none after all of them, when each input has one of its own.
    pub fn of_trial(trial: u32) -> Option<Style> {
        Style::ALL.into_iter().chain(Style::AGAIN).nth(trial as usize)
    }
}

/// Inputs for a program: the same for the same arguments, on every machine.
pub fn inputs(signature: &Signature, seed: u64, trial: u32, calm: Calm) -> InputSet {
    let (whole, seed) = (seed, splitmix(seed ^ splitmix(u64::from(trial) + 1)));
    let again = trial as usize >= Style::ALL.len();
    let input = |(place, spec): (usize, &ArraySpec)| {
        let luck = splitmix(seed ^ splitmix(place as u64 + 0x51ed));
        let own = Style::ALL[(splitmix(luck) % Style::ALL.len() as u64) as usize];
        let (style, ordinary) = match Style::of_trial(trial) {
            Some(style) => {
                let side = splitmix(whole ^ splitmix(place as u64 + 1000 * (style as u64 + 1)));
                let side = side.is_multiple_of(2);
                (style, side != again)
            }
            None => (own, (luck >> 8).is_multiple_of(2)),
        };
        let mut fill = fill(signature, spec, style, calm, luck);
        if ordinary && style.is_for_some() && !calm.floats && !spec.role.positive {
            fill = ordinary_floats(signature, spec).unwrap_or(fill);
        }
        let number = spec.dims.iter().product::<i64>() == 1
            && matches!(Element::of(&spec.dtype).kind, Kind::Float(_));
        // One number says little in a trial, so its size varies most.
        if Style::of_trial(trial).is_none()
            && number
            && !calm.floats
            && !spec.role.positive
            && luck.is_multiple_of(2)
        {
            fill = Fill::Scales { low: -6.0, high: 9.0, signed: luck.is_multiple_of(8) };
        }
        Input { dtype: spec.dtype.clone(), dims: spec.dims.clone(), fill, held_as: None }
    };
    let inputs = signature.inputs.iter().enumerate().map(input).collect();
    InputSet { seed, nudge: None, inputs }
}

/// Inputs of the first kind, for runs that are measured and not compared.
pub fn typical_inputs(signature: &Signature, seed: u64) -> InputSet {
    inputs(signature, seed, 0, Calm::FLOATS)
}

/// Why inputs or outputs cannot be held, if so: a program of a few bytes can ask for terabytes.
pub fn too_large(signature: &Signature) -> Option<String> {
    let total = |specs: &[ArraySpec]| {
        specs.iter().try_fold(0u64, |sum, spec| sum.checked_add(bytes_of(&spec.dtype, &spec.dims)?))
    };
    let most = xla_gym_arrays::MOST_INPUT_BYTES;
    for (what, specs) in [("inputs", &signature.inputs), ("outputs", &signature.outputs)] {
        let bytes = total(specs);
        if bytes.is_none_or(|bytes| bytes > most) {
            let size = bytes.map_or("more bytes than can be counted".to_owned(), |bytes| {
                format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
            });
            return Some(format!(
                "its {what} take {size}, and at most {} GiB are made; run it with smaller shapes",
                most >> 30
            ));
        }
    }
    None
}

fn fill(signature: &Signature, spec: &ArraySpec, style: Style, calm: Calm, luck: u64) -> Fill {
    let role = spec.role;
    let scalar = spec.dims.iter().product::<i64>() == 1;
    if let Some(bound) = role.index_bound {
        let high = i64::try_from(bound).unwrap_or(i64::MAX).max(1) - 1;
        return match style {
            // Ids repeat.
            Style::Ties => Fill::Integers { low: 0, high: high.min(2) },
            // From the end, as programs in Python count.
            Style::Edges if !role.loop_bound => Fill::Integers { low: -high - 1, high },
            // Not all inputs at once, since one that is refused may hide the others.
            Style::Beyond if !role.loop_bound && (luck % 4 != 3 || is_alone(signature)) => {
                let past = high / 16 + 1;
                Fill::Integers { low: -high - 1 - past, high: high + past }
            }
            Style::Large | Style::Small | Style::Positive
                if !role.loop_bound && luck.is_multiple_of(4) =>
            {
                Fill::Integers { low: -high - 1, high }
            }
            Style::Equal => Fill::Constant((luck % (high as u64 + 1)) as f64),
            _ => Fill::Integers { low: 0, high },
        };
    }
    match Element::of(&spec.dtype).kind {
        Kind::Float(_) if calm.weights && spec.dims.len() > 1 && !role.positive => as_weights(spec),
        Kind::Float(_) => {
            let calm = calm.floats || calm.numbers && scalar;
            floats(signature, spec, style, calm, luck)
        }
        Kind::Predicate => match style {
            Style::Beginning | Style::Edges | Style::Positive => Fill::Masks,
            Style::Wide => Fill::Coin { share: 0.9 },
            Style::Negative => Fill::Coin { share: 0.1 },
            Style::Equal => Fill::Coin { share: (luck % 2) as f64 },
            _ => Fill::Coin { share: 0.5 },
        },
        // How often a loop turns, or how many steps were taken.
        Kind::Integer { .. } if role.loop_bound => Fill::Integers { low: 1, high: 8 },
        // Keys of random generators are whole words.
        Kind::Integer { signed: false, bits } if bits >= 32 => match style {
            Style::Ties => Fill::Integers { low: 0, high: 1 },
            Style::Edges if !scalar => Fill::Extremes,
            _ => Fill::Bits,
        },
        // A counter of steps begins at 1; at 0 many formulas divide by nothing.
        Kind::Integer { bits, .. } if scalar => match style {
            Style::Ties => Fill::Integers { low: 0, high: 1 },
            // As seeds, it takes many to see what random numbers decide.
            Style::Wide | Style::Large | Style::Positive if bits >= 16 => {
                Fill::Integers { low: 1, high: 999 }
            }
            _ => Fill::Integers { low: 1, high: 8 },
        },
        // Where the first is masked, causal attention has nothing left to look at.
        Kind::Integer { .. } if calm.integers && (calm.floats || calm.numbers) => Fill::Padded,
        Kind::Integer { .. } if calm.integers => Fill::Masks,
        Kind::Integer { signed, bits } => match style {
            Style::Edges => Fill::Extremes,
            Style::Wide if signed && bits > 16 => Fill::Integers { low: -999, high: 999 },
            Style::Negative if signed => Fill::Integers { low: -8, high: -1 },
            Style::Ties => Fill::Integers { low: 0, high: 1 },
            Style::Equal => Fill::Constant((luck % 3) as f64),
            Style::Beginning | Style::Small => Fill::Masks,
            Style::Positive => Fill::Integers { low: 0, high: 2 },
            _ if signed && luck % 2 == 1 => Fill::Integers { low: -7, high: 7 },
            _ => Fill::Integers { low: 0, high: [7, 7, 3, 2][(luck >> 4) as usize % 4] },
        },
        Kind::Opaque => Fill::Constant(0.0),
    }
}

fn floats(signature: &Signature, spec: &ArraySpec, style: Style, calm: bool, luck: u64) -> Fill {
    if spec.role.positive || calm {
        return match style {
            Style::Beginning if is_state(signature, spec) && luck % 2 == 1 && !calm => {
                Fill::Constant(0.0)
            }
            Style::Beginning | Style::Small => {
                Fill::Scales { low: -10.0, high: 0.0, signed: false }
            }
            Style::Ties => Fill::Integers { low: 1, high: 2 },
            Style::Equal => Fill::Constant(0.5),
            Style::Wide if !calm => Fill::Uniform { low: 0.5, high: 4.0 },
            _ => Fill::Uniform { low: 0.05, high: 1.0 },
        };
    }
    match style {
        Style::Typical | Style::Edges | Style::Beyond => Fill::Uniform { low: -1.0, high: 1.0 },
        Style::Beginning if is_state(signature, spec) && luck % 2 == 1 => Fill::Constant(0.0),
        Style::Beginning if spec.dims.len() > 1 => as_weights(spec),
        Style::Beginning => Fill::Scales { low: -8.0, high: 1.0, signed: true },
        Style::Wide => {
            let most = (2 << (luck % 5)) as f64;
            Fill::Uniform { low: -most, high: most }
        }
        Style::Ties => Fill::Halves { low: -2, high: 5 },
        Style::Positive => Fill::Uniform { low: 0.05, high: 2.0 },
        Style::Small => Fill::Uniform { low: -0.01, high: 0.01 },
        Style::Equal => Fill::Constant([0.0, 1.0, -0.5][(luck % 3) as usize]),
        Style::Negative => Fill::Uniform { low: -2.0, high: -0.05 },
        Style::Large => match luck % 3 {
            0 => Fill::Uniform { low: -300.0, high: -1.0 },
            signed => Fill::Scales { low: 4.0, high: 9.0, signed: signed == 1 },
        },
    }
}

/// As weights are drawn, so that activations neither vanish nor saturate.
fn as_weights(spec: &ArraySpec) -> Fill {
    let inputs: i64 = spec.dims[..spec.dims.len() - 1].iter().product();
    let most = (3.0 / inputs.max(1) as f64).sqrt();
    Fill::Uniform { low: -most, high: most }
}

/// What floats are beside others that are unusual, if there are others.
fn ordinary_floats(signature: &Signature, spec: &ArraySpec) -> Option<Fill> {
    let is_float = |spec: &&ArraySpec| Element::of(&spec.dtype).float().is_some();
    if !is_float(&spec) || signature.inputs.iter().filter(is_float).count() < 2 {
        return None;
    }
    Some(match spec.dims.len() {
        0 | 1 => Fill::Uniform { low: -1.0, high: 1.0 },
        _ => as_weights(spec),
    })
}

/// Whether only one input has ids.
fn is_alone(signature: &Signature) -> bool {
    signature.inputs.iter().filter(|spec| spec.role.index_bound.is_some()).count() == 1
}

/// Whether an input may be what an output becomes in the next step: weights and an optimiser's
/// memory are.
fn is_state(signature: &Signature, spec: &ArraySpec) -> bool {
    let same = |output: &&ArraySpec| output.dtype == spec.dtype && output.dims == spec.dims;
    signature.outputs.iter().find(same).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla_gym_engine::protocol::Role;

    fn signature(dtype: &str, dims: Vec<i64>, role: Role) -> Signature {
        let spec = ArraySpec { dtype: dtype.to_owned(), dims, role };
        Signature { inputs: vec![spec], ..Signature::default() }
    }

    #[test]
    fn a_variance_is_positive_and_an_id_near_its_bounds_on_every_trial() {
        let variance = signature("f32", vec![4], Role { positive: true, ..Role::default() });
        let id = signature("s32", vec![4], Role { index_bound: Some(7), ..Role::default() });
        for trial in 0..30 {
            for (signature, low, high) in [(&variance, 0.0, 10.0), (&id, -8.0, 7.0)] {
                let set = inputs(signature, 1, trial, Calm::NOT);
                let array = &xla_gym_arrays::make_inputs(&set).unwrap()[0];
                let values = Element::of(&array.dtype).values(&array.bytes);
                assert!(
                    values.iter().all(|value| (low..=high).contains(value)),
                    "{trial} {values:?}"
                );
            }
        }
    }

    #[test]
    fn each_input_is_small_in_one_trial_and_ordinary_in_another() {
        let spec = |size| ArraySpec {
            dtype: "f32".to_owned(),
            dims: vec![size, 4],
            role: Role::default(),
        };
        let signature = Signature { inputs: (1..40).map(spec).collect(), ..Signature::default() };
        let small = Fill::Uniform { low: -0.01, high: 0.01 };
        let trials = (0..17).filter(|trial| Style::of_trial(*trial) == Some(Style::Small));
        let sets: Vec<Vec<bool>> = trials
            .map(|trial| {
                let set = inputs(&signature, 3, trial, Calm::NOT);
                set.inputs.iter().map(|input| input.fill == small).collect()
            })
            .collect();
        assert_eq!(sets.len(), 2);
        assert!(sets[0].iter().zip(&sets[1]).all(|(a, b)| a != b), "{sets:?}");
        assert!(sets[0].contains(&true) && sets[1].contains(&true));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_size() {
        let huge = signature("f32", vec![1_000_000_000_000], Role::default());
        assert!(too_large(&huge).unwrap().contains("3725.3 GiB"));
        let uncountable = signature("f32", vec![i64::MAX, i64::MAX], Role::default());
        assert!(too_large(&uncountable).is_some());
        assert_eq!(too_large(&signature("f32", vec![8], Role::default())), None);
    }
}
