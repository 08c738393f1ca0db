//! Single numbers: one that only grows, and one that says how many there are of something.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Text;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// One more.
    pub fn add_one(&self) {
        // It orders nothing.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many there are of something now.
#[derive(Debug)]
pub struct Gauge {
    name: &'static str,
    help: &'static str,
    now: AtomicU64,
}

/// One of those that a gauge counts, until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct Counted(&'static Gauge);

impl Gauge {
    pub(super) const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, now: AtomicU64::new(0) }
    }

    /// One more, as long as what comes back is there.
    pub fn count(&'static self) -> Counted {
        self.now.fetch_add(1, Ordering::Relaxed);
        Counted(self)
    }

    pub(super) fn write(&self, text: &mut Text) {
        text.gauge(self.name, self.help, self.now.load(Ordering::Relaxed));
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}
