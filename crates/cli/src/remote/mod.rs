//! Commands that talk to a server, for people and scripts.

mod access;
mod attention;
mod board;
mod body;
mod demo;
mod end;
mod feed;
mod forward;
mod history;
mod input;
mod place;
mod query;
mod refusal;
mod repeat;
mod request;
mod screen;
mod server;
mod tail;
mod work;

use clap::Subcommand;

pub(crate) use self::attention::{Arrivals, Thing, Wanted};
pub use self::forward::SECRET_VARIABLE;
pub(crate) use self::place::InvalidJson;
pub use self::work::{Keeper, WORK_VARIABLES};
use crate::Failure;

/// The commands, each with the flags of a connection.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "the names of the commands; a text would be their help")]
pub enum Remote {
    Demo(demo::Demo),
    Tail(tail::Tail),
    Forward(forward::Forward),
    Sessions(board::Sessions),
    Show(board::Show),
    Post(board::Post),
    Blob(board::Blob),
    Agents(board::Agents),
    Delete(board::Delete),
    State(board::State),
    Ask(work::Ask),
    Answer(work::Answer),
    Inbox(work::Inbox),
    Send(work::Send),
    Messages(work::Messages),
    Attention(attention::Attention),
    Claim(work::Claim),
    Finish(work::Finish),
    Fail(work::Fail),
    Release(work::Release),
    Retry(work::Retry),
    Cancel(work::Cancel),
    Review(work::Review),
    Wait(work::Wait),
    Work(work::Work),
    Prompt(board::Prompt),
    Search(board::Search),
    Diff(history::Diff),
    Checkpoint(history::Checkpoint),
    Fork(history::Fork),
    Restore(history::Restore),
    Pause(work::Pause),
    Resume(work::Resume),
}

impl Remote {
    /// Runs the command.
    ///
    /// # Errors
    ///
    /// The usage is invalid, the server refused or was not reached, or the command failed.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Demo(demo) => demo.run(),
            Self::Tail(tail) => tail.run(),
            Self::Forward(forward) => forward.run(),
            Self::Sessions(sessions) => sessions.run(),
            Self::Show(show) => show.run(),
            Self::Post(post) => post.run(),
            Self::Blob(blob) => blob.run(),
            Self::Agents(agents) => agents.run(),
            Self::Delete(delete) => delete.run(),
            Self::State(state) => state.run(),
            Self::Ask(ask) => ask.run(),
            Self::Answer(answer) => answer.run(),
            Self::Inbox(inbox) => inbox.run(),
            Self::Send(send) => send.run(),
            Self::Messages(messages) => messages.run(),
            Self::Attention(attention) => attention.run(),
            Self::Claim(claim) => claim.run(),
            Self::Finish(finish) => finish.run(),
            Self::Fail(fail) => fail.run(),
            Self::Release(release) => release.run(),
            Self::Retry(retry) => retry.run(),
            Self::Cancel(cancel) => cancel.run(),
            Self::Review(review) => review.run(),
            Self::Wait(wait) => wait.run(),
            Self::Work(work) => work.run(),
            Self::Prompt(prompt) => prompt.run(),
            Self::Search(search) => search.run(),
            Self::Diff(diff) => diff.run(),
            Self::Checkpoint(checkpoint) => checkpoint.run(),
            Self::Fork(fork) => fork.run(),
            Self::Restore(restore) => restore.run(),
            Self::Pause(pause) => pause.run(),
            Self::Resume(resume) => resume.run(),
        }
    }
}
