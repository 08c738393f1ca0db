//! Histograms of durations and sizes.

use std::time::Duration;

use prometheus_client::metrics::histogram;

/// Bounds of times: 0.1 ms to 10 s.
const TIMES: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// The number of bounds, which double from 1 to 32,768.
const NUMBERS: u16 = 16;

/// A histogram of durations.
#[derive(Debug)]
pub struct Times(pub(super) histogram::Histogram);

/// A histogram of numbers.
#[derive(Debug)]
pub struct Numbers(pub(super) histogram::Histogram);

impl Times {
    /// Records a duration.
    pub fn observe(&self, took: Duration) {
        self.0.observe(took.as_secs_f64());
    }
}

impl Default for Times {
    fn default() -> Self {
        Self(times())
    }
}

impl Numbers {
    /// Records a number.
    pub fn observe(&self, number: usize) {
        self.0.observe(number as f64);
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self(histogram::Histogram::new(histogram::exponential_buckets(1.0, 2.0, NUMBERS)))
    }
}

/// Creates a histogram with the bounds of durations.
pub(super) fn times() -> histogram::Histogram {
    histogram::Histogram::new(TIMES)
}
