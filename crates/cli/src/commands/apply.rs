//! `xla-gym apply`

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use serde::Serialize;
use xla_gym_common::grouped;
use xla_gym_engine::protocol::Observe;
use xla_gym_env::World;
use xla_gym_optimize::plan_of;
use xla_gym_oracle::{Options, Report, Verdict};
use xla_gym_profile::Commands;
use xla_gym_recipe::Recipe;

use super::{one_program, score::describe};
use crate::{context::Context, outfile::OutFile};

/// Do to a program what a recipe says.
///
/// The program has to be the one that the recipe was made for (its content, not its name), unless
/// --force is given. The result is compiled and run beside the original; it is written only if it
/// was found equal. Prints what else is to be told to the compiler: the passes to leave out.
///
/// Exit code: 0 done, 1 a pass did not take place, 4 the result computes something else, 5 it cannot
/// be compared.
#[derive(clap::Args)]
pub struct Args {
    /// The recipe, as `xla-gym optimize --recipe` writes it.
    recipe: PathBuf,

    /// The program.
    file: String,

    /// Apply it to another program than the one it was made for.
    #[arg(long)]
    force: bool,

    /// Do not run the result beside the original: write it although nothing is proven.
    #[arg(long)]
    unproven: bool,

    /// Write the result.
    #[arg(long, short, value_name = "OUT", value_parser = OutFile::parser())]
    output: Option<OutFile>,
}

#[derive(Serialize)]
struct Shown {
    file: String,
    recipe: String,
    passes: Vec<String>,
    /// What is left out of the compiler's own pipeline afterwards.
    disabled_passes: Vec<String>,
    /// The primary metric: its name, before, and after.
    metric: String,
    before: u64,
    after: u64,
    skipped: Vec<(String, String)>,
    warnings: Vec<String>,
    outputs: Option<Report>,
    /// How the compiler's own tools do the same: what each line does, and the line.
    commands: Vec<(String, String)>,
    /// Passes that those tools have without the option that they are run with here.
    approximated: Vec<String>,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let recipe = Recipe::read(&args.recipe)?;
    let progress = context.progress();
    let world = one_program::world(context, &args.file, &recipe.start, None, &progress)?;
    progress.doing("running the passes");
    let mut applied = xla_gym_optimize::apply(&world, 0, &recipe, args.force)
        .with_context(|| args.recipe.display().to_string())?;
    let primary = |session: &mut xla_gym_engine::Session| -> Result<u64> {
        Ok(session.observe(Observe::COUNTS)?.counts.map_or(0, |counts| counts.primary()))
    };
    let mut emitted = world.session(0)?;
    let outputs = if !args.unproven && !applied.plan.is_default {
        progress.doing("comparing outputs");
        let reference =
            xla_gym_profile::reference(&**world.profile(), &mut emitted, Options::default())?;
        Some(reference.compare(&mut applied.session, &applied.plan.finish)?)
    } else {
        None
    };
    drop(progress);
    let Commands { lines, approximated } = commands(&world, &recipe);
    let shown = Shown {
        file: args.file.clone(),
        recipe: args.recipe.display().to_string(),
        passes: recipe.passes.clone(),
        disabled_passes: recipe.disabled_passes.clone(),
        metric: world.engine().hello().primary().to_owned(),
        before: primary(&mut emitted)?,
        after: primary(&mut applied.session)?,
        skipped: applied.skipped,
        warnings: applied.warnings,
        outputs,
        commands: lines,
        approximated,
    };
    let believable = shown.outputs.as_ref().is_none_or(Report::is_equal);
    if let Some(output) = args.output.as_ref().filter(|_| believable) {
        output.write(&applied.session.print(output.form(world.engine())?)?)?;
    }
    if context.json() {
        context.print_json(&shown)?;
    } else {
        context.print(&render(&shown))?;
    }
    Ok(match &shown.outputs {
        Some(report) if matches!(report.verdict, Verdict::NotComparable { .. }) => {
            ExitCode::from(5)
        }
        Some(report) if !report.is_equal() => ExitCode::from(4),
        _ if !shown.skipped.is_empty() => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

/// How the compiler's own tools do what a recipe says.
pub fn commands(world: &World, recipe: &Recipe) -> Commands {
    // A recipe that cannot be carried out here has none.
    let Ok(plan) = plan_of(world, recipe) else { return Commands::default() };
    world.profile().commands(&recipe.start, &recipe.passes, &plan.finish)
}

/// Those commands for people.
pub fn render_commands(lines: &[(String, String)], approximated: &[String]) -> String {
    let mut out = String::new();
    for (number, (what, line)) in lines.iter().enumerate() {
        out.push_str(&format!("{what}:\n  {line}\n"));
        if number == 0 && !approximated.is_empty() {
            let names = approximated.join(", ");
            out.push_str(&format!("  (there without the options that they have here: {names})\n"));
        }
    }
    out
}

fn render(shown: &Shown) -> String {
    let mut out = String::new();
    for warning in &shown.warnings {
        out.push_str(&format!("Careful: {warning}.\n"));
    }
    if shown.passes.is_empty() && shown.disabled_passes.is_empty() {
        out.push_str("The recipe says that the compiler's own order is the best: nothing to do.\n");
        return out;
    }
    out.push_str(&format!(
        "{} {} before, {} after {} passes.\n",
        grouped(shown.before),
        shown.metric,
        grouped(shown.after),
        shown.passes.len(),
    ));
    for (pass, reason) in &shown.skipped {
        out.push_str(&format!("Did not take place: {pass}: {reason}\n"));
    }
    match &shown.outputs {
        Some(report) => {
            out.push_str(&format!("Outputs: {}\n", describe(report)));
            if !report.is_equal() {
                out.push_str(
                    "Not proven, so nothing was written; --unproven writes it all the same.\n",
                );
            }
        }
        None => out.push_str("NOT PROVEN: the result was not run beside the original.\n"),
    }
    out.push_str(&render_commands(&shown.commands, &shown.approximated));
    out
}
