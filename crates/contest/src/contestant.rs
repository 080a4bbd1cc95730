//! Who takes part.

use std::sync::Arc;

use xla_gym_agents::TrainedPolicy;
use xla_gym_report::results::Kind;
use xla_gym_search::Method;

/// Who takes part.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// Its name, in tables.
    pub name: String,
    /// Its seed: of the training where something was trained, of the search otherwise.
    pub seed: u64,
    /// How it comes to its order.
    pub way: Way,
}

/// How a contestant comes to its order.
#[derive(Clone, Debug)]
pub enum Way {
    /// A policy walks once and always takes what it puts first.
    Walk(Arc<TrainedPolicy>),
    /// The same passes and as many steps, but every step by luck.
    Luck(Arc<TrainedPolicy>),
    /// A search asks a policy which passes look promising. It begins with the policy's walk, then
    /// come orders that did well on training graphs.
    Guided(Arc<TrainedPolicy>, Method),
    /// A search that has learnt nothing.
    Plain(Method),
    /// A search that begins with orders that did well on training graphs.
    Coreset(Method),
    /// The same passes on every graph, in this order; the best state on the way counts.
    Order(Vec<String>),
    /// The compiler's own optimization passes in their order: what everything is measured by.
    Default,
}

impl Contestant {
    /// How it is told apart in tables.
    pub fn kind(&self) -> Kind {
        match self.way {
            Way::Walk(_) => Kind::Rollout,
            Way::Guided(..) => Kind::Search,
            Way::Luck(_) | Way::Plain(_) | Way::Coreset(_) | Way::Order(_) | Way::Default => {
                Kind::Baseline
            }
        }
    }

    /// Tells the weights behind it from others, if there are any.
    pub fn weights(&self) -> Option<String> {
        self.policy().map(TrainedPolicy::fingerprint)
    }

    /// The policy behind it, if there is one.
    pub fn policy(&self) -> Option<&TrainedPolicy> {
        match &self.way {
            Way::Walk(policy) | Way::Luck(policy) | Way::Guided(policy, _) => Some(policy),
            _ => None,
        }
    }
}
