//! Commands on questions, requests and agents.

mod answer;
mod ask;
mod claim;
mod inbox;
mod pause;

pub(super) use answer::Answer;
pub(super) use ask::Ask;
pub(super) use claim::{Claim, Fail, Finish, Release};
pub(super) use inbox::Inbox;
pub(super) use pause::{Pause, Resume};
