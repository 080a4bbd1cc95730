//! What an agent sees.

use serde::{Deserialize, Serialize};
use xla_gym_engine::protocol::{Hello, MetricRole};
use xla_gym_transitions::State;

/// The length of [`View::Size`].
const SIZE_FEATURES: usize = 6;

/// The length of [`View::Inlined`].
const INLINED_FEATURES: usize = 4;

/// Larger counts and costs than these do not occur; they scale the logarithms to 0..=1.
const MOST_INSTRUCTIONS: f64 = 1e7;
const MOST_WORK: f64 = 1e18;

/// A vector of numbers that describes a state. Several can be put behind one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// Instructions per opcode.
    Counts,
    /// Instructions per opcode, `ln(1 + n) / ln(1 + 10⁷)`: between 0 and 1 for graphs of all sizes.
    Scaled,
    /// Instructions per opcode as a share of all instructions at the start.
    Share,
    /// The compiler's estimates of work, then the primary metric: each as a logarithm between 0 and 1,
    /// then each as a ratio to the start, cut at 4.
    Cost,
    /// The actions of this episode in order, −1 for those to come.
    History,
    /// For each action, how often it changed the program in this episode: a fourth for each time,
    /// cut at 1.
    Applied,
    /// Which actions were the last two to change the program: a 1 for each, the last one first.
    Latest,
    /// Instructions and functions: each as a logarithm between 0 and 1, then each as a ratio to
    /// the start; then the lowest of the primary metric so far as a ratio to the start, and what it is
    /// now as a ratio to that. Ratios are cut at 4. Many calls and few functions tell that inlining
    /// would make copies.
    Size,
    /// The primary metric if every call were replaced by a copy of what it calls: as a logarithm
    /// between 0 and 1, then as ratios, cut at 4, to the same at the start, to the primary metric now and
    /// to the lowest so far. It tells what inlining would cost.
    Inlined,
}

/// How many actions [`View::Latest`] looks back.
const LATEST: usize = 2;

/// What of an episode can be viewed.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The state in which it began.
    pub start: &'a State,
    /// The state in which it is.
    pub state: &'a State,
    /// The lowest of the primary metric on the way.
    pub lowest: u64,
    /// All actions.
    pub taken: &'a [usize],
    /// Those that changed the program.
    pub applied: &'a [usize],
    /// Where to find what.
    pub places: Places,
}

/// Where views find what they show among the worker's counts; found once for each compiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    size: Option<usize>,
    functions: Option<usize>,
    expanded: Option<usize>,
}

impl Places {
    /// By the roles of the worker's metrics.
    pub fn new(hello: &Hello) -> Places {
        Places {
            size: hello.role(MetricRole::Size),
            functions: hello.role(MetricRole::Functions),
            expanded: hello.role(MetricRole::Expanded),
        }
    }

    /// All instructions; the primary metric where the worker does not count them.
    pub fn size(self, state: &State) -> u64 {
        state.counts.get(self.size.unwrap_or(0)).copied().unwrap_or_default()
    }

    fn functions(self, state: &State) -> f64 {
        self.functions.and_then(|at| state.counts.get(at)).copied().unwrap_or_default() as f64
    }

    fn expanded(self, state: &State) -> f64 {
        self.expanded.and_then(|at| state.counts.get(at)).copied().unwrap_or_default() as f64
    }
}

/// What the lengths of views depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Opcodes of the compiler.
    pub opcodes: usize,
    /// Estimates that it gives.
    pub costs: usize,
    /// Actions, the one that stops included.
    pub actions: usize,
    /// Steps of an episode.
    pub traj_limit: usize,
}

/// Between which values a view lies, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The smallest value.
    pub low: f32,
    /// The largest.
    pub high: f32,
    /// How many values.
    pub length: usize,
}

impl View {
    /// All of them.
    pub const ALL: [View; 9] = [
        View::Counts,
        View::Scaled,
        View::Share,
        View::Cost,
        View::History,
        View::Applied,
        View::Latest,
        View::Size,
        View::Inlined,
    ];

    /// Between which values it lies.
    pub fn bounds(self, shape: Shape) -> Bounds {
        let Shape { opcodes, costs, actions, traj_limit } = shape;
        match self {
            View::Counts => Bounds { low: 0.0, high: MOST_INSTRUCTIONS as f32, length: opcodes },
            View::Scaled => Bounds { low: 0.0, high: 1.0, length: opcodes },
            View::Share => Bounds { low: 0.0, high: 4.0, length: opcodes },
            View::Cost => Bounds { low: 0.0, high: 4.0, length: 2 * (costs + 1) },
            View::History => Bounds { low: -1.0, high: actions as f32 - 1.0, length: traj_limit },
            View::Applied => Bounds { low: 0.0, high: 1.0, length: actions },
            View::Latest => Bounds { low: 0.0, high: 1.0, length: LATEST * actions },
            View::Size => Bounds { low: 0.0, high: 4.0, length: SIZE_FEATURES },
            View::Inlined => Bounds { low: 0.0, high: 4.0, length: INLINED_FEATURES },
        }
    }

