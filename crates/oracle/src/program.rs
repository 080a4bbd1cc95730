//! A program in a worker of its own, ready to run: as it is, and in higher precision.

use std::thread;

use xla_gym_engine::{
    Compiled, EngineError, Scratch,
    protocol::{Array, CompileOptions, Executor, Finish, InputSet},
};

/// A program in a worker of its own, ready to run.
pub struct Ready {
    scratch: Scratch,
    compiled: Compiled,
}

impl Ready {
    /// As the compiler makes it, with some passes of its pipeline left out.
    pub fn new(mut scratch: Scratch, how: &Finish) -> Result<Ready, EngineError> {
        let compiled = scratch.compile(how)?;
        Ok(Ready { scratch, compiled })
    }

    /// By other code generators, and without optimisation of machine code.
    pub fn quickly(mut scratch: Scratch, how: &Finish) -> Result<Ready, EngineError> {
        let compiled = scratch.compile_with(&quick(how, Executor::Compiled))?;
        Ok(Ready { scratch, compiled })
    }

    /// Bytes that a run needs, if the compiler says.
    pub fn needs(&self) -> Option<u64> {
        let memory = self.compiled.memory?;
        u64::try_from(memory.arguments + memory.outputs + memory.temporaries).ok()
    }

    pub fn run(&mut self, inputs: &InputSet) -> Result<Vec<Array>, EngineError> {
        self.scratch.make_inputs(&self.compiled, inputs)?;
        Ok(self.scratch.execute(&self.compiled, 1, true)?.1)
    }
}

fn quick(how: &Finish, executor: Executor) -> CompileOptions {
    CompileOptions { finish: how.clone(), executor, quick: true }
}

/// The program in higher precision.
pub struct Precise {
    ready: Ready,
    /// Names of the decisions that it reports.
    pub decisions: Vec<String>,
    /// The same with its constants moved by one unit in the last place.
    moved: Option<Compiled>,
}

impl Precise {
    pub fn new(
        mut scratch: Scratch,
        original: bool,
        executor: Executor,
        without: &Finish,
    ) -> Result<Precise, EngineError> {
        let (program, decisions) = scratch.promote(original, None)?;
        let options = quick(without, executor);
        let compiled = scratch.compile_program(program, &options)?;
        let mut moved = None;
        if original {
            let (program, _) = scratch.promote(false, Some(0))?;
            moved = Some(scratch.compile_program(program, &options)?);
        }
        Ok(Precise { ready: Ready { scratch, compiled }, decisions, moved })
    }

    /// Outputs with constants moved by one unit in the last place, and inputs too if there is a nudge.
    pub fn run_moved(
        &mut self,
        inputs: &InputSet,
        nudge: Option<u64>,
    ) -> Result<Vec<Array>, EngineError> {
        let compiled = self.moved.unwrap_or(self.ready.compiled);
        let scratch = &mut self.ready.scratch;
        scratch.make_inputs(&compiled, &InputSet { nudge, ..widened(inputs) })?;
        Ok(scratch.execute(&compiled, 1, true)?.1)
    }

    /// Outputs, and for each decision whether it was ever true and ever false.
    pub fn run(
        &mut self,
        inputs: &InputSet,
        outputs: usize,
    ) -> Result<(Vec<Array>, Vec<[bool; 2]>), EngineError> {
        let mut arrays = self.ready.run(&widened(inputs))?;
        let sides = arrays.split_off(outputs.min(arrays.len()));
        let side = |which: usize, place: usize| {
            sides.get(which).and_then(|array| array.bytes.get(place)).is_some_and(|byte| *byte == 1)
        };
        let decisions = (0..self.decisions.len()).map(|i| [side(0, i), side(1, i)]).collect();
        Ok((arrays, decisions))
    }
}

/// The same values, held as the promoted program takes them.
fn widened(inputs: &InputSet) -> InputSet {
    let mut inputs = inputs.clone();
    for input in &mut inputs.inputs {
        input.held_as = match input.dtype.as_str() {
            "f16" | "bf16" | "f32" => Some("f64".to_owned()),
            "c64" => Some("c128".to_owned()),
            _ => None,
        };
    }
    inputs
}

pub fn nudged(inputs: &InputSet, nudge: u64) -> InputSet {
    InputSet { nudge: Some(nudge), ..inputs.clone() }
}

/// Two things at once.
pub fn side_by_side<A: Send, B>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let thread = scope.spawn(a);
        let b = b();
        (thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), b)
    })
}

/// Whether an error says something of the program, and not of this machine or of what others did to
/// the worker.
pub fn is_about_the_program(error: &EngineError) -> bool {
    match error {
        EngineError::Refused { .. } => true,
        EngineError::Died { death, .. } => death.is_its_own(),
        _ => false,
    }
}

/// Once more where the worker ended through no fault of its own.
pub fn twice<T>(mut work: impl FnMut() -> Result<T, EngineError>) -> Result<T, EngineError> {
    match work() {
        Err(EngineError::Died { death, .. }) if !death.is_its_own() => work(),
        result => result,
    }
}
