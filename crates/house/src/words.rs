//! Which crate may know a compiler.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::rooms::is_general;

/// What only a compiler's own crates may speak of, in small letters; parts of words count too.
pub const WORDS: [&str; 5] = ["xla", "hlo", "layout", "kernel", "legal"];

/// What has nothing to do with a compiler: the product's own name, and how processors and systems
/// refuse something.
const NEUTRAL: [&str; 4] = ["xla gym", "xla_gym", "xla-gym", "illegal"];

/// How many places of a crate are named at most.
const NAMED: usize = 12;

/// A file with what may still stand in the crates, beside this crate's manifest.
pub const CEILINGS: &str = "crates/house/ceilings.toml";

/// How often a word may stand in a crate: by crate, then by word. What is not there may not stand.
pub type Ceilings = BTreeMap<String, BTreeMap<String, usize>>;

/// A word and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The crate's folder.
    pub room: String,
    /// Which word.
    pub word: &'static str,
    /// In which file, seen from the workspace.
    pub file: PathBuf,
    /// In which line, from 1.
    pub line: usize,
}

/// Every place of a word in what general crates are built from.
pub fn find(workspace: &Path) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for folder in sorted(&workspace.join("crates"))? {
        let room = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_general(&room) && folder.join("src").is_dir() {
            find_below(workspace, &room, &folder.join("src"), &mut places)?;
        }
    }
    Ok(places)
}

fn find_below(workspace: &Path, room: &str, path: &Path, places: &mut Vec<Place>) -> Result<()> {
    if path.is_dir() {
        return sorted(path)?.iter().try_for_each(|path| find_below(workspace, room, path, places));
    }
    let text = fs::read(path).with_context(|| path.display().to_string())?;
    for (index, line) in without_tests(&String::from_utf8_lossy(&text)) {
        let line = without_neutral(line);
        for word in WORDS {
            let file = path.strip_prefix(workspace).unwrap_or(path);
            let place =
                || Place { room: room.to_owned(), word, file: file.to_owned(), line: index + 1 };
            places.extend(line.matches(word).map(|_| place()));
        }
    }
    Ok(())
}

/// The lines of a file with their places, without what is only there for tests: those may meet real
/// compilers. An item ends where `rustfmt` puts its end, in the column where it begins.
fn without_tests(text: &str) -> Vec<(usize, &str)> {
    let mut kept = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push((index, line));
            continue;
        }
        let column = line.len() - line.trim_start().len();
        let ends = |line: &str| {
            let at = line.len() - line.trim_start().len();
            at == column && (line.trim() == "}" || line.ends_with(';') || line.ends_with("{}"))
        };
        lines.by_ref().find(|(_, line)| ends(line));
    }
    kept
}

