//! A trained policy: what it needs to be used, and where it comes from.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};
use xla_gym_common::fnv64;
use xla_gym_engine::protocol::{Cost, Hello, MOST_METRICS, PassId};
use xla_gym_env::{Places, Seen, Shape as ViewShape, State, View, Walk, World};
use xla_gym_nn::{Mlp, Shape, Space};

use crate::{
    choice, earlier::EarlierInterface, error::AgentError, shipped::Shipped, tensors::Tensors,
    train::POLICY,
};

/// Says that a file is a policy, and of which kind.
const FORMAT: &str = "xla-gym-policy 2";

/// Policies that did not say for which compiler they are, apart from their cards.
const EARLIER_FORMAT: &str = "xla-gym-policy 1";

/// Nobody takes more steps in an episode.
const MOST_STEPS: usize = 1 << 20;

/// Where a policy comes from and what it is worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Card {
    /// A name.
    pub name: String,
    /// The algorithm.
    pub algorithm: String,
    /// The compiler on which it was trained, with its version.
    pub engine: String,
    /// The programs on which it was trained.
    pub benchmarks: Vec<String>,
    /// How many they were.
    pub programs: usize,
    /// Its seed.
    pub seed: u64,
    /// Steps in the environments.
    pub steps: u64,
    /// Seconds that took.
    pub seconds: f64,
    /// Geometric mean of the order ratio on held-out programs.
    pub validation: Option<f64>,
    /// The commit of the software, if it was known.
    pub commit: Option<String>,
    /// The command that made it.
    pub command: String,
    /// The whole configuration.
    pub configuration: String,
    /// The cards of the policies of which it is made, if it is made of several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Card>,
}

/// What a policy expects of an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interface {
    /// The compiler whose passes it orders, as its worker calls itself.
    pub engine: String,
    /// What it sees.
    pub views: Vec<View>,
    /// Names of the opcodes, in the order in which it knows them.
    pub opcodes: Vec<String>,
    /// Names of the compiler's estimates, likewise.
    pub costs: Vec<String>,
    /// Names of the passes, likewise.
    pub passes: Vec<String>,
    /// Steps in an episode.
    pub traj_limit: usize,
    /// Where episodes began: a start of the compiler's profile, by name.
    pub start: String,
}

/// A trained policy.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainedPolicy {
    /// A logit for each pass.
    pub network: Mlp,
    /// What it expects.
    pub interface: Interface,
    /// Where it comes from.
    pub card: Card,
}

impl TrainedPolicy {
    /// As the content of a safetensors file.
    pub fn to_tensors(&self) -> Result<Tensors, AgentError> {
        let text = |value: serde_json::Result<String>| {
            value.map_err(|error| AgentError::Config(error.to_string()))
        };
        let mut tensors = Tensors::default();
        tensors.add_network("policy", &self.network);
        let words = [
            ("format", FORMAT.to_owned()),
            ("shape", text(serde_json::to_string(self.network.shape()))?),
            ("interface", text(serde_json::to_string(&self.interface))?),
            ("card", text(serde_json::to_string(&self.card))?),
        ];
        tensors.words = BTreeMap::from(words.map(|(name, word)| (name.to_owned(), word)));
        Ok(tensors)
    }

    /// Writes a file: whole, or not at all.
    pub fn write(&self, path: &Path) -> Result<(), AgentError> {
        self.to_tensors()?.write(path)
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<TrainedPolicy, AgentError> {
        let wrong = |message| AgentError::Format { path: path.to_owned(), message };
        TrainedPolicy::from_tensors(&Tensors::read(path)?).map_err(wrong)
    }

    /// One that comes with the software for a compiler, by its name, or one from a file or the folder
    /// of a run.
    pub fn find(name: &str, engine: &str) -> Result<TrainedPolicy, AgentError> {
        match Shipped::named(name, engine).and_then(Shipped::policy) {
            Some(policy) => Ok(policy.clone()),
            None if !Path::new(name).exists() => {
                let along: Vec<&str> = Shipped::of(engine).map(Shipped::name).collect();
                let along =
                    if along.is_empty() { "there is none".into() } else { along.join(", ") };
                Err(AgentError::Config(format!(
                    "{name} is no file, no folder of a run, and no policy that comes along for \
                     {engine}: {along}"
                )))
            }
            None if Path::new(name).is_dir() => TrainedPolicy::read(&Path::new(name).join(POLICY)),
            None => TrainedPolicy::read(Path::new(name)),
        }
    }

    /// Tells its weights from others.
    pub fn fingerprint(&self) -> String {
        let bytes = self.network.parameters().iter().flat_map(|p| p.to_le_bytes());
        format!("{:016x}", fnv64(bytes))
    }

    /// Reads the content of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<TrainedPolicy, String> {
        TrainedPolicy::from_tensors(&Tensors::from_bytes(bytes)?)
    }

