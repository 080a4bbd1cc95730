//! The passes that can be run one by one.
//!
//! A row is a pass with one choice of parameters, written as LLVM's `-passes=` takes it, so that
//! `opt-19 -passes=NAME` does the same. What follows a colon in a name is an option of `opt`'s
//! command line, for what LLVM has no parameter of the pass for: `inline:inline-threshold=500` is
//! `opt-19 -passes=inline -inline-threshold=500`.

mod control_flow;
mod interprocedural;
mod loops;
mod lowering;
mod marks;
mod pipelines;
mod scalar;
mod sets;

use std::{collections::HashMap, fmt, sync::LazyLock};

pub use sets::{COMPILERGYM, COMPILERGYM_GONE};

/// What sort of pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Simplifies values within functions.
    Scalar,
    /// Moves, merges or removes loads and stores.
    Memory,
    /// Changes branches and blocks.
    ControlFlow,
    /// Changes loops.
    Loop,
    /// Makes vectors, or takes them apart.
    Vector,
    /// Looks at several functions at once, or at global variables.
    Interprocedural,
    /// Writes something in simpler terms, mostly for code generation.
    Lowering,
    /// Adds something that watches the program.
    Instrumentation,
    /// Concerns debug information, names and annotations only.
    Annotation,
    /// Several passes in one.
    Composite,
    /// One of LLVM's own pipelines, whole.
    Pipeline,
}

impl Kind {
    /// As one word or two.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Scalar => "scalar",
            Kind::Memory => "memory",
            Kind::ControlFlow => "control flow",
            Kind::Loop => "loop",
            Kind::Vector => "vector",
            Kind::Interprocedural => "interprocedural",
            Kind::Lowering => "lowering",
            Kind::Instrumentation => "instrumentation",
            Kind::Annotation => "annotation",
            Kind::Composite => "composite",
            Kind::Pipeline => "pipeline",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a pass runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The whole program.
    Module,
    /// Functions that call each other, from callees to callers.
    CallGraph,
    /// One function after the other.
    Function,
    /// One loop after the other, from the inside out.
    Loop,
}

/// One pass with one choice of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// LLVM's name of the pass alone.
    pub base: &'static str,
    /// What stands between `<` and `>`, if anything.
    pub parameters: &'static str,
    /// Options of `opt`'s command line, as `name=value`.
    pub options: &'static [&'static str],
    /// The text for `-passes=` where it is more than name and parameters: a pass inside a manager
    /// that LLVM would not choose by itself, or several passes.
    text: Option<&'static str>,
    /// What sort.
    pub kind: Kind,
    /// One sentence.
    pub description: &'static str,
    /// Changes what some programs mean, what they need to run, or what others can see of them.
    pub lossy: bool,
}

impl Pass {
    const fn new(base: &'static str, kind: Kind, description: &'static str) -> Pass {
        Pass { base, parameters: "", options: &[], text: None, kind, description, lossy: false }
    }

    const fn with(self, parameters: &'static str) -> Pass {
        Pass { parameters, ..self }
    }

    const fn option(self, options: &'static [&'static str]) -> Pass {
        Pass { options, ..self }
    }

    const fn written(self, text: &'static str) -> Pass {
        Pass { text: Some(text), ..self }
    }

    const fn lossy(self) -> Pass {
        Pass { lossy: true, ..self }
    }

    /// The text for LLVM's `-passes=`.
    pub fn pipeline(&self) -> String {
        match (self.text, self.parameters) {
            (Some(text), _) => text.to_owned(),
            (None, "") => self.base.to_owned(),
            (None, parameters) => format!("{}<{parameters}>", self.base),
        }
    }

    /// What LLVM runs it over.
    pub fn level(&self) -> Level {
        match (self.text, self.base) {
            (Some(text), _) if text.starts_with("loop") => Level::Function,
            (Some(_), _) => Level::Module,
            // There is one of each, and the one over functions is meant.
            (None, "guard-widening") => Level::Function,
            _ => crate::module::level(&self.pipeline()),
        }
    }

    /// The text within a longer pipeline, where LLVM adds no managers by itself.
    pub fn nested(&self) -> String {
        let text = self.pipeline();
        match self.level() {
            Level::Module => text,
            Level::CallGraph => format!("cgscc({text})"),
            Level::Function => format!("function({text})"),
            // Which of the two LLVM would take for a single pass.
            Level::Loop if matches!(self.base, "licm" | "lnicm") => {
                format!("function(loop-mssa({text}))")
            }
            Level::Loop => format!("function(loop({text}))"),
        }
    }

    /// As users write it: the text, and the options behind a colon.
    pub fn name(&self) -> String {
        match self.options {
            [] => self.pipeline(),
            options => format!("{}:{}", self.pipeline(), options.join(":")),
        }
    }

    /// The arguments by which `opt` does the same.
    pub fn opt_arguments(&self) -> Vec<String> {
        let options = self.options.iter().map(|option| format!("-{option}"));
        std::iter::once(format!("-passes={}", self.pipeline())).chain(options).collect()
    }

    /// Why the pass is no default action although it keeps what programs mean: it crashed, hung or
    /// broke programs in isolation.
    pub fn unfit(&self) -> Option<&'static str> {
        let name = self.name();
        marks::UNFIT.iter().find(|(unfit, _)| *unfit == name).map(|(_, reason)| *reason)
    }

    /// Whether agents and searches may use it unless told otherwise. LLVM's own pipelines are what
    /// others are compared with.
    pub fn is_default_action(&self) -> bool {
        let apart = matches!(self.kind, Kind::Instrumentation | Kind::Pipeline);
        !self.lossy && !apart && self.unfit().is_none()
    }
}

