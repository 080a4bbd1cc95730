//! Where passes begin.

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
    pub fn position(&self, spec: &Spec) -> Result<usize, NoStart> {
        spec.start(self.name()).ok_or_else(|| NoStart {
            name: self.name().to_owned(),
            title: spec.words.title,
            known: spec.start_names().join(", "),
        })
    }
}

/// A start that a compiler does not have.
#[derive(Debug, thiserror::Error)]
#[error("{name:?} is no start of {title}; there are {known}")]
pub struct NoStart {
    name: String,
    title: &'static str,
    known: String,
}
