//! Event files, as TensorBoard reads them: scalars, texts and histograms of a training run.
//!
//! An event file is a row of *records* (a length, a payload, and a checksum of each), and each
//! payload is one `Event` message of Protocol Buffers. A run has a folder; TensorBoard reads all
//! event files in it, in the order of their names. So a run that is resumed adds a file and says
//! in it from which step on it replaces what stands in the earlier ones.
//!
//! ```
//! # let scratch = tempfile::tempdir()?;
//! # let runs = scratch.path();
//! use xla_gym_events::Events;
//!
//! let folder = runs.join("ppo-seed-0");
//! let mut events = Events::create(&folder)?;
//! events.text("configuration", 0, "    learning_rate = 3e-4")?;
//! events.scalar("train/ratio", 1, 0.93)?;
//! events.flush()?;
//!
//! // Later, from the checkpoint of step 1:
//! let mut events = Events::resume(&folder, 1)?;
//! events.scalar("train/ratio", 2, 0.97)?;
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

mod file;
mod histogram;
mod message;
mod record;

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use message::Message;

/// Records up to this size reach the system whole: a process that is killed between two writes
/// leaves no torn record behind.
const BUFFER: usize = 64 * 1024;

/// An event file that is being written.
///
/// What was written reaches the system when [`flush`](Events::flush) is called, when enough has
/// gathered, and when the writer is dropped. A file whose last record is torn can still be read
/// up to that record.
///
/// ```
/// # let scratch = tempfile::tempdir()?;
/// use xla_gym_events::Events;
///
/// let mut events = Events::create(scratch.path())?;
/// for (step, loss) in [(1, 0.7), (2, 0.4)] {
///     events.scalar("train/loss", step, loss)?;
/// }
/// events.histogram("lengths of orders", 2, &[12.0, 14.0, 14.0])?;
/// events.flush()?;
/// assert!(std::fs::metadata(events.path())?.len() > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Events {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Events {
    /// Opens a new event file in a folder, which is created if it is missing.
    ///
    /// What other files of the folder say stays as it is. A run that begins anew needs a new
    /// folder.
    pub fn create(folder: &Path) -> io::Result<Events> {
        let (path, file) = file::create(folder)?;
        let mut events = Events { path, file: BufWriter::with_capacity(BUFFER, file) };
        // The version by which a reader knows that it may rely on `SessionLog`.
        events.event(0, |event| event.text(3, "brain.Event:2"))?;
        events.flush()?;
        Ok(events)
    }

    /// Opens a new event file of a run that goes on after `step`. TensorBoard hides what earlier
    /// files of the folder say on later steps.
    pub fn resume(folder: &Path, step: u64) -> io::Result<Events> {
        let mut events = Events::create(folder)?;
        // A `SessionLog` with the status START. Readers hide what lies at its step or later.
        events.event(step.saturating_add(1), |event| event.message(7, |log| log.number(1, 1)))?;
        events.flush()?;
        Ok(events)
    }

    /// The file that is being written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one point of a curve. TensorBoard keeps about seven digits of the value.
    pub fn scalar(&mut self, tag: &str, step: u64, value: f64) -> io::Result<()> {
        self.value(step, |summary| {
            summary.text(1, tag);
            summary.float(2, value as f32);
        })
    }

    /// Writes a text, such as the configuration. TensorBoard shows it as Markdown.
    pub fn text(&mut self, tag: &str, step: u64, text: &str) -> io::Result<()> {
        self.value(step, |summary| {
            summary.text(1, tag);
            // A tensor of strings, of no dimension.
            summary.message(8, |tensor| {
                tensor.number(1, 7);
                tensor.message(2, |_| ());
                tensor.text(8, text);
            });
            // Who is to show it: the plugin "text", as a tensor.
            summary.message(9, |metadata| {
                metadata.message(1, |plugin| plugin.text(1, "text"));
                metadata.number(4, 2);
            });
        })
    }

    /// Writes how values are distributed. Values that are not finite are left out; if none is
    /// left, nothing is written.
    pub fn histogram(&mut self, tag: &str, step: u64, values: &[f32]) -> io::Result<()> {
        let Some(histogram) = histogram::Histogram::of(values) else { return Ok(()) };
        self.value(step, |summary| {
            summary.text(1, tag);
            summary.message(5, |message| histogram.write(message));
        })
    }

    /// Hands everything written so far to the system, so that TensorBoard sees it and the end of
    /// this process does not lose it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// An event with a summary of one value.
    fn value(&mut self, step: u64, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.event(step, |event| event.message(5, |summary| summary.message(1, fill)))
    }

    fn event(&mut self, step: u64, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut event = Message::default();
        event.double(1, now.as_secs_f64());
        event.number(2, step.min(i64::MAX as u64));
        fill(&mut event);
        self.file.write_all(&record::frame(event.bytes()))
    }
}
