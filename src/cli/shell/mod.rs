//! Completions and manual pages of the commands.

mod completions;
mod man;

pub(super) use completions::Completions;
pub(super) use man::Man;
