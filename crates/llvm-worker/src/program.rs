//! A loaded program, and what is known of its identity.

use std::cell::Cell;

use xla_gym_llvm_shim::{Module, Pass};

/// A program. Its exact identity is kept while it does not change: a pass that says that it changed
/// something is asked for proof.
pub struct Program {
    module: Module,
    exact: Cell<Option<u128>>,
    /// See [`Module::version`]; of the same state.
    version: Cell<Option<u64>>,
}

impl Program {
    pub fn new(module: Module) -> Program {
        Program { module, exact: Cell::new(None), version: Cell::new(None) }
    }

    pub fn module(&self) -> &Module {
        &self.module
    }

    /// See [`Module::exact`].
    pub fn exact(&self) -> u128 {
        let exact = self.exact.get().unwrap_or_else(|| self.module.exact());
        self.exact.set(Some(exact));
        exact
    }

    /// Runs a pass; whether the program is another one than before.
    pub fn run(&mut self, pass: &Pass) -> Result<bool, String> {
        self.change(|module| module.run(pass))
    }

    /// Runs a pipeline by LLVM's text; whether the program is another one than before.
    pub fn run_pipeline(&mut self, text: &str) -> Result<bool, String> {
        self.change(|module| module.run_pipeline(text))
    }

    /// The pass's own word is not taken for it. Some say that they changed something and did not; and a
    /// few change alignments, metadata or attributes in silence (infer-alignment, ipsccp,
    /// called-value-propagation), which would make wrong what is remembered of the state.
    fn change(
        &mut self,
        change: impl FnOnce(&mut Module) -> Result<bool, String>,
    ) -> Result<bool, String> {
        let before = self.exact();
        let version = self.version.take().unwrap_or_else(|| self.module.version());
        self.exact.set(None);
        if !change(&mut self.module)? && self.module.version() == version {
            self.exact.set(Some(before));
            self.version.set(Some(version));
            return Ok(false);
        }
        Ok(self.exact() != before)
    }
}

impl Clone for Program {
    fn clone(&self) -> Program {
        Program { module: self.module.clone(), exact: self.exact.clone(), version: Cell::new(None) }
    }
}
