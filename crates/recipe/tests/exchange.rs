//! Recipes between stores.

mod common;

use std::io::{self, BufReader, Read};

use common::{best, open, place, recipe};
use xla_gym_recipe::{Imported, Recipe, Store, StoreError};

fn lines(recipes: &[Recipe]) -> String {
    recipes.iter().map(|recipe| serde_json::to_string(recipe).unwrap() + "\n").collect()
}

#[test]
fn what_is_written_out_comes_back_the_same() {
    let (_folder, path) = place();
    let (from, to) = (open(&path), open(&path.with_file_name("to.db")));
    // Gains of all kinds, for many numbers are hard to read back to the last bit.
    for number in 0..300_u64 {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12;
        from.offer(&recipe(number, f64::from_bits(mixed | 0x3ff0 << 48), 2)).unwrap();
    }
    let mut text = Vec::new();
    assert_eq!(from.export(&mut text).unwrap(), 300);
    let all = Imported { offered: 300, taken: 300, refused: vec![] };
    assert_eq!(to.import(&*text).unwrap(), all);
    let imported: Vec<Recipe> = from
        .list()
        .unwrap()
        .into_iter()
        .map(|recipe| Recipe { imported: true, ..recipe })
        .collect();
    assert_eq!(to.list().unwrap(), imported);

    let mut again = Vec::new();
    to.export(&mut again).unwrap();
    assert!(text == again, "to the byte");
    assert_eq!(to.import(&*text).unwrap(), Imported { taken: 0, ..all }, "nothing beats itself");
    assert_eq!(to.list().unwrap(), imported);
}

#[test]
fn stores_merge_to_the_best_of_both_whatever_comes_first() {
    let (_folder, path) = place();
    let (one, two) = (open(&path), open(&path.with_file_name("two.db")));
    for offered in [recipe(1, 2.0, 2), recipe(2, 1.2, 2), recipe(3, 1.5, 2)] {
        one.offer(&offered).unwrap();
    }
    for offered in [recipe(1, 1.1, 2), recipe(2, 3.0, 2), recipe(4, 1.5, 2)] {
        two.offer(&offered).unwrap();
    }
    let (mut from_one, mut from_two) = (Vec::new(), Vec::new());
    one.export(&mut from_one).unwrap();
    two.export(&mut from_two).unwrap();
    let merged = one.import(&*from_two).unwrap();
    assert_eq!(merged, Imported { offered: 3, taken: 2, refused: vec![] });
    two.import(&*from_one).unwrap();
    let gains_of = |store: &Store| -> Vec<f64> {
        store.list().unwrap().iter().map(|recipe| recipe.gain).collect()
    };
    assert_eq!(gains_of(&one), gains_of(&two));
    let gains = [1, 2, 3, 4].map(|program| best(&one, program).unwrap().gain);
    assert_eq!(gains, [2.0, 3.0, 1.5, 1.5]);
}

#[test]
fn what_came_from_elsewhere_gives_way_to_what_was_tried_here() {
    let (_folder, path) = place();
    let store = open(&path);
    assert!(store.offer(&recipe(1, 1.5, 2)).unwrap());
    let absurd = Recipe { gain: 1e300, ..recipe(1, 2.0, 2) };
    let text = lines(&[absurd, recipe(1, 1.4, 1), recipe(1, 900.0, 2)]);
    let imported = store.import(text.as_bytes()).unwrap();
    assert_eq!((imported.offered, imported.taken, imported.refused.len()), (2, 1, 1));
    assert!(imported.refused[0].1.contains("gain is 1"), "{:?}", imported.refused);
    let known = best(&store, 1).unwrap();
    assert_eq!((known.gain, known.imported), (900.0, true), "it is worth a try");

    // The search that tried it found this.
    assert!(store.offer(&recipe(1, 1.5, 2)).unwrap());
    assert_eq!(best(&store, 1), Some(recipe(1, 1.5, 2)));
    assert!(!store.offer(&recipe(1, 1.4, 2)).unwrap(), "of those tried here the better one stays");
}

#[test]
fn a_bad_line_is_reported_and_passed_over() {
    let (_folder, path) = place();
    let store = open(&path);
    let newer = Recipe { version: 7, ..recipe(9, 2.0, 1) };
    let mut text = lines(&[recipe(1, 2.0, 1)]).into_bytes();
    text.extend(b"not json\n\n  \r\n\xff\xfe\n{\"version\": 1}\n{\"version\": 3, \"new\": {}}\n");
    text.extend(lines(&[newer, recipe(8, 0.5, 1)]).into_bytes());
    // The last one has no end of line.
    text.extend(lines(&[recipe(2, 2.0, 1)]).trim_end().as_bytes());
    let imported = store.import(&*text).unwrap();
    assert_eq!((imported.offered, imported.taken), (2, 2));
    let numbers: Vec<usize> = imported.refused.iter().map(|(line, _)| *line).collect();
    assert_eq!(numbers, [2, 5, 6, 7, 8, 9]);
    let reasons =
        ["not a recipe", "not a recipe", "engine", "version 3", "version 7", "gain is 0.5"];
    for ((line, reason), expected) in imported.refused.iter().zip(reasons) {
        assert!(reason.contains(expected), "line {line}: {reason}");
    }
    assert_eq!(store.list().unwrap().len(), 2);
}

#[test]
fn a_source_that_fails_is_an_error_that_names_the_line() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("unplugged"))
        }
    }
    let (_folder, path) = place();
    let store = open(&path);
    let text = lines(&[recipe(1, 2.0, 1), recipe(2, 2.0, 1)]);
    let error = store.import(BufReader::new(text.as_bytes().chain(Failing))).unwrap_err();
    assert!(matches!(error, StoreError::Import { line: 3, .. }), "{error}");
    assert_eq!(store.len().unwrap(), 2, "those before are kept");
}
