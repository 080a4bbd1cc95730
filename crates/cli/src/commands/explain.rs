//! `xla-gym explain`

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use serde::Serialize;
use xla_gym_common::grouped;
use xla_gym_env::World;
use xla_gym_optimize::{
    Judge, Judged, Plan, attribute, check_fit, explanation, plan_of, shorten, summary, timeline,
};
use xla_gym_recipe::Recipe;
use xla_gym_report::{Contribution, Explanation, Timeline};

use super::one_program;
use crate::{
    context::{Context, or_none, parse_passes, warn},
    progress::Progress,
    start::StartArg,
};

/// Which passes.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Passes {
    /// The passes: names separated by commas, or @FILE with such a list.
    #[arg(long, value_name = "PASSES")]
    passes: Option<String>,

    /// The passes of this recipe, instead.
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
}

/// Which program, and which passes.
#[derive(clap::Args)]
pub struct Order {
    /// The program.
    file: String,

    #[command(flatten)]
    passes: Passes,

    /// Take the recipe of another program.
    #[arg(long, requires = "recipe")]
    force: bool,

    #[command(flatten)]
    start: StartArg,
}

impl Order {
    fn load(&self, context: &Context, progress: &Progress) -> Result<(Judge, Judged)> {
        let path = self.passes.recipe.as_deref();
        let recipe = path.map(Recipe::read).transpose()?;
        // A recipe says where it starts.
        let start = recipe.as_ref().map_or(self.start.name(), |recipe| &recipe.start);
        let world: Arc<World> = one_program::world(context, &self.file, start, None, progress)?;
        let plan = match &recipe {
            Some(recipe) => plan_of(&world, recipe)
                .with_context(|| path.unwrap_or(Path::new("")).display().to_string())?,
            None => {
                let text = self.passes.passes.as_deref().unwrap_or_default();
                Plan::instead(world.profile().spec(), parse_passes(world.engine(), text)?)
            }
        };
        progress.doing("the compiler's own pipeline");
        let judge = Judge::new(&world, 0)?;
        if let Some(recipe) = &recipe {
            for warning in check_fit(&world, judge.emitted()?.fingerprint()?, recipe, self.force)? {
                warn(&format!("careful: {warning}"));
            }
        }
        progress.doing("the passes");
        let judged = judge.judge(&plan)?;
        Ok((judge, judged.map_err(|reason| anyhow!("the compiler refuses the result: {reason}"))?))
    }
}

/// Find out which passes of an order did it.
///
/// For each pass: what it removed in its own step, what the end would have more without it, and the
/// same for the final program after the compiler's own pipeline.
#[derive(clap::Args)]
pub struct AttributeArgs {
    #[command(flatten)]
    order: Order,

    /// Do not run the pipeline without each pass; saves time.
    #[arg(long, alias = "no-kernels")]
    no_pipeline: bool,
}

#[derive(Serialize)]
struct Attributed {
    order: Timeline,
    default_order: Timeline,
    contributions: Vec<Contribution>,
}

pub fn run_attribute(context: &Context, args: AttributeArgs) -> Result<ExitCode> {
    let progress = context.progress();
    let (judge, judged) = args.order.load(context, &progress)?;
    progress.doing("leaving out each pass in turn");
    let contributions = attribute(&judge, &judged.plan, !args.no_pipeline, &progress)?;
    let shown = Attributed {
        order: timeline(&judge, &judged.plan.passes)?,
        default_order: timeline(&judge, &judge.own_order)?,
        contributions,
    };
    drop(progress);
    if context.json() {
        context.print_json(&shown)?;
    } else {
        let Attributed { order, default_order, contributions } = shown;
        let explanation = Explanation {
            title: args.order.file.clone(),
            order,
            default_order,
            contributions,
            disabled_passes: judged.plan.finish.disabled,
            engine: judge.world.engine().name(),
            summary: summary(&judge, &judged.figures, &judge.default_figures, None),
            ..explanation(judge.spec())
        };
        context.print(&explanation.text())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Find the shortest part of an order that gives the same.
///
/// Leaves out halves, quarters, single passes (delta debugging), as long as no figure of the result
/// grows.
#[derive(clap::Args)]
pub struct MinimizeArgs {
    #[command(flatten)]
    order: Order,

    /// Stop trying after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0, value_parser = crate::positive)]
    seconds: f64,
}

#[derive(Serialize)]
struct Minimized {
    given: usize,
    passes: Vec<String>,
    /// What comes of it, by name.
    figures: BTreeMap<&'static str, f64>,
}

pub fn run_minimize(context: &Context, args: MinimizeArgs) -> Result<ExitCode> {
    let progress = context.progress();
    let (judge, judged) = args.order.load(context, &progress)?;
    let given = judged.plan.passes.len();
    progress.doing("leaving out what can be left out");
    let short = shorten(&judge, judged, Duration::try_from_secs_f64(args.seconds)?)?;
    drop(progress);
    let name = |pass: &_| judge.world.engine().pass_name(*pass).to_owned();
    let shown = Minimized {
        given,
        passes: short.plan.passes.iter().map(name).collect(),
        figures: judge.spec().named(&short.figures).collect(),
    };
    if context.json() {
        context.print_json(&shown)?;
    } else {
        let compared = judge.spec().stages.iter().filter_map(|stage| {
            let value = short.figures.get(stage.figure)?;
            Some(format!("{} {}", grouped(value as u64), judge.spec().label(stage.figure)))
        });
        context.print(&format!(
            "{} passes that do something, {} of them needed: {}.\n  {}\n",
            shown.given,
            shown.passes.len(),
            compared.collect::<Vec<_>>().join("; "),
            or_none(&shown.passes),
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
