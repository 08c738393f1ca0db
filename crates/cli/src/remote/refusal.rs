//! Refusals and failures of commands that talk to a server, each class with its exit code.
//!
//! `docs/reference/exit-codes.md` lists the codes.

use std::io;

use hyper::StatusCode;

use super::forward::Stopped;
use super::place::InvalidJson;
use crate::Failure;
use crate::connection::{foreign, innermost, unconnected};
use blackboard_board::SessionName;
use blackboard_client as client;

/// A command that did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The server refused.
    #[error("{detail} ({name}){}", remedy(name))]
    Refused {
        status: StatusCode,
        /// The problem's code, or the status.
        name: String,
        detail: String,
    },
    /// The server was not reached, or its answer did not come.
    #[error("{}", unreached(url, error))]
    Unreached { url: String, error: client::Error },
    /// A write got no answer.
    #[error(
        "{}; the write may have been done; to be sure, repeat it with --idempotency-key {key}",
        unreached(url, error)
    )]
    Unanswered { url: String, error: client::Error, key: String },
    /// Something else than a Blackboard server answered.
    #[error(
        "{url} answered {status}, but not as a Blackboard server does; check --url (BLACKBOARD_URL)"
    )]
    Foreign { url: String, status: StatusCode },
    /// A place's name has characters that no URL has.
    #[error("{path:?} is not the path of a URL")]
    Address { path: String },
    /// The time is over.
    #[error("question {seq} was not answered within {time}; it stays open")]
    NotAnswered { seq: u64, time: String },
    /// A question ended without an answer.
    #[error("question {seq} was skipped")]
    Skipped { seq: u64 },
    /// A question ended without an answer.
    #[error("question {seq} expired without an answer")]
    Expired { seq: u64 },
    /// No request can be claimed.
    #[error("no request can be claimed now; --wait waits for one")]
    NothingToClaim,
    /// No message came.
    #[error("no message came within {time}")]
    NoMessage { time: String },
    /// A message cannot have the members that options give.
    #[error(
        "with --thread or --reply-to a message is a text, or one JSON object without that member"
    )]
    NoMembers,
    /// Nobody has claimed the request.
    #[error("nobody has claimed request {seq}; --unclaimed finishes it all the same")]
    Unclaimed { seq: u64 },
    /// The time of a wait is over.
    #[error("request {seq} {unmet} within {time}: {state}")]
    NotInTime { seq: u64, unmet: &'static str, time: String, state: String },
    /// A request has no result to judge.
    #[error("request {seq} is not in review")]
    NotInReview { seq: u64 },
    /// Something is deleted without a question.
    #[error("session {session} is not deleted without a question; give --yes")]
    Unasked { session: SessionName },
    /// Somebody who was asked said no.
    #[error("nothing was deleted")]
    Declined,
    /// Nothing waits for an agent.
    #[error("nothing waits for the agent now; --wait waits for something")]
    NothingWaits,
    /// A command for an agent does not know which.
    #[error("{what} needs the name of an agent; give it with --agent (BLACKBOARD_AGENT)")]
    Nameless { what: &'static str },
    /// A worker's command does not exist.
    #[error("{program} is not a program; nothing was claimed")]
    NoProgram { program: String },
    /// A worker's command cannot be started.
    #[error("cannot start the command")]
    Child(#[source] io::Error),
    /// The demonstration would mix with what a session holds.
    #[error("session {session} already exists; choose another name, or give none")]
    Occupied { session: SessionName },
    /// A call of the recorded example run is none.
    #[error("the example run within this program is damaged")]
    Recording(#[source] serde_json::Error),
    /// An event is none.
    #[error("the server sent an event that is not a Blackboard server's")]
    Event(#[source] serde_json::Error),
    /// An argument or a file is not JSON.
    #[error(transparent)]
    Json(#[from] InvalidJson),
    /// Forwarding ended.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A past session is asked for as if it were a log.
    #[error("--at is for a log or an entry, such as {session}/requests")]
    PastSession { session: String },
    /// A file was named where its content is the item.
    #[error("{file} is a file; --file {file} sends its content")]
    IsFile { file: String },
    /// A file or standard input cannot be read.
    #[error("cannot read {name}")]
    Input { name: String, source: io::Error },
    /// A file cannot be written.
    #[error("cannot write {name}")]
    Unwritten { name: String, source: io::Error },
    /// An input is too large.
    #[error("{name} has more than {max} bytes")]
    TooLarge { name: String, max: u64 },
    /// The output cannot be written.
    #[error("cannot print")]
    Output(#[source] io::Error),
}

impl Refusal {
    /// Returns the exit code of the process.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Unwritten { .. }
            | Self::Declined
            | Self::Input { .. }
            | Self::TooLarge { .. }
            | Self::Output(_)
            | Self::Recording(_)
            | Self::Child(_) => 1,
            Self::Json(_)
            | Self::Address { .. }
            | Self::PastSession { .. }
            | Self::IsFile { .. }
            | Self::NoMembers
            | Self::Nameless { .. }
            | Self::Unasked { .. }
            | Self::NoProgram { .. } => 2,
            Self::Unreached { .. } | Self::Unanswered { .. } => 3,
            Self::Refused { status, .. } => of_status(*status),
            Self::Occupied { .. } | Self::Unclaimed { .. } | Self::NotInReview { .. } => 6,
            Self::Stopped(stopped) => stopped.exit_code(),
            Self::NotAnswered { .. }
            | Self::NotInTime { .. }
            | Self::Skipped { .. }
            | Self::Expired { .. }
            | Self::NothingToClaim
            | Self::NoMessage { .. }
            | Self::NothingWaits => 7,
            Self::Foreign { .. } | Self::Event(_) => 11,
        }
    }

    /// Returns true if the server rejected a request with this code.
    pub(super) fn is_of(&self, code: &str) -> bool {
        matches!(self, Self::Refused { name, .. } if name == code)
    }

    /// Returns true if what a request was for does not exist, or no longer.
    pub(super) fn is_absence(&self) -> bool {
        self.exit_code() == 5
    }

    /// Returns true if the same request may succeed later, as while a server restarts.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self.exit_code(), 3 | 9 | 11)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { code: refusal.exit_code(), error: refusal.into() }
    }
}

fn of_status(status: StatusCode) -> u8 {
    match status.as_u16() {
        401 | 403 => 4,
        404 | 410 => 5,
        409 => 6,
        412 => 7,
        408 | 429 | 503 => 9,
        507 => 10,
        400..=499 => 8,
        _ => 11,
    }
}

/// Returns what to do about a refusal where a flag of the command line is the remedy.
fn remedy(name: &str) -> &'static str {
    match name {
        "agent-required" => "; name the agent with --agent (BLACKBOARD_AGENT)",
        "route-not-found" => "; check --url (BLACKBOARD_URL)",
        "unauthorized" => "; give a token with BLACKBOARD_TOKEN or --token-file",
        _ => "",
    }
}

fn unreached(url: &str, error: &client::Error) -> String {
    match error {
        client::Error::Connect(why) => unconnected(url, why),
        client::Error::Broken(why) => {
            format!("{url}: the connection broke off ({})", foreign(&innermost(&**why)))
        }
        client::Error::Silent(_) | client::Error::TooLong { .. } | client::Error::Encoding => {
            format!("{url}: {error}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_of_status_has_its_code() {
        for (status, expected) in [
            (400, 8),
            (401, 4),
            (403, 4),
            (404, 5),
            (405, 8),
            (408, 9),
            (409, 6),
            (410, 5),
            (412, 7),
            (413, 8),
            (415, 8),
            (421, 8),
            (422, 8),
            (429, 9),
            (500, 11),
            (502, 11),
            (503, 9),
            (507, 10),
            (302, 11),
        ] {
            assert_eq!(of_status(StatusCode::from_u16(status).unwrap()), expected, "{status}");
        }
    }
}
