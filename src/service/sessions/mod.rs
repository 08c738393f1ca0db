//! The sessions: their directory, their boards in memory, and how these are loaded and evicted.

mod by_id;
pub(crate) mod directory;
mod labels;
pub(crate) mod list;
pub(crate) mod loader;
pub(crate) mod memory_budget;
pub(crate) mod past_boards;
pub(crate) mod recent_commits;
pub(crate) mod replay;
pub(crate) mod session;
pub(crate) mod snapshots;
mod subscribers;
pub(crate) mod tombstones;
