//! The policies that come with the software.

use std::sync::OnceLock;

use crate::policy::TrainedPolicy;

/// A policy that comes with the software. What each was trained on and what it is worth is in its
/// card, and in `shipped/README.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shipped {
    /// For all kinds of graphs.
    General,
    /// For graphs like GPT-2's.
    Gpt2,
}

impl Shipped {
    /// All of them.
    pub const ALL: [Shipped; 2] = [Shipped::General, Shipped::Gpt2];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Shipped::General => "general",
            Shipped::Gpt2 => "gpt2",
        }
    }

    /// The policy. None only if the file that was compiled in is broken, which a test excludes.
    pub fn policy(self) -> Option<&'static TrainedPolicy> {
        static GENERAL: OnceLock<Option<TrainedPolicy>> = OnceLock::new();
        static GPT2: OnceLock<Option<TrainedPolicy>> = OnceLock::new();
        let (place, bytes): (_, &[u8]) = match self {
            Shipped::General => {
                (&GENERAL, include_bytes!("../../../shipped/xla/general.safetensors"))
            }
            Shipped::Gpt2 => (&GPT2, include_bytes!("../../../shipped/xla/gpt2.safetensors")),
        };
        place.get_or_init(|| TrainedPolicy::from_bytes(bytes).ok()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_whole_small_and_say_where_they_come_from() {
        for shipped in Shipped::ALL {
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
    fn who_misspells_one_is_told_their_names() {
        let error = TrainedPolicy::find("generl").unwrap_err().to_string();
        assert!(error.contains("generl") && error.contains("general, gpt2"), "{error}");
    }
}
