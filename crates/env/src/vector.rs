//! Many environments on all cores.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use rayon::{ThreadPool, ThreadPoolBuilder};
use xla_gym_common::{cores, lock, on_all_cores};
use xla_gym_engine::{EngineError, interrupted};

use crate::{
    config::EnvConfig,
    env::{Env, Step},
    error::EnvError,
    world::World,
};

/// How often a wait looks up for a wish to end it.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What a step of one environment of a vector gives.
#[derive(Debug)]
pub enum VectorStep {
    /// A step.
    Stepped(Step),
    /// The episode was over: a new one has begun, and the action was not taken.
    Began,
}

/// Environments on all cores, each in a compiler process of its own.
///
/// What each of them does depends on its own seed and actions alone. Three ways to drive it:
/// [`VectorEnv::step`] waits for all; [`VectorEnv::send`] and [`VectorEnv::receive`] hand out what
/// is ready, so that a slow pass holds up nobody but itself; [`VectorEnv::drive`] leaves each to a
/// function of the caller. An environment whose episode is over
/// begins a new one at its next step.
pub struct VectorEnv {
    envs: Vec<Arc<Mutex<Slot>>>,
    pool: ThreadPool,
    // In a lock so that the whole can be shared; nobody ever waits for it.
    done: Mutex<Receiver<(usize, Result<VectorStep, EnvError>)>>,
    sender: Sender<(usize, Result<VectorStep, EnvError>)>,
    pending: usize,
}

struct Slot {
    env: Env,
    over: bool,
}

impl VectorEnv {
    /// Makes `count` environments that share a world.
    pub fn new(
        world: &Arc<World>,
        config: &EnvConfig,
        count: usize,
    ) -> Result<VectorEnv, EnvError> {
        if count == 0 {
            return Err(EnvError::Config("a vector needs at least one environment".to_owned()));
        }
        let envs = (0..count)
            .map(|index| {
                let env = Env::one_of(world, config.clone(), index, count)?;
                Ok(Arc::new(Mutex::new(Slot { env, over: false })))
            })
            .collect::<Result<_, EnvError>>()?;
        let pool = ThreadPoolBuilder::new()
            .num_threads(cores().min(count))
            .thread_name(|number| format!("xla-gym-env-{number}"))
            .build()
            .map_err(|error| EnvError::Config(format!("no threads: {error}")))?;
        let (sender, done) = channel();
        Ok(VectorEnv { envs, pool, done: Mutex::new(done), sender, pending: 0 })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.envs.len()
    }

    /// Whether there is none, which `new` refuses.
    pub fn is_empty(&self) -> bool {
        self.envs.is_empty()
    }

    /// Begins an episode in each. Environment `i` draws from stream `i` of the seed.
    pub fn reset(&mut self, seed: Option<u64>) -> Result<(), EnvError> {
        self.reset_some(&vec![seed; self.envs.len()], &vec![true; self.envs.len()])
    }

    /// Begins an episode in some, each with its own seed.
    pub fn reset_some(&mut self, seeds: &[Option<u64>], which: &[bool]) -> Result<(), EnvError> {
        self.check_length("seeds", seeds.len())?;
        self.check_length("choices", which.len())?;
        self.settle()?;
        for (env, (seed, _)) in seeds.iter().zip(which).enumerate().filter(|(_, (_, w))| **w) {
            let seed = *seed;
            self.spawn(env, move |slot| slot.reset(seed).map(|()| VectorStep::Began));
        }
        self.receive_all().map(drop)
    }

