//! A search that begins with what is known, and leaves what it found.

use xla_gym_recipe::Store;

use crate::{
    apply::plan_of,
    error::OptimizeError,
    optimize::optimize,
    plan::Judge,
    task::{Answer, Task},
    watch::Watch,
};

/// What became of the store in a search.
#[derive(Debug, Default)]
pub struct Remembered {
    /// Whether a recipe for the program was there, and was tried first.
    pub known: bool,
    /// Whether the answer is the best known now.
    pub kept: bool,
    /// What went wrong with the store, which costs no result.
    pub problem: Option<String>,
}

/// The same as [`optimize`], with a store of recipes that is consulted first and given the answer.
pub fn optimize_with_store(
    judge: &Judge,
    task: &Task,
    store: &Store,
    watch: &dyn Watch,
) -> Result<(Answer, Remembered), OptimizeError> {
    let mut remembered = Remembered::default();
    let fingerprint = judge.emitted()?.fingerprint()?;
    let engine = judge.world.engine().name();
    let mut task = task.clone();
    let mut imported = false;
    match store.best(fingerprint, &engine, &task.objective.to_string()) {
        Ok(recipe) => {
            imported = recipe.as_ref().is_some_and(|recipe| recipe.imported);
            // One that begins elsewhere is of no use here, nor is one that names passes that there
            // are not.
            let plan = recipe.and_then(|recipe| plan_of(&judge.world, &recipe).ok());
            task.known = plan.filter(|plan| !plan.is_default);
            remembered.known = task.known.is_some();
        }
        Err(error) => remembered.problem = Some(error.to_string()),
    }
    let answer = optimize(judge, &task, watch)?;
    // What was imported and came to nothing must not be tried for ever.
    if !answer.plan.is_default || imported {
        match store.offer(&answer.recipe) {
            Ok(kept) => remembered.kept = kept,
            Err(error) => remembered.problem = Some(error.to_string()),
        }
    }
    Ok((answer, remembered))
}