static TABLE: LazyLock<Vec<Pass>> = LazyLock::new(|| {
    let parts: [&[Pass]; 6] = [
        scalar::PASSES,
        control_flow::PASSES,
        loops::PASSES,
        interprocedural::PASSES,
        lowering::PASSES,
        pipelines::PASSES,
    ];
    parts.concat()
});

static BY_NAME: LazyLock<HashMap<String, usize>> =
    LazyLock::new(|| TABLE.iter().enumerate().map(|(at, pass)| (pass.name(), at)).collect());

/// All passes, in a fixed order.
pub fn passes() -> &'static [Pass] {
    &TABLE
}

/// A pass by its name, or the first of several that share LLVM's name for it.
pub fn find_pass(name: &str) -> Option<&'static Pass> {
    match BY_NAME.get(name) {
        Some(&at) => Some(&TABLE[at]),
        None => TABLE.iter().find(|pass| pass.base == name),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_there_are_enough() {
        let names: HashSet<String> = passes().iter().map(Pass::name).collect();
        assert_eq!(names.len(), passes().len());
        assert!(passes().len() >= 200, "{}", passes().len());
    }

    #[test]
    fn every_description_is_one_sentence_of_its_own() {
        for pass in passes() {
            let text = pass.description;
            assert!(text.ends_with('.') && text.len() > 15, "{}: {text}", pass.name());
            assert!(
                text.starts_with(|first: char| first.is_uppercase()),
                "{}: {text}",
                pass.name()
            );
            assert!(!text.trim_end_matches('.').contains(". "), "{}: {text}", pass.name());
        }
    }

    #[test]
    fn marks_name_passes_of_the_table() {
        for (name, reason) in marks::UNFIT {
            assert!(BY_NAME.contains_key(*name), "{name}");
            assert!(!reason.is_empty());
        }
    }

    #[test]
    fn instcombine_never_runs_with_the_check_that_aborts() {
        for pass in passes() {
            let text = pass.pipeline();
            let uses = text.matches("instcombine").count()
                - text.matches("aggressive-instcombine").count();
            assert_eq!(uses, text.matches("no-verify-fixpoint").count(), "{text}");
        }
    }

    #[test]
    fn a_pass_is_found_by_name_and_by_what_llvm_calls_it() {
        let check = |name: &str, expected: &str| {
            assert_eq!(find_pass(name).map(Pass::name).as_deref(), Some(expected));
        };
        check("gvn", "gvn");
        check("instcombine", "instcombine<no-verify-fixpoint>");
        check("inline:inline-threshold=500", "inline:inline-threshold=500");
        assert_eq!(find_pass("no-such-pass"), None);
        let pass = find_pass("inline:inline-threshold=500").unwrap();
        assert_eq!(pass.opt_arguments(), ["-passes=inline", "-inline-threshold=500"]);
    }

    #[test]
    fn compilergyms_set_is_118_of_its_124() {
        let names: HashSet<&str> = COMPILERGYM.iter().map(|(old, _)| *old).collect();
        assert_eq!((names.len(), COMPILERGYM_GONE.len()), (118, 6));
        for (old, new) in COMPILERGYM {
            assert!(BY_NAME.contains_key(*new), "{old} lives on as {new}");
            assert!(!COMPILERGYM_GONE.contains(old), "{old}");
        }
        let renamed = COMPILERGYM.iter().filter(|(old, new)| old != new).count();
        // Eleven have another name; instcombine needs its parameter.
        assert_eq!(renamed, 12);
    }
}
