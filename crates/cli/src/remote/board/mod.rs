//! Commands on sessions, logs, the state, and what is made of them.

mod agents;
mod blob;
mod deletion;
mod post;
mod prompt;
mod search;
mod sessions;
mod show;
mod state;

pub(super) use agents::Agents;
pub(super) use blob::Blob;
pub(super) use deletion::Delete;
pub(super) use post::Post;
pub(super) use prompt::Prompt;
pub(super) use search::Search;
pub(super) use sessions::Sessions;
pub(super) use show::Show;
pub(super) use state::State;
