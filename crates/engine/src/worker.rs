//! One worker process, seen from the client.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{ErrorKind, IoSlice, Read, Seek, SeekFrom},
    mem::MaybeUninit,
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    process::{Child, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, memfd_create},
    io::Errno,
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use xla_gym_protocol::{
    FailureKind, FrameError, Limits, Reply, Request, look_out, read_frame, write_frame,
};

use crate::{
    error::{Death, EngineError},
    interrupt::interrupted,
    spawn,
};

/// A worker ends itself at its limit; one that cannot even do that is ended this much later.
const GRACE: Duration = Duration::from_secs(3);

/// What takes longer than this may be about to take too long.
const SOON: Duration = Duration::from_millis(100);

/// How often one looks whether an answer is still wanted.
const GLANCE: Duration = Duration::from_millis(200);

/// How long a worker that this process started may take to end once it is no longer needed.
const FAREWELL: Duration = Duration::from_millis(500);

/// Threads of this process that wait for a pass.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Whether at most one thread waits for a pass, and there is a core to spare for waiting.
pub fn alone() -> bool {
    WAITING.load(Ordering::Relaxed) <= 1
}

/// Why a worker did not answer.
#[derive(Debug)]
pub enum Silence {
    /// It is gone.
    Died(Death),
    /// It said something that makes no sense, or the system refused a resource.
    Confused(String),
    /// It could not be rebuilt.
    Lost(Box<EngineError>),
    /// It was given up, because the caller wants to stop waiting.
    Interrupted,
    /// It is well, but cannot be forked: a pass has started threads in it.
    Unforkable,
}

impl Silence {
    /// As an error of what was being done.
    pub fn into_error(self, doing: &str) -> EngineError {
        match self {
            Silence::Died(death) => EngineError::Died { doing: doing.to_owned(), death },
            Silence::Confused(message) => EngineError::Internal(message),
            Silence::Lost(error) => *error,
            Silence::Interrupted => EngineError::Interrupted,
            Silence::Unforkable => EngineError::Internal(format!("{doing}: it cannot be forked")),
        }
    }
}

/// A live connection to a worker process.
pub struct Worker {
    socket: UnixStream,
    /// What the process writes to standard error: its last words, if it dies.
    errors: File,
    /// Its id, for looking at it. It may be another's by now.
    pid: i32,
    /// For ending it. None if it was gone before it could be opened.
    process: Option<OwnedFd>,
    /// The process itself, if this process started it (and must reap it).
    child: Option<Child>,
    limits: Limits,
    /// Raised when nobody wants its answers any more.
    unwanted: Option<Arc<AtomicBool>>,
    timeout: Option<Duration>,
    read_scratch: Vec<u8>,
    write_scratch: Vec<u8>,
}

impl Worker {
    /// Starts a process from a program file.
    pub fn start(
        program: &Path,
        environment: &[(OsString, Option<OsString>)],
        limits: Limits,
    ) -> Result<Worker, String> {
        let errors = memory_file()?;
        let (child, socket) =
            spawn::start(program, environment, &errors).map_err(|error| error.to_string())?;
        let pid = child.id() as i32;
        Ok(Worker::new(socket, errors, pid, Some(child), limits))
    }

    fn new(
        socket: UnixStream,
        errors: File,
        pid: i32,
        child: Option<Child>,
        limits: Limits,
    ) -> Worker {
        let patience = Duration::from_millis(limits.request_millis).saturating_add(GRACE);
        // Fails only for a time of zero.
        let _ = socket.set_write_timeout(Some(patience));
        Worker {
            socket,
            errors,
            pid,
            process: open_process(pid),
            child,
            limits,
            unwanted: None,
            timeout: None,
            read_scratch: Vec::new(),
            write_scratch: Vec::new(),
        }
    }

    /// Has waits end with [`Silence::Interrupted`], and the process with them, once the flag is raised.
    pub fn give_up_if(&mut self, unwanted: Arc<AtomicBool>) {
        self.unwanted = Some(unwanted);
    }

    fn is_unwanted(&self) -> bool {
        self.unwanted.as_ref().is_some_and(|unwanted| unwanted.load(Ordering::Relaxed))
    }

