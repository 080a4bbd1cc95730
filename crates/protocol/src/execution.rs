//! What is said about running programs: what they take and give, and which inputs to make.

use serde::{Deserialize, Serialize};

use crate::message::Finish;

/// An array that a program takes or gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArraySpec {
    /// Element type, such as `f32`.
    pub dtype: String,
    /// Sizes.
    pub dims: Vec<i64>,
    /// What its values are used for, as far as the program shows it.
    pub role: Role,
}

/// What the values of an input are used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// They end as indices: how many values make sense, from 0.
    pub index_bound: Option<u64>,
    /// They end under a root or a logarithm, so that only positive ones make sense.
    pub positive: bool,
    /// They decide how often a loop turns, so that large ones take for ever.
    pub loop_bound: bool,
}

/// What a program takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Inputs in order.
    pub inputs: Vec<ArraySpec>,
    /// Outputs in order.
    pub outputs: Vec<ArraySpec>,
    /// Outputs that are written into the memory of inputs.
    pub aliases: Vec<Alias>,
    /// Inputs that the caller gives away, whose memory the program may use as it likes.
    pub donated: Vec<u32>,
    /// Opcodes that make two runs incomparable (feeds, messages).
    pub not_comparable: Vec<String>,
    /// Opcodes whose results come from a hidden state.
    pub random: Vec<String>,
    /// Functions outside the program that it calls and that are not there: a run puts an arbitrary
    /// function of all operands in their place.
    pub unknown_calls: Vec<String>,
    /// Opcodes that need several devices.
    pub collectives: Vec<String>,
    /// Whether floating point of less than the widest type occurs.
    pub can_be_promoted: bool,
    /// Whether floating point of 16 bits or less occurs.
    pub narrow_floats: bool,
    /// Whether the compiler's interpreter has all that the program needs.
    pub interpretable: bool,
}

/// An output that is written into the memory of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Alias {
    /// Which output.
    pub output: u32,
    /// Into which input.
    pub input: u32,
    /// Whether the compiler must do so, and not only may.
    pub must: bool,
}

/// Who runs a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Executor {
    /// Code that the compiler generates.
    #[default]
    Compiled,
    /// The compiler's interpreter, that shares no code generation with it.
    Interpreter,
}

/// How to make a program ready to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileOptions {
    /// Through which pipeline.
    pub finish: Finish,
    /// Who runs it.
    pub executor: Executor,
    /// Whether code may be slow that is generated fast.
    pub quick: bool,
}

/// Inputs by their recipe: a seed and what to draw for each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InputSet {
    /// The same seed gives the same values on every machine.
    pub seed: u64,
    /// If set, each float is moved by one unit in the last place, up or down by this number.
    pub nudge: Option<u64>,
    /// In order.
    pub inputs: Vec<Input>,
}

/// One input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Element type of the values.
    pub dtype: String,
    /// Sizes.
    pub dims: Vec<i64>,
    /// Which values.
    pub fill: Fill,
    /// The wider type in which the program takes them, if it was promoted.
    pub held_as: Option<String>,
}

/// Which values to draw.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fill {
    /// Evenly between two numbers.
    Uniform {
        /// From here.
        low: f64,
        /// To here.
        high: f64,
    },
    /// Of many sizes: powers of two, evenly in the exponent.
    Scales {
        /// Lowest exponent.
        low: f64,
        /// Highest exponent.
        high: f64,
        /// Whether half of them are negative.
        signed: bool,
    },
    /// Whole numbers, both ends included.
    Integers {
        /// From here.
        low: i64,
        /// To here.
        high: i64,
    },
    /// Multiples of one half, both ends included: exact in every format, and often equal.
    Halves {
        /// From so many halves.
        low: i64,
        /// To so many.
        high: i64,
    },
    /// All the same.
    Constant(f64),
    /// Ones in this share of places, zeros elsewhere.
    Coin {
        /// From 0 to 1.
        share: f64,
    },
    /// Zeros and ones as masks have them: each row all zeros, all ones, ones at its beginning, or any.
    Masks,
    /// The same without rows that begin with a zero: some ones, then zeros.
    Padded,
    /// Any pattern of bits.
    Bits,
    /// Smallest, largest, 0, 1, -1 and any pattern.
    Extremes,
}

/// An array of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// Element type, such as `f32`.
    pub dtype: String,
    /// Sizes.
    pub dims: Vec<i64>,
    /// Elements in row-major order, little-endian.
    pub bytes: Vec<u8>,
    /// 0, or how many elements of a larger array each of its rows stands for.
    pub block: u32,
}

/// What compiled code needs, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEstimate {
    /// Most at one time.
    pub peak: i64,
    /// For intermediate values.
    pub temporaries: i64,
    /// For inputs.
    pub arguments: i64,
    /// For outputs.
    pub outputs: i64,
    /// For code.
    pub code: i64,
}
