//! What is wanted, and what comes of it.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use xla_gym_oracle::{Options, Report};
use xla_gym_profile::{Figures, Spec};
use xla_gym_recipe::Recipe;
use xla_gym_search::{Budget, Method, Policy};

use crate::{
    objective::Objective,
    plan::{Judge, Judged, Plan},
};

/// Passes that a search may run if nobody says otherwise.
const PASSES: u64 = 2000;

/// How long it may take where the clock decides, if nobody says otherwise.
const RACE: Duration = Duration::from_secs(120);

/// The same for a large program.
const LARGE: Duration = Duration::from_secs(240);

/// And for one on which the compiler's own pipeline takes more than [`LONG_PIPELINE`].
const LARGEST: Duration = Duration::from_secs(480);
const LONG_PIPELINE: Duration = Duration::from_millis(1500);

/// By which factor memory may grow if nobody says otherwise.
pub const MEMORY_GROWTH: f64 = 1.1;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Task {
    /// What is to be made small.
    pub objective: Objective,
    /// How to search.
    pub method: Method,
    /// How much it may take: the search, if passes are counted; everything together, if it is a time.
    /// If nothing is said, what is usual for the program and the objective ([`Task::usual_budget`]).
    pub budget: Budget,
    /// When the time began.
    pub began: Instant,
    /// Seed of the search and of the inputs.
    pub seed: u64,
    /// Which passes look promising, if somebody knows.
    pub policy: Option<Arc<dyn Policy>>,
    /// Whether orders that did well on other programs are tried first.
    pub coreset: bool,
    /// Passes of a recipe that is known for this program, tried before everything else.
    pub known: Option<Plan>,
    /// How many of the best by operations go through the pipeline; by the program's size, if nobody
    /// says.
    pub finalists: Option<usize>,
    /// How long the answer may be shortened.
    pub shortening: Duration,
    /// Sets of inputs on which outputs are compared.
    pub trials: u32,
    /// By which factor the memory that the final program needs may grow, where it is not what is to be
    /// made small.
    pub memory_growth: f64,
    /// Whether an answer is given that could not be compared with the original.
    pub unproven: bool,
    /// How long run time and compile time may be measured, if they are wanted.
    pub measuring: Option<Duration>,
    /// Set by whoever wants the search to end; the best so far is still proven.
    pub stop: Arc<AtomicBool>,
}

impl Task {
    /// What a compiler's users usually want.
    pub fn usual(spec: &Spec) -> Task {
        Task {
            objective: Objective::usual(spec),
            method: Method::Evolve,
            budget: Budget { passes: None, time: None },
            began: Instant::now(),
            seed: 0,
            policy: None,
            coreset: true,
            known: None,
            finalists: None,
            shortening: Duration::from_secs(15),
            trials: Options::default().trials,
            memory_growth: MEMORY_GROWTH,
            unproven: false,
            measuring: None,
            stop: Arc::default(),
        }
    }

    /// What is usual for a program: a number of passes; a time where the clock decides, or where the
    /// program is large.
    pub fn usual_budget(&self, judge: &Judge) -> Budget {
        let time = match () {
            () if judge.is_large && judge.pipeline_time > LONG_PIPELINE => LARGEST,
            () if judge.is_large => LARGE,
            () if self.objective.needs_clock() => RACE,
            () => return Budget::passes(PASSES),
        };
        Budget { passes: None, time: Some(time) }
    }
}

/// A plan that was proven.
#[derive(Clone, Debug)]
pub struct Proven {
    /// The plan, and what comes of it.
    pub judged: Judged,
    /// Whether it computes the same.
    pub outputs: Report,
}

/// What came of it.
#[derive(Debug)]
pub struct Answer {
    /// What to do.
    pub plan: Plan,
    /// What comes of it.
    pub figures: Figures,
    /// What comes of the default.
    pub default: Figures,
    /// The same in writing, with what speaks for it.
    pub recipe: Recipe,
    /// If several objectives were asked for: proven plans of which none beats another in all.
    pub front: Vec<Proven>,
    /// The best by operations at the end of the order that was not good enough later, if nothing
    /// was.
    pub nearest: Option<Figures>,
    /// Why times were not measured that should have been.
    pub not_measured: Option<String>,
}
