//! How the time for everything is shared out.

use std::time::{Duration, Instant};

/// Time that has begun, and when it is over, if it is.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    begin: Instant,
    total: Option<Duration>,
}

impl Clock {
    /// `total` from `begin` on.
    pub fn new(begin: Instant, total: Option<Duration>) -> Clock {
        Clock { begin, total }
    }

    /// Whether the time is limited.
    pub fn is_limited(&self) -> bool {
        self.total.is_some()
    }

    /// All of it, if it is limited.
    pub fn total(&self) -> Option<Duration> {
        self.total
    }

    /// How much is over.
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// What is left when `reserved` is kept for something else. Without end if the time is not limited.
    pub fn left(&self, reserved: Duration) -> Duration {
        self.total.map_or(Duration::MAX, |total| {
            total.saturating_sub(self.elapsed()).saturating_sub(reserved)
        })
    }

    /// The moment at which this share of what is left is over, `reserved` kept aside.
    pub fn after(&self, share: f64, reserved: Duration) -> Option<Instant> {
        self.total.map(|_| Instant::now() + self.left(reserved).mul_f64(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_not_given_away() {
        let clock = Clock::new(Instant::now(), Some(Duration::from_secs(100)));
        let left = clock.left(Duration::from_secs(40));
        assert!(left <= Duration::from_secs(60) && left > Duration::from_secs(59));
        assert_eq!(clock.left(Duration::from_secs(200)), Duration::ZERO);
        let half = clock.after(0.5, Duration::from_secs(40)).unwrap() - Instant::now();
        assert!(half <= Duration::from_secs(30) && half > Duration::from_secs(29));
        let endless = Clock::new(Instant::now(), None);
        assert_eq!(endless.left(Duration::from_secs(9)), Duration::MAX);
        assert!(endless.after(0.5, Duration::ZERO).is_none());
    }
}
