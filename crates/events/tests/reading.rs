//! Files are read back by a reader that shares no code with the writer.

use std::{collections::BTreeMap, fs, path::Path};

use xla_gym_events::Events;

/// A field's value, as far as its layout tells.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Eight([u8; 8]),
    Four([u8; 4]),
    Bytes(Vec<u8>),
}

/// The fields of a message, by number.
type Fields = BTreeMap<u64, Vec<Value>>;

/// CRC32C bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

fn checksum_holds(bytes: &[u8], stored: &[u8]) -> bool {
    let crc = crc32c(bytes);
    let masked = crc.rotate_right(15).wrapping_add(0xa282_ead8);
    stored == masked.to_le_bytes()
}

/// The payloads up to the first that is torn or spoilt.
fn records(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while rest.len() >= 12 {
        let (head, tail) = rest.split_at(12);
        let length = u64::from_le_bytes(head[..8].try_into().unwrap()) as usize;
        if !checksum_holds(&head[..8], &head[8..]) || tail.len() < length + 4 {
            break;
        }
        let (payload, tail) = tail.split_at(length);
        if !checksum_holds(payload, &tail[..4]) {
            break;
        }
        found.push(payload.to_vec());
        rest = &tail[4..];
    }
    found
}

fn fields(mut bytes: &[u8]) -> Fields {
    let mut found = Fields::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => Value::Eight(take(&mut bytes, 8).try_into().unwrap()),
            2 => {
                let length = varint(&mut bytes) as usize;
                Value::Bytes(take(&mut bytes, length).to_vec())
            }
            5 => Value::Four(take(&mut bytes, 4).try_into().unwrap()),
            other => panic!("layout {other}"),
        };
        found.entry(key >> 3).or_default().push(value);
    }
    found
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn inner(message: &Fields, field: u64) -> Fields {
    let Value::Bytes(bytes) = &message[&field][0] else { panic!("field {field}") };
    fields(bytes)
}

fn text(message: &Fields, field: u64) -> String {
    let Value::Bytes(bytes) = &message[&field][0] else { panic!("field {field}") };
    String::from_utf8(bytes.clone()).unwrap()
}

fn step(event: &Fields) -> u64 {
    let Value::Number(step) = event[&2][0] else { panic!("a step") };
    step
}

fn events(path: &Path) -> Vec<Fields> {
    records(&fs::read(path).unwrap()).iter().map(|record| fields(record)).collect()
}

/// Tags, steps and values of the scalars.
fn scalars(events: &[Fields]) -> Vec<(String, u64, f32)> {
    let mut found = Vec::new();
    for event in events.iter().filter(|event| event.contains_key(&5)) {
        let value = inner(&inner(event, 5), 1);
        if let Some([Value::Four(bytes)]) = value.get(&2).map(Vec::as_slice) {
            found.push((text(&value, 1), step(event), f32::from_le_bytes(*bytes)));
        }
    }
    found
}

#[test]
fn everything_written_is_read() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("runs/ppo");
    let mut writer = Events::create(&folder).unwrap();
    writer.scalar("train/ratio", 0, 0.5).unwrap();
    writer.scalar("train/ratio", 300, -1.25).unwrap();
    writer.scalar("loss", u64::MAX, f64::NAN).unwrap();
    writer.text("configuration", 7, "ä = \"long\"\n".repeat(20_000).as_str()).unwrap();
    writer.histogram("advantages", 9, &[1.0, 2.0, 2.0, f32::INFINITY]).unwrap();
    writer.histogram("nothing", 9, &[]).unwrap();
    let path = writer.path().to_owned();
    drop(writer);

    let name = path.file_name().unwrap().to_str().unwrap();
    let parts: Vec<&str> = name.split('.').collect();
    assert_eq!(parts[..3], ["events", "out", "tfevents"]);
    assert!(parts[3].len() == 10 && parts[3].parse::<u64>().is_ok(), "{name}");
    assert_eq!(path.parent(), Some(folder.as_path()));

    let events = events(&path);
    assert_eq!(events.len(), 6);
    assert_eq!(text(&events[0], 3), "brain.Event:2");
    for event in &events {
        let Value::Eight(bytes) = event[&1][0] else { panic!("a time") };
        assert!(f64::from_le_bytes(bytes) > 1.7e9);
    }
    let scalars = scalars(&events);
    assert_eq!(scalars[0], ("train/ratio".to_owned(), 0, 0.5));
    assert_eq!(scalars[1], ("train/ratio".to_owned(), 300, -1.25));
    assert!(scalars[2].1 == i64::MAX as u64 && scalars[2].2.is_nan());

    let written = inner(&inner(&events[4], 5), 1);
    assert_eq!(text(&written, 1), "configuration");
    let tensor = inner(&written, 8);
    assert_eq!(tensor[&1], [Value::Number(7)]);
    assert_eq!(text(&tensor, 8), "ä = \"long\"\n".repeat(20_000));
    assert_eq!(text(&inner(&inner(&written, 9), 1), 1), "text");

    let histogram = inner(&inner(&inner(&events[5], 5), 1), 5);
    let number = |field: u64| match histogram[&field][0] {
        Value::Eight(bytes) => f64::from_le_bytes(bytes),
        _ => panic!("field {field}"),
    };
    assert_eq!([1, 2, 3, 4, 5].map(number), [1.0, 2.0, 3.0, 5.0, 9.0]);
    let Value::Bytes(counts) = &histogram[&7][0] else { panic!("counts") };
    let counts = counts.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()));
    assert_eq!(counts.sum::<f64>(), 3.0);
}

