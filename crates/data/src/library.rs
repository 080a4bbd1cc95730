//! The data sets that are compiled into the program.

use std::{
    collections::HashMap,
    io::Read,
    sync::{Mutex, OnceLock},
};

use xla_gym_common::lock;
use xla_gym_engine::Source;

use crate::manifest::{Graph, Manifest};

/// A data set as it lies in the program.
struct DataSet {
    name: &'static str,
    manifest: &'static [u8],
    archives: &'static [(&'static str, &'static [u8])],
}

include!(concat!(env!("OUT_DIR"), "/archives.rs"));

/// Why a graph of a data set cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// There is no such graph.
    #[error(
        "there is no graph {id:?} in the data sets{}; `xla-gym data list` shows all",
        hint(similar)
    )]
    Unknown {
        /// As asked for.
        id: String,
        /// Ids that contain what was asked for.
        similar: Vec<String>,
    },
    /// The data inside the program is broken.
    #[error("a data set inside this program is broken: {0}; build it again")]
    Broken(String),
}

fn hint(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        ids => format!(" (did you mean {}?)", ids.join(" or ")),
    }
}

/// A data set.
pub struct Library {
    manifest: Manifest,
    archives: &'static [(&'static str, &'static [u8])],
    /// Archives that were unpacked: graph texts by member name.
    unpacked: Mutex<HashMap<String, HashMap<String, Vec<u8>>>>,
}

impl Library {
    /// All data sets, shared by the whole process.
    pub fn all() -> Result<&'static [Library], LibraryError> {
        static LIBRARIES: OnceLock<Result<Vec<Library>, String>> = OnceLock::new();
        let open = |set: &DataSet| -> Result<Library, String> {
            let manifest =
                serde_json::from_slice(set.manifest).map_err(|error| error.to_string())?;
            Ok(Library { manifest, archives: set.archives, unpacked: Mutex::default() })
        };
        LIBRARIES
            .get_or_init(|| DATA_SETS.iter().map(open).collect())
            .as_deref()
            .map_err(|error| LibraryError::Broken(error.clone()))
    }

    /// The data set of a name, if there is one.
    pub fn named(name: &str) -> Result<Option<&'static Library>, LibraryError> {
        Ok(Library::all()?.iter().find(|library| library.manifest.name == name))
    }

    /// The graphs that are trained on, and those held out from them: `hlo-v1`.
    pub fn hlo_v1() -> Result<&'static Library, LibraryError> {
        Library::named("hlo-v1")?
            .ok_or_else(|| LibraryError::Broken("hlo-v1 is missing".to_owned()))
    }

    /// The data set that an id belongs to.
    pub fn of_id(id: &str) -> Result<&'static Library, LibraryError> {
        match id.split_once('/').map(|(name, _)| Library::named(name)) {
            Some(Ok(Some(library))) => Ok(library),
            Some(Err(error)) => Err(error),
            _ => Err(LibraryError::Unknown { id: id.to_owned(), similar: Vec::new() }),
        }
    }

    /// Whether a name is meant as an id of a data set rather than as a file.
    pub fn is_id(name: &str) -> bool {
        name.split_once('/').is_some_and(|(set, _)| DATA_SETS.iter().any(|known| known.name == set))
    }

    /// What is known of the graphs.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Size of the packed graphs.
    pub fn archive_bytes(&self) -> usize {
        self.archives.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Finds a graph by id.
    pub fn graph(&self, id: &str) -> Result<&Graph, LibraryError> {
        self.manifest.graph(id).ok_or_else(|| {
            let wanted = id.rsplit('/').next().unwrap_or(id);
            let graphs = &self.manifest.graphs;
            // Those that go on as the name begins are meant more likely than those that hold it.
            let similar = graphs
                .iter()
                .filter(|graph| graph.id.starts_with(id))
                .chain(graphs.iter().filter(|graph| graph.id.contains(wanted)))
                .filter(|_| !wanted.is_empty())
                .take(3)
                .map(|graph| graph.id.clone())
                .collect();
            LibraryError::Unknown { id: id.to_owned(), similar }
        })
    }

    /// The program text of a graph.
    pub fn source(&self, graph: &Graph) -> Result<Source, LibraryError> {
        let broken = |what: &str| LibraryError::Broken(format!("{}: {what}", graph.id));
        let mut unpacked = lock(&self.unpacked);
        if !unpacked.contains_key(&graph.archive) {
            let (_, bytes) = self
                .archives
                .iter()
                .find(|(name, _)| *name == graph.archive)
                .ok_or_else(|| broken("its archive is missing"))?;
            let members = unpack(bytes).map_err(|error| broken(&error.to_string()))?;
            unpacked.insert(graph.archive.clone(), members);
        }
        let text = unpacked[&graph.archive]
            .get(&graph.member)
            .ok_or_else(|| broken("it is missing from its archive"))?;
        Ok(Source { name: graph.id.as_str().into(), bytes: text.as_slice().into() })
    }
}

/// The members of an archive, by name.
pub fn unpack(bytes: &[u8]) -> std::io::Result<HashMap<String, Vec<u8>>> {
    let mut decoder = zstd::Decoder::new(bytes)?;
    // Graphs of one family resemble each other over long distances.
    decoder.window_log_max(27)?;
    let mut members = HashMap::new();
    for entry in tar::Archive::new(decoder).entries()? {
        let mut entry = entry?;
        let name = entry.path()?.to_string_lossy().into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        members.insert(name, content);
    }
    Ok(members)
}
