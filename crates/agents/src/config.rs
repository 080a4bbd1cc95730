//! What to train, on what, and how: the content of a configuration file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use xla_gym_env::{EnvConfig, MaskKind, Reward, View};
use xla_gym_nn::Activation;

use crate::{
    a2c::A2cConfig, dqn::DqnConfig, earlier, error::AgentError, imitation::Imitation,
    ppo::PpoConfig, trpo::TrpoConfig,
};

/// A training run. Every field but the benchmarks and the algorithm has a default.
///
/// ```
/// let config: xla_gym_agents::Config = xla_gym_agents::Config::parse(r#"
///     benchmarks = ["hlo-v1:gpt2/train"]
///     steps = 200_000
///     [algorithm]
///     name = "ppo"
///     clip = 0.2
/// "#, &[])?;
/// assert_eq!(config.network.hidden, [2048, 2048]);
/// # Ok::<(), xla_gym_agents::AgentError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// What it is called in figures; the algorithm's name, if nothing is said.
    #[serde(default)]
    pub name: String,
    /// Programs to train on.
    pub benchmarks: Vec<String>,
    /// Larger programs are left out (instructions).
    #[serde(default = "no_limit")]
    pub largest: u64,
    /// Steps in the environments.
    #[serde(default = "steps")]
    pub steps: u64,
    /// Seed of everything that depends on chance.
    #[serde(default)]
    pub seed: u64,
    /// What the agent lives in.
    #[serde(default)]
    pub environment: Environment,
    /// What it sees.
    #[serde(default)]
    pub observation: Observation,
    /// What it thinks with.
    #[serde(default)]
    pub network: Network,
    /// How it learns.
    pub algorithm: Algorithm,
    /// Orders that a search found, cloned before everything else.
    #[serde(default)]
    pub imitation: Option<Imitation>,
    /// Held-out programs, on which progress is seen.
    #[serde(default)]
    pub validation: Validation,
    /// When to end early.
    #[serde(default)]
    pub plateau: Option<Plateau>,
    /// The folder of the file that it was read from; paths are relative to it.
    #[serde(skip)]
    pub folder: PathBuf,
}

fn no_limit() -> u64 {
    i64::MAX as u64
}

fn steps() -> u64 {
    200_000
}

/// What the agent lives in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Environment {
    /// Steps in an episode.
    pub traj_limit: usize,
    /// Where episodes begin: one of the starts that the compiler's profile has, by name. Nothing: at the
    /// program as it came.
    pub start: Option<String>,
    /// Shares of the episodes that begin at other starts, by name.
    pub other_starts: BTreeMap<String, f64>,
    /// Names of the passes that are actions. Empty: all.
    pub passes: Vec<String>,
    /// What is paid.
    pub reward: Reward,
    /// Whether passes that were just seen to do nothing are forbidden.
    pub mask: bool,
    /// Share of the steps over which programs of all sizes come in, the small ones first.
    pub curriculum: f64,
    /// A file in which the effects of passes are remembered, shared between runs. Changes how long
    /// a run takes and not what it gives.
    pub cache: Option<PathBuf>,
}

impl Default for Environment {
    fn default() -> Environment {
        Environment {
            traj_limit: 64,
            start: None,
            other_starts: BTreeMap::new(),
            passes: Vec::new(),
            reward: Reward::default(),
            mask: true,
            curriculum: 0.0,
            cache: None,
        }
    }
}

impl Environment {
    /// The environment's own configuration.
    pub fn env(&self) -> EnvConfig {
        EnvConfig {
            traj_limit: self.traj_limit,
            reward: self.reward.clone(),
            mask: MaskKind::Own,
            ..EnvConfig::default()
        }
    }
}

/// What the agent sees: views behind one another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Observation {
    /// What the policy sees.
    pub policy: Vec<View>,
    /// What the value function sees besides: the paper's V(s, f) has `cost` here.
    pub value: Vec<View>,
}

impl Default for Observation {
    fn default() -> Observation {
        Observation { policy: vec![View::Scaled], value: Vec::new() }
    }
}

/// Layers between what is seen and what is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Network {
    /// Their widths.
    pub hidden: Vec<usize>,
    /// What follows each.
    pub activation: Activation,
}

impl Default for Network {
    fn default() -> Network {
        Network { hidden: vec![2048, 2048], activation: Activation::Tanh }
    }
}

/// How the agent learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum Algorithm {
    /// Proximal policy optimisation.
    Ppo(PpoConfig),
    /// Advantage actor critic.
    A2c(A2cConfig),
    /// Deep Q network.
    Dqn(DqnConfig),
    /// Trust region policy optimisation.
    Trpo(TrpoConfig),
}

impl Algorithm {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Algorithm::Ppo(_) => "ppo",
            Algorithm::A2c(_) => "a2c",
            Algorithm::Dqn(_) => "dqn",
            Algorithm::Trpo(_) => "trpo",
        }
    }
}

/// Held-out programs, on which progress is seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Validation {
    /// Every how manieth of the benchmarks is held out; 0 for none.
    pub every: usize,
    /// How many at most.
    pub most: usize,
    /// After how many updates the policy is tried on them.
    pub updates: u64,
    /// Whether what the policy makes of them is run, and counts only if it computes what it should.
    /// Programs that cannot be compared with themselves are left out.
    pub check: bool,
}

impl Default for Validation {
    fn default() -> Validation {
        Validation { every: 10, most: 12, updates: 10, check: true }
    }
}

/// When to end early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plateau {
    /// After so many validations in a row ...
    pub validations: usize,
    /// ... of which none was better than the best before by this much.
    pub gain: f64,
}

