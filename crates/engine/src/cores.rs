//! The same work for many items, on all cores.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// How many cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// Calls `work` for every number below `count`, on all cores; the results in order. After an
/// error no further item is begun, and the first error is returned.
pub fn on_all_cores<R: Send, E: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results: Mutex<Vec<Option<Result<R, E>>>> = Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..cores().min(count) {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let item = next.fetch_add(1, Ordering::Relaxed);
                    if item >= count {
                        return;
                    }
                    let result = work(item);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    results.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[item] =
                        Some(result);
                }
            });
        }
    });
    // Items are begun in order, so those that are missing come after the one that failed.
    results
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::on_all_cores;

    #[test]
    fn results_come_in_order() {
        let squares = on_all_cores(100, |n| Ok::<_, ()>(n * n)).unwrap();
        assert_eq!(squares, (0..100).map(|n| n * n).collect::<Vec<_>>());
    }

    #[test]
    fn an_error_ends_it() {
        let begun = std::sync::atomic::AtomicUsize::new(0);
        let result = on_all_cores(1_000_000, |n| {
            begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if n == 10 { Err(n) } else { Ok(n) }
        });
        assert_eq!(result, Err(10));
        assert!(begun.into_inner() < 1_000_000);
    }
}