    /// Takes one action in each, and waits for all.
    pub fn step(&mut self, actions: &[usize]) -> Result<Vec<VectorStep>, EnvError> {
        self.check_length("actions", actions.len())?;
        self.settle()?;
        // All workers begin at once; one thread is enough to wait for them in turn. What needs more
        // than waiting, such as a new episode, goes to the pool meanwhile.
        let begun: Vec<bool> = actions
            .iter()
            .enumerate()
            .map(|(env, action)| lock(&self.envs[env]).begin_step(*action))
            .collect();
        for (env, _) in begun.iter().enumerate().filter(|(_, begun)| !**begun) {
            self.send(env, actions[env]);
        }
        let mut steps: Vec<_> = self.envs.iter().map(|_| None).collect();
        for (env, _) in begun.iter().enumerate().filter(|(_, begun)| **begun) {
            steps[env] = Some(lock(&self.envs[env]).step(actions[env]));
        }
        while let Some((env, step)) = self.receive()? {
            steps[env] = Some(step);
        }
        steps.into_iter().flatten().collect()
    }

    fn check_length(&self, what: &str, length: usize) -> Result<(), EnvError> {
        let count = self.envs.len();
        if length == count {
            return Ok(());
        }
        Err(EnvError::Config(format!("{length} {what} for {count} environments")))
    }

    /// What is pending, in the order of the environments.
    fn receive_all(&mut self) -> Result<Vec<VectorStep>, EnvError> {
        let mut steps: Vec<_> = self.envs.iter().map(|_| None).collect();
        while let Some((env, step)) = self.receive()? {
            steps[env] = Some(step);
        }
        steps.into_iter().flatten().collect()
    }

    /// Has an environment take an action, without waiting.
    pub fn send(&mut self, env: usize, action: usize) {
        self.spawn(env, move |slot| slot.step(action));
    }

    fn spawn(
        &mut self,
        env: usize,
        work: impl FnOnce(&mut Slot) -> Result<VectorStep, EnvError> + Send + 'static,
    ) {
        let (slot, sender) = (self.envs[env].clone(), self.sender.clone());
        self.pending += 1;
        self.pool.spawn(move || {
            let result = work(&mut lock(&slot));
            // Nobody is there to hear it if the vector is gone.
            let _ = sender.send((env, result));
        });
    }

    /// Waits for one of the actions that were sent; None if all were received.
    #[allow(clippy::type_complexity, reason = "which one, and what it gave")]
    pub fn receive(&mut self) -> Result<Option<(usize, Result<VectorStep, EnvError>)>, EnvError> {
        while self.pending > 0 {
            let done = lock(&self.done).recv_timeout(LOOK_UP);
            match done {
                Ok(done) => {
                    self.pending -= 1;
                    return Ok(Some(done));
                }
                Err(_) if interrupted() => return Err(EngineError::Interrupted.into()),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Waits for what was sent and not received.
    fn settle(&mut self) -> Result<(), EnvError> {
        while self.receive()?.is_some() {}
        Ok(())
    }

    /// Has `work` drive every environment, as many at a time as there are cores; the results in
    /// order. For rollouts whose policy can be asked from any thread: the fastest way, since an
    /// environment keeps its core, and nobody waits for anybody.
    pub fn drive<R: Send>(
        &mut self,
        work: impl Fn(usize, &mut Env) -> Result<R, EnvError> + Sync,
    ) -> Result<Vec<R>, EnvError> {
        self.settle()?;
        on_all_cores(self.envs.len(), |env| {
            let mut slot = lock(&self.envs[env]);
            let result = work(env, &mut slot.env);
            slot.over = slot.env.is_over();
            result
        })
    }

    /// Works with one of the environments.
    pub fn with<R>(&self, env: usize, work: impl FnOnce(&mut Env) -> R) -> R {
        work(&mut lock(&self.envs[env]).env)
    }
}

impl Slot {
    fn begin_step(&mut self, action: usize) -> bool {
        !self.over && self.env.begin_step(action)
    }

    fn reset(&mut self, seed: Option<u64>) -> Result<(), EnvError> {
        self.over = false;
        self.env.reset(seed)
    }

    fn step(&mut self, action: usize) -> Result<VectorStep, EnvError> {
        if self.over {
            self.reset(None)?;
            return Ok(VectorStep::Began);
        }
        let step = self.env.step(action)?;
        self.over = step.terminated || step.truncated;
        Ok(VectorStep::Stepped(step))
    }
}
