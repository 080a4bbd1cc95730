//! Runs the real command with the real compiler, each test in a home of its own.

// Every test file is a crate that uses its own part of this.
#![allow(dead_code)]

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// No single command of these tests may take longer.
const PATIENCE: Duration = Duration::from_secs(180);

/// No command may take more memory itself, in KiB, or a machine that others use too would pay for it.
const LARGEST_KIB: u64 = 4_000_000;

/// What a result is worth at a stage, of `score`, a recipe's evidence and their like.
pub fn stage<'a>(of: &'a Value, name: &str) -> &'a Value {
    let found = of["stages"].as_array().into_iter().flatten().find(|stage| stage["stage"] == name);
    found.unwrap_or_else(|| panic!("there is no stage {name} in {of}"))
}

/// A folder below the test data of the repository.
pub fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

/// The path of a graph of the test data, as an argument.
pub fn graph(name: &str) -> String {
    testdata(&format!("graphs/{name}.hlo.zst")).to_str().unwrap().to_owned()
}

/// The path of a file with the small perceptron, as an argument.
pub fn mlp(extension: &str) -> String {
    testdata(&format!("formats/mlp.{extension}")).to_str().unwrap().to_owned()
}

/// State, temporary files and working directory of a test; gone with the value.
pub struct Home {
    dir: TempDir,
}

impl Home {
    pub fn new() -> Home {
        let dir = tempfile::Builder::new().prefix("xla-gym-cli-").tempdir().unwrap();
        let home = Home { dir };
        for folder in ["state", "tmp", "work", "out"] {
            fs::create_dir(home.folder(folder)).unwrap();
        }
        home
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where the quarantine is.
    pub fn state(&self) -> PathBuf {
        self.folder("state")
    }

    /// A path in the working directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder("work").join(name)
    }

    /// Writes a file into the working directory.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Reads a file of the working directory.
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The names in the working directory.
    pub fn files(&self) -> Vec<String> {
        names(&self.folder("work"))
    }

    /// Checks that nothing is left but as many files: no core, no temporary file, no process.
    #[track_caller]
    pub fn expect_clean(&self, files: usize) {
        assert_eq!(self.files().len(), files, "{:?}", self.files());
        assert_eq!(names(&self.folder("tmp")), [""; 0]);
        assert_eq!(self.processes(), Vec::<u32>::new());
    }

    /// A command in the working directory, with nothing to read.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        // A shell that starts tests in the background leaves Ctrl-C ignored; here it must work.
        let mut command = Command::new("env");
        command
            .arg("--default-signal=INT")
            .arg(env!("CARGO_BIN_EXE_xla-gym"))
            .args(arguments)
            .current_dir(self.folder("work"))
            .env("XLA_GYM_STATE_DIR", self.state())
            .env("TMPDIR", self.folder("tmp"))
            .stdin(Stdio::null());
        command
    }

    /// Starts a command.
    pub fn start<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Running {
        self.start_command(self.command(arguments))
    }

    fn start_command(&self, mut command: Command) -> Running {
        // Files instead of pipes: nobody needs to read while the command runs.
        let out = tempfile::NamedTempFile::new_in(self.folder("out")).unwrap();
        let err = tempfile::NamedTempFile::new_in(self.folder("out")).unwrap();
        command.stdout(out.reopen().unwrap()).stderr(err.reopen().unwrap());
        Running { child: command.spawn().unwrap(), start: Instant::now(), out, err }
    }

    /// Runs a command to its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ran {
        self.start(arguments).wait()
    }

    /// Runs a command with a file as its standard input.
    pub fn run_reading<S: AsRef<OsStr>>(&self, arguments: &[S], input: &Path) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(fs::File::open(input).unwrap());
        self.start_command(command).wait()
    }

    /// Runs a command that must succeed and print JSON.
    pub fn json<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Value {
        let mut arguments: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
        arguments.push("--json".as_ref());
        self.run(&arguments).expect(0).json()
    }

    /// The identity of a program, as `show` prints it.
    pub fn fingerprint(&self, file: &str) -> String {
        self.json(&["show", file])["fingerprint"].as_str().unwrap().to_owned()
    }

    /// Ids of the processes that were started from here and still run.
    pub fn processes(&self) -> Vec<u32> {
        let mark = format!("XLA_GYM_STATE_DIR={}", self.state().display());
        let ours = |pid: &u32| {
            // The environment of a process that has ended but was not reaped is empty.
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
        };
        names(Path::new("/proc")).iter().filter_map(|name| name.parse().ok()).filter(ours).collect()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A command that has not been waited for.
pub struct Running {
    child: Child,
    start: Instant,
    out: tempfile::NamedTempFile,
    err: tempfile::NamedTempFile,
}

impl Running {
    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let arguments = [format!("-{name}"), self.child.id().to_string()];
        assert!(Command::new("kill").args(arguments).status().unwrap().success());
    }

    /// Waits for the end of the command.
    pub fn wait(mut self) -> Ran {
        let mut peak_kib = 0;
        let status = loop {
            peak_kib = peak_kib.max(peak(self.child.id()));
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if peak_kib > LARGEST_KIB => {
                    self.child.kill().unwrap();
                    self.child.wait().unwrap();
                    panic!("it takes {peak_kib} KiB; stderr: {}", text(self.err.path()));
                }
                None if self.start.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(5)),
                None => {
                    self.child.kill().unwrap();
                    self.child.wait().unwrap();
                    panic!("no end after {PATIENCE:?}; stderr: {}", text(self.err.path()));
                }
            }
        };
        let (stdout, stderr) = (text(self.out.path()), text(self.err.path()));
        Ran { status, stdout, stderr, peak_kib }
    }
}

/// The most memory that a process had at once so far, in KiB; 0 if it has ended.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// The most memory that the command itself had at once, without its workers.
    pub peak_kib: u64,
}

impl Ran {
    /// Checks the exit code, and what holds for every command: success says nothing on standard
    /// error, which is no terminal here, failure says why, and nothing ever panics.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ran {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        if code == 0 {
            assert_eq!(self.stderr, "", "{self:#?}");
        } else {
            assert!(!self.stderr.is_empty() || !self.stdout.is_empty(), "{self:#?}");
        }
        self
    }

    /// Checks that standard error has all of these.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Ran {
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing: {self:#?}");
        }
        self
    }

    /// Checks that standard output has all of these.
    #[track_caller]
    pub fn prints(self, words: &[&str]) -> Ran {
        for word in words {
            assert!(self.stdout.contains(word), "{word:?} is missing: {self:#?}");
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The line of a table that starts with a name.
    #[track_caller]
    pub fn row(&self, name: &str) -> &str {
        let row = self.stdout.lines().find(|line| line.split_whitespace().next() == Some(name));
        row.unwrap_or_else(|| panic!("no row {name:?}: {self:#?}"))
    }
}
