//! Runs toy programs.

use std::time::Instant;

use xla_gym_protocol::{
    Array, ArraySpec, CompileOptions, Failure, FailureKind, PipelineOptions, Role, Signature,
};
use xla_gym_worker::failed;

use crate::{pipeline, program::Program};

/// Inputs and the result are whole numbers.
const DTYPE: &str = "s64";

/// A program ready to run.
pub struct Executable {
    program: Program,
    inputs: Vec<i64>,
    result: i64,
}

/// Takes its inputs by number, gives its last line.
pub fn signature(program: &Program) -> Signature {
    let number = || ArraySpec { dtype: DTYPE.to_owned(), dims: Vec::new(), role: Role::default() };
    Signature {
        inputs: (0..program.inputs()).map(|_| number()).collect(),
        outputs: vec![number()],
        ..Signature::default()
    }
}

/// Sends it through the pipeline first, as real compilers do.
pub fn compile(program: &Program, options: &CompileOptions) -> Result<Executable, Failure> {
    let options = PipelineOptions { finish: options.finish.clone(), ..PipelineOptions::default() };
    let inputs = vec![0; program.inputs()];
    let (program, _) = pipeline::run(program, &options)?;
    Ok(Executable { program, inputs, result: 0 })
}

impl Executable {
    pub fn set_input(&mut self, place: usize, array: &Array) -> Result<(), Failure> {
        let misuse = || failed(FailureKind::Misuse, "an input is one s64");
        let bytes = array.bytes.as_slice().try_into().map_err(|_| misuse())?;
        *self.inputs.get_mut(place).ok_or_else(misuse)? = i64::from_le_bytes(bytes);
        Ok(())
    }

    /// The time it took, in nanoseconds.
    pub fn run(&mut self) -> u64 {
        let begin = Instant::now();
        self.result = self.program.evaluate(&self.inputs);
        begin.elapsed().as_nanos().max(1) as u64
    }

    pub fn output(&self) -> Array {
        Array {
            dtype: DTYPE.to_owned(),
            dims: Vec::new(),
            bytes: self.result.to_le_bytes().to_vec(),
            block: 0,
        }
    }
}