    fn from_tensors(tensors: &Tensors) -> Result<TrainedPolicy, String> {
        let word = |name: &str| {
            let word = tensors.words.get(name).map(String::as_str);
            word.ok_or_else(|| format!("it is no policy: {name} is missing"))
        };
        let format = word("format")?;
        if ![FORMAT, EARLIER_FORMAT].contains(&format) {
            return Err(format!(
                "it is a {format:?} and this version reads {FORMAT:?}: a later version may have \
                 written it"
            ));
        }
        let parsed = |name: &str, error: serde_json::Error| format!("{name}: {error}");
        let shape: Shape = serde_json::from_str(word("shape")?).map_err(|e| parsed("shape", e))?;
        let card: Card = serde_json::from_str(word("card")?).map_err(|e| parsed("card", e))?;
        let interface = word("interface")?;
        let interface = match format {
            FORMAT => serde_json::from_str(interface),
            _ => serde_json::from_str::<EarlierInterface>(interface).map(|i| i.on(&card.engine)),
        }
        .map_err(|error| parsed("interface", error))?;
        if interface.traj_limit > MOST_STEPS {
            let steps = interface.traj_limit;
            return Err(format!("episodes of {steps} steps are more than {MOST_STEPS}"));
        }
        if interface.costs.len() > MOST_METRICS {
            let costs = interface.costs.len();
            return Err(format!("{costs} estimates are more than {MOST_METRICS}"));
        }
        let seen = interface.bounds().try_fold(0_usize, |sum, (_, length)| sum.checked_add(length));
        if Some(shape.inputs) != seen || shape.outputs != interface.passes.len() {
            return Err("the network does not fit what it should see and do".to_owned());
        }
        let network = tensors.network("policy", shape)?;
        Ok(TrainedPolicy { network, interface, card })
    }

    /// Ties it to a world, for searches there. Passes, opcodes and estimates are found by name. What
    /// the world does not have, and what does not keep what programs compute, the policy does not
    /// choose. One that was trained on another compiler is refused.
    pub fn guide(&self, world: &World) -> Result<Guide, AgentError> {
        let hello = world.engine().hello();
        self.fits(hello)?;
        let position = |names: &[String], name: &str| names.iter().position(|n| n == name);
        let outputs: Vec<Option<usize>> =
            hello.passes.iter().map(|p| position(&self.interface.passes, &p.name)).collect();
        let opcodes =
            self.interface.opcodes.iter().map(|name| position(&hello.opcodes, name)).collect();
        let costs = self.interface.costs.iter().map(|name| hello.cost(name)).collect();
        let mut allowed = vec![false; self.interface.passes.len()];
        for (action, pass) in world.actions().iter().enumerate() {
            if let (Some(output), true) =
                (outputs[usize::from(pass.0)], world.keeps_results(action))
            {
                allowed[output] = true;
            }
        }
        let lossy = hello.passes.iter().map(|pass| pass.lossy).collect();
        let places = world.places();
        Ok(Guide { policy: self.clone(), outputs, opcodes, costs, places, allowed, lossy })
    }

    /// Refuses a policy that has nothing to say about a compiler.
    fn fits(&self, hello: &Hello) -> Result<(), AgentError> {
        let Interface { engine, passes, .. } = &self.interface;
        let refuse = |why| AgentError::Policy { name: self.card.name.clone(), why };
        self.interface.is_for(&hello.engine).map_err(refuse)?;
        if !hello.passes.iter().any(|pass| passes.contains(&pass.name)) {
            let (count, version) = (passes.len(), &hello.version);
            return Err(refuse(format!("{engine} {version} has none of its {count} passes")));
        }
        // An estimate that is not there would be taken for zero, and nobody would notice.
        if let Some(cost) = self.interface.costs.iter().find(|cost| hello.cost(cost).is_none()) {
            return Err(refuse(format!("{engine} {} does not estimate {cost:?}", hello.version)));
        }
        Ok(())
    }
}

