//! Finds out of which commit the program is built, for the cards of the policies that it trains.

use std::{path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Changes with every commit.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).unwrap_or_default();
    if Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    // Sources that nobody has committed, as far as this package was built from them, are marked.
    println!("cargo:rerun-if-changed=src");
    if let Some(commit) = git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]) {
        println!("cargo:rustc-env=XLA_GYM_COMMIT={commit}");
    }
}

/// What Git says, if there is one and this is a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}