#[test]
fn a_torn_tail_spoils_nothing_before_it() {
    let scratch = tempfile::tempdir().unwrap();
    let mut writer = Events::create(scratch.path()).unwrap();
    for step in 0..20 {
        writer.scalar("x", step, step as f64).unwrap();
    }
    writer.flush().unwrap();
    let whole = fs::read(writer.path()).unwrap();
    let all = records(&whole);
    assert_eq!(all.len(), 21);
    for length in 0..whole.len() {
        let kept = records(&whole[..length]);
        assert_eq!(kept[..], all[..kept.len()], "cut at {length}");
        // Nothing whole is lost either.
        let sizes: usize = all.iter().take(kept.len() + 1).map(|record| record.len() + 16).sum();
        assert!(sizes > length, "cut at {length}");
    }
    // The reader of this test would notice a spoilt byte.
    let mut spoilt = whole.clone();
    let last = spoilt.len() - 6;
    spoilt[last] ^= 1;
    assert_eq!(records(&spoilt).len(), 20);
}

#[test]
fn what_was_flushed_outlives_a_writer_that_never_ends() {
    let scratch = tempfile::tempdir().unwrap();
    let mut writer = Events::create(scratch.path()).unwrap();
    writer.scalar("x", 1, 1.0).unwrap();
    writer.flush().unwrap();
    writer.scalar("x", 2, 2.0).unwrap();
    let path = writer.path().to_owned();
    std::mem::forget(writer);
    assert_eq!(scalars(&events(&path)), [("x".to_owned(), 1, 1.0)]);
}

#[test]
fn a_resumed_run_hides_later_steps_and_comes_last() {
    let scratch = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for step in 0..5 {
        // All within one second, so that the clock alone would not tell them apart.
        let writer = match step {
            0 => Events::create(scratch.path()),
            _ => Events::resume(scratch.path(), step * 100),
        };
        let path = writer.unwrap().path().to_owned();
        let read = events(&path);
        if step == 0 {
            assert_eq!(read.len(), 1);
        } else {
            assert_eq!(read.len(), 2);
            // Readers hide what lies at the step of the mark or later.
            assert_eq!(self::step(&read[1]), step * 100 + 1);
            assert_eq!(inner(&read[1], 7)[&1], [Value::Number(1)]);
        }
        names.push(path.file_name().unwrap().to_owned());
    }
    assert!(names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

#[test]
fn writers_side_by_side_do_not_share_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for index in 0..8 {
            let folder = scratch.path();
            scope.spawn(move || {
                let mut writer = Events::create(folder).unwrap();
                writer.scalar("x", index, 0.0).unwrap();
            });
        }
    });
    let files: Vec<_> = fs::read_dir(scratch.path()).unwrap().collect();
    assert_eq!(files.len(), 8);
    assert!(files.into_iter().all(|file| events(&file.unwrap().path()).len() == 2));
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let taken = scratch.path().join("file");
    fs::write(&taken, "").unwrap();
    assert!(Events::create(&taken).is_err());
}
