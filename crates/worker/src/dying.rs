//! Last words: a worker that dies of a signal or a limit says so on standard error, which its
//! client keeps, so that the client can tell an abort from a hang from an outside kill.

#![allow(unsafe_code, reason = "signal handlers")]

use std::{panic, process};

use xla_gym_protocol::{EXIT_OUT_OF_MEMORY, EXIT_TIME_LIMIT};

use crate::limits::{self, Alarm};

/// No message file or dump of an honest run comes near it.
const LARGEST_FILE: u64 = 4 << 30;

/// Installs the handlers. Forked workers inherit them.
pub fn install() {
    const FATAL: [i32; 6] =
        [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGXFSZ];
    for signal in FATAL {
        handle(signal, on_fatal_signal, libc::SA_RESETHAND | libc::SA_NODEFER);
    }
    // Most alarms change nothing, so that what they interrupt must go on.
    handle(libc::SIGALRM, on_alarm, libc::SA_RESTART);
    // A panic is an abort like any other, with its last words on one line.
    panic::set_hook(Box::new(|panic| {
        eprintln!("{}", panic.to_string().replace('\n', " "));
        process::abort();
    }));
    // SAFETY: plain system calls. Ignoring SIGCHLD lets the system reap forked workers, and
    // being a subreaper makes the first worker the parent of those whose own parent has died,
    // instead of process 1, which in a container often reaps nobody; an empty core limit keeps
    // crashes, which are normal here, from filling the disk, and a limit on files keeps messages
    // and dumps from it; ignoring SIGINT leaves Ctrl-C,
    // which reaches the whole process group, to the client.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        let bounded = libc::rlimit { rlim_cur: LARGEST_FILE, rlim_max: LARGEST_FILE };
        libc::setrlimit(libc::RLIMIT_FSIZE, &bounded);
    }
}

fn handle(signal: i32, handler: extern "C" fn(i32), flags: i32) {
    // SAFETY: the handlers below call only async-signal-safe functions. SA_ONSTACK uses the
    // alternative stack that Rust's runtime sets up for the main thread, so that a stack
    // overflow gets its last word too.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK | flags;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

extern "C" fn on_fatal_signal(signal: i32) {
    let mut note = *b"\nxla-gym-worker: signal 00\n";
    let end = note.len();
    note[end - 3] += (signal / 10) as u8;
    note[end - 2] += (signal % 10) as u8;
    // SAFETY: write and _exit are async-signal-safe; the process is not used any further.
    unsafe {
        libc::write(2, note.as_ptr().cast(), note.len());
        libc::_exit(128 + signal);
    }
}

extern "C" fn on_alarm(_: i32) {
    match limits::on_alarm() {
        Alarm::GoOn => {}
        // SAFETY: as above.
        Alarm::Abandoned => unsafe { libc::_exit(0) },
        // SAFETY: as above.
        Alarm::TimeLimit => {
            let note = time_limit_note(limits::busy_since_armed());
            // SAFETY: as above.
            unsafe {
                libc::write(2, note.as_ptr().cast(), note.len());
                libc::_exit(EXIT_TIME_LIMIT);
            }
        }
    }
}

/// The note with a number in it, made without allocating.
fn time_limit_note(busy_millis: u64) -> [u8; 48] {
    let mut note = *b"\nxla-gym-worker: time limit, 0000000000 ms busy\n";
    let mut rest = busy_millis.min(9_999_999_999);
    for digit in note[29..39].iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    note
}

/// Waits until every worker that descends from this one has ended, but no longer than the alarm.
/// They are reaped by the system, which needs this process for it.
pub fn outlive_children() {
    // SAFETY: a plain system call. As SIGCHLD is ignored, it fails once there are no children.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0 {}
}

/// For the hook that a compiler's language has for failed allocations: says so and ends.
pub fn exit_out_of_memory() {
    let note = b"\nxla-gym-worker: out of memory\n";
    // SAFETY: as above; nothing is allocated.
    unsafe {
        libc::write(2, note.as_ptr().cast(), note.len());
        libc::_exit(EXIT_OUT_OF_MEMORY)
    }
}

#[cfg(test)]
mod tests {
    use super::time_limit_note;

    #[test]
    fn the_note_says_how_long_it_worked() {
        for (busy, digits) in [(0, "0000000000"), (1234, "0000001234"), (u64::MAX, "9999999999")] {
            let expected = format!("\nxla-gym-worker: time limit, {digits} ms busy\n");
            assert_eq!(time_limit_note(busy), expected.as_bytes());
        }
    }
}
