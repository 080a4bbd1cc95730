//! Time and memory limits that a worker puts on itself. They hold even when the client has
//! died: a hanging pass ends by its own alarm.

#![allow(unsafe_code, reason = "setitimer and setrlimit")]

use std::{fs, time::Duration};

/// Ends the process unless [`disarm`] comes first.
pub fn arm(limit: Duration) {
    set_timer(limit);
}

/// Calls the alarm off.
pub fn disarm() {
    set_timer(Duration::ZERO);
}

fn set_timer(duration: Duration) {
    let value = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval {
            tv_sec: duration.as_secs() as libc::time_t,
            tv_usec: duration.subsec_micros() as libc::suseconds_t,
        },
    };
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
