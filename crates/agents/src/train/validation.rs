//! What episodes came to, and how good the policy is on programs that were held out.

use std::sync::Arc;

use xla_gym_common::on_all_cores;
use xla_gym_env::{EnvError, Walk, World};
use xla_gym_proof::{Options, Pipeline, Prover};

use super::{POLICY, Run, Watch};
use crate::{
    episode::{Chooser, Episode, EpisodeRequest},
    error::AgentError,
};

/// A ratio that cannot enter a geometric mean counts as this.
pub const LEAST_RATIO: f64 = 0.01;

/// How what comes of a validation is run: on few inputs, since it is run again and again.
const VALIDATION: Options = Options { trials: 1, ..Options::DEFAULT };

/// Who runs what comes of a validation. Programs that cannot be compared are held out no longer.
pub(super) fn prover(
    world: &Arc<World>,
    held_out: &mut Vec<usize>,
    watch: &mut dyn Watch,
) -> Result<Prover, AgentError> {
    let prover = Prover::new(VALIDATION);
    let all = held_out.len();
    if all == 0 {
        return Ok(prover);
    }
    watch.doing("running the held-out programs");
    let comparable = on_all_cores(all, |index| prover.comparable(world, held_out[index]))?;
    let mut comparable = comparable.into_iter();
    held_out.retain(|_| comparable.next().unwrap_or_default());
    if held_out.len() < all {
        let lost = all - held_out.len();
        watch.warn(&format!(
            "{lost} of {all} held-out programs cannot be compared and are left out"
        ));
    }
    Ok(prover)
}

impl Run<'_> {
    /// Geometric mean of the order ratio over episodes; 1 where the compiler has no order of its own.
    /// Those whose numbers are in `wrong` have gained nothing.
    pub(super) fn ratio(&self, episodes: &[Episode], wrong: &[usize]) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        let world = &self.gatherer.world;
        for (number, episode) in episodes.iter().enumerate() {
            let Ok(baseline) = world.baseline(episode.benchmark) else { continue };
            let figure = world.profile().spec().starts[episode.start].counts_as;
            let (initial, default) = (baseline.initial.get(figure), baseline.default.get(figure));
            let (Some(initial), Some(default)) = (initial, default) else { continue };
            if initial > default {
                let gain = match wrong.contains(&number) {
                    true => 0.0,
                    false => initial - episode.lowest() as f64,
                };
                sum += (gain / (initial - default)).max(LEAST_RATIO).ln();
                count += 1.0;
            }
        }
        if count > 0.0 { f64::exp(sum / count) } else { 1.0 }
    }

    /// Episodes whose best states do not compute what they should, by their numbers. States that were
    /// met by an earlier policy are not run again.
    fn wrong(&self, episodes: &[Episode]) -> Result<Vec<usize>, AgentError> {
        let Some(prover) = &self.prover else { return Ok(Vec::new()) };
        let world = &self.gatherer.world;
        let count = on_all_cores(episodes.len(), |index| {
            let episode = &episodes[index];
            let pipeline = Pipeline::from_start(world.profile().spec(), episode.start);
            let mut walk = Walk::begin_at(world, episode.benchmark, episode.start)?;
            for action in &episode.best_path {
                walk.step(world.actions()[*action])?;
            }
            Ok::<bool, EnvError>(prover.prove(&mut walk, pipeline)?.outputs.count())
        })?;
        Ok((0..episodes.len()).filter(|number| !count[*number]).collect())
    }

    /// Tries the policy on held-out programs, and keeps it if it is the best so far.
    pub(super) fn validate(&mut self) -> Result<Option<f64>, AgentError> {
        if self.validation.is_empty() {
            return Ok(None);
        }
        // All starts count alike that are learnt.
        let others = self.other_starts.iter().map(|(start, _)| *start);
        let elsewhere: f64 = self.other_starts.iter().map(|(_, share)| share).sum();
        let starts = Some(self.gatherer.world.start()).filter(|_| elsewhere < 1.0);
        let mut requests = Vec::new();
        for start in starts.into_iter().chain(others) {
            let request = |benchmark| EpisodeRequest { benchmark, start, seed: 0, stream: 0 };
            requests.extend(self.validation.iter().copied().map(request));
        }
        let episodes = self.gatherer.gather(&requests, Chooser::Greedy(self.learner.policy()))?;
        let ratio = self.ratio(&episodes, &self.wrong(&episodes)?);
        let gain = self.config.plateau.as_ref().map_or(0.0, |plateau| plateau.gain);
        if self.done.reference.is_none_or(|reference| ratio > reference + gain) {
            (self.done.reference, self.done.since) = (Some(ratio), 0);
        } else {
            self.done.since += 1;
        }
        self.done.latest = Some(ratio);
        if self.done.best.is_none_or(|best| ratio > best) {
            self.done.best = Some(ratio);
            self.policy(Some(ratio)).write(&self.setting.folder.join(POLICY))?;
        }
        self.done.plateau =
            self.config.plateau.as_ref().is_some_and(|p| self.done.since >= p.validations);
        Ok(Some(ratio))
    }
}