    /// Sends a request and waits for its one answer.
    pub fn call(&mut self, request: &Request) -> Result<Reply, Silence> {
        self.send(request)?;
        self.receive(self.limits.request_millis)
    }

    /// Sends a request without waiting.
    pub fn send(&mut self, request: &Request) -> Result<(), Silence> {
        write_frame(&mut self.socket, request, &mut self.write_scratch)
            .map_err(|error| self.silence(error, self.limits.request_millis))
    }

    /// Waits for the next answer of a request whose limit is the one for passes; `eagerly` if
    /// nothing else is to be done meanwhile.
    pub fn receive_step(&mut self, eagerly: bool) -> Result<Reply, Silence> {
        WAITING.fetch_add(1, Ordering::Relaxed);
        look_out(&self.socket, || eagerly && alone());
        let reply = self.receive(self.limits.pass_millis);
        WAITING.fetch_sub(1, Ordering::Relaxed);
        reply
    }

    fn receive(&mut self, limit_millis: u64) -> Result<Reply, Silence> {
        let timeout = Duration::from_millis(limit_millis).saturating_add(GRACE);
        if self.timeout != Some(timeout) {
            self.socket
                .set_read_timeout(Some(timeout))
                .map_err(|error| Silence::Confused(error.to_string()))?;
            self.timeout = Some(timeout);
        }
        self.wait(timeout, limit_millis)?;
        read_frame(&mut self.socket, &mut self.read_scratch)
            .map_err(|error| self.silence(error, limit_millis))
    }

    /// Waits for the beginning of an answer, or until a signal makes the caller give up.
    fn wait(&mut self, timeout: Duration, limit_millis: u64) -> Result<(), Silence> {
        let begin = Instant::now();
        // Looked up only where the answer takes its time: most take microseconds.
        let mut busy_before = None;
        loop {
            let left = timeout.saturating_sub(begin.elapsed());
            let left = if busy_before.is_none() { left.min(SOON) } else { left };
            let left = if self.unwanted.is_some() { left.min(GLANCE) } else { left };
            let mut socket = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut socket, Timespec::try_from(left).ok().as_ref()) {
                Err(Errno::INTR) if interrupted() => {
                    self.kill();
                    return Err(Silence::Interrupted);
                }
                Err(Errno::INTR) => {}
                Ok(0) if self.is_unwanted() => {
                    self.kill();
                    return Err(Silence::Interrupted);
                }
                Ok(0) if begin.elapsed() < timeout => {
                    busy_before = busy_before.or_else(|| busy_millis(self.pid));
                }
                Ok(0) => {
                    let now = busy_millis(self.pid);
                    let busy = now.zip(busy_before).map(|(now, before)| now.saturating_sub(before));
                    self.kill();
                    return Err(Silence::Died(Death::TimeLimit {
                        limit_millis,
                        busy_millis: busy,
                    }));
                }
                // Whatever it is, reading will tell.
                _ => return Ok(()),
            }
        }
    }

    /// A second worker in the same state as this one.
    pub fn fork(&mut self) -> Result<Worker, Silence> {
        let confused = |error: std::io::Error| Silence::Confused(error.to_string());
        let errors = memory_file().map_err(Silence::Confused)?;
        let (ours, theirs) = UnixStream::pair().map_err(confused)?;
        self.send(&Request::Fork)?;
        send_descriptors(&self.socket, &theirs, &errors).map_err(|error| {
            self.silence(FrameError::from(std::io::Error::from(error)), self.limits.request_millis)
        })?;
        drop(theirs);
        match self.receive(self.limits.request_millis)? {
            Reply::Forked { pid } => Ok(Worker::new(ours, errors, pid, None, self.limits)),
            Reply::Failed(failure) if failure.kind == FailureKind::Unsupported => {
                Err(Silence::Unforkable)
            }
            other => Err(Silence::Confused(format!("a fork was answered by {other:?}"))),
        }
    }

    /// Ends the process at once.
    pub fn kill(&mut self) {
        if let Some(process) = &self.process {
            // It may be gone already, which is what is wanted.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn silence(&mut self, error: FrameError, limit_millis: u64) -> Silence {
        match error {
            FrameError::Closed => Silence::Died(self.death(limit_millis)),
            FrameError::Io(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
            {
                self.kill();
                Silence::Died(Death::TimeLimit { limit_millis, busy_millis: None })
            }
            error => {
                // From here on nobody knows where the next message starts.
                let _ = self.socket.shutdown(Shutdown::Both);
                self.kill();
                Silence::Confused(error.to_string())
            }
        }
    }

    /// How the process ended, if this process started it and it ends soon.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        let start = Instant::now();
        loop {
            match child.try_wait() {
                Ok(None) if start.elapsed() < FAREWELL => thread::sleep(Duration::from_millis(1)),
                result => return result.ok().flatten(),
            }
        }
    }

    /// Reads the last words. The note's form is that of the worker kit's `dying.rs`.
    fn death(&mut self, limit_millis: u64) -> Death {
        let words = self.last_words();
        let Some((before, note)) = words.rsplit_once("\nxla-gym-worker: ") else {
            return Death::Killed;
        };
        match note.lines().next().unwrap_or_default() {
            note if note.starts_with("time limit") => {
                Death::TimeLimit { limit_millis, busy_millis: first_number(note) }
            }
            "out of memory" => Death::OutOfMemory,
            other => match other.strip_prefix("signal ").and_then(|n| n.parse().ok()) {
                Some(signal) => Death::Signal { signal, message: last_message(before) },
                None => Death::Killed,
            },
        }
    }

    /// The end of what the worker printed.
    pub fn last_words(&mut self) -> String {
        const TAIL: u64 = 16 << 10;
        let mut words = Vec::new();
        let length = self.errors.seek(SeekFrom::End(0)).unwrap_or(0);
        let _ = self.errors.seek(SeekFrom::Start(length.saturating_sub(TAIL)));
        let _ = self.errors.read_to_end(&mut words);
        String::from_utf8_lossy(&words).into_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The first of all workers ends by itself, after those that descend from it.
        let _ = self.socket.shutdown(Shutdown::Both);
        self.exit_status();
        self.kill();
    }
}

