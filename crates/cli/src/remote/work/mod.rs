//! Commands on questions, requests, messages and agents.

mod answer;
mod ask;
mod claim;
mod inbox;
mod messages;
mod pause;
mod retry;
mod review;
mod send;
mod wait;
mod worker;

pub(super) use answer::Answer;
pub(super) use ask::Ask;
pub(super) use claim::{Claim, Fail, Finish, Release};
pub(super) use inbox::Inbox;
pub(super) use messages::Messages;
pub(super) use pause::{Pause, Resume};
pub(super) use retry::{Cancel, Retry};
pub(super) use review::Review;
pub(super) use send::Send;
pub(super) use wait::Wait;
pub(super) use worker::Work;
pub use worker::{Keeper, WORK_VARIABLES};
