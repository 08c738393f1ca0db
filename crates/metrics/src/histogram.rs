//! Histograms of durations and sizes.
//!
//! Each bound is a line of every series, so bounds are few, about five times apart. A histogram without observations
//! is left out of the text.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;

/// Bounds of durations, in seconds: 1 ms to 2.5 s.
const TIMES: [f64; 6] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5];

/// Bounds of numbers; the last one is the largest batch.
const NUMBERS: [f64; 6] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0];

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct Times(pub(super) Lazy);

/// A histogram of numbers.
#[derive(Debug, Default)]
pub struct Numbers(pub(super) Lazy);

/// A histogram that begins with its first observation.
#[derive(Clone, Debug, Default)]
pub(super) struct Lazy(Arc<OnceLock<Histogram>>);

impl Times {
    /// Records a duration.
    pub fn observe(&self, took: Duration) {
        self.0.0.get_or_init(times).observe(took.as_secs_f64());
    }
}

impl Numbers {
    /// Records a number.
    pub fn observe(&self, number: usize) {
        self.0.0.get_or_init(|| Histogram::new(NUMBERS)).observe(number as f64);
    }
}

/// Creates a histogram with the bounds of durations.
pub(super) fn times() -> Histogram {
    Histogram::new(TIMES)
}

impl EncodeMetric for Lazy {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.get().map_or(Ok(()), |begun| begun.encode(encoder))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }

    fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }
}
