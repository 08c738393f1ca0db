//! Compaction, checks, backups and salvage of the whole store.

mod backup;
pub(crate) mod check;
pub(crate) mod compaction;
pub(crate) mod salvage;
