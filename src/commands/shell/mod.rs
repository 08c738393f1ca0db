//! Completions, manual pages and the overview of the commands.

mod completions;
mod groups;
mod man;

pub(super) use completions::Completions;
pub(super) use groups::template as groups_template;
pub(super) use man::Man;
