//! All transitions as one table, in a Parquet file.

use std::{
    fs::{self, File},
    io,
    path::Path,
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parquet::{
    basic::{Compression, ZstdLevel},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};
use rusqlite::{Connection, params};
use xla_gym_protocol::{Fingerprint, PassId};
use xla_gym_shared_file::{PATIENCE, with_suffix};

use crate::{
    disk::{decode, find_state, key},
    error::TransitionsError,
    file::open_reader,
    known::{Outcome, State},
    memory::Memory,
};

/// How many rows are held in memory and written at once.
const GROUP: u16 = 16 * 1024;

/// What the numbers of a table mean: names of passes and metrics, in the order of their ids.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Of passes.
    pub passes: &'a [String],
    /// Of counts.
    pub counts: &'a [String],
    /// Of costs.
    pub costs: &'a [String],
}

impl Names<'_> {
    /// The columns: what happened, then each metric before and after.
    fn schema(self) -> String {
        let both = |kind: &str, names: &[String]| -> String {
            let columns = |name: &String| {
                format!("optional {kind} {name}_before; optional {kind} {name}_after; ")
            };
            names.iter().map(columns).collect()
        };
        let opcodes = |end| {
            format!(
                "optional group opcodes_{end} (LIST) {{ repeated group list {{ required int32 element; }} }} "
            )
        };
        format!(
            "message transitions {{ required binary state (UTF8); required binary pass (UTF8); \
             required int32 pass_id; optional binary next (UTF8); optional binary failure (UTF8); \
             optional binary failure_message (UTF8); required boolean changed; {}{}{}{}}}",
            both("int64", self.counts),
            both("double", self.costs),
            opcodes("before"),
            opcodes("after"),
        )
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, File>;

/// One transition, with what is known of its two ends.
struct Row {
    from: Fingerprint,
    pass: PassId,
    outcome: Outcome,
    before: Option<Arc<State>>,
    after: Option<Arc<State>>,
}

/// Exports what memory holds.
pub fn from_memory(
    path: &Path,
    names: Names<'_>,
    memory: &Memory,
) -> Result<u64, TransitionsError> {
    let mut outcomes = memory.all_outcomes().into_iter();
    write(path, names, || {
        let group = outcomes.by_ref().take(usize::from(GROUP));
        Ok(group
            .map(|((from, pass), outcome)| Row {
                from,
                pass,
                before: memory.peek_state(from),
                after: next(&outcome).and_then(|id| memory.peek_state(id)),
                outcome,
            })
            .collect())
    })
}

/// Exports what the file holds for one engine.
pub fn from_disk(
    path: &Path,
    names: Names<'_>,
    file: &Path,
    engine: &str,
) -> Result<u64, TransitionsError> {
    let failed = |source| TransitionsError::Read { path: file.to_owned(), source };
    // A connection of its own, so that look-ups need not wait for the export.
    let Some((connection, engine)) = open_reader(file, engine).map_err(failed)? else {
        return write(path, names, || Ok(Vec::new()));
    };
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    let mut last = None;
    write(path, names, || {
        let rows = rows_after(&connection, engine, last).map_err(failed)?;
        last = rows.last().map(|row| (row.from, row.pass));
        Ok(rows)
    })
}

/// The rows that follow `last`. Each group is a query of its own: one query for all of them would
/// keep the write-ahead log growing while it lasts.
fn rows_after(
    connection: &Connection,
    engine: i64,
    last: Option<(Fingerprint, PassId)>,
) -> rusqlite::Result<Vec<Row>> {
    let (state, pass) = last.map_or((Fingerprint(0), -1), |(id, pass)| (id, i64::from(pass.0)));
    let mut statement = connection.prepare_cached(
        "SELECT state, pass, body FROM transitions
         WHERE engine = ?1 AND (state, pass) > (?2, ?3) ORDER BY state, pass LIMIT ?4",
    )?;
    let found = statement.query_map(params![engine, key(state), pass, GROUP], |row| {
        let from = Fingerprint(u128::from_be_bytes(row.get(0)?));
        Ok((from, PassId(row.get(1)?), decode::<Outcome>(row, 2)?))
    })?;
    let mut rows: Vec<Row> = Vec::new();
    for transition in found {
        let (from, pass, outcome) = transition?;
        let before = match rows.last() {
            Some(row) if row.from == from => row.before.clone(),
            _ => find_state(connection, engine, from)?.map(Arc::new),
        };
        let after = match next(&outcome) {
            Some(id) if id == from => before.clone(),
            Some(id) => find_state(connection, engine, id)?.map(Arc::new),
            None => None,
        };
        rows.push(Row { from, pass, outcome, before, after });
    }
    Ok(rows)
}

fn next(outcome: &Outcome) -> Option<Fingerprint> {
    match outcome {
        Outcome::Leads(next) => Some(*next),
        Outcome::Fails(_) => None,
    }
}

/// Writes groups of rows until there are no more, to a file beside that then takes its place.
fn write(
    path: &Path,
    names: Names<'_>,
    mut rows: impl FnMut() -> Result<Vec<Row>, TransitionsError>,
) -> Result<u64, TransitionsError> {
    static EXPORTS: AtomicU64 = AtomicU64::new(0);
    let number = EXPORTS.fetch_add(1, Ordering::Relaxed);
    let failed = |source| TransitionsError::Export { path: path.to_owned(), source };
    // To take the place of a device would do harm to others.
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return Err(failed(io::Error::other("it is there already, and is no file").into()));
    }
    // A link stays, and the file that it names is written.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let partial = with_suffix(path, &format!(".{}-{number}.partial", process::id()));
    let mut write_all = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(error.into()))?;
        }
        let mut writer = begin(&partial, names).map_err(failed)?;
        let mut count = 0;
        loop {
            let rows = rows()?;
            if rows.is_empty() {
                break;
            }
            count += rows.len() as u64;
            write_group(&mut writer, &rows, names).map_err(failed)?;
        }
        let file = writer.into_inner().map_err(failed)?;
        file.sync_all()
            .and_then(|()| fs::rename(&partial, path))
            .map_err(|error| failed(error.into()))?;
        Ok(count)
    };
    write_all().inspect_err(|_| {
        let _ = fs::remove_file(&partial);
    })
}

