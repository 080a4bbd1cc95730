//! A user's own graphs: a file, a folder, or a folder of XLA's dumps.

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

/// How names of program files end (also with `.gz` or `.zst` behind).
const ENDINGS: [&str; 7] = [".hlo", ".txt", ".pb", ".mlir", ".mlirbc", ".bc", ".toy"];

/// The marker of XLA's dump of a module as the framework emitted it.
const BEFORE: &str = "before_optimizations";

/// The program files that a path stands for: itself, or those in a folder. In a folder that XLA
/// dumped into, only the modules before optimisation count.
pub fn find_programs(path: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    if !fs::metadata(path)?.is_dir() {
        found.programs.push(path.to_owned());
        return Ok(found);
    }
    let mut files: Vec<PathBuf> =
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.sort();
    let is_dump = files.iter().any(|file| name(file).contains(BEFORE));
    let mut modules: Vec<String> = Vec::new();
    for file in files {
        let name = name(&file);
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        if file.is_dir() {
            found.skipped.push((file, "a folder"));
        } else if !ENDINGS.iter().any(|ending| plain.ends_with(ending)) {
            found.skipped.push((file, "the name is not that of a program file"));
        } else if is_dump && !plain.contains(BEFORE) {
            found.skipped.push((file, "not a module before optimisation"));
        } else {
            // XLA may dump one module as text and as proto; the first that comes is enough.
            let module = plain.split(BEFORE).next().unwrap_or_default().to_owned();
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

    fn check(files: &[&str], expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(folder.path().join(file), "x").unwrap();
        }
        let found = find_programs(folder.path()).unwrap();
        let names: Vec<String> = found.programs.iter().map(|path| name(path)).collect();
        assert_eq!(names, expected);
        assert_eq!(names.len() + found.skipped.len(), files.len());
    }

    #[test]
    fn a_folder_gives_its_programs() {
        check(&["b.hlo", "a.pb.zst", "notes.md", "c.mlir"], &["a.pb.zst", "b.hlo", "c.mlir"]);
    }

    #[test]
    fn a_dump_gives_the_modules_before_optimisation() {
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
