//! What waits to be written to disk.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use xla_gym_common::lock;
use xla_gym_protocol::{Fingerprint, PassId};

use crate::known::{Outcome, State};

/// How many entries may wait. More are only waiting when the disk stands still.
const BOUND: usize = 32 * 1024;

/// How many entries are written at once.
const BATCH: usize = 1000;

/// How long the first entry waits for company.
const GATHER: Duration = Duration::from_millis(100);

/// How long an entry waits for room. After that, entries are lost to the disk without waiting,
/// until the writer is seen to move again.
const PATIENCE: Duration = Duration::from_millis(500);

/// One thing to write.
pub enum Entry {
    Outcome { from: Fingerprint, pass: PassId, outcome: Outcome },
    State(Arc<State>),
    Start { source: Fingerprint, kind: Box<str>, state: Fingerprint },
    Forget { from: Fingerprint, pass: PassId },
}

/// Between those who add and the thread that writes.
#[derive(Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    /// Wakes the writer.
    work: Condvar,
    /// Wakes those who wait for room, or for their entries to be written.
    progress: Condvar,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<Entry>,
    /// How many were ever accepted, and how many of them are written.
    accepted: u64,
    written: u64,
    /// How many never reach the disk.
    lost: u64,
    /// Somebody waits for what is queued, so the writer does not wait for company.
    hurry: bool,
    /// The last wait for room was in vain.
    stalled: bool,
    /// Nothing is accepted any more, but what waits is still written.
    closing: bool,
    /// The writer has ended.
    ended: bool,
}

impl Queue {
    /// Adds an entry, or loses it where there is no room or no writer.
    pub fn push(&self, entry: Entry) {
        let mut inner = self.lock();
        if inner.waiting.len() >= BOUND && !inner.stalled && !inner.ended {
            inner = self.wait(&self.progress, inner, Some(PATIENCE), |inner| {
                inner.waiting.len() >= BOUND && !inner.ended
            });
            inner.stalled = inner.waiting.len() >= BOUND;
        }
        if inner.waiting.len() >= BOUND || inner.closing || inner.ended {
            inner.lost += 1;
            return;
        }
        inner.waiting.push_back(entry);
        inner.accepted += 1;
        if matches!(inner.waiting.len(), 1 | BATCH) {
            self.work.notify_one();
        }
    }

    /// Waits until everything accepted so far is written, or nothing will be written any more.
    pub fn flush(&self) {
        let mut inner = self.lock();
        let goal = inner.accepted;
        if inner.written < goal {
            inner.hurry = true;
            self.work.notify_one();
            let unwritten = |inner: &Inner| inner.written < goal && !inner.ended;
            drop(self.wait(&self.progress, inner, None, unwritten));
        }
    }

    /// Accepts nothing more, and waits a while until the rest is written. Says whether the writer
    /// has ended.
    pub fn close(&self, patience: Duration) -> bool {
        let mut inner = self.lock();
        inner.closing = true;
        self.work.notify_one();
        self.wait(&self.progress, inner, Some(patience), |inner| !inner.ended).ended
    }

    /// The next entries to write, and none once the queue is closed and empty.
    pub fn next_batch(&self) -> Option<Vec<Entry>> {
        let mut inner = self.wait(&self.work, self.lock(), None, |inner| {
            inner.waiting.is_empty() && !inner.closing
        });
        inner = self.wait(&self.work, inner, Some(GATHER), |inner| {
            inner.waiting.len() < BATCH && !inner.hurry && !inner.closing
        });
        let size = inner.waiting.len().min(BATCH);
        let batch: Vec<Entry> = inner.waiting.drain(..size).collect();
        inner.hurry &= !inner.waiting.is_empty();
        inner.stalled = false;
        self.progress.notify_all();
        if batch.is_empty() { None } else { Some(batch) }
    }

    /// The writer says that it has written so many entries.
    pub fn written(&self, entries: usize) {
        self.lock().written += entries as u64;
        self.progress.notify_all();
    }

    /// The writer says that it writes no more; what waits is lost to the disk.
    pub fn end(&self) {
        let mut inner = self.lock();
        inner.ended = true;
        inner.lost += inner.accepted - inner.written;
        inner.written = inner.accepted;
        inner.waiting = VecDeque::new();
        self.progress.notify_all();
    }

    /// How many entries never reached the disk.
    pub fn lost(&self) -> u64 {
        self.lock().lost
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Waits while the condition holds, but no longer than the patience.
    fn wait<'a>(
        &self,
        signal: &Condvar,
        mut inner: MutexGuard<'a, Inner>,
        patience: Option<Duration>,
        condition: impl Fn(&Inner) -> bool,
    ) -> MutexGuard<'a, Inner> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        while condition(&inner) {
            inner = match deadline {
                None => signal.wait(inner).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    let result = signal.wait_timeout(inner, left);
                    result.unwrap_or_else(|poisoned| poisoned.into_inner()).0
                }
            };
        }
        inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u128) -> Entry {
        Entry::Forget { from: Fingerprint(key), pass: PassId(0) }
    }

    #[test]
    fn without_room_entries_are_lost_after_one_short_wait() {
        let queue = Queue::default();
        let start = Instant::now();
        for key in 0..(BOUND + 1000) as u128 {
            queue.push(entry(key));
        }
        assert!(start.elapsed() < Duration::from_secs(5), "one wait, not a thousand");
        assert_eq!(queue.lost(), 1000);
        assert_eq!(queue.next_batch().map(|batch| batch.len()), Some(BATCH));
        queue.push(entry(0));
        assert_eq!(queue.lost(), 1000, "there is room again");
    }

    #[test]
    fn nobody_waits_for_a_writer_that_has_ended() {
        let queue = Queue::default();
        queue.push(entry(1));
        queue.end();
        queue.flush();
        queue.push(entry(2));
        queue.flush();
        assert!(queue.close(Duration::ZERO));
        assert_eq!(queue.lost(), 2);
    }

    #[test]
    fn a_closed_queue_is_emptied_first() {
        let queue = Queue::default();
        queue.push(entry(1));
        assert!(!queue.close(Duration::ZERO));
        assert_eq!(queue.next_batch().map(|batch| batch.len()), Some(1));
        assert!(queue.next_batch().is_none());
    }
}
