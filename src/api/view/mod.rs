//! Entries, changes, agents and state as JSON.

pub(crate) mod agent;
pub(crate) mod change;
pub(crate) mod entry;
pub(crate) mod event;
pub(crate) mod inline_image;
pub(crate) mod state;