    /// Writes it into a slice of the length that [`View::bounds`] says.
    pub fn write(self, seen: &Seen<'_>, out: &mut [f32]) {
        let Seen { start, state, lowest, taken, applied, places } = *seen;
        match self {
            View::Counts => per_opcode(state, out, |count| count.min(MOST_INSTRUCTIONS)),
            View::Scaled => per_opcode(state, out, |count| logarithm(count, MOST_INSTRUCTIONS)),
            View::Share => {
                let all = (places.size(start) as f64).max(1.0);
                per_opcode(state, out, |count| (count / all).min(4.0));
            }
            View::Cost => {
                let costs = out.len() / 2 - 1;
                for at in 0..=costs {
                    let most = if at == costs { MOST_INSTRUCTIONS } else { MOST_WORK };
                    let (now, first) = (feature(state, at, costs), feature(start, at, costs));
                    out[at] = logarithm(now, most) as f32;
                    out[at + costs + 1] = ratio(now, first);
                }
            }
            View::History => {
                out.fill(-1.0);
                for (slot, action) in out.iter_mut().zip(taken) {
                    *slot = *action as f32;
                }
            }
            View::Applied => {
                out.fill(0.0);
                for &action in applied {
                    out[action] = (out[action] + 0.25).min(1.0);
                }
            }
            View::Latest => {
                out.fill(0.0);
                let actions = out.len() / LATEST;
                for (back, action) in applied.iter().rev().take(LATEST).enumerate() {
                    out[back * actions + action] = 1.0;
                }
            }
            View::Size => {
                let sizes = |state: &State| [places.size(state) as f64, places.functions(state)];
                for (i, (now, first)) in sizes(state).into_iter().zip(sizes(start)).enumerate() {
                    out[i] = logarithm(now, MOST_INSTRUCTIONS) as f32;
                    out[i + 2] = ratio(now, first);
                }
                out[4] = ratio(lowest as f64, start.counts.primary() as f64);
                out[5] = ratio(state.counts.primary() as f64, lowest as f64);
            }
            View::Inlined => {
                let expanded = places.expanded(state);
                out[0] = logarithm(expanded, MOST_INSTRUCTIONS) as f32;
                out[1] = ratio(expanded, places.expanded(start));
                out[2] = ratio(expanded, state.counts.primary() as f64);
                out[3] = ratio(expanded, lowest as f64);
            }
        }
    }
}

fn per_opcode(state: &State, out: &mut [f32], value: impl Fn(f64) -> f64) {
    for (slot, count) in out.iter_mut().zip(&state.opcodes) {
        *slot = if *count == 0 { 0.0 } else { value(f64::from(*count)) as f32 };
    }
}

fn logarithm(value: f64, most: f64) -> f64 {
    (value.max(0.0).ln_1p() / most.ln_1p()).min(1.0)
}

fn ratio(now: f64, first: f64) -> f32 {
    if first > 0.0 { (now / first).min(4.0) as f32 } else { 0.0 }
}

/// One of the costs, or the primary metric after the last of them.
fn feature(state: &State, at: usize, costs: usize) -> f64 {
    if at == costs {
        return state.counts.primary() as f64;
    }
    let value = state.cost.as_ref().and_then(|cost| cost.get(at)).copied().unwrap_or_default();
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla_gym_engine::protocol::{Cost, Counts, Fingerprint};

    fn state(opcodes: Vec<u32>, flops: f64) -> State {
        let instructions = opcodes.iter().map(|count| u64::from(*count)).sum();
        State {
            id: Fingerprint(0),
            counts: Counts::new(&[instructions, instructions, 2 * instructions, 1]),
            opcodes,
            cost: Some(Cost::new(&[flops, 0.0, f64::INFINITY])),
        }
    }

    fn check(view: View, state_now: &State, expected: &[f32]) {
        let start = state(vec![4, 0, 12], 100.0);
        let bounds = view.bounds(Shape { opcodes: 3, costs: 3, actions: 10, traj_limit: 4 });
        let places = Places { size: Some(1), functions: Some(3), expanded: Some(2) };
        let mut out = vec![f32::NAN; bounds.length];
        let (taken, applied) = (&[7, 2], &[7, 2, 7]);
        let seen = Seen { start: &start, state: state_now, lowest: 4, taken, applied, places };
        view.write(&seen, &mut out);
        assert!(out.iter().all(|value| (bounds.low..=bounds.high).contains(value)), "{out:?}");
        for (value, expected) in out.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-6, "{view:?}: {out:?}");
        }
    }

    #[test]
    fn views_show_what_they_say() {
        let now = state(vec![2, 0, 6], 50.0);
        check(View::Counts, &now, &[2.0, 0.0, 6.0]);
        check(View::Share, &now, &[0.125, 0.0, 0.375]);
        let scaled = |n: f64| (n.ln_1p() / 1e7_f64.ln_1p()) as f32;
        check(View::Scaled, &now, &[scaled(2.0), 0.0, scaled(6.0)]);
        check(View::History, &now, &[7.0, 2.0, -1.0, -1.0]);
        let mut applied = [0.0; 10];
        (applied[7], applied[2]) = (0.5, 0.25);
        check(View::Applied, &now, &applied);
        let mut latest = [0.0; 20];
        (latest[7], latest[10 + 2]) = (1.0, 1.0);
        check(View::Latest, &now, &latest);
        let work = (50.0_f64.ln_1p() / 1e18_f64.ln_1p()) as f32;
        check(View::Cost, &now, &[work, 0.0, 0.0, scaled(8.0), 0.5, 0.0, 0.0, 0.5]);
        check(View::Size, &now, &[scaled(8.0), scaled(1.0), 0.5, 1.0, 0.25, 2.0]);
        check(View::Inlined, &now, &[scaled(16.0), 0.5, 2.0, 4.0]);
    }

    #[test]
    fn nothing_leaves_its_bounds() {
        let now = state(vec![u32::MAX, 0, u32::MAX], f64::MAX);
        for view in View::ALL {
            check(view, &now, &[]);
        }
    }
}