/// The line that says why: a fatal line in the form of glog and absl, without its date, thread and
/// trace, or else the last line.
fn last_message(words: &str) -> String {
    let fatal = words
        .lines()
        .rev()
        .find(|line| line.contains("Check failed") || line.starts_with('F') && line.contains("] "));
    let line = fatal
        .or_else(|| words.lines().rev().find(|line| !line.trim().is_empty()))
        .unwrap_or_default();
    // F0000 00:00:1794716622.598345    2999 file.cc:153] text
    let text = match line.split_once("] ") {
        Some((head, text)) if line.starts_with('F') => {
            let place = head.rsplit(' ').next().unwrap_or_default();
            format!("{place}: {text}")
        }
        _ => line.to_owned(),
    };
    text.trim().chars().take(500).collect()
}

/// How long a process has worked so far, if that can be seen.
fn busy_millis(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; user and system time are fields 14 and 15.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

fn first_number(text: &str) -> Option<u64> {
    text.split(' ').find_map(|word| word.parse().ok())
}

fn memory_file() -> Result<File, String> {
    memfd_create("xla-gym-worker", MemfdFlags::CLOEXEC)
        .map(File::from)
        .map_err(|error| format!("no memory file for a worker's messages: {error}"))
}

fn open_process(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

fn send_descriptors(
    socket: &UnixStream,
    theirs: &UnixStream,
    errors: &File,
) -> rustix::io::Result<()> {
    let descriptors = [theirs.as_fd(), errors.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::last_message;

    #[test]
    fn the_failed_check_is_found_in_the_log() {
        let log = "W0000 00:00:1.2 7 a.cc:1] chatter\n\
                   F0000 00:00:1794716622.598345    2999 hlo_creation_utils.cc:747] Check failed: a < b (3 vs. 2)\n\
                   *** Check failure stack trace: ***\n    @ 0x7f  x\n";
        assert_eq!(last_message(log), "hlo_creation_utils.cc:747: Check failed: a < b (3 vs. 2)");
    }
}
