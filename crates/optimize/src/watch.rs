//! Somebody who watches.

use crate::clock::Clock;

/// Is told what is being done. All of it may be ignored.
pub trait Watch: Sync {
    /// What is being done now.
    fn doing(&self, _what: &str) {}
    /// So many items are to come.
    fn counting(&self, _total: u64, _unit: &str) {}
    /// So many are done.
    fn at(&self, _done: u64) {}
    /// No more counting.
    fn done_counting(&self) {}
}

impl Watch for () {}

/// Somebody who is shown how much of the time is over, where it is limited.
pub struct Timed<'a> {
    watch: &'a dyn Watch,
    clock: Clock,
}

impl<'a> Timed<'a> {
    pub fn new(watch: &'a dyn Watch, clock: Clock) -> Timed<'a> {
        if let Some(total) = clock.total() {
            watch.counting(total.as_secs(), "seconds");
        }
        Timed { watch, clock }
    }
}

impl Watch for Timed<'_> {
    fn doing(&self, what: &str) {
        self.watch.doing(what);
        if self.clock.is_limited() {
            self.watch.at(self.clock.elapsed().as_secs());
        }
    }

    fn counting(&self, total: u64, unit: &str) {
        if !self.clock.is_limited() {
            self.watch.counting(total, unit);
        }
    }

    fn at(&self, done: u64) {
        let limited = self.clock.is_limited();
        self.watch.at(if limited { self.clock.elapsed().as_secs() } else { done });
    }

    fn done_counting(&self) {
        if !self.clock.is_limited() {
            self.watch.done_counting();
        }
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        self.watch.done_counting();
    }
}
