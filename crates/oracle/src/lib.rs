//! Whether two programs compute the same, found out by running both.
//!
//! The oracle knows nothing of passes: it gets two programs, has seeded inputs of several kinds made,
//! has the real compiler compile and run both, and compares every element of every output. Integers
//! and booleans must be the same to the last bit. How far floats may be apart is measured, not
//! chosen: by the noise that the original has by itself ([`noise`]).
//!
//! Each program runs twice. As the compiler makes it, where the results must not be farther from
//! those of higher precision than the original's own by more than a stated factor. And with all
//! floating point in the widest type, where rounding no longer hides what is wrong.
//!
//! A second opinion comes from the compiler's interpreter, which shares no code generation with what
//! is tested ([`ReferenceKind`]).
//!
//! What cannot be compared is said so and never called equal.
//!
//! ```no_run
//! use xla_gym_engine::{Engine, EngineConfig, protocol::{Finish, Observe}};
//! use xla_gym_oracle::{Options, check};
//!
//! let engine = Engine::start(EngineConfig::named("toy")?)?;
//! let mut original = engine.load_file("program.toy")?;
//! let mut changed = original.fork()?;
//! changed.apply(engine.pass("simplify")?, Observe::NOTHING)?;
//! let report = check(&mut original, &mut changed, Options::DEFAULT, &Finish::default())?;
//! println!("{}, {} elements compared", report.summary(), report.elements);
//! # Ok::<(), xla_gym_engine::EngineError>(())
//! ```

#![forbid(unsafe_code)]

mod compare;
mod inputs;
mod known;
pub mod noise;
mod program;
mod reference;
mod signature;
mod size;
mod trials;

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};
use xla_gym_engine::{EngineError, Session, protocol::Finish};

pub use compare::{Accuracy, Compared, Difference, FACTOR, HIGHER_FACTOR, MEAN_FACTOR, Precision};
pub use inputs::{Calm, Style, inputs, too_large, typical_inputs};
pub use reference::Reference;
pub use size::{interpreter_seconds, io_bytes, is_large};

/// How to compare.
///
/// ```
/// use xla_gym_oracle::{Options, ReferenceKind};
///
/// let options = Options { trials: 16, reference: "both".parse()?, ..Options::default() };
/// assert_eq!(options.reference, ReferenceKind::Both);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// How many kinds of inputs at least.
    pub trials: u32,
    /// From which seed.
    pub seed: u64,
    /// Who says what the original computes.
    pub reference: ReferenceKind,
    /// How long the runs of a large original may take: no further kind of inputs is begun that should
    /// end later. The first always runs.
    pub patience: Duration,
    /// How long runs of a large original and of one result may take together: where one run shows that
    /// they would take longer, nothing is compared.
    pub limit: Duration,
}

impl Options {
    /// As everybody gets it who says nothing else.
    pub const DEFAULT: Options = Options {
        trials: 8,
        seed: 0,
        reference: ReferenceKind::Auto,
        patience: Duration::from_secs(60),
        limit: Duration::MAX,
    };
}

impl Default for Options {
    fn default() -> Self {
        Options::DEFAULT
    }
}

/// Who says what the original computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// Compiled code, and the interpreter where it is fast.
    #[default]
    Auto,
    /// Compiled code alone.
    Compiled,
    /// The interpreter, for both programs in higher precision.
    Interpreter,
    /// Compiled code and the interpreter, for both programs, on all inputs.
    Both,
}

impl ReferenceKind {
    /// All of them, by name.
    pub const NAMES: [(&'static str, ReferenceKind); 4] = [
        ("auto", ReferenceKind::Auto),
        ("compiled", ReferenceKind::Compiled),
        ("interpreter", ReferenceKind::Interpreter),
        ("both", ReferenceKind::Both),
    ];
}

impl FromStr for ReferenceKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = ReferenceKind::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let names = ReferenceKind::NAMES.map(|(name, _)| name).join(", ");
            format!("it must be one of {names}")
        })
    }
}

