//! What files of earlier versions say, in today's words: configurations, policies, orders to learn.
//!
//! Those versions knew one compiler alone, whose starts and costs they took for granted.

use serde::{Deserialize, Deserializer};
use toml::{Table, Value};
use xla_gym_env::View;

use crate::policy::Interface;

/// What the first start was called: the program as it came.
const EMITTED: &str = "emitted";
/// The start that configurations and policies called `normalised`.
const NORMALIZED: &str = "normalized";
/// The start that configurations and orders called so.
const LEGAL: &str = "legal";

/// The estimates that the view `cost` showed.
const COSTS: [&str; 3] = ["flops", "transcendentals", "bytes_accessed"];

/// Keys of the potential that are weights by name today.
const WEIGHTS: [(&str, &str); 2] =
    [("flop-weight", "flops"), ("transcendental-weight", "transcendentals")];

/// Puts a configuration into today's words. What is not as it was is left for those who read it then.
pub fn update_configuration(table: &mut Table) {
    let Some(environment) = inner(table, "environment") else { return };
    if let Some(Value::Boolean(normalised)) = environment.get("normalised") {
        if *normalised {
            environment.insert("start".to_owned(), NORMALIZED.into());
        }
        environment.remove("normalised");
    }
    if let Some(share) = environment.get("legal").and_then(number) {
        environment.remove("legal");
        if let Some(others) = table_at(environment, "other-starts") {
            others.insert(LEGAL.to_owned(), share.into());
            others.retain(|_, share| number(share) != Some(0.0));
        }
    }
    let reward = inner(environment, "reward");
    let Some(shaping) = reward.and_then(|reward| inner(reward, "shaping")) else { return };
    for (key, cost) in WEIGHTS {
        if let Some(weight) = shaping.get(key).and_then(number) {
            shaping.remove(key);
            if let Some(weights) = table_at(shaping, "weights") {
                weights.insert(cost.to_owned(), weight.into());
            }
        }
    }
}

fn inner<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Table> {
    table.get_mut(key)?.as_table_mut()
}

/// The same, and an empty one if there is nothing.
fn table_at<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Table> {
    table.entry(key).or_insert_with(|| Table::new().into()).as_table_mut()
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// What a policy expected of an environment.
#[derive(Deserialize)]
pub struct EarlierInterface {
    views: Vec<View>,
    opcodes: Vec<String>,
    passes: Vec<String>,
    traj_limit: usize,
    normalised: bool,
}

impl EarlierInterface {
    /// In today's words, for a policy that was trained on this version of a compiler.
    pub fn on(self, compiler: &str) -> Interface {
        Interface {
            engine: compiler.split(' ').next().unwrap_or_default().to_owned(),
            views: self.views,
            opcodes: self.opcodes,
            costs: COSTS.map(str::to_owned).to_vec(),
            passes: self.passes,
            traj_limit: self.traj_limit,
            start: if self.normalised { NORMALIZED } else { EMITTED }.to_owned(),
        }
    }
}

/// Where an order begins: a name, or whether at one of two starts.
pub fn start<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a start is a name")]
    enum Start {
        Named(Option<String>),
        Legal(bool),
    }
    Ok(match Start::deserialize(deserializer)? {
        Start::Named(name) => name,
        Start::Legal(legal) => legal.then(|| LEGAL.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(earlier: &str, today: &str) {
        let mut table: Table = earlier.parse().unwrap();
        update_configuration(&mut table);
        assert_eq!(table, today.parse::<Table>().unwrap(), "{earlier}");
        // Today's words stay as they are.
        update_configuration(&mut table);
        assert_eq!(table, today.parse::<Table>().unwrap());
    }

    #[test]
    fn configurations_of_earlier_versions_mean_the_same() {
        check("environment.normalised = false", "environment = {}");
        check("environment.normalised = true", "environment.start = 'normalized'");
        check("environment.legal = 0.3", "environment.other-starts.legal = 0.3");
        check("environment.legal = 1", "environment.other-starts.legal = 1.0");
        check("environment.legal = 0.0", "environment.other-starts = {}");
        // As when a file of today is changed from the command line by a key of yesterday.
        check(
            "[environment]\nlegal = 0.0\nother-starts = { legal = 0.3 }",
            "environment.other-starts = {}",
        );
        check(
            "[environment.reward.shaping]\ngamma = 0.9\nflop-weight = 1\ntranscendental-weight = 2.5",
            "[environment.reward.shaping]\ngamma = 0.9\nweights = { flops = 1.0, transcendentals = 2.5 }",
        );
        check("steps = 5", "steps = 5");
        // Nonsense is left for those who say what is wrong with it.
        check("environment.legal = 'often'", "environment.legal = 'often'");
        check("environment = 7", "environment = 7");
    }
}
