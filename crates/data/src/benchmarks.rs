//! From a line that a person types to programs that can be loaded.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use glob::Pattern;
use xla_gym_engine::{Source, SourceError};

use crate::{
    library::{Library, LibraryError},
    manifest::{Baseline, Graph, Side, Split},
    own::{Files, find_programs},
};

/// A program to work on: a graph of the data set, a file, or a text in memory.
#[derive(Clone, Debug)]
pub enum Benchmark {
    /// A graph of the data set.
    Graph(&'static Graph),
    /// A user's own file.
    File(PathBuf),
    /// A program that no file holds.
    Memory(Source),
}

impl Benchmark {
    /// The id, or the path.
    pub fn name(&self) -> String {
        match self {
            Benchmark::Graph(graph) => graph.id.clone(),
            Benchmark::File(path) => path.display().to_string(),
            Benchmark::Memory(source) => source.name.to_string(),
        }
    }

    /// The program itself.
    pub fn source(&self) -> Result<Source, BenchmarkError> {
        Ok(match self {
            Benchmark::Graph(graph) => Library::of_id(&graph.id)?.source(graph)?,
            Benchmark::File(path) => Source::read(path)?,
            Benchmark::Memory(source) => source.clone(),
        })
    }

    /// The splits of which it is on the test side; a user's own program is of the split `own`.
    pub fn test_splits(&self) -> Vec<String> {
        match self {
            Benchmark::Graph(graph) => {
                let tested = graph.splits.iter().filter(|(_, side)| **side == Side::Test);
                tested.map(|(split, _)| split.to_string()).collect()
            }
            _ => vec!["own".to_owned()],
        }
    }

    /// What the compiler's own pipeline makes of it, where the manifest says.
    pub fn baseline(&self) -> Option<&'static Baseline> {
        match self {
            Benchmark::Graph(graph) => graph.default.as_ref().ok(),
            _ => None,
        }
    }
}

/// Why a program cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BenchmarkError {
    /// The data set has no such graph.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Nothing is there.
    #[error("{spec:?} stands for no program{}", reasons(skipped))]
    Nothing {
        /// As typed.
        spec: String,
        /// What was looked at.
        skipped: Vec<Skipped>,
    },
    /// The pattern is none.
    #[error("{spec:?} is no pattern: {reason}")]
    Pattern {
        /// As typed.
        spec: String,
        /// Why.
        reason: String,
    },
}

/// A file that was passed over.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Which.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

fn reasons(skipped: &[Skipped]) -> String {
    match skipped {
        [] => {
            "; name an id of `xla-gym data list`, hlo-v1:SPLIT/SIDE, a file, a folder or a pattern"
                .to_owned()
        }
        [only] => format!(" ({only})"),
        [first, ..] => format!(" ({} files were passed over; {first})", skipped.len()),
    }
}

/// What a line stands for.
#[derive(Clone, Debug, Default)]
pub struct Benchmarks {
    /// The programs, in a fixed order.
    pub programs: Vec<Benchmark>,
    /// What was passed over.
    pub skipped: Vec<Skipped>,
}

impl Benchmarks {
    /// Finds programs. Each spec is one of
    /// - an id of a data set, or a pattern of ids: `hlo-v1/gpt2/*`, `hlo-v1`, `hlo-full-v1`;
    /// - a side of a split: `hlo-v1:gpt2/train`, `hlo-v1:unseen/test`; `hlo-v1:all/train` is what
    ///   is on no split's test side, `hlo-v1:all/test` the rest;
    /// - a file, a pattern of files, or a folder. In a folder that a compiler dumped into, the programs
    ///   before optimisation count.
    pub fn find<S: AsRef<str>>(
        specs: impl IntoIterator<Item = S>,
    ) -> Result<Benchmarks, BenchmarkError> {
        Benchmarks::find_files(specs, &Files::default())
    }

    /// The same, where folders are looked through for a compiler's files.
    pub fn find_files<S: AsRef<str>>(
        specs: impl IntoIterator<Item = S>,
        files: &Files,
    ) -> Result<Benchmarks, BenchmarkError> {
        let mut all = Benchmarks::default();
        for spec in specs {
            let spec = spec.as_ref();
            let mut found = find_one(spec, files)?;
            if found.programs.is_empty() {
                return Err(BenchmarkError::Nothing {
                    spec: spec.to_owned(),
                    skipped: found.skipped,
                });
            }
            all.programs.append(&mut found.programs);
            all.skipped.append(&mut found.skipped);
        }
        Ok(all)
    }
}

fn find_one(spec: &str, files: &Files) -> Result<Benchmarks, BenchmarkError> {
    let path = Path::new(spec);
    if spec == "-" || path.exists() {
        return in_path(path, files);
    }
    if let Some((name, side)) = spec.split_once(':')
        && let Some(library) = Library::named(name)?
    {
        return side_of_split(library, side)
            .ok_or_else(|| BenchmarkError::Nothing { spec: spec.to_owned(), skipped: Vec::new() });
    }
    let is_pattern = spec.contains(['*', '?', '[']);
    if let Some(library) = Library::named(spec)? {
        let graphs = library.manifest().graphs.iter().map(Benchmark::Graph).collect();
        return Ok(Benchmarks { programs: graphs, skipped: Vec::new() });
    }
    if Library::is_id(spec) {
        let library = Library::of_id(spec)?;
        let graphs: Vec<Benchmark> = if is_pattern {
            let pattern = Pattern::new(spec).map_err(|error| no_pattern(spec, &error))?;
            let graphs = library.manifest().graphs.iter();
            graphs.filter(|graph| pattern.matches(&graph.id)).map(Benchmark::Graph).collect()
        } else {
            vec![Benchmark::Graph(library.graph(spec)?)]
        };
        return Ok(Benchmarks { programs: graphs, skipped: Vec::new() });
    }
    if !is_pattern {
        return Err(Source::read(path).map(drop).err().map_or_else(
            || BenchmarkError::Nothing { spec: spec.to_owned(), skipped: Vec::new() },
            BenchmarkError::from,
        ));
    }
    let mut found = Benchmarks::default();
    for path in glob::glob(spec).map_err(|error| no_pattern(spec, &error))? {
        match path {
            Ok(path) if path.is_dir() => {
                found.skipped.push(Skipped { name: display(&path), reason: "a folder".to_owned() });
            }
            Ok(path) => found.programs.push(Benchmark::File(path)),
            Err(error) => found
                .skipped
                .push(Skipped { name: display(error.path()), reason: error.error().to_string() }),
        }
    }
    Ok(found)
}

