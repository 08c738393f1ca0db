//! Gauges: current numbers.

use prometheus_client::metrics::gauge;

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(pub(super) gauge::Gauge);

/// One of those that a gauge counts, until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct Counted(&'static Gauge);

impl Gauge {
    /// One more, as long as what comes back is there.
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
