//! Bodies of the server's answers that several commands read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::request::{Claim, End, PastAttempt, Task};
use super::screen::Table;
use blackboard_board::LogName;

/// An entry of a log.
#[derive(Debug, Deserialize)]
pub(super) struct Entry<'a> {
    /// In lists over all sessions.
    #[serde(borrow)]
    pub(super) session: Option<Cow<'a, str>>,
    pub(super) seq: u64,
    pub(super) revision: u64,
    #[serde(borrow)]
    pub(super) at: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) item: &'a RawValue,
    /// Of a message that its agent has acknowledged.
    #[serde(borrow)]
    acked_at: Option<Cow<'a, str>>,
    pub(super) claim: Option<Claim>,
    #[serde(borrow)]
    done: Option<End<'a>>,
    #[serde(borrow)]
    failed: Option<End<'a>>,
    #[serde(borrow)]
    cancelled: Option<End<'a>>,
    #[serde(borrow)]
    in_review: Option<End<'a>>,
    #[serde(borrow)]
    cancel: Option<End<'a>>,
    #[serde(default)]
    blocked_by: Vec<u64>,
    #[serde(default)]
    stopped_by: Vec<u64>,
    #[serde(default)]
    after: Vec<u64>,
    priority: Option<i64>,
    not_before: Option<String>,
    deadline: Option<String>,
    #[serde(default)]
    review: bool,
    attempts: Option<u32>,
    failures: Option<u32>,
    #[serde(borrow, default)]
    past_attempts: Vec<PastAttempt<'a>>,
}

impl Entry<'_> {
    /// Returns what the envelope says of a request.
    pub(super) fn task(&self) -> Task<'_> {
        Task {
            done: self.done.as_ref(),
            failed: self.failed.as_ref(),
            cancelled: self.cancelled.as_ref(),
            in_review: self.in_review.as_ref(),
            cancel: self.cancel.as_ref(),
            claim: self.claim.as_ref(),
            blocked_by: &self.blocked_by,
            stopped_by: &self.stopped_by,
            after: &self.after,
            priority: self.priority,
            not_before: self.not_before.as_deref(),
            deadline: self.deadline.as_deref(),
            review: self.review,
            attempts: self.attempts,
            failures: self.failures,
            past_attempts: &self.past_attempts,
        }
    }

    /// Returns the state of an entry of this log in few words; only requests and messages have one.
    pub(super) fn words(&self, log: &LogName) -> String {
        match (&self.acked_at, log) {
            (Some(_), _) => "acknowledged".to_owned(),
            (None, LogName::Requests) => self.task().words(),
            (None, _) => String::new(),
        }
    }

    /// Returns the entry of this log for people, a line each member.
    pub(super) fn facts(&self, log: &LogName) -> String {
        let mut table = Table::without_head();
        table.fact("seq", &self.seq.to_string());
        table.fact("revision", &self.revision.to_string());
        table.fact("at", &self.at);
        if let Some(agent) = &self.agent {
            table.fact("agent", agent);
        }
        if *log == LogName::Requests {
            table.fact("state", &self.task().sentence());
            self.task().list_verdict(&mut table);
            self.task().list_attempts(&mut table);
            self.task().list_terms(&mut table);
        }
        if let Some(at) = &self.acked_at {
            table.fact("acked_at", at);
        }
        if let Some(claim) = &self.claim {
            table.fact("fence", &claim.fence.to_string());
        }
        table.fact("item", self.item.get());
        table.text()
    }
}

/// The outcome of a write.
#[derive(Debug, Deserialize)]
pub(super) struct Written {
    pub(super) revision: u64,
    #[serde(default)]
    pub(super) entries: Vec<NewEntry>,
    dropped: Option<u64>,
    skipped_count: Option<u64>,
    #[serde(default)]
    warnings: Vec<Fault>,
}

/// An entry that was made.
#[derive(Debug, Deserialize)]
pub(super) struct NewEntry {
    pub(super) seq: u64,
}

/// A part of a body that was taken with a doubt.
#[derive(Debug, Deserialize)]
struct Fault {
    detail: String,
}

impl Written {
    /// Returns the outcome as a line, with the entries that were made at this place.
    pub(super) fn sentence(&self, place: &str) -> String {
        let revision = format!("revision {}", self.revision);
        let made = match self.entries.as_slice() {
            [] => None,
            [one] => Some(format!("{place}/{}", one.seq)),
            [first, .., last] => Some(format!("{place}/{} to {}", first.seq, last.seq)),
        };
        let count = |count: Option<u64>, what: &str| count.map(|count| format!("{count} {what}"));
        let rest = [
            count(self.dropped, "not kept, by the session's settings"),
            count(self.skipped_count, "lines skipped"),
        ];
        let warnings = self.warnings.iter().map(|fault| format!("warning: {}", fault.detail));
        let parts = made.into_iter().chain([revision]).chain(rest.into_iter().flatten());
        let mut table = Table::without_head();
        table.fact(&parts.chain(warnings).collect::<Vec<_>>().join("; "), "");
        table.text()
    }
}
