//! Counters, plain or labelled with one of a fixed set of words.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// A counter.
#[derive(Debug, Default)]
pub struct Count(pub(super) Counter);

impl Count {
    /// Adds one.
    pub fn add_one(&self) {
        self.0.inc();
    }
}

/// Counters by word. The words are fixed, so their number is bounded.
#[derive(Debug)]
pub struct CounterByWord {
    label: &'static str,
    pub(super) counts: Family<Label, Counter>,
}

type Label = [(&'static str, &'static str); 1];

impl CounterByWord {
    pub(super) fn new(label: &'static str) -> Self {
        Self { label, counts: Family::default() }
    }

    /// Adds one to the counter of this word.
    pub fn add_one(&self, word: &'static str) {
        self.counts.get_or_create(&[(self.label, word)]).inc();
    }
}
