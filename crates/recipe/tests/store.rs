//! What a store keeps, and for how long.

mod common;

use std::{fs, path::Path, thread};

use common::{ENGINE, OBJECTIVE, best, id, open, open_with, place, recipe, verdict};
use rusqlite::Connection;
use xla_gym_oracle::{Difference, Precision, Verdict};
use xla_gym_recipe::{Doubt, FileError, Recipe, Store, StoreError, StoreLimit, VERSION};

#[test]
fn the_better_one_stays() {
    let (_folder, path) = place();
    let store = open(&path);
    assert_eq!((best(&store, 1), store.is_empty().unwrap()), (None, true));
    let (good, short, better) = (recipe(1, 1.5, 4), recipe(1, 1.5, 3), recipe(1, 1.6, 9));
    let cases = [
        (&good, true, &good),
        (&good, false, &good),
        (&recipe(1, 1.4, 1), false, &good),
        (&recipe(1, 1.5, 5), false, &good),
        (&short, true, &short),
        (&good, false, &short),
        (&better, true, &better),
        (&short, false, &better),
    ];
    for (offered, taken, expected) in cases {
        assert_eq!(store.offer(offered).unwrap(), taken, "{} {:?}", offered.gain, offered.passes);
        assert_eq!(best(&store, 1).as_ref(), Some(expected));
    }
    assert_eq!(store.len().unwrap(), 1);
    drop(store);
    assert_eq!(best(&open(&path), 1), Some(better), "it outlives the process");
}

#[test]
fn engines_and_objectives_are_apart() {
    let (_folder, path) = place();
    let store = open(&path);
    let usual = recipe(1, 2.0, 1);
    let other_engine = Recipe { engine: "xla 2".to_owned(), ..recipe(1, 1.5, 1) };
    let other_objective = Recipe { objective: "flops".to_owned(), ..recipe(1, 1.25, 1) };
    for offered in [&usual, &other_engine, &other_objective] {
        assert!(store.offer(offered).unwrap());
    }
    assert_eq!(best(&store, 1), Some(usual));
    assert_eq!(store.best(id(1), "xla 2", OBJECTIVE).unwrap(), Some(other_engine));
    assert_eq!(store.best(id(1), ENGINE, "flops").unwrap(), Some(other_objective));
    assert_eq!(store.best(id(1), "xla 2", "flops").unwrap(), None);
}

#[test]
fn a_program_is_forgotten_altogether() {
    let (_folder, path) = place();
    let store = open(&path);
    let other = Recipe { objective: "flops".to_owned(), ..recipe(1, 1.25, 1) };
    for offered in [recipe(1, 2.0, 1), other, recipe(2, 2.0, 1)] {
        assert!(store.offer(&offered).unwrap());
    }
    assert_eq!(store.forget(id(1)).unwrap(), 2);
    assert_eq!(store.forget(id(1)).unwrap(), 0);
    assert_eq!(store.list().unwrap(), [recipe(2, 2.0, 1)]);
    assert!(store.offer(&recipe(1, 1.0, 0)).unwrap(), "the best was forgotten too");
}

#[test]
fn the_list_has_one_order_whatever_the_order_of_offers() {
    let (_folder, path) = place();
    let (forth, back) = (open(&path), open(&path.with_file_name("back.db")));
    for number in 0..20 {
        forth.offer(&recipe(number, 1.5, 2)).unwrap();
        back.offer(&recipe(19 - number, 1.5, 2)).unwrap();
    }
    best(&forth, 7);
    let list = forth.list().unwrap();
    assert_eq!(list, back.list().unwrap());
    assert!(list.iter().map(|recipe| recipe.program.fingerprint).is_sorted());
    assert_eq!(list.len(), 20);
}