fn in_path(path: &Path, files: &Files) -> Result<Benchmarks, BenchmarkError> {
    if path == Path::new("-") {
        return Ok(Benchmarks {
            programs: vec![Benchmark::Memory(Source::read(path)?)],
            skipped: Vec::new(),
        });
    }
    let found = find_programs(path, files)
        .map_err(|error| SourceError::Read { path: path.to_owned(), error })?;
    Ok(Benchmarks {
        programs: found.programs.into_iter().map(Benchmark::File).collect(),
        skipped: found
            .skipped
            .into_iter()
            .map(|(path, reason)| Skipped { name: display(&path), reason: reason.to_owned() })
            .collect(),
    })
}

/// `gpt2/train`
fn side_of_split(library: &'static Library, text: &str) -> Option<Benchmarks> {
    let (split, side) = text.split_once('/')?;
    if split == "all" && (side == "train" || side == "test") {
        let tests = |graph: &Graph| graph.splits.values().any(|side| *side == Side::Test);
        let graphs = library.manifest().graphs.iter();
        let graphs = graphs.filter(|graph| tests(graph) == (side == "test"));
        return Some(Benchmarks {
            programs: graphs.map(Benchmark::Graph).collect(),
            skipped: Vec::new(),
        });
    }
    let split = Split::ALL.into_iter().find(|known| known.to_string() == split)?;
    let side = [Side::Train, Side::Test].into_iter().find(|known| known.to_string() == side)?;
    let manifest = library.manifest();
    Some(Benchmarks {
        programs: manifest.side(split, side).map(Benchmark::Graph).collect(),
        skipped: Vec::new(),
    })
}

fn no_pattern(spec: &str, error: &glob::PatternError) -> BenchmarkError {
    BenchmarkError::Pattern { spec: spec.to_owned(), reason: error.msg.to_owned() }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: Files = Files { endings: &["hlo", "txt"], dump_marker: None };

    #[test]
    fn what_is_trained_on_is_on_no_test_side() {
        let names = |spec: &str| -> Vec<String> {
            Benchmarks::find([spec]).unwrap().programs.iter().map(Benchmark::name).collect()
        };
        let (train, test) = (names("hlo-v1:all/train"), names("hlo-v1:all/test"));
        assert_eq!(train.len() + test.len(), names("hlo-v1").len());
        for split in Split::HLO_V1 {
            for name in names(&format!("hlo-v1:{split}/test")) {
                assert!(test.contains(&name) && !train.contains(&name), "{name}");
            }
        }
    }

    fn count(spec: &str) -> usize {
        Benchmarks::find([spec]).unwrap().programs.len()
    }

    fn error(spec: &str) -> String {
        Benchmarks::find([spec]).unwrap_err().to_string()
    }

    #[test]
    fn ids_patterns_and_sides_stand_for_graphs() {
        let manifest = Library::hlo_v1().unwrap().manifest();
        assert_eq!(count("hlo-v1"), manifest.graphs.len());
        assert_eq!(count(&manifest.graphs[0].id), 1);
        let gpt2 = manifest.graphs.iter().filter(|graph| graph.family == "gpt2").count();
        assert_eq!(count("hlo-v1/gpt2/*"), gpt2);
        let train = manifest.side(Split::Gpt2, Side::Train).count();
        assert_eq!(count("hlo-v1:gpt2/train"), train);
        assert_eq!(count("hlo-full-v1:all/test"), count("hlo-full-v1"));
        assert_eq!(count("hlo-full-v1:full-size/test"), count("hlo-full-v1/*"));
    }

    #[test]
    fn a_folder_or_a_pattern_stands_for_its_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.hlo", "b.hlo", "c.txt", "notes.md"] {
            std::fs::write(folder.path().join(name), "HloModule m").unwrap();
        }
        let path = [folder.path().to_str().unwrap()];
        let found = Benchmarks::find_files(path, &FILES).unwrap();
        assert_eq!((found.programs.len(), found.skipped.len()), (3, 1));
        assert_eq!(Benchmarks::find(path).unwrap().programs.len(), 4, "any, if nobody says which");
        assert_eq!(count(&format!("{}/*.hlo", folder.path().display())), 2);
    }

    #[test]
    fn what_stands_for_nothing_is_an_error_that_says_why() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("notes.md"), "no program").unwrap();
        let path = folder.path().display().to_string();
        let none = Benchmarks::find_files([&path], &FILES).unwrap_err().to_string();
        assert!(none.contains("not that of a program file"), "{none}");
        assert!(error(&format!("{path}/*.hlo")).contains("stands for no program"));
        assert!(error(&format!("{path}/none.hlo")).contains("none.hlo"));
        assert!(error("hlo-v1/gpt2/none").contains("there is no graph"));
        assert!(error("hlo-v1:gpt3/train").contains("SPLIT/SIDE"));
        assert!(error("hlo-v1/[").contains("is no pattern"));
    }
}
