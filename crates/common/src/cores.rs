//! The same work for many items, on all cores.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crate::lock;

/// How many cores this process may use.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}

/// Calls `work` for every number below `count`, on all cores; the results in order. After an
/// error no further item is begun, and the first error is returned.
///
/// ```
/// use xla_gym_common::on_all_cores;
///
/// let squares = on_all_cores(5, |n| Ok::<_, String>(n * n));
/// assert_eq!(squares, Ok(vec![0, 1, 4, 9, 16]));
/// ```
pub fn on_all_cores<R: Send, E: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let failed = AtomicBool::new(false);
    let results: Mutex<Vec<Option<Result<R, E>>>> = Mutex::new((0..count).map(|_| None).collect());
    each_on_all_cores((0..count).take_while(|_| !failed.load(Ordering::Relaxed)), |item| {
        let result = work(item);
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        lock(&results)[item] = Some(result);
    });
    // Items are begun in order, so those that are missing come after the one that failed.
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

/// Calls `work` for every item, on as many threads as there are cores, which have ended when it is
/// done.
///
/// ```
/// use xla_gym_common::each_on_all_cores;
///
/// let mut numbers = [1, 2, 3, 4, 5];
/// each_on_all_cores(numbers.chunks_mut(2), |part| part.iter_mut().for_each(|n| *n *= 10));
/// assert_eq!(numbers, [10, 20, 30, 40, 50]);
/// ```
pub fn each_on_all_cores<T, I>(items: I, work: impl Fn(T) + Sync)
where
    I: IntoIterator<Item = T>,
    I::IntoIter: Send,
{
    let items = items.into_iter();
    let threads = items.size_hint().1.map_or(cores(), |most| cores().min(most));
    let left = Mutex::new(items);
    let next = || lock(&left).next();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
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
