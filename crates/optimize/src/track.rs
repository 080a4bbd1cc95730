//! Compiled plans in one process, run in turn.

use std::time::{Duration, Instant};

use xla_gym_engine::{
    Compiled, EngineError, Scratch, Session,
    protocol::{CompileOptions, Finish, Form, InputSet, Observe},
};

use crate::{
    error::OptimizeError,
    plan::{Judge, Plan},
};

/// What is run at a time, before somebody may say that it is enough.
const SLICE: Duration = Duration::from_millis(250);

/// Rounds that somebody wants at least are not waited for any longer than this.
const LEAST: Duration = Duration::from_secs(10);

/// Runs to warm a program up; one is enough where it takes long.
const WARM_UP: u32 = 3;
const LONG: Duration = Duration::from_secs(1);

/// Compiled plans in one process. There they differ less by luck than in processes of their own, whose
/// threads wake up anew whenever it is their turn.
pub struct Track {
    scratch: Scratch,
    lanes: Vec<Lane>,
}

/// A plan that runs.
pub struct Lane {
    compiled: Compiled,
    /// Nanoseconds to compile, the passes of the order included.
    pub compile_nanos: f64,
    /// Nanoseconds of its runs.
    pub rounds: Vec<f64>,
}

/// A program that may run beside others.
pub struct Contestant {
    /// As the compiler reads it.
    bytes: Vec<u8>,
    /// Passes of the compiler's own pipeline that it is compiled without.
    finish: Finish,
    /// Time of the passes that were run on it before.
    order_nanos: f64,
}

impl Contestant {
    /// What comes of a plan, before the compiler's own pipeline. An inner error is the compiler's.
    pub fn of_plan(
        judge: &Judge,
        plan: &Plan,
    ) -> Result<Result<Contestant, String>, OptimizeError> {
        let order_nanos = order_nanos(judge, plan)?;
        let bytes = match judge.session(plan) {
            Ok(mut session) => session.print(Form::BINARY)?,
            Err(error @ OptimizeError::Lost(_)) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error),
        };
        Ok(Ok(Contestant { bytes, finish: plan.finish.clone(), order_nanos }))
    }

    /// A program as it is.
    pub fn of_program(session: &mut Session) -> Result<Contestant, EngineError> {
        let bytes = session.print(Form::BINARY)?;
        Ok(Contestant { bytes, finish: Finish::default(), order_nanos: 0.0 })
    }
}

impl Track {
    /// With nobody on it, in a process of the same kind as the session's.
    pub fn new(session: &mut Session) -> Result<Track, EngineError> {
        Ok(Track { scratch: session.scratch()?, lanes: Vec::new() })
    }

    /// Compiles a program and runs it a few times to warm it up; its place. An inner error is the
    /// compiler's, or of a process that is gone: then the whole track is.
    pub fn add(
        &mut self,
        contestant: &Contestant,
        inputs: &InputSet,
    ) -> Result<Result<usize, String>, EngineError> {
        let scratch = &mut self.scratch;
        let mut start = || -> Result<Compiled, EngineError> {
            let program = scratch.load(contestant.bytes.clone())?;
            let finish = contestant.finish.clone();
            let options = CompileOptions { finish, ..CompileOptions::default() };
            let compiled = scratch.compile_program(program, &options)?;
            scratch.make_inputs(&compiled, inputs)?;
            scratch.race(&[compiled], WARM_UP, LONG)?;
            Ok(compiled)
        };
        match start() {
            Ok(compiled) => {
                let compile_nanos = contestant.order_nanos + compiled.nanos as f64;
                self.lanes.push(Lane { compiled, compile_nanos, rounds: Vec::new() });
                Ok(Ok(self.lanes.len() - 1))
            }
            Err(error @ EngineError::Interrupted) => Err(error),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Runs some of them in turn, for so long, and so many rounds at least, unless those take very long.
    pub fn race(
        &mut self,
        lanes: &[usize],
        least: usize,
        time: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        let compiled: Vec<Compiled> = lanes.iter().map(|lane| self.lanes[*lane].compiled).collect();
        let begin = Instant::now();
        let mut rounds = 0;
        let on = |rounds: usize| {
            let elapsed = begin.elapsed();
            rounds == 0 || (rounds < least && elapsed < LEAST) || (elapsed < time && !stop())
        };
        while on(rounds) {
            let slice = SLICE.min(time.saturating_sub(begin.elapsed()));
            let times =
                self.scratch.race(&compiled, u32::MAX, slice).map_err(|error| error.to_string())?;
            rounds += times.first().map_or(1, Vec::len);
            for (lane, times) in lanes.iter().zip(times) {
                self.lanes[*lane].rounds.extend(times.into_iter().map(|nanos| nanos as f64));
            }
        }
        Ok(())
    }

    /// One of them.
    pub fn lane(&mut self, place: usize) -> &mut Lane {
        &mut self.lanes[place]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }
}

/// Time of the passes of a plan, the normalising ones included.
fn order_nanos(judge: &Judge, plan: &Plan) -> Result<f64, OptimizeError> {
    if plan.passes.is_empty() {
        return Ok(0.0);
    }
    let mut passes = judge.world.start_passes(judge.benchmark, judge.world.start())?.to_vec();
    passes.extend(&plan.passes);
    let mut session = judge.emitted()?;
    let mut nanos = 0;
    for pass in passes {
        match session.apply(pass, Observe::NOTHING) {
            Ok(applied) => nanos += applied.nanos,
            Err(EngineError::Pass(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(nanos as f64)
}
