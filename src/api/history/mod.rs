//! Readers of history: the audit and diffs.

pub(crate) mod audit;
pub(crate) mod diff;
pub(crate) mod diff_page;
