//! Somebody who watches.

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
