//! Startup: scanning the store, recovering sessions, reporting damage.

pub(crate) mod damage;
mod recover;
pub(crate) mod scan;
