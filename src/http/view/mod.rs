//! Views: how entries, changes and the state are shown.

pub(crate) mod change;
pub(crate) mod entry;
pub(crate) mod state;
