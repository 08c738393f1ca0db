//! Tests of the embedded store as a whole.

mod backup;
pub(crate) mod bases;
mod blobs;
pub(crate) mod compaction;
mod compaction_model;
pub(crate) mod fault;
mod formats;
mod last_commit;
pub(crate) mod sqlite;
mod wal;