/// A line in small letters, without what is neutral.
fn without_neutral(line: &str) -> String {
    NEUTRAL.iter().fold(line.to_lowercase(), |line, name| line.replace(name, "·"))
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// How often each word stands in each crate.
pub fn count(places: &[Place]) -> Ceilings {
    let mut counts = Ceilings::new();
    for place in places {
        *counts.entry(place.room.clone()).or_default().entry(place.word.to_owned()).or_default() +=
            1;
    }
    counts
}

/// What stands above its ceiling, a paragraph for each crate and word.
pub fn check(places: &[Place], ceilings: &Ceilings) -> Vec<String> {
    let mut wrong = Vec::new();
    for (room, words) in count(places) {
        for (word, count) in words {
            let ceiling = ceiling(ceilings, &room, &word);
            if count <= ceiling {
                continue;
            }
            let here = places.iter().filter(|place| place.room == room && place.word == word);
            let mut lines: Vec<String> =
                here.map(|place| format!("  {}:{}", place.file.display(), place.line)).collect();
            lines.dedup();
            let more = lines.len().saturating_sub(NAMED);
            lines.truncate(NAMED);
            if more > 0 {
                lines.push(format!("  and {more} more lines"));
            }
            wrong.push(format!(
                "crates/{room} is general and has {word:?} {count} times, where {ceiling} are \
                 allowed. Move what knows a compiler to that compiler's crate, and let this one take \
                 it by name or as an argument; or say it in words that hold for every compiler:\n{}",
                lines.join("\n")
            ));
        }
    }
    wrong
}

fn ceiling(ceilings: &Ceilings, room: &str, word: &str) -> usize {
    ceilings.get(room).and_then(|words| words.get(word)).copied().unwrap_or(0)
}

/// Reads the file of ceilings.
pub fn ceilings(workspace: &Path) -> Result<Ceilings> {
    let text = fs::read_to_string(workspace.join(CEILINGS)).context(CEILINGS)?;
    let table: toml::Table = text.parse().context(CEILINGS)?;
    table
        .into_iter()
        .map(|(room, words)| {
            let words = words.as_table().context("a crate has a table of words")?.iter();
            let words = words.map(|(word, count)| {
                let count = count.as_integer().and_then(|count| usize::try_from(count).ok());
                Ok((word.clone(), count.with_context(|| format!("{room}.{word} is no count"))?))
            });
            Ok((room.clone(), words.collect::<Result<_>>()?))
        })
        .collect()
}

/// Ceilings that are no higher than before, and no higher than today's counts.
pub fn lowered(places: &[Place], before: &Ceilings) -> Ceilings {
    let mut counts = count(places);
    for (room, words) in &mut counts {
        for (word, count) in &mut *words {
            *count = ceiling(before, room, word).min(*count);
        }
        words.retain(|_, count| *count > 0);
    }
    counts.retain(|_, words| !words.is_empty());
    counts
}

/// The file's text.
pub fn write(ceilings: &Ceilings) -> String {
    let mut out = "# How often words about a compiler still stand in crates that should know none. These only \
                   fall:\n# `cargo run -p xla-gym-house` lowers them to what is there.\n"
        .to_owned();
    for (room, words) in ceilings {
        out += &format!("\n[{room}]\n");
        for (word, count) in words {
            out += &format!("{word} = {count}\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of files, each in a crate.
    fn planted(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join("crates").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn a_planted_word_is_found_wherever_it_hides() {
        let tree = planted(&[
            ("engine/src/lib.rs", "//! XLA Gym's engine, illegally.\nuse xla_gym_protocol as p;\n"),
            ("engine/src/deep/er/page.html", "<p>\nLegalised\n"),
            (
                "env/src/lib.rs",
                "const WORKER: &str = \"xla-gym-worker-xla\";\n// Kernels, HloModule\n",
            ),
            ("xla-worker/src/main.rs", "// XLA's own layout.\n"),
            ("lab/src/main.rs", "// XLA\n"),
            ("engine/tests/xla.rs", "// XLA\n"),
        ]);
        let places = find(tree.path()).unwrap();
        let found: Vec<_> = places
            .iter()
            .map(|place| (place.word, place.file.to_str().unwrap(), place.line))
            .collect();
        let expected = [
            ("legal", "crates/engine/src/deep/er/page.html", 2),
            ("xla", "crates/env/src/lib.rs", 1),
            ("hlo", "crates/env/src/lib.rs", 2),
            ("kernel", "crates/env/src/lib.rs", 2),
        ];
        assert_eq!(found, expected);

        let wrong = check(&places, &Ceilings::new());
        assert_eq!(wrong.len(), 4);
        assert!(wrong[0].contains("crates/engine/src/deep/er/page.html:2"), "{}", wrong[0]);
        assert!(wrong[0].contains("Move what knows a compiler"), "{}", wrong[0]);
    }

    #[test]
    fn tests_may_meet_compilers_and_what_follows_them_may_not() {
        let tree = planted(&[(
            "env/src/lib.rs",
            "#[cfg(test)]\nmod more;\n// xla\n#[cfg(test)]\nfn try_it() {\n    let hlo = {\n    };\n}\n\
             fn legal() {}\n#[cfg(test)]\nmod tests {\n    use xla;\n}\n",
        )]);
        let places = find(tree.path()).unwrap();
        let found: Vec<_> = places.iter().map(|place| (place.word, place.line)).collect();
        assert_eq!(found, [("xla", 3), ("legal", 9)]);
    }

    #[test]
    fn counts_only_fall() {
        let tree = planted(&[("env/src/lib.rs", "// XLA, xla\n// hlo\n")]);
        let places = find(tree.path()).unwrap();
        let table = |xla, hlo| {
            let words = [("hlo".to_owned(), hlo), ("xla".to_owned(), xla)];
            Ceilings::from([("env".to_owned(), BTreeMap::from(words))])
        };
        assert_eq!(check(&places, &table(2, 1)), [""; 0]);
        let wrong = check(&places, &table(1, 1));
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].contains("\"xla\" 2 times, where 1"), "{}", wrong[0]);
        assert_eq!(lowered(&places, &table(7, 1)), table(2, 1));
        let kept = lowered(&places, &table(1, 0));
        assert_eq!(write(&kept).lines().skip(3).collect::<Vec<_>>(), ["[env]", "xla = 1"]);
    }

    #[test]
    fn ceilings_come_back_as_they_were_written() {
        let tree = planted(&[("house/ceilings.toml", "[env]\nxla = -1\n")]);
        assert!(ceilings(tree.path()).is_err());
        let table = Ceilings::from([("a-b".to_owned(), BTreeMap::from([("xla".to_owned(), 3)]))]);
        fs::write(tree.path().join(CEILINGS), write(&table)).unwrap();
        assert_eq!(ceilings(tree.path()).unwrap(), table);
    }
}