impl Interface {
    /// Says why not, if it is for another compiler than this one, as its worker calls itself.
    pub fn is_for(&self, engine: &str) -> Result<(), String> {
        match self.engine == engine {
            true => Ok(()),
            false => Err(format!("it orders passes of {}, and this is {engine}", self.engine)),
        }
    }

    /// How long each view is.
    fn bounds(&self) -> impl Iterator<Item = (View, usize)> + '_ {
        let shape = ViewShape {
            opcodes: self.opcodes.len(),
            costs: self.costs.len(),
            actions: self.passes.len(),
            traj_limit: self.traj_limit,
        };
        self.views.iter().map(move |view| (*view, view.bounds(shape).length))
    }
}

/// A policy that guides searches in a world.
#[derive(Debug)]
pub struct Guide {
    policy: TrainedPolicy,
    /// For each pass of the compiler, the policy's own number.
    outputs: Vec<Option<usize>>,
    /// For each opcode of the policy, the compiler's number.
    opcodes: Vec<Option<usize>>,
    /// For each estimate of the policy, likewise.
    costs: Vec<Option<usize>>,
    /// Where views find what they show.
    places: Places,
    /// For each pass of the policy, whether it may be chosen here.
    allowed: Vec<bool>,
    /// For each pass of the compiler, whether it may change what programs compute.
    lossy: Vec<bool>,
}

impl Guide {
    /// A state in the policy's order of opcodes and estimates.
    fn translate(&self, state: &State) -> State {
        fn at<T: Copy + Default>(values: &[T], place: &Option<usize>) -> T {
            place.and_then(|place| values.get(place)).copied().unwrap_or_default()
        }
        let costs =
            |cost: &Cost| -> Vec<f64> { self.costs.iter().map(|place| at(cost, place)).collect() };
        State {
            opcodes: self.opcodes.iter().map(|place| at(&state.opcodes, place)).collect(),
            cost: state.cost.as_ref().map(|cost| Cost::new(&costs(cost))),
            ..*state
        }
    }

    /// Logits for all passes of the policy, where a walk stands.
    fn logits(&self, walk: &Walk) -> Vec<f32> {
        let (start, state) = (&self.translate(walk.first_state()), &self.translate(walk.state()));
        let number = |pass: PassId| self.outputs.get(usize::from(pass.0)).copied().flatten();
        let applied: Vec<usize> = walk.steps().filter_map(number).collect();
        let (lowest, places) = (walk.lowest(), self.places);
        let seen = Seen { start, state, lowest, taken: &applied, applied: &applied, places };
        let mut row = vec![0.0; self.policy.network.shape().inputs];
        let mut rest = &mut row[..];
        for (view, length) in self.policy.interface.bounds() {
            let (now, later) = rest.split_at_mut(length);
            view.write(&seen, now);
            rest = later;
        }
        self.policy.network.infer(&row, &mut Space::default()).to_vec()
    }
}

impl xla_gym_search::Policy for Guide {
    fn weigh(&self, walk: &Walk, passes: &[PassId]) -> Vec<f64> {
        let logits = self.logits(walk);
        let mut logs = vec![0.0; logits.len()];
        choice::log_probabilities(&logits, &self.allowed, &mut logs);
        // Nothing else is ruled out altogether, not even what the policy does not know: it may be
        // wrong.
        let even = 1.0 / passes.len().max(1) as f64;
        let known = |pass: &PassId| self.outputs.get(usize::from(pass.0)).copied().flatten();
        // Weights may be finite and what they sum up to is not.
        let share = |log: f32| if log.is_nan() { 0.0 } else { f64::from(log.exp()).min(1.0) };
        let weight = |output: usize| 0.9 * share(logs[output]) + 0.1 * even;
        let lossy =
            |pass: &PassId| self.lossy.get(usize::from(pass.0)).copied().unwrap_or_default();
        let weigh = |pass: &PassId| match known(pass) {
            _ if lossy(pass) => 0.0,
            known => known.map_or(0.1 * even, weight),
        };
        passes.iter().map(weigh).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> &'static TrainedPolicy {
        Shipped::all()[0].policy().unwrap()
    }