#[test]
fn what_is_not_believable_is_refused() {
    let (_folder, path) = place();
    let store = open(&path);
    let doubt = |recipe: &Recipe| match store.offer(recipe) {
        Err(StoreError::Doubtful { program, doubt }) => {
            assert_eq!(program, recipe.program.name);
            doubt
        }
        other => panic!("{other:?}"),
    };
    let with_verdict = |found: Verdict| {
        let mut recipe = recipe(1, 2.0, 1);
        recipe.evidence.outputs = verdict(found);
        recipe
    };
    let newer = Recipe { version: VERSION + 1, ..recipe(1, 2.0, 1) };
    assert_eq!(doubt(&newer), Doubt::Version { found: VERSION + 1 });
    for gain in [f64::NAN, f64::INFINITY, 0.999, -2.0] {
        assert!(matches!(doubt(&recipe(1, gain, 1)), Doubt::Gain { .. }), "{gain}");
    }
    let difference = Difference {
        precision: Precision::Own,
        output: 0,
        dtype: "f32".to_owned(),
        element: 0,
        expected: 1.0,
        got: 2.0,
        excess: 1e4,
        elements: 1,
    };
    let different = Verdict::Different { differences: vec![difference] };
    assert_eq!(doubt(&with_verdict(different)), Doubt::Different);
    let rejected = Verdict::Rejected { reason: "no".to_owned() };
    assert_eq!(doubt(&with_verdict(rejected)), Doubt::Rejected { reason: "no".to_owned() });
    let mut endless = recipe(1, 2.0, 1);
    endless.evidence.figures.insert("flops".to_owned(), (f64::INFINITY, 1.0));
    assert_eq!(doubt(&endless), Doubt::Figures);
    assert!(store.is_empty().unwrap());

    let reason = "random".to_owned();
    let not_comparable = with_verdict(Verdict::NotComparable { reason: reason.clone() });
    assert_eq!(doubt(&not_comparable), Doubt::Unproven { reason });
    let mut never_run = recipe(1, 2.0, 1);
    never_run.evidence.outputs = None;
    assert!(matches!(doubt(&never_run), Doubt::Unproven { .. }));
    assert!(store.is_empty().unwrap());

    let mut own = recipe(2, 1.0, 0);
    own.disabled_passes.clear();
    own.evidence.outputs = None;
    assert!(store.offer(&own).unwrap(), "the compiler's own order is a recipe");
}

#[test]
fn a_gain_is_believed_as_far_as_its_figures_say() {
    let (_folder, path) = place();
    let store = open(&path);
    let figures = |pairs: &[(&str, f64, f64)]| {
        pairs.iter().map(|&(name, default, result)| (name.to_owned(), (default, result))).collect()
    };
    let check = |objective: &str, pairs: &[(&str, f64, f64)], gain: f64, believed: bool| {
        let mut offered = Recipe { objective: objective.to_owned(), ..recipe(1, gain, 2) };
        offered.evidence.figures = figures(pairs);
        let kept = store.offer(&offered);
        assert_eq!(kept.is_ok(), believed, "{objective} {gain}: {kept:?}");
        if let Err(error) = kept {
            assert!(error.to_string().contains("its gain is"), "{error}");
        }
    };
    check("kernels", &[("kernels", 12.0, 6.0)], 2.0, true);
    check("kernels", &[("kernels", 12.0, 6.0)], 2.1, false);
    check("kernels", &[("kernels", 12.0, 6.0)], 1e300, false);
    check("kernels", &[("kernels", 1e300, 1.0)], 1e300, false);
    check("kernels", &[("kernels", 12.0, 0.0)], 1e5, false);
    check("kernels", &[("kernels", 12.0, 0.0)], 1e6, true);
    check("kernels", &[("kernels", -12.0, -6.0)], 2.0, false);
    check("kernels", &[("bytes", 12.0, 6.0)], 2.0, false);
    check("speed", &[("kernels", 12.0, 6.0)], 2.0, false);
    let both = [("kernels", 12.0, 6.0), ("bytes", 100.0, 100.0)];
    check("0.5*kernels+0.5*bytes", &both, 1.0 / 0.75, true);
    check("0.5*kernels+0.5*bytes", &both, 2.0, false);
    check("kernels,bytes", &both, 2f64.sqrt(), true);
    check("kernels,bytes", &both, 2.0, false);
    let nothing = [("kernels", 12.0, 0.0), ("bytes", 100.0, 300.0)];
    check("kernels,bytes", &nothing, 1e6, true);
    check("0.5*kernels+0.5*bytes", &nothing, 1e6, false);
    check("run-time", &[("kernels", 12.0, 6.0)], 2.0, false);
}

