//! Time and memory limits that a worker puts on itself. They hold even when the client has
//! died: a hanging pass ends by its own alarm.

#![allow(unsafe_code, reason = "setitimer, setrlimit and clock_gettime")]

use std::{
    fs,
    sync::atomic::{AtomicI32, AtomicU64, Ordering},
    time::Duration,
};

/// How soon a busy worker notices that its client is gone.
const SECOND: Duration = Duration::from_secs(1);

/// Alarms until the limit is reached.
static ALARMS_LEFT: AtomicU64 = AtomicU64::new(0);

/// How long the process had worked when the alarm was set, in milliseconds.
static ARMED_AT: AtomicU64 = AtomicU64::new(0);

/// The socket whose other end is watched while the process is busy, or -1.
static CLIENT: AtomicI32 = AtomicI32::new(-1);

/// Ends the process unless [`disarm`] comes first.
pub fn arm(limit: Duration) {
    // One alarm a second, the last of them at the limit.
    let rest = Duration::from_nanos(limit.subsec_nanos().into());
    let first = if rest.is_zero() { SECOND } else { rest };
    ARMED_AT.store(busy(), Ordering::Relaxed);
    ALARMS_LEFT.store(limit.as_secs() + u64::from(!rest.is_zero()), Ordering::Relaxed);
    set_timer(first, SECOND);
}

/// How long the process has worked since the alarm was set, in milliseconds: one that was stopped,
/// or that found no free core, has worked for less than the clock says. Async-signal-safe.
pub fn busy_since_armed() -> u64 {
    busy().saturating_sub(ARMED_AT.load(Ordering::Relaxed))
}

fn busy() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a plain, async-signal-safe system call on a value that lives long enough.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Calls the alarm off.
pub fn disarm() {
    set_timer(Duration::ZERO, Duration::ZERO);
}

/// From now on, nobody works for a client that is gone.
pub fn watch_client(socket: i32) {
    CLIENT.store(socket, Ordering::Relaxed);
}

/// What an alarm means.
pub enum Alarm {
    /// The limit is reached.
    TimeLimit,
    /// Nobody waits for the result.
    Abandoned,
    /// Nothing.
    GoOn,
}

/// Called by the signal's handler: async-signal-safe.
pub fn on_alarm() -> Alarm {
    if ALARMS_LEFT.fetch_sub(1, Ordering::Relaxed) <= 1 {
        return Alarm::TimeLimit;
    }
    let mut client =
        libc::pollfd { fd: CLIENT.load(Ordering::Relaxed), events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: poll is async-signal-safe, ignores a descriptor of -1, and returns at once; the
    // interrupted code may be about to look at errno.
    unsafe {
        let errno = *libc::__errno_location();
        libc::poll(&mut client, 1, 0);
        *libc::__errno_location() = errno;
    }
    let gone = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;
    if client.revents & gone != 0 { Alarm::Abandoned } else { Alarm::GoOn }
}

fn set_timer(first: Duration, then: Duration) {
    let time = |duration: Duration| libc::timeval {
        tv_sec: duration.as_secs() as libc::time_t,
        tv_usec: duration.subsec_micros() as libc::suseconds_t,
    };
    let value = libc::itimerval { it_interval: time(then), it_value: time(first) };
    // SAFETY: a plain system call on a value that lives long enough.
    unsafe {
        libc::setitimer(libc::ITIMER_REAL, &value, std::ptr::null_mut());
    }
}

/// Lets the process map at most `bytes` more than it has mapped now.
pub fn limit_memory(bytes: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: plain system calls on a value that lives long enough. The hard limit stays what
    // the user's shell or the system has made it; asking for more would be refused.
    unsafe {
        libc::getrlimit(libc::RLIMIT_AS, &mut limit);
        limit.rlim_cur = mapped_bytes().saturating_add(bytes).min(limit.rlim_max);
        libc::setrlimit(libc::RLIMIT_AS, &limit);
    }
}

fn mapped_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Threads of this process.
pub fn threads() -> u32 {
    fs::read_dir("/proc/self/task").map_or(1, |entries| entries.count() as u32)
}
