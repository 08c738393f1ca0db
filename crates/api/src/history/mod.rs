//! Readers of history: the audit and diffs.

pub mod audit;
pub(crate) mod diff;
pub mod diff_page;