fn begin(path: &Path, names: Names<'_>) -> Result<SerializedFileWriter<File>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let schema = Arc::new(parse_message_type(&names.schema())?);
    SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))
}

/// Writes the columns, in the order of the schema.
fn write_group(
    writer: &mut SerializedFileWriter<File>,
    rows: &[Row],
    names: Names<'_>,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    let name = |row: &Row| match names.passes.get(usize::from(row.pass.0)) {
        Some(name) => text(name),
        None => text(&format!("#{}", row.pass.0)),
    };
    let failure = |row: &Row| match &row.outcome {
        Outcome::Fails(failure) => Some(failure.clone()),
        Outcome::Leads(_) => None,
    };
    required::<ByteArrayType>(&mut group, rows, |row| text(&row.from.to_string()))?;
    required::<ByteArrayType>(&mut group, rows, name)?;
    required::<Int32Type>(&mut group, rows, |row| i32::from(row.pass.0))?;
    optional::<ByteArrayType>(&mut group, rows, |row| {
        next(&row.outcome).map(|next| text(&next.to_string()))
    })?;
    optional::<ByteArrayType>(&mut group, rows, |row| {
        failure(row).map(|failure| text(&failure.kind.to_string()))
    })?;
    optional::<ByteArrayType>(&mut group, rows, |row| {
        failure(row).map(|failure| text(&failure.message))
    })?;
    required::<BoolType>(&mut group, rows, |row| {
        next(&row.outcome).is_some_and(|next| next != row.from)
    })?;
    for at in 0..names.counts.len() {
        both_ends::<Int64Type>(&mut group, rows, |state| state.counts.get(at).copied().map(count))?;
    }
    for at in 0..names.costs.len() {
        both_ends::<DoubleType>(&mut group, rows, |state| state.cost?.get(at).copied())?;
    }
    opcodes(&mut group, rows, |row| row.before.as_deref())?;
    opcodes(&mut group, rows, |row| row.after.as_deref())?;
    group.close()?;
    Ok(())
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(text)
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn required<T: DataType>(
    group: &mut Group,
    rows: &[Row],
    value: impl Fn(&Row) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = rows.iter().map(value).collect();
    column::<T>(group, &values, None, None)
}

fn optional<T: DataType>(
    group: &mut Group,
    rows: &[Row],
    value: impl Fn(&Row) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = rows.iter().map(value).collect();
    let present: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column::<T>(group, &values, Some(&present), None)
}

/// Two columns: one of the states before, one of the states after.
fn both_ends<T: DataType>(
    group: &mut Group,
    rows: &[Row],
    value: impl Fn(&State) -> Option<T::T>,
) -> Result<(), ParquetError> {
    optional::<T>(group, rows, |row| row.before.as_deref().and_then(&value))?;
    optional::<T>(group, rows, |row| row.after.as_deref().and_then(&value))
}

fn opcodes(
    group: &mut Group,
    rows: &[Row],
    state: impl Fn(&Row) -> Option<&State>,
) -> Result<(), ParquetError> {
    // How Parquet spells lists. Definition: 0 is no list, 1 an empty one, 2 an element of one.
    // Repetition: 0 begins a row, 1 goes on with it.
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let list = state(row).map(|state| state.opcodes.as_slice());
        match list {
            None | Some([]) => {
                definition.push(i16::from(list.is_some()));
                repetition.push(0);
            }
            Some(list) => {
                for (index, number) in list.iter().enumerate() {
                    values.push(i32::try_from(*number).unwrap_or(i32::MAX));
                    definition.push(2);
                    repetition.push(i16::from(index > 0));
                }
            }
        }
    }
    column::<Int32Type>(group, &values, Some(&definition), Some(&repetition))
}

fn column<T: DataType>(
    group: &mut Group,
    values: &[T::T],
    definition: Option<&[i16]>,
    repetition: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))?;
    column.typed::<T>().write_batch(values, definition, repetition)?;
    column.close()
}
