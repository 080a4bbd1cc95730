//! The policies that come with the software.

use std::sync::OnceLock;

use crate::policy::TrainedPolicy;

/// All of them. A new one gets a line here; which one guides searches if nobody says is in the
/// compiler's profile.
static ALL: [Shipped; 2] = [
    Shipped::new("general", include_bytes!("../../../shipped/xla/general.safetensors")),
    Shipped::new("gpt2", include_bytes!("../../../shipped/xla/gpt2.safetensors")),
];

/// A policy that comes with the software. For which compiler it is, what it was trained on and what it
/// is worth is in its file, and in `shipped/README.md`.
#[derive(Debug)]
pub struct Shipped {
    name: &'static str,
    bytes: &'static [u8],
    read: OnceLock<Option<TrainedPolicy>>,
}

impl Shipped {
    const fn new(name: &'static str, bytes: &'static [u8]) -> Shipped {
        Shipped { name, bytes, read: OnceLock::new() }
    }

    /// All of them.
    pub fn all() -> &'static [Shipped] {
        &ALL
    }

    /// Those for a compiler, as its worker calls itself.
    pub fn of(engine: &str) -> impl Iterator<Item = &'static Shipped> {
        let is_for = move |policy: &TrainedPolicy| policy.interface.engine == engine;
        ALL.iter().filter(move |shipped| shipped.policy().is_some_and(is_for))
    }

    /// The one of a name for a compiler.
    pub fn named(name: &str, engine: &str) -> Option<&'static Shipped> {
        Shipped::of(engine).find(|shipped| shipped.name == name)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The policy. None only if the file that was compiled in is broken, which a test excludes.
    pub fn policy(&self) -> Option<&TrainedPolicy> {
        self.read.get_or_init(|| TrainedPolicy::from_bytes(self.bytes).ok()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_whole_small_and_say_where_they_come_from() {
        for shipped in Shipped::all() {
            let Some(policy) = shipped.policy() else { panic!("{}", shipped.name()) };
            assert!(policy.network.parameters().len() * 4 < 5 << 20, "{}", shipped.name());
            let card = &policy.card;
            let trained = if card.members.is_empty() {
                vec![card]
            } else {
                assert!(card.command.starts_with("xla-gym-lab ensemble runs/"));
                card.members.iter().collect()
            };
            for card in trained {
                assert!(card.validation.is_some_and(|ratio| ratio > 1.0));
                assert!(card.command.starts_with("xla-gym train configs/"));
                assert!(card.benchmarks.iter().all(|spec| spec.ends_with("/train")));
            }
        }
    }

    #[test]
    fn each_belongs_to_one_compiler_and_is_offered_for_it_alone() {
        for shipped in Shipped::all() {
            let policy = shipped.policy().unwrap();
            let engine = &policy.interface.engine;
            assert!(policy.card.engine.starts_with(engine.as_str()) && !engine.is_empty());
            assert!(Shipped::of(engine).any(|other| other.name() == shipped.name()));
            assert!(Shipped::named(shipped.name(), "toy").is_none());
        }
        assert_eq!(Shipped::of("toy").count(), 0);
    }

    #[test]
    fn who_misspells_one_is_told_their_names() {
        let engine = &Shipped::all()[0].policy().unwrap().interface.engine;
        let error = TrainedPolicy::find("generl", engine).unwrap_err().to_string();
        assert!(error.contains("generl") && error.contains("general, gpt2"), "{error}");
        let error = TrainedPolicy::find("general", "toy").unwrap_err().to_string();
        assert!(error.contains("for toy: there is none"), "{error}");
    }
}
