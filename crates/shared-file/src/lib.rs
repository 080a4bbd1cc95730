//! An SQLite file that many processes share.
//!
//! A [`Kind`] says how files of one kind are recognised and what is in a new one. [`Kind::open`]
//! makes the file if it is not there, leaves alone what is not of this kind, and moves a broken one
//! aside to begin anew. Who may not write is told so, and may read with [`Kind::format`] as the
//! guard against foreign files.
//!
//! A kill at any moment leaves the file whole: it has a write-ahead log. It must lie on a local
//! disk, because the log's index is shared memory.
//!
//! ```
//! use xla_gym_shared_file::Kind;
//!
//! const DIARIES: Kind = Kind {
//!     application: 0x5847_6469,
//!     version: 1,
//!     tables: "CREATE TABLE pages (text TEXT NOT NULL);",
//!     example: "diary.db",
//! };
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("diary.db");
//! let opened = DIARIES.open(&path, |connection| {
//!     connection.execute("INSERT INTO pages VALUES ('one')", [])?;
//!     Ok(connection)
//! })?;
//! let connection = opened.result?;
//! let pages = connection.query_row("SELECT count(*) FROM pages", [], |row| row.get::<_, u32>(0))?;
//! assert_eq!((pages, opened.moved_aside), (1, None));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod aside;
mod error;
mod kind;
mod wait;

pub use aside::with_suffix;
pub use error::FileError;
pub use kind::{Format, Kind, Opened};
pub use wait::{PATIENCE, alone, take_turns};
