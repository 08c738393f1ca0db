//! Tests of the embedded store as a whole.

mod backup;
pub(crate) mod bases;
mod blobs;
pub(crate) mod fault;
pub(crate) mod settling;
mod settling_model;
pub(crate) mod sqlite;
mod wal;
