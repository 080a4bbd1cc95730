//! Passes that misbehave, each in one way of real compilers.

#![allow(unsafe_code, reason = "raising a signal and writing past the protocol are the point")]

use std::{hint::black_box, thread, time::Duration};

use crate::program::Program;

/// Changes the program, late.
pub fn slow(program: &mut Program) -> Result<bool, String> {
    thread::sleep(Duration::from_millis(50));
    Ok(program.shift())
}

/// Changes the program and then fails: the change must not be seen by anybody.
pub fn half(program: &mut Program) -> Result<bool, String> {
    program.shift();
    Err("toy.cc:2: the other half is missing".to_owned())
}

/// Fails a check, in the words of the logging library that XLA uses.
pub fn abort() -> ! {
    eprintln!("F0000 00:00:1.2 7 toy.cc:1] Check failed: toy (1 vs. 2)");
    eprintln!("*** Check failure stack trace: ***");
    std::process::abort()
}

/// Panics, as a worker's own code would.
pub fn panic() -> ! {
    panic!("a bug in the worker")
}

/// Dies of a segmentation fault.
pub fn segfault() -> ! {
    // SAFETY: the signal's handler ends the process.
    unsafe { libc::raise(libc::SIGSEGV) };
    unreachable!("the handler does not return")
}

/// Needs more stack than there is.
pub fn overflow() -> ! {
    #[allow(unconditional_recursion, reason = "that is the fault")]
    fn deeper(depth: u64) -> u64 {
        let frame = black_box([depth; 64]);
        deeper(depth + 1) + black_box(frame)[0]
    }
    unreachable!("came back from {}", deeper(0))
}

/// Never returns.
pub fn hang() -> ! {
    loop {
        black_box(());
    }
}

/// Takes memory until the limit, then does what a compiler's allocation hook does.
pub fn hog() -> ! {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut block = Vec::new();
        if block.try_reserve_exact(16 << 20).is_err() {
            xla_gym_worker::exit_out_of_memory();
        }
        taken.push(black_box(block));
    }
}

/// Writes what is no message to the client, then goes on as if nothing had happened.
pub fn garbage() -> Result<bool, String> {
    let noise = [0xff_u8; 64];
    for descriptor in 3..16 {
        // SAFETY: writes bytes that live long enough; descriptors that are not open are refused.
        unsafe { libc::write(descriptor, noise.as_ptr().cast(), noise.len()) };
    }
    Ok(false)
}
