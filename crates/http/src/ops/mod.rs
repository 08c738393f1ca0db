//! Operations: health, metrics and the OpenAPI document.

pub(crate) mod docs;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod root;
