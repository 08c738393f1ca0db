//! Operations: health and metrics.

pub(crate) mod docs;
pub(crate) mod health;
pub(crate) mod metrics;
