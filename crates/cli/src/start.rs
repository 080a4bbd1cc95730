//! Where passes begin.

use anyhow::{Result, bail};
use xla_gym_profile::Spec;

/// Where passes begin.
#[derive(clap::Args, Clone, Debug)]
pub struct StartArg {
    /// Where passes begin: emitted, the program as it came; for XLA also normalized, a form on which
    /// passes rarely crash, and legal, after what its pipeline needs in any case.
    #[arg(long = "start", value_name = "START", default_value = "emitted")]
    name: String,

    /// The same as --start normalized.
    #[arg(long, hide = true, alias = "normalise", conflicts_with = "name")]
    normalize: bool,
}

impl StartArg {
    /// Its name.
    pub fn name(&self) -> &str {
        if self.normalize { "normalized" } else { &self.name }
    }

    /// Its position among the starts of a compiler.
    pub fn position(&self, spec: &Spec) -> Result<usize> {
        match spec.start(self.name()) {
            Some(position) => Ok(position),
            None => bail!(
                "{:?} is no start of {}; there are {}",
                self.name(),
                spec.words.title,
                spec.start_names().join(", ")
            ),
        }
    }
}