#[test]
fn the_least_recently_used_are_evicted() {
    let (_folder, path) = place();
    let store = open_with(&path, 3);
    for number in 0..3 {
        store.offer(&recipe(number, 2.0, 2)).unwrap();
    }
    // Uses of both kinds, even of an offer that is not taken. 2 is now the oldest, then 0.
    best(&store, 0);
    assert!(!store.offer(&recipe(1, 1.5, 2)).unwrap());
    assert!(store.offer(&recipe(3, 2.0, 2)).unwrap());
    let known = |store: &Store| -> Vec<u64> {
        let list = store.list().unwrap();
        let mut known: Vec<u64> =
            list.iter().map(|recipe| recipe.program.instructions - 100).collect();
        known.sort();
        known
    };
    assert_eq!(known(&store), [0, 1, 3]);
    store.offer(&recipe(4, 2.0, 2)).unwrap();
    assert_eq!(known(&store), [1, 3, 4]);
    drop(store);

    // A smaller limit takes effect with the next offer.
    let store = open_with(&path, 1);
    assert_eq!(store.len().unwrap(), 3);
    assert!(store.offer(&recipe(5, 2.0, 2)).unwrap());
    assert_eq!(known(&store), [5]);
    // What is taken is there, even if the limit makes no sense.
    let store = open_with(&path, 0);
    assert!(store.offer(&recipe(6, 2.0, 2)).unwrap());
    assert_eq!(known(&store), [6]);
}

