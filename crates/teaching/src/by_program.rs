//! Orders, program by program, on all cores.

use std::{collections::BTreeMap, ops::Range, path::Path, sync::Mutex};

use xla_gym_agents::Demonstration;
use xla_gym_common::{lock, on_all_cores};
use xla_gym_env::EnvError;
use xla_gym_proof::{Options, Prover};
use xla_gym_rows::{Appender, RowsError, read, read_if_any};

use crate::{Setting, TeachError, program::Program};

/// Reads orders from files, always in the same order, whichever search was done first.
pub(crate) fn read_sorted(files: &[&Path]) -> Result<Vec<Demonstration>, TeachError> {
    let mut orders: Vec<Demonstration> = Vec::new();
    for file in files {
        orders.extend(read::<Demonstration>(file)?);
    }
    orders.sort_by(|a, b| {
        let key = |order: &Demonstration| (order.benchmark.clone(), order.start.clone());
        key(a).cmp(&key(b)).then_with(|| (&a.after, &a.passes).cmp(&(&b.after, &b.passes)))
    });
    Ok(orders)
}

/// Does something with each order and adds it to a file, in the order in which they are given. Those
/// in the file already are done. Returns all of the file.
pub(crate) fn by_program(
    orders: &[Demonstration],
    output: &Path,
    trials: u32,
    setting: &Setting<'_>,
    work: impl Fn(&Program<'_>, &Prover, &Demonstration) -> Result<Demonstration, EnvError> + Sync,
) -> Result<Vec<Demonstration>, TeachError> {
    let done: Vec<Demonstration> = read_if_any(output)?;
    let same = |(done, order): (&Demonstration, &Demonstration)| {
        (&done.benchmark, &done.start, &done.after)
            == (&order.benchmark, &order.start, &order.after)
    };
    if done.len() > orders.len() || !done.iter().zip(orders).all(same) {
        return Err(TeachError::config(format!(
            "{} was made from other orders: remove it, or name another file",
            output.display()
        )));
    }
    let file = Mutex::new(InOrder {
        file: Appender::open(output)?,
        next: done.len(),
        waiting: BTreeMap::new(),
    });
    let groups = groups(orders, done.len());
    setting.watch.counting((orders.len() - done.len()) as u64, "orders");
    on_all_cores(groups.len(), |group| {
        let group = groups[group].clone();
        let name = &orders[group.start].benchmark;
        let program = Program::new(&setting.profile, &setting.engine, name);
        let prover = Prover::new(Options { trials, ..Options::default() });
        for number in group {
            setting.go_on()?;
            let order = work(&program, &prover, &orders[number]).map_err(TeachError::of(name))?;
            lock(&file).put(number, order)?;
            setting.watch.advance();
        }
        Ok::<(), TeachError>(())
    })?;
    Ok(read(output)?)
}

/// Orders of one program each, from a place on.
fn groups(orders: &[Demonstration], from: usize) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut begin = from;
    for end in from + 1..=orders.len() {
        if orders.get(end).is_none_or(|order| order.benchmark != orders[begin].benchmark) {
            groups.push(begin..end);
            begin = end;
        }
    }
    groups
}

/// A file whose rows stand in the order of their numbers, whatever is done first.
struct InOrder {
    file: Appender,
    next: usize,
    waiting: BTreeMap<usize, Demonstration>,
}

impl InOrder {
    fn put(&mut self, number: usize, order: Demonstration) -> Result<(), RowsError> {
        self.waiting.insert(number, order);
        while let Some(order) = self.waiting.remove(&self.next) {
            self.file.add(&order)?;
            self.next += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering};

    use xla_gym_profile::Profile;
    use xla_gym_xla_profile::Xla;

    use super::*;
    use crate::program::demonstration;

    #[test]
    fn what_is_in_the_file_is_done_and_the_rest_follows_in_order() {
        let orders: Vec<Demonstration> =
            ["a", "a", "b", "c", "c"].map(|name| demonstration(name, &["x"])).to_vec();
        assert_eq!(groups(&orders, 0), [0..2, 2..3, 3..5]);
        assert_eq!(groups(&orders, 1), [1..2, 2..3, 3..5]);
        assert!(groups(&orders, 5).is_empty());
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.jsonl");
        let profile: Arc<dyn Profile> = Arc::new(Xla::default());
        let engine = profile.engine_config().unwrap();
        let setting = Setting { profile, engine, stop: Arc::default(), watch: &() };
        let calls = AtomicUsize::new(0);
        let run = |orders: &[Demonstration], fails: &str| {
            by_program(orders, &output, 1, &setting, |_, _, order| {
                if order.benchmark == fails {
                    return Err(EnvError::Config("as it should".to_owned()));
                }
                calls.fetch_add(1, Ordering::Relaxed);
                Ok(Demonstration { operations: 7, ..order.clone() })
            })
        };
        let error = run(&orders, "b").unwrap_err().to_string();
        assert!(error.contains("b: as it should"), "{error}");
        // Those of "c" may have been done, but do not stand before "b".
        assert_eq!(read::<Demonstration>(&output).unwrap().len(), 2);
        calls.store(0, Ordering::Relaxed);
        let all = run(&orders, "").unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        assert_eq!(all.iter().map(|order| &*order.benchmark).collect::<String>(), "aabcc");
        let error = run(&orders[1..], "").unwrap_err().to_string();
        assert!(error.contains("other orders"), "{error}");
    }
}
