//! Finds out of which commit the program is built, for the cards of the policies that it trains.

use std::process::Command;

fn main() {
    // Changes with every commit. Where there is no Git, there is no commit to tell.
    println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    println!("cargo:rerun-if-changed=build.rs");
    let said = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    if let Some(output) = said.ok().filter(|output| output.status.success()) {
        let commit = String::from_utf8_lossy(&output.stdout);
        println!("cargo:rustc-env=XLA_GYM_COMMIT={}", commit.trim());
    }
}
