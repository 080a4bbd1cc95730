//! Starts a worker process.

#![allow(unsafe_code, reason = "pre_exec: the socket's descriptor, and addresses that repeat")]

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{fd::AsRawFd, unix::net::UnixStream, unix::process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
};

use xla_gym_protocol::WORKER_SOCKET_FD;

/// Starts `program` with one end of a socket pair; returns the other end.
pub fn start(
    program: &Path,
    environment: &[(OsString, Option<OsString>)],
    errors: &File,
) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(program);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::from(errors.try_clone()?))
        .stderr(Stdio::from(errors.try_clone()?));
    for (variable, value) in environment {
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
    }
    let descriptor = theirs.as_raw_fd();
    // SAFETY: only async-signal-safe system calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            // Hash tables of some compilers are seeded by addresses; the same addresses in every
            // run make runs repeatable. Where the system forbids it, forks of one worker still
            // share theirs.
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            let result = if descriptor == WORKER_SOCKET_FD {
                libc::fcntl(descriptor, libc::F_SETFD, 0)
            } else {
                libc::dup2(descriptor, WORKER_SOCKET_FD)
            };
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        });
    }
    let child = command.spawn()?;
    Ok((child, ours))
}
