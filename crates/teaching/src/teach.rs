//! From training graphs to a policy, step by step.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use xla_gym_agents::{AgentError, Config, TrainedPolicy};
use xla_gym_common::write_whole;
use xla_gym_search::Budget;

use crate::{
    Searches, Setting, TeachError, canonical, demonstrations, late_copies, lesson::Lesson,
};

/// Operations of a thousand that an order may lose by copying late.
const LENIENT: u64 = 5;

/// The policy that comes of it, in the folder.
const POLICY: &str = "policy.safetensors";
/// What it learnt.
const DEMONSTRATIONS: &str = "demonstrations.jsonl";
/// What it was asked for.
const ASKED: &str = "teaching.toml";

/// What to teach, and how.
#[derive(Clone, Debug)]
pub struct Teaching {
    /// The policy, its training graphs, and how it learns. It must have an `[imitation]`, whose orders
    /// are those found here.
    pub config: Config,
    /// Seed of everything that depends on chance, instead of the configuration's.
    pub seed: u64,
    /// How many policies, of as many seeds, become one.
    pub members: u64,
    /// How often demonstrations are searched for; from the second time on, guided by the policy
    /// that learnt from those before.
    pub rounds: u64,
    /// What each of these searches may cost.
    pub budget: Budget,
    /// What comes after them.
    pub dagger: Dagger,
    /// On how many kinds of inputs at least orders are proven.
    pub trials: u32,
    /// The command that is behind it, for the model card.
    pub command: String,
    /// The commit of the software, likewise.
    pub commit: Option<String>,
}

/// Searches from where a policy may have gone astray.
#[derive(Clone, Debug)]
pub struct Dagger {
    /// How often, each time with the policy that learnt from all before.
    pub rounds: u64,
    /// Searches for each program and start.
    pub searches: u64,
    /// What each of them may cost.
    pub budget: Budget,
    /// Larger graphs are left out (instructions).
    pub largest: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Taught {
    /// The policy.
    pub policy: PathBuf,
    /// What it learnt.
    pub demonstrations: PathBuf,
    /// How many demonstrations that are.
    pub orders: usize,
    /// In how many steps.
    pub steps: usize,
}

/// A step. Each ends with one file; what is in the files of steps before does not change any more.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Search { round: u64 },
    Canonical { round: u64 },
    Learn { lesson: u64 },
    Dagger { round: u64 },
    LateCopies,
    Finish,
}

impl Teaching {
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for round in 1..=self.rounds {
            steps.extend([Step::Search { round }, Step::Canonical { round }]);
            // The last ones are learnt at the end, unless somebody has to go astray before.
            if round < self.rounds || self.dagger.rounds > 0 {
                steps.push(Step::Learn { lesson: round });
            }
        }
        for round in 1..=self.dagger.rounds {
            steps.push(Step::Dagger { round });
            if round < self.dagger.rounds {
                steps.push(Step::Learn { lesson: self.rounds + round });
            }
        }
        steps.extend([Step::LateCopies, Step::Finish]);
        steps
    }

    /// The demonstrations that are known after so many lessons.
    fn orders(&self, lesson: u64, folder: &Path) -> Vec<PathBuf> {
        let mut files = vec![file(folder, "canonical", lesson.min(self.rounds))];
        files.extend((1..=lesson.saturating_sub(self.rounds)).map(|r| file(folder, "dagger", r)));
        files
    }

    fn check(&self) -> Result<(), TeachError> {
        let refuse = |message: &str| Err(TeachError::config(message));
        if self.config.imitation.is_none() {
            return refuse("the configuration has no [imitation], so that nothing would be learnt");
        }
        if self.members == 0 || self.rounds == 0 {
            return refuse("at least one policy and one round of searches are needed");
        }
        if self.dagger.rounds > 0 && self.dagger.searches == 0 {
            return refuse("DAgger needs at least one search for each program");
        }
        Ok(())
    }

    /// Everything on which results depend, as text.
    fn asked(&self) -> Result<String, TeachError> {
        let budget = |budget: &Budget| format!("{:?}, {:?}", budget.passes, budget.time);
        let Dagger { rounds, searches, budget: own, largest } = &self.dagger;
        Ok(format!(
            "# seed {}, {} policies, {} rounds of searches with {}; {rounds} rounds of DAgger, {searches} \
             searches with {}, up to {largest} instructions; {} trials\n{}",
            self.seed,
            self.members,
            self.rounds,
            budget(&self.budget),
            budget(own),
            self.trials,
            self.config.to_toml()?
        ))
    }
}

impl Step {
    fn words(self, teaching: &Teaching) -> String {
        let rounds = teaching.rounds;
        match self {
            Step::Search { round: 1 } => format!("searching for good orders, 1 of {rounds}"),
            Step::Search { round } => {
                format!("searching, guided by the policy, {round} of {rounds}")
            }
            Step::Canonical { .. } => "naming passes alike".to_owned(),
            Step::Learn { lesson } => format!("learning, lesson {lesson}"),
            Step::Dagger { round } => {
                let rounds = teaching.dagger.rounds;
                format!("searching where the policy may go astray, {round} of {rounds}")
            }
            Step::LateCopies => "copying functions late".to_owned(),
            Step::Finish => "learning, last lesson".to_owned(),
        }
    }
}