impl Config {
    /// Reads a file, and changes it as asked: `key=value`, with dots between levels.
    pub fn read(path: &Path, changes: &[String]) -> Result<Config, AgentError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| AgentError::Read { path: path.to_owned(), error })?;
        let parsed = Config::parse(&text, changes).map(|mut config| {
            config.folder = path.parent().map(Path::to_owned).unwrap_or_default();
            config
        });
        parsed.map_err(|error| match error {
            AgentError::Config(message) => {
                AgentError::Config(format!("{}: {message}", path.display()))
            }
            other => other,
        })
    }

    /// The same for a text.
    pub fn parse(text: &str, changes: &[String]) -> Result<Config, AgentError> {
        let wrong = |error: toml::de::Error| AgentError::Config(error.to_string());
        let mut table: toml::Table = text.parse().map_err(wrong)?;
        for change in changes {
            apply(&mut table, change)?;
        }
        earlier::update_configuration(&mut table);
        let mut config: Config = table.try_into().map_err(wrong)?;
        if config.name.is_empty() {
            config.name = config.algorithm.name().to_owned();
        }
        config.check()?;
        Ok(config)
    }

    /// As the content of a file.
    pub fn to_toml(&self) -> Result<String, AgentError> {
        toml::to_string(self).map_err(|error| AgentError::Config(error.to_string()))
    }

    fn check(&self) -> Result<(), AgentError> {
        let refuse = |message: &str| Err(AgentError::Config(message.to_owned()));
        if self.benchmarks.is_empty() {
            return refuse("benchmarks: at least one is needed");
        }
        if self.environment.traj_limit == 0 {
            return refuse("environment.traj-limit: at least one step is needed");
        }
        if self.observation.policy.is_empty() {
            return refuse("observation.policy: at least one view is needed");
        }
        if self.network.hidden.contains(&0) {
            return refuse("network.hidden: a layer needs at least one unit");
        }
        if self.validation.updates == 0 {
            return refuse("validation.updates: must be at least 1");
        }
        if !(0.0..=1.0).contains(&self.environment.curriculum) {
            return refuse("environment.curriculum: a share between 0 and 1 is needed");
        }
        let shares = || self.environment.other_starts.values();
        if !shares().all(|share| (0.0..=1.0).contains(share)) || shares().sum::<f64>() > 1.0 {
            return refuse(
                "environment.other-starts: shares between 0 and 1 are needed, 1 at most in all",
            );
        }
        if self.imitation.is_some() && matches!(self.algorithm, Algorithm::Dqn(_)) {
            return refuse("imitation: DQN learns what actions are worth, which orders do not say");
        }
        if let Some(plateau) = &self.plateau {
            if plateau.validations == 0 {
                return refuse("plateau.validations: must be at least 1");
            }
            if self.validation.every == 0 {
                return refuse("plateau: it needs held-out programs (validation.every)");
            }
        }
        match &self.algorithm {
            Algorithm::Ppo(ppo) => ppo.check(),
            Algorithm::A2c(a2c) => a2c.check(),
            Algorithm::Dqn(dqn) => dqn.check(),
            Algorithm::Trpo(trpo) => trpo.check(),
        }
        .map_err(|message| AgentError::Config(format!("algorithm.{message}")))
    }
}

/// Sets one value in a table: `network.hidden=[256, 256]`. What is no TOML value is a string.
fn apply(table: &mut toml::Table, change: &str) -> Result<(), AgentError> {
    let wrong = |why: &str| AgentError::Config(format!("{change:?}: {why}"));
    let (path, value) = change.split_once('=').ok_or_else(|| wrong("key=value is needed"))?;
    let value: toml::Value = match format!("value = {value}").parse::<toml::Table>() {
        Ok(mut parsed) => parsed.remove("value").ok_or_else(|| wrong("there is no value"))?,
        Err(_) => toml::Value::String(value.to_owned()),
    };
    let mut keys: Vec<&str> = path.trim().split('.').collect();
    let last = keys.pop().unwrap_or_default();
    let mut level = table;
    for key in keys {
        let inner = level.entry(key).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        level = inner.as_table_mut().ok_or_else(|| wrong(&format!("{key} is not a table")))?;
    }
    level.insert(last.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "benchmarks = ['a']\n[algorithm]\nname = 'ppo'\n";

    #[test]
    fn a_configuration_survives_being_written() {
        let config = Config::parse(SMALL, &[]).unwrap();
        assert_eq!(Config::parse(&config.to_toml().unwrap(), &[]).unwrap(), config);
    }

    #[test]
    fn single_values_can_be_changed() {
        let changes =
            ["network.hidden=[8]", "algorithm.clip=0.3", "environment.reward.objective=difference"];
        let config = Config::parse(SMALL, &changes.map(str::to_owned)).unwrap();
        assert_eq!(config.network.hidden, [8]);
        assert!(matches!(config.algorithm, Algorithm::Ppo(ppo) if ppo.clip == 0.3));
        assert_eq!(config.environment.reward.objective, xla_gym_env::Objective::Difference);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (change, words) in [
            ("network.hiden=[8]", "hiden"),
            ("algorithm.clip=high", "high"),
            ("benchmarks=[]", "benchmarks"),
            ("algorithm.epochs=0", "algorithm.epochs"),
            ("observation.policy=[]", "observation.policy"),
            ("environment.other-starts={here=0.7,there=0.7}", "environment.other-starts"),
            ("environment.legal=1.5", "environment.other-starts"),
            ("steps", "key=value"),
        ] {
            let error = Config::parse(SMALL, &[change.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(words), "{change}: {error}");
        }
    }
}
