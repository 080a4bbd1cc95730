//! Does what a recipe says.

use std::sync::Arc;

use xla_gym_engine::{
    Session,
    protocol::{Fingerprint, PassId},
};
use xla_gym_env::{Walk, World};
use xla_gym_profile::Finish;
use xla_gym_recipe::Recipe;

use crate::{error::OptimizeError, plan::Plan};

/// A program after the passes of a recipe.
pub struct Applied {
    /// The program.
    pub session: Session,
    /// What was done.
    pub plan: Plan,
    /// Passes that did not take place, with the reason.
    pub skipped: Vec<(String, String)>,
    /// What does not quite fit, in words.
    pub warnings: Vec<String>,
}

/// The passes of a recipe, as those of a world's compiler. The world has to begin where the recipe
/// does. Recipes come from strangers too: what they leave out of the pipeline has to be something
/// that it can do without.
pub fn plan_of(world: &World, recipe: &Recipe) -> Result<Plan, OptimizeError> {
    if world.start_name() != recipe.start {
        return Err(OptimizeError::Start {
            recipe: recipe.start.clone(),
            world: world.start_name().to_owned(),
        });
    }
    let passes: Vec<PassId> = world.engine().passes(recipe.passes.iter().map(String::as_str))?;
    let disabled = recipe.disabled_passes.clone();
    let optional = world.profile().can_be_left_out();
    if let Some(pass) = disabled.iter().find(|&pass| !optional.contains(pass)) {
        let pipeline = world.profile().spec().words.pipeline;
        return Err(OptimizeError::NotOptional { pass: pass.clone(), pipeline });
    }
    let spec = world.profile().spec();
    let pipelines = &world.engine().hello().pipelines;
    let pipeline = match recipe.pipeline.as_str() {
        "" => spec.usual.pipeline,
        name => pipelines
            .iter()
            .position(|pipeline| pipeline.name == name)
            .ok_or_else(|| OptimizeError::NoPipeline { pipeline: name.to_owned() })?
            as u16,
    };
    Ok(Plan { passes, finish: Finish { pipeline, disabled }, is_default: recipe.is_default() })
}

/// Whether a recipe is for a program: what does not quite fit, in words. An error if it is for another
/// one, unless `force` says that it does not matter.
pub fn check_fit(
    world: &World,
    fingerprint: Fingerprint,
    recipe: &Recipe,
    force: bool,
) -> Result<Vec<String>, OptimizeError> {
    let mut warnings = Vec::new();
    if fingerprint != recipe.program.fingerprint {
        if !force {
            return Err(OptimizeError::OtherProgram {
                recipe: recipe.program.name.clone(),
                wanted: recipe.program.fingerprint,
                got: fingerprint,
            });
        }
        warnings.push(format!(
            "the recipe is for {}, another program: nothing in it was proven for this one",
            recipe.program.name
        ));
    }
    if recipe.engine != world.engine().name() {
        warnings.push(format!(
            "the recipe was made with {}; this is {}",
            recipe.engine,
            world.engine().name()
        ));
    }
    Ok(warnings)
}

/// Runs the passes of a recipe on a program. It has to be the one that the recipe is for, unless
/// `force` says that it does not matter.
pub fn apply(
    world: &Arc<World>,
    benchmark: usize,
    recipe: &Recipe,
    force: bool,
) -> Result<Applied, OptimizeError> {
    let plan = plan_of(world, recipe)?;
    let mut emitted = world.engine().load(&world.source(benchmark)?)?;
    let warnings = check_fit(world, emitted.fingerprint()?, recipe, force)?;
    if plan.is_default {
        return Ok(Applied { session: emitted, plan, skipped: Vec::new(), warnings });
    }
    let mut walk = Walk::begin(world, benchmark)?;
    let mut skipped = Vec::new();
    for &pass in &plan.passes {
        if let Some(failure) = walk.step(pass)?.failure {
            skipped.push((world.engine().pass_name(pass).to_owned(), failure.message));
        }
    }
    Ok(Applied { session: walk.into_session()?, plan, skipped, warnings })
}