impl fmt::Display for ReferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = ReferenceKind::NAMES.iter().find(|(_, kind)| kind == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Every output of every trial agrees.
    Equal,
    /// Some output differs; the worst difference of each output that does.
    Different {
        /// At most one for each output.
        differences: Vec<Difference>,
    },
    /// It takes or gives something else, or overwrites what it may not.
    OtherSignature {
        /// What.
        reason: String,
    },
    /// The compiler does not take the second program.
    Rejected {
        /// In its words.
        reason: String,
    },
    /// No comparison is possible.
    NotComparable {
        /// Why.
        reason: String,
    },
}

/// A verdict with what it rests on.
///
/// ```
/// use xla_gym_oracle::{Report, Verdict};
///
/// let report = Report::rejected("dot of a rank that is not there".to_owned());
/// assert!(!report.is_equal() && !report.is_different());
/// assert_eq!(report.summary(), "the compiler rejects it: dot of a rank that is not there");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Sets of inputs compared.
    pub trials: u32,
    /// Output elements compared, over all trials.
    pub elements: u64,
    /// Of those, how many were infinite or NaN on both sides, or not comparable for another reason.
    pub non_finite: u64,
    /// Largest difference seen, in units of what is allowed: up to 1 is equal.
    pub worst: f64,
    /// How much was really compared.
    #[serde(default)]
    pub compared: Compared,
    /// How far the results are from those of higher precision.
    #[serde(default)]
    pub accuracy: Option<Accuracy>,
    /// Whether both programs were compared in higher precision too.
    #[serde(default)]
    pub higher_precision: bool,
    /// On how many sets of inputs the interpreter agreed.
    #[serde(default)]
    pub interpreted: u32,
    /// Comparisons and clamps that the original decides by, outside of loops.
    #[serde(default)]
    pub decisions: usize,
    /// Those that fell only one way on all inputs that were tried, by the compiler's names.
    #[serde(default)]
    pub one_sided: Vec<String>,
    /// Functions outside the program, in whose place stood an arbitrary one.
    #[serde(default)]
    pub unknown_calls: Vec<String>,
    /// What else there is to know.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Report {
    /// Whether the programs were found equal.
    pub fn is_equal(&self) -> bool {
        self.verdict == Verdict::Equal
    }

    /// Whether they were found to be different, in what they compute or in what they take and give.
    pub fn is_different(&self) -> bool {
        matches!(self.verdict, Verdict::Different { .. } | Verdict::OtherSignature { .. })
    }

    /// The verdict in a few words.
    pub fn summary(&self) -> String {
        match &self.verdict {
            Verdict::Equal => "equal".to_owned(),
            Verdict::Different { differences } => {
                let worst = differences.iter().max_by(|a, b| a.excess.total_cmp(&b.excess));
                let what = worst.map_or_else(String::new, |worst| {
                    let higher = match worst.precision {
                        Precision::Own => "",
                        Precision::Higher => " in higher precision",
                    };
                    format!(
                        ", output {} ({}) by {:.1} times what is allowed{higher}: {:e} against {:e}",
                        worst.output, worst.dtype, worst.excess, worst.expected, worst.got
                    )
                });
                format!("{} of the outputs differ{what}", differences.len())
            }
            Verdict::OtherSignature { reason } => format!("another program: {reason}"),
            Verdict::Rejected { reason } => format!("the compiler rejects it: {reason}"),
            Verdict::NotComparable { reason } => format!("not comparable: {reason}"),
        }
    }

    /// Of a program that cannot even be had.
    pub fn rejected(reason: String) -> Report {
        Report::without_trials(Verdict::Rejected { reason })
    }

    /// Of a comparison for which nothing ran.
    pub fn without_trials(verdict: Verdict) -> Report {
        Report {
            verdict,
            trials: 0,
            elements: 0,
            non_finite: 0,
            worst: 0.0,
            compared: Compared::default(),
            accuracy: None,
            higher_precision: false,
            interpreted: 0,
            decisions: 0,
            one_sided: Vec::new(),
            unknown_calls: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Compares two programs. `without` are passes that the compiler's own pipeline can do without.
pub fn check(
    first: &mut Session,
    second: &mut Session,
    options: Options,
    without: &Finish,
) -> Result<Report, EngineError> {
    Reference::new(first, options, without)?.compare(second, &Finish::default())
}
