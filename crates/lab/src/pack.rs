//! Packing of finished results.

use std::path::PathBuf;

use anyhow::Result;

/// Compress finished results: FILE.jsonl becomes FILE.jsonl.zst, a twentieth of its size.
///
/// Every command that reads rows reads both forms, under either name. One that adds rows to
/// FILE.jsonl unpacks it first.
#[derive(clap::Args)]
pub struct Args {
    /// Files of rows.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

pub fn run(args: Args) -> Result<()> {
    for file in &args.files {
        let packed = xla_gym_rows::pack(file)?;
        println!("{}, {} bytes", packed.display(), std::fs::metadata(&packed)?.len());
    }
    Ok(())
}
