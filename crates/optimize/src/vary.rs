//! Plans that are a little different from others.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use xla_gym_search::Candidate;

use crate::plan::{Judge, Plan};

/// Changes plans: passes of ours, and passes of the pipeline that are left out.
pub struct Variation<'a> {
    judge: &'a Judge,
    orders: &'a [Candidate],
    /// Passes that can be left out and did something in the compiler's own run.
    pub worth_disabling: Vec<String>,
}

impl<'a> Variation<'a> {
    /// `orders` are those that a search found.
    pub fn new(judge: &'a Judge, orders: &'a [Candidate]) -> Variation<'a> {
        let did = |name: &String| {
            judge.default.passes.iter().any(|pass| pass.changed && pass.pass == *name)
        };
        let worth_disabling =
            judge.world.profile().can_be_left_out().into_iter().filter(did).collect();
        Variation { judge, orders, worth_disabling }
    }

    /// What to begin with.
    pub fn beginners(&self) -> Vec<Plan> {
        let spec = self.judge.spec();
        let without = |name: &String| {
            let mut plan = Plan::before(spec, Vec::new());
            plan.finish.disabled.push(name.clone());
            plan
        };
        let mut plans = vec![
            Plan::instead(spec, Vec::new()),
            Plan::instead(spec, self.judge.own_order.clone()),
            Plan::before(spec, Vec::new()),
        ];
        // The better orders early, since time may be short.
        for (index, order) in self.orders.iter().enumerate() {
            plans.push(Plan::instead(spec, order.passes.clone()));
            if index.is_multiple_of(2) {
                plans.push(Plan::before(spec, order.passes.clone()));
            }
            if let Some(name) = self.worth_disabling.get(index) {
                plans.push(without(name));
            }
        }
        plans.extend(self.worth_disabling.iter().skip(self.orders.len()).map(without));
        plans
    }

    /// A plan, a little different.
    pub fn changed(&self, plan: &Plan, rng: &mut ChaCha8Rng) -> Plan {
        let mut plan = Plan { is_default: false, ..plan.clone() };
        let names = &self.worth_disabling;
        match rng.random_range(0..5) {
            0 | 1 if !names.is_empty() => {
                let name = &names[rng.random_range(0..names.len())];
                if let Some(at) = plan.finish.disabled.iter().position(|other| other == name) {
                    plan.finish.disabled.remove(at);
                } else {
                    plan.finish.disabled.push(name.clone());
                    plan.finish.disabled.sort();
                }
            }
            2 if !plan.passes.is_empty() => {
                plan.passes.remove(rng.random_range(0..plan.passes.len()));
            }
            3 if !self.orders.is_empty() => {
                plan.passes = self.orders[rng.random_range(0..self.orders.len())].passes.clone();
            }
            _ => {
                let at = rng.random_range(0..=plan.passes.len());
                let passes = self.judge.world.actions();
                plan.passes.insert(at, passes[rng.random_range(0..passes.len())]);
            }
        }
        plan
    }
}
