//! Orders as command lines for XLA's own tool, and as its flags.

use xla_gym_profile::{Commands, Finish, quoted};

use crate::roles::NORMALIZING;

/// The command with which XLA's `hlo-opt` runs these passes, after the normalizing ones where they begin
/// there, and what to set so that XLA compiles the result without the passes that they replace.
///
/// The passes to leave out concern the pipeline that comes afterwards, so the command does not name
/// them. Only without any passes it does: then it runs the pipeline itself.
pub fn commands(start: &str, passes: &[String], finish: &Finish) -> Commands {
    let first: &[&str] = if start == crate::NORMALIZED { NORMALIZING } else { &[] };
    let passes: Vec<&str> =
        first.iter().copied().chain(passes.iter().map(String::as_str)).collect();
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
        let disabled: Vec<&str> = finish.disabled.iter().map(String::as_str).collect();
        list("xla_disable_hlo_passes", &disabled);
    }
    let mut lines = vec![("with XLA's own tool".to_owned(), line + " FILE.hlo")];
    if !finish.disabled.is_empty() {
        let names = quoted(&finish.disabled.join(","));
        let flags = format!("XLA_FLAGS=--xla_disable_hlo_passes={names}");
        lines.push(("for the compilation of the result".to_owned(), flags));
    }
    Commands { lines, approximated }
}

/// XLA's name of a pass: ours without its settings.
fn plain_name(pass: &str) -> &str {
    pass.split_once(':').map_or(pass, |(name, _)| name)
}