#[test]
fn a_look_up_neither_fails_nor_waits_when_its_use_cannot_be_noted() {
    let (_folder, path) = place();
    let store = open(&path);
    for number in [1, 2] {
        store.offer(&recipe(number, 2.0, 2)).unwrap();
    }
    let blocker = Connection::open(&path).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = std::time::Instant::now();
    assert_eq!(best(&store, 1), Some(recipe(1, 2.0, 2)));
    assert_eq!(best(&open(&path), 1), Some(recipe(1, 2.0, 2)), "opening waits for nobody either");
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

#[test]
fn concurrent_offers_lose_nothing() {
    const PROGRAMS: u64 = 10;
    const ROUNDS: u64 = 10;
    let (_folder, path) = place();
    let shared = open(&path);
    // Four writers: two threads on one connection, two with connections of their own. Each offers
    // other gains, in another order, so that whoever overwrites the best unseen is caught.
    thread::scope(|scope| {
        for writer in 0..4 {
            let (shared, path) = (&shared, &path);
            scope.spawn(move || {
                let own = (writer >= 2).then(|| open(path));
                let store = own.as_ref().unwrap_or(shared);
                for step in 0..ROUNDS * PROGRAMS {
                    let round = (step / PROGRAMS * 7 + writer * 3) % ROUNDS;
                    let gain = 1.0 + (round * 4 + writer) as f64;
                    store.offer(&recipe(step % PROGRAMS, gain, 2)).unwrap();
                    // What only this writer knows must not get lost either.
                    let alone = 1000 + writer * 1000 + step;
                    assert!(store.offer(&recipe(alone, 2.0, 2)).unwrap());
                }
            });
        }
    });
    let greatest = 1.0 + ((ROUNDS - 1) * 4 + 3) as f64;
    for program in 0..PROGRAMS {
        assert_eq!(best(&shared, program), Some(recipe(program, greatest, 2)));
    }
    assert_eq!(shared.len().unwrap() as u64, PROGRAMS + 4 * ROUNDS * PROGRAMS);
}

#[test]
fn of_equal_offers_at_once_one_is_taken() {
    let (_folder, path) = place();
    let taken: usize = thread::scope(|scope| {
        let offer = || {
            let store = open(&path);
            (0..50).filter(|number| store.offer(&recipe(*number, 2.0, 2)).unwrap()).count()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(offer)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(taken, 50);
}

#[test]
fn a_broken_file_is_moved_aside() {
    for garbage in [b"no database".to_vec(), b"no database ".repeat(10_000)] {
        let (_folder, path) = place();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for number in 1..3 {
            fs::write(&path, &garbage).unwrap();
            let store = open(&path);
            let aside = path.with_file_name(format!("recipes.db.broken-{number}"));
            assert_eq!(store.moved_aside(), Some(aside.as_path()));
            assert_eq!(fs::read(aside).unwrap(), garbage);
            store.offer(&recipe(1, 2.0, 2)).unwrap();
            drop(store);
            let again = open(&path);
            assert_eq!((again.moved_aside(), best(&again, 1)), (None, Some(recipe(1, 2.0, 2))));
        }
    }
}

#[test]
fn a_file_cut_short_is_moved_aside_by_one_of_many() {
    let (_folder, path) = place();
    let store = open(&path);
    for number in 0..100 {
        store.offer(&recipe(number, 2.0, 2)).unwrap();
    }
    drop(store);
    fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let moved: usize = thread::scope(|scope| {
        let open_one = |thread: u64| {
            let store = open(&path);
            store.offer(&recipe(thread, 2.0, 2)).unwrap();
            usize::from(store.moved_aside().is_some())
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || open_one(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(moved, 1);
    assert_eq!(open(&path).len().unwrap(), 4);
}

#[test]
fn a_recipe_that_is_not_understood_can_be_forgotten() {
    let (_folder, path) = place();
    let store = open(&path);
    store.offer(&recipe(1, 2.0, 2)).unwrap();
    Connection::open(&path).unwrap().execute("UPDATE recipes SET body = '{}'", []).unwrap();
    let error = store.best(id(1), ENGINE, OBJECTIVE).unwrap_err().to_string();
    assert!(error.contains("recipes.db") && error.contains(&id(1).to_string()), "{error}");
    assert_eq!(store.forget(id(1)).unwrap(), 1);
    assert_eq!(best(&store, 1), None);
}

#[test]
fn what_is_no_file_of_ours_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |path: &Path| Store::open(path, StoreLimit::default()).err().unwrap();

    let error = fails(folder.path());
    assert!(matches!(error, StoreError::File(FileError::NotAFile { .. })));
    assert!(error.to_string().contains("name a file"), "{error}");
    assert!(matches!(fails(Path::new("/dev/null")), StoreError::File(FileError::NotAFile { .. })));
    assert!(matches!(fails(Path::new("")), StoreError::File(FileError::NotAFile { .. })));
    assert!(matches!(fails(Path::new("/proc/x/y")), StoreError::File(FileError::Folder { .. })));

    let foreign = folder.path().join("foreign");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE diary (page)").unwrap();
    let before = fs::read(&foreign).unwrap();
    let error = fails(&foreign);
    assert!(matches!(error, StoreError::File(FileError::Foreign { .. })));
    assert!(error.to_string().contains("foreign"), "{error}");
    assert_eq!(fs::read(&foreign).unwrap(), before, "it is left as it was");

    let newer = folder.path().join("newer");
    open(&newer).offer(&recipe(1, 2.0, 2)).unwrap();
    Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let before = fs::read(&newer).unwrap();
    let error = fails(&newer);
    assert!(matches!(error, StoreError::File(FileError::TooNew { found: 99, .. })));
    assert!(error.to_string().contains("use a newer version"), "{error}");
    assert_eq!(fs::read(&newer).unwrap(), before, "it is left as it was");
}
