//! Lowers the ceilings of words to today's counts.

use anyhow::{Context, Result};
use xla_gym_house::{words, workspace};

fn main() -> Result<()> {
    let workspace = workspace();
    let places = words::find(&workspace)?;
    let before = words::ceilings(&workspace)?;
    let path = workspace.join(words::CEILINGS);
    let total =
        |ceilings: &words::Ceilings| ceilings.values().flat_map(|w| w.values()).sum::<usize>();
    let lowered = words::lowered(&places, &before);
    std::fs::write(&path, words::write(&lowered)).with_context(|| path.display().to_string())?;
    println!(
        "{} words about a compiler are left in general crates, of {}",
        total(&lowered),
        total(&before)
    );
    Ok(())
}
