//! Gauges: numbers that go up and down.

use prometheus_client::metrics::gauge;

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(pub(super) gauge::Gauge);

/// One unit of a gauge, subtracted on drop.
#[must_use]
#[derive(Debug)]
pub struct Counted(&'static Gauge);

impl Gauge {
    /// Adds one until the returned guard is dropped.
    pub fn count(&'static self) -> Counted {
        self.0.inc();
        Counted(self)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.dec();
    }
}
