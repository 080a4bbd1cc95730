//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what a panic elsewhere cannot have left half changed.
///
/// A thread that panics while it holds a lock poisons it. Where each change is a single step, such
/// as an entry that is added, what is behind the lock is whole all the same, and one broken item
/// must not take everything else down.
///
/// ```
/// let names = std::sync::Mutex::new(vec!["dce"]);
/// xla_gym_common::lock(&names).push("cse");
/// assert_eq!(*xla_gym_common::lock(&names), ["dce", "cse"]);
/// ```
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_elsewhere_does_not_lock_others_out() {
        let number = Mutex::new(1);
        let result = std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _guard = lock(&number);
                panic!("while it is locked");
            });
            panics.join()
        });
        assert!(result.is_err() && number.is_poisoned());
        assert_eq!(*lock(&number), 1);
    }
}
