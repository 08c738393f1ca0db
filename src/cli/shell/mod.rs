//! What a shell and `man` know of the commands.

mod completions;
mod man;

pub(super) use completions::Completions;
pub(super) use man::Man;
