//! `xla-gym report`

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use xla_gym_contest::{Records, header};
use xla_gym_report::results::{Progress, results_page};
use xla_gym_rows as rows;

use super::eval::add_records;
use crate::{context::Context, outfile::write_whole};

/// Turn outcomes of `eval` and logs of `train` into a page with figures.
///
/// Writes index.html, which opens offline, each figure as SVG, and the numbers as CSV.
#[derive(clap::Args)]
pub struct Args {
    /// Outcomes, as `xla-gym eval -o` writes them; also compressed (.jsonl.zst).
    outcomes: Vec<PathBuf>,

    /// Logs of training runs (progress.jsonl), or the folders of runs. Can be given several times.
    #[arg(long = "run", value_name = "PATH")]
    runs: Vec<PathBuf>,

    /// The page's title.
    #[arg(long, default_value = "Pass orders by learning")]
    title: String,

    /// The folder for the page; it is made if need be.
    #[arg(long, short)]
    output: PathBuf,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let mut records = Records::default();
    for path in &args.outcomes {
        add_records(context, &mut records, path)?;
    }
    // Without outcomes there are at most the ratios of training runs.
    let header = records.header.unwrap_or_else(|| header(context.usual_profile().spec()));
    let mut progress: Vec<Progress> = Vec::new();
    for path in &args.runs {
        let path = if path.is_dir() { path.join("progress.jsonl") } else { path.clone() };
        progress.extend(rows::read::<Progress>(&path)?);
    }
    let page = results_page(&header, &records.outcomes, &progress, &args.title);
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("{} cannot be made", args.output.display()))?;
    write_whole(&args.output.join("index.html"), page.html.as_bytes())?;
    let files = page.svgs.iter().chain(&page.csvs);
    for (name, content) in files {
        write_whole(&args.output.join(name), content.as_bytes())?;
    }
    if context.json() {
        let names: Vec<&String> =
            page.svgs.iter().chain(&page.csvs).map(|(name, _)| name).collect();
        context.print_json(
            &serde_json::json!({ "page": args.output.join("index.html"), "files": names }),
        )?;
    } else {
        context.print(&format!("{}\n", args.output.join("index.html").display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
