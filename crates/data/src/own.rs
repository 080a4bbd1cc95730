//! A user's own graphs: a file, a folder, or a folder of a compiler's dumps.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// What was found, and what was passed over.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// Program files, in order.
    pub programs: Vec<PathBuf>,
    /// Files that were passed over, with the reason.
    pub skipped: Vec<(PathBuf, &'static str)>,
}

/// Which files of a folder hold programs of a compiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// How their names end, without the dot; also with `.gz` or `.zst` behind. Any, if none is named.
    pub endings: &'static [&'static str],
    /// What stands in the names of programs as they came, in a folder into which the compiler dumped
    /// programs from all over its pipeline.
    pub dump_marker: Option<&'static str>,
}

impl Files {
    fn is_program(&self, name: &str) -> bool {
        let ends =
            |ending: &&str| name.strip_suffix(*ending).is_some_and(|stem| stem.ends_with('.'));
        self.endings.is_empty() || self.endings.iter().any(ends)
    }
}

/// The program files that a path stands for: itself, or those in a folder. In a folder into which a
/// compiler dumped, only programs as they came count.
pub fn find_programs(path: &Path, files: &Files) -> io::Result<Found> {
    let mut found = Found::default();
    if !fs::metadata(path)?.is_dir() {
        found.programs.push(path.to_owned());
        return Ok(found);
    }
    let mut all: Vec<PathBuf> =
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    all.sort();
    let marks = |name: &str| files.dump_marker.is_some_and(|marker| name.contains(marker));
    let is_dump = all.iter().any(|file| marks(&name(file)));
    let mut modules: Vec<String> = Vec::new();
    for file in all {
        let name = name(&file);
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        if file.is_dir() {
            found.skipped.push((file, "a folder"));
        } else if !files.is_program(plain) {
            found.skipped.push((file, "the name is not that of a program file"));
        } else if is_dump && !marks(plain) {
            found.skipped.push((file, "not a program before optimization"));
        } else {
            // One program may be dumped in several forms; the first that comes is enough.
            let module = plain
                .split(files.dump_marker.unwrap_or("\0"))
                .next()
                .unwrap_or_default()
                .to_owned();
            if is_dump && modules.contains(&module) {
                found.skipped.push((file, "the same module in another form"));
                continue;
            }
            modules.push(module);
            found.programs.push(file);
        }
    }
    Ok(found)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: Files =
        Files { endings: &["hlo", "pb", "txt", "mlir"], dump_marker: Some("before_optimizations") };

    fn check(files: &[&str], expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(folder.path().join(file), "x").unwrap();
        }
        let found = find_programs(folder.path(), &FILES).unwrap();
        let names: Vec<String> = found.programs.iter().map(|path| name(path)).collect();
        assert_eq!(names, expected);
        assert_eq!(names.len() + found.skipped.len(), files.len());
    }

    #[test]
    fn a_folder_gives_its_programs() {
        check(&["b.hlo", "a.pb.zst", "notes.md", "c.mlir"], &["a.pb.zst", "b.hlo", "c.mlir"]);
    }

    #[test]
    fn a_dump_gives_the_programs_before_optimization() {
        check(
            &[
                "module_0001.jit_f.before_optimizations.hlo.pb",
                "module_0001.jit_f.before_optimizations.txt",
                "module_0001.jit_f.cpu_after_optimizations.txt",
                "module_0002.jit_g.before_optimizations.txt",
            ],
            &[
                "module_0001.jit_f.before_optimizations.hlo.pb",
                "module_0002.jit_g.before_optimizations.txt",
            ],
        );
    }
}
