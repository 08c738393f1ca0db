//! Bodies of the server's answers that several commands read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

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
    pub(super) claim: Option<Claim>,
    #[serde(borrow)]
    pub(super) done: Option<End<'a>>,
    #[serde(borrow)]
    pub(super) failed: Option<End<'a>>,
    #[serde(default)]
    blocked_by: Vec<u64>,
}

/// A claim on a request.
#[derive(Debug, Deserialize)]
pub(super) struct Claim {
    pub(super) agent: String,
    pub(super) fence: u64,
    pub(super) expires_at: String,
}

/// The end of a request.
#[derive(Debug, Deserialize)]
pub(super) struct End<'a> {
    agent: Option<String>,
    at: String,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
}

impl End<'_> {
    fn sentence(&self, what: &str) -> String {
        let by = self.agent.as_ref().map(|agent| format!(" by {agent}")).unwrap_or_default();
        let value = self.result.or(self.reason);
        let value = value.map(|value| format!(": {}", value.get())).unwrap_or_default();
        format!("{what}{by} at {}{value}", self.at)
    }
}

/// The state of a request: done, failed, claimed, waiting for others, or pending.
pub(super) fn request_state(
    done: Option<&End<'_>>,
    failed: Option<&End<'_>>,
    claim: Option<&Claim>,
    blocked_by: &[u64],
) -> String {
    if let Some(done) = done {
        done.sentence("done")
    } else if let Some(failed) = failed {
        failed.sentence("failed")
    } else if let Some(claim) = claim {
        format!("claimed by {} until {}", claim.agent, claim.expires_at)
    } else if blocked_by.is_empty() {
        "pending".to_owned()
    } else {
        let seqs: Vec<_> = blocked_by.iter().map(u64::to_string).collect();
        format!("waits for {}", seqs.join(", "))
    }
}

impl Entry<'_> {
    /// Returns the state of an entry of this log; only requests have one.
    pub(super) fn state(&self, log: &LogName) -> String {
        if *log != LogName::Requests {
            return String::new();
        }
        let Self { done, failed, claim, blocked_by, .. } = self;
        request_state(done.as_ref(), failed.as_ref(), claim.as_ref(), blocked_by)
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
        let state = self.state(log);
        if !state.is_empty() {
            table.fact("state", &state);
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
