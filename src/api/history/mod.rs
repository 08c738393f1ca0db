//! Walks through a history: the audit, and the difference of two revisions.

pub(crate) mod audit;
pub(crate) mod diff;