/// Teaches a policy, or goes on with what is in the folder. Ended by the flag of the setting, it
/// returns [`TeachError::Interrupted`], and the same call goes on.
pub fn teach(
    teaching: &Teaching,
    folder: &Path,
    setting: &Setting<'_>,
) -> Result<Taught, TeachError> {
    teaching.check()?;
    same_as_before(teaching, folder)?;
    let steps = teaching.steps();
    let all = folder.join(DEMONSTRATIONS);
    let mut policy: Option<TrainedPolicy> = None;
    let learn = |orders: Vec<PathBuf>, lesson: u64, output: &Path| {
        Lesson {
            orders,
            config: &teaching.config,
            seed: teaching.seed,
            members: teaching.members,
            command: &teaching.command,
            commit: teaching.commit.as_deref(),
        }
        .learn(&folder.join(format!("lesson-{lesson}")), output, setting)
    };
    let lessons = teaching.rounds + teaching.dagger.rounds;
    for (number, &step) in steps.iter().enumerate() {
        setting.go_on()?;
        setting.watch.step(number + 1, steps.len(), &step.words(teaching));
        match step {
            Step::Search { round } => {
                let how = searches(teaching, policy.clone(), teaching.seed);
                demonstrations(&how, &file(folder, "search", round), setting)?;
            }
            Step::Canonical { round } => {
                let (from, to) = (file(folder, "search", round), file(folder, "canonical", round));
                canonical(&from, &to, setting)?;
            }
            Step::Learn { lesson } => {
                let output = folder.join(format!("lesson-{lesson}.safetensors"));
                policy = Some(learn(teaching.orders(lesson, folder), lesson, &output)?);
            }
            Step::Dagger { round } => {
                let Dagger { searches: count, budget, largest, .. } = &teaching.dagger;
                // Other luck in each round; its searches count up the seed too.
                let seed = teaching.seed.wrapping_add((round - 1) * count);
                let how = Searches {
                    largest: *largest.min(&teaching.config.largest),
                    budget: *budget,
                    astray: Some(*count),
                    ..searches(teaching, policy.clone(), seed)
                };
                demonstrations(&how, &file(folder, "dagger", round), setting)?;
            }
            Step::LateCopies => {
                let orders = teaching.orders(lessons, folder);
                let orders: Vec<&Path> = orders.iter().map(PathBuf::as_path).collect();
                late_copies(&orders, &all, LENIENT, teaching.trials, setting)?;
            }
            Step::Finish => {
                learn(vec![all.clone()], lessons, &folder.join(POLICY))?;
            }
        }
    }
    let orders = crate::by_program::read_sorted(&[&all])?.len();
    Ok(Taught { policy: folder.join(POLICY), demonstrations: all, orders, steps: steps.len() })
}

fn searches(teaching: &Teaching, policy: Option<TrainedPolicy>, seed: u64) -> Searches {
    Searches {
        benchmarks: teaching.config.benchmarks.clone(),
        largest: teaching.config.largest,
        budget: teaching.budget,
        seed,
        trials: teaching.trials,
        policy,
        astray: None,
    }
}

fn file(folder: &Path, name: &str, round: u64) -> PathBuf {
    folder.join(format!("{name}-{round}.jsonl"))
}

/// Files that were made from something else would be taken for what was asked for.
fn same_as_before(teaching: &Teaching, folder: &Path) -> Result<(), TeachError> {
    let path = folder.join(ASKED);
    let cannot = |error| AgentError::Write { path: path.clone(), error };
    fs::create_dir_all(folder).map_err(cannot)?;
    let asked = teaching.asked()?;
    match fs::read_to_string(&path) {
        Ok(before) if before == asked => Ok(()),
        Ok(_) => Err(TeachError::config(format!(
            "{} was begun with other options (see {ASKED} there); choose another folder, or remove it",
            folder.display()
        ))),
        Err(_) => Ok(write_whole(&path, asked.as_bytes()).map_err(cannot)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn teaching(rounds: u64, dagger: u64) -> Teaching {
        let text = "benchmarks = ['a']\n[imitation]\norders = 'x'\n[algorithm]\nname = 'ppo'\n";
        Teaching {
            config: Config::parse(text, &[]).unwrap(),
            seed: 0,
            members: 1,
            rounds,
            budget: Budget::passes(10),
            dagger: Dagger {
                rounds: dagger,
                searches: 2,
                budget: Budget::passes(10),
                largest: 3000,
            },
            trials: 1,
            command: String::new(),
            commit: None,
        }
    }

    #[test]
    fn every_search_but_the_first_has_a_policy_that_learnt_what_was_found_before() {
        for (rounds, dagger) in [(1, 0), (1, 1), (3, 0), (3, 2)] {
            let steps = teaching(rounds, dagger).steps();
            let (mut lessons, mut orders) = (0, 0);
            for step in &steps {
                match step {
                    Step::Search { .. } | Step::Dagger { .. } => {
                        assert_eq!(lessons, orders, "{steps:?}");
                        orders += 1;
                    }
                    Step::Learn { lesson } => {
                        lessons += 1;
                        assert_eq!(*lesson, lessons);
                    }
                    _ => {}
                }
            }
            assert_eq!(orders, rounds + dagger);
            assert_eq!(steps[steps.len() - 2..], [Step::LateCopies, Step::Finish]);
        }
    }

    #[test]
    fn a_lesson_is_on_the_latest_search_and_all_that_went_astray() {
        let names = |lesson| -> Vec<String> {
            let files = teaching(3, 2).orders(lesson, Path::new(""));
            files.iter().map(|file| file.display().to_string()).collect()
        };
        assert_eq!(names(1), ["canonical-1.jsonl"]);
        assert_eq!(names(3), ["canonical-3.jsonl"]);
        assert_eq!(names(5), ["canonical-3.jsonl", "dagger-1.jsonl", "dagger-2.jsonl"]);
    }

    #[test]
    fn another_teaching_does_not_take_over_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        same_as_before(&teaching(1, 0), folder.path()).unwrap();
        same_as_before(&teaching(1, 0), folder.path()).unwrap();
        let error = same_as_before(&teaching(2, 0), folder.path()).unwrap_err().to_string();
        assert!(error.contains("another folder"), "{error}");
    }
}