    /// A shipped policy as a file, after a change.
    fn changed(change: impl FnOnce(&mut TrainedPolicy, &mut Tensors)) -> Result<(), String> {
        let mut policy = shipped().clone();
        let mut tensors = policy.to_tensors().unwrap();
        change(&mut policy, &mut tensors);
        TrainedPolicy::from_bytes(&tensors.to_bytes()?).map(drop)
    }

    #[track_caller]
    fn refused(says: &str, change: impl FnOnce(&mut TrainedPolicy, &mut Tensors)) {
        let message = changed(change).unwrap_err();
        assert!(message.contains(says), "{message}");
    }

    fn with_interface(tensors: &mut Tensors, shape: &Shape, interface: &Interface) {
        let text = [
            ("shape", serde_json::to_string(shape).unwrap()),
            ("interface", serde_json::to_string(interface).unwrap()),
        ];
        tensors.words.extend(text.map(|(name, word)| (name.to_owned(), word)));
    }

    #[test]
    fn policies_of_earlier_versions_are_read_and_those_of_later_ones_refused() {
        let own = &shipped().interface;
        // They are of one compiler, by their cards, and knew two starts.
        for (normalised, start) in [(false, "emitted"), (true, "normalized")] {
            let mut tensors = shipped().to_tensors().unwrap();
            let interface = serde_json::json!({
                "views": own.views, "opcodes": own.opcodes, "passes": own.passes,
                "traj_limit": own.traj_limit, "normalised": normalised,
            });
            let words =
                [("format", EARLIER_FORMAT.to_owned()), ("interface", interface.to_string())];
            tensors.words.extend(words.map(|(name, word)| (name.to_owned(), word)));
            let read = TrainedPolicy::from_bytes(&tensors.to_bytes().unwrap()).unwrap();
            assert_eq!(read.interface, Interface { start: start.to_owned(), ..own.clone() });
            assert_eq!(read.card, shipped().card);
        }
        refused("a later version may have", |_, tensors| {
            tensors.words.insert("format".to_owned(), "xla-gym-policy 3".to_owned());
        });
    }

    #[test]
    fn weights_that_are_no_numbers_are_refused() {
        changed(|_, _| {}).unwrap();
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            refused("policy.0.weight has a weight that is", |policy, tensors| {
                policy.network.parameters_mut()[7] = number;
                tensors.add_network("policy", &policy.network);
            });
        }
    }

    #[test]
    fn sizes_that_the_file_does_not_hold_are_refused_before_anything_is_allocated() {
        for width in [usize::MAX, usize::MAX / 2 + 1, 1 << 40, 0] {
            refused("its shape of", |policy, tensors| {
                let shape = Shape { hidden: vec![width], ..policy.network.shape().clone() };
                with_interface(tensors, &shape, &policy.interface);
            });
        }
        // A layer of no width makes any number of inputs fit into an empty file.
        refused("its shape of", |policy, tensors| {
            let interface = Interface {
                views: vec![View::History],
                traj_limit: 1 << 20,
                ..policy.interface.clone()
            };
            let own = policy.network.shape().clone();
            let shape = Shape { inputs: 1 << 20, hidden: vec![0], ..own };
            with_interface(tensors, &shape, &interface);
            tensors.add("policy.0.weight", &[0, 1 << 20], &[]);
            tensors.add("policy.0.bias", &[0], &[]);
        });
        refused("steps are more than", |policy, tensors| {
            let interface = Interface { traj_limit: usize::MAX, ..policy.interface.clone() };
            with_interface(tensors, policy.network.shape(), &interface);
        });
        refused("estimates are more than", |policy, tensors| {
            let costs = vec!["flops".to_owned(); MOST_METRICS + 1];
            let interface = Interface { costs, ..policy.interface.clone() };
            with_interface(tensors, policy.network.shape(), &interface);
        });
    }
}
