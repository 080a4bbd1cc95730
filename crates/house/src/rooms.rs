//! What kind of crate a folder of `crates` holds.

/// Compilers, by the beginnings of their crates' folders.
pub const COMPILERS: [&str; 3] = ["xla", "toy", "llvm"];

/// Crates that may depend on every compiler: the registry, and what is put together from all.
pub const KNOWS_COMPILERS: [&str; 4] = ["compilers", "cli", "python", "lab"];

/// General crates, each with its floor: it may depend on those of lower floors alone.
pub const FLOORS: [(&str, u32); 26] = [
    ("common", 0),
    ("protocol", 0),
    ("shared-file", 0),
    ("house", 0),
    ("arrays", 1),
    ("events", 1),
    ("nn", 1),
    ("report", 1),
    ("rows", 1),
    ("transitions", 1),
    ("engine", 2),
    ("worker", 2),
    ("data", 3),
    ("oracle", 3),
    ("profile", 4),
    ("env", 5),
    ("recipe", 5),
    ("proof", 6),
    ("search", 6),
    ("agents", 7),
    ("optimize", 7),
    ("contest", 8),
    ("teaching", 8),
    ("cli", 10),
    ("lab", 10),
    ("python", 10),
];

/// The floor of the registry of compilers: above all that knows none of them, below all that puts
/// them together.
pub const REGISTRY: (&str, u32) = ("compilers", 9);

/// The compiler to which a crate belongs, if it belongs to one.
///
/// ```
/// use xla_gym_house::rooms::compiler_of;
///
/// assert_eq!(compiler_of("toy-worker"), Some("toy"));
/// assert_eq!(compiler_of("engine"), None);
/// ```
pub fn compiler_of(folder: &str) -> Option<&'static str> {
    let belongs = |name: &&str| {
        let rest = folder.strip_prefix(*name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    COMPILERS.into_iter().find(belongs)
}

/// The floor of a crate that belongs to no compiler.
pub fn floor_of(folder: &str) -> Option<u32> {
    FLOORS.into_iter().chain([REGISTRY]).find(|(name, _)| *name == folder).map(|(_, floor)| floor)
}

/// Whether no word about a compiler belongs in the crate. Experiments are made on a compiler, and
/// these rules have to name its words.
pub fn is_general(folder: &str) -> bool {
    compiler_of(folder).is_none() && !["compilers", "lab", "house"].contains(&folder)
}
