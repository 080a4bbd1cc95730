//! Waiting without falling asleep.

use std::{
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};

/// Longer than most passes and most answers take.
const LOOK_OUT: Duration = Duration::from_micros(200);

/// Looks out for the first byte of a message for a moment, leaving the processor to whoever
/// wants it. A process that sleeps takes some 50 µs to wake up on an idle core, more than a
/// message and many a pass take; so both sides look out before they sleep. But only while
/// `alone`: where several workers share the cores, whoever looks out takes the place of somebody
/// who works.
pub fn look_out(socket: &UnixStream, alone: impl Fn() -> bool) {
    let begin = Instant::now();
    while alone() && begin.elapsed() < LOOK_OUT {
        match recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => std::thread::yield_now(),
            _ => return,
        }
    }
}
