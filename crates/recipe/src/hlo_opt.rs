//! A recipe as a command line for XLA's own tool, and as its flags.

use xla_gym_score::Start;

use crate::{recipe::Recipe, shell::quoted};

/// A command for XLA's `hlo-opt`, with what it does differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HloOpt {
    /// The command. `FILE.hlo` stands for the program.
    pub line: String,
    /// Passes with settings that `hlo-opt` cannot give them (`algsimp:dot-strength`): the command
    /// runs the plain pass instead (`algsimp`). Each once, in the order of the passes.
    pub approximated: Vec<String>,
}

impl Recipe {
    /// The command with which XLA's `hlo-opt` runs the passes of this recipe, after the
    /// normalising ones where it begins with those.
    ///
    /// The passes to leave out concern the pipeline that comes afterwards, so the command does not
    /// name them. Only without any passes it does: then it runs the pipeline itself.
    pub fn hlo_opt_line(&self, normalising: &[&str]) -> HloOpt {
        let first = match self.start {
            Start::Emitted => &[],
            Start::Normalised => normalising,
        };
        let passes: Vec<&str> =
            first.iter().copied().chain(self.passes.iter().map(String::as_str)).collect();
        let mut approximated: Vec<String> = Vec::new();
        for pass in &passes {
            if pass.contains(':') && !approximated.iter().any(|known| known == pass) {
                approximated.push((*pass).to_owned());
            }
        }
        let mut line = "hlo-opt --platform=CPU".to_owned();
        let mut list = |flag: &str, passes: &[&str]| {
            if !passes.is_empty() {
                let plain: Vec<&str> = passes.iter().map(|pass| plain_name(pass)).collect();
                line = format!("{line} --{flag}={}", quoted(&plain.join(",")));
            }
        };
        list("passes", &passes);
        if passes.is_empty() {
            let disabled: Vec<&str> = self.disabled_passes.iter().map(String::as_str).collect();
            list("xla_disable_hlo_passes", &disabled);
        }
        HloOpt { line: line + " FILE.hlo", approximated }
    }

    /// What to set in a shell so that XLA compiles the result as the recipe says, if it wants
    /// anything.
    pub fn xla_flags(&self) -> Option<String> {
        let names = quoted(&self.disabled_passes.join(","));
        (!self.disabled_passes.is_empty())
            .then(|| format!("XLA_FLAGS=--xla_disable_hlo_passes={names}"))
    }
}

/// XLA's name of a pass: ours without its settings.
fn plain_name(pass: &str) -> &str {
    pass.split_once(':').map_or(pass, |(name, _)| name)
}
