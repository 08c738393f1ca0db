//! The parameter `until`: a condition that a read waits for.

use super::query::queries;
use crate::params::{Params, invalid};
use crate::refusal::Refusal;
use crate::schema::pattern;
use crate::schema::shapes::one_of;
use blackboard_board::json;
use blackboard_board::json::DEPTH_MAX;
use blackboard_board::{Entry, Json, LogName, Work};

queries! {
    /// The condition on a value to wait for.
    pub UntilQuery {
        /// `exists`; `absent`, answered with 204; or `equals:` with a JSON value, where numbers compare by value and
        /// members in any order. 412 if the condition is not met; not with `at`
        until via of_value: Until => pattern("^(exists|absent|equals:.+)$"),
    }

    /// The condition on a session to wait for.
    pub SessionUntilQuery {
        /// `exists`; or `absent`, answered with 204. 412 if the condition is not met
        until via of_session: Until => one_of(["exists", "absent"]),
    }

    /// The condition on an entry to wait for.
    pub EntryUntilQuery {
        /// On a question `answered`, also if it was skipped or has expired; on a request `claimed`, also if the claim
        /// has ended, `done`, `failed`, `cancelled`, or `ended`, which is any of these three. 412 if the condition is not
        /// met, at once if it can be met no more; not with `at`
        until via not_past: String =>
            one_of(["answered", "claimed", "done", "failed", "cancelled", "ended"]),
    }

    /// The condition on an agent to wait for.
    pub AgentUntilQuery {
        /// `status:` with a status. 412 if the agent does not get this status; not with `at`
        until via of_agent: String => pattern("^status:.+$"),
    }
}

/// A condition on a value or a session.
#[derive(Clone, Debug)]
pub enum Until {
    /// The value or session exists.
    Exists,
    /// The value or session does not exist.
    Absent,
    /// The value equals this one.
    Equals(Json),
}

/// A condition on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryUntil {
    /// The question has an answer, was skipped, or has expired.
    Answered,
    /// The request was claimed. The claim may have ended, and so may the request.
    Claimed,
    /// The request is done.
    Done,
    /// The request has failed.
    Failed,
    /// The request was cancelled.
    Cancelled,
    /// The request is done, has failed, or was cancelled.
    Ended,
}

/// The state of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// It holds.
    Holds,
    /// It may come to hold.
    Open,
    /// It can come to hold no more.
    Never {
        /// The reason in one word: `done`, `failed` or `cancelled`.
        why: &'static str,
        /// The reason as a sentence.
        detail: String,
    },
}

impl EntryUntil {
    /// Takes the parameter of an entry in this log.
    pub fn param(params: &mut Params, log: &LogName) -> Result<Option<Self>, Refusal> {
        let Some(text) = EntryUntilQuery::take(params)?.until else { return Ok(None) };
        match (log, text.as_str()) {
            (LogName::Questions, "answered") => Ok(Some(Self::Answered)),
            (LogName::Requests, "claimed") => Ok(Some(Self::Claimed)),
            (LogName::Requests, "done") => Ok(Some(Self::Done)),
            (LogName::Requests, "failed") => Ok(Some(Self::Failed)),
            (LogName::Requests, "cancelled") => Ok(Some(Self::Cancelled)),
            (LogName::Requests, "ended") => Ok(Some(Self::Ended)),
            (LogName::Questions, _) => Err(invalid("until", "must be answered on a question")),
            (LogName::Requests, _) => {
                let why = "must be claimed, done, failed, cancelled or ended on a request";
                Err(invalid("until", why))
            }
            (
                LogName::Trajectories
                | LogName::Screenshots
                | LogName::Memory(_)
                | LogName::Messages(_),
                _,
            ) => Err(invalid("until", "needs a question or a request")),
        }
    }

    /// Returns the state of the condition on an entry.
    pub fn prospect(self, entry: &Entry) -> Prospect {
        if self.holds(entry) {
            return Prospect::Holds;
        }
        let seq = entry.seq;
        let because = |reason: Option<&Json>| {
            reason.map(|reason| format!(": {}", shown_reason(reason))).unwrap_or_default()
        };
        match entry.work.as_deref() {
            Some(Work::Done(_)) => {
                Prospect::Never { why: "done", detail: format!("request {seq} is done") }
            }
            Some(Work::Failed(failed)) => {
                let detail = format!("request {seq} has failed{}", because(failed.reason.as_ref()));
                Prospect::Never { why: "failed", detail }
            }
            Some(Work::Cancelled(cancel)) => {
                let reason = because(cancel.reason.as_ref());
                let detail = format!("request {seq} was cancelled{reason}");
                Prospect::Never { why: "cancelled", detail }
            }
            Some(Work::Claimed(_) | Work::Lapsed { .. } | Work::InReview(_)) | None => {
                Prospect::Open
            }
        }
    }

    fn holds(self, entry: &Entry) -> bool {
        let work = entry.work.as_deref();
        match self {
            Self::Answered => entry.item.get("answer").is_some(),
            Self::Claimed => {
                let past = entry.task.as_deref().is_some_and(|task| !task.past_attempts.is_empty());
                past || work.is_some_and(|work| work.agent().is_some() || work.fence().is_some())
                    || work.is_some_and(|work| work.done().is_some())
            }
            Self::Done => work.is_some_and(|work| work.done().is_some()),
            Self::Failed => work.is_some_and(|work| work.failed().is_some()),
            Self::Cancelled => work.is_some_and(|work| work.cancelled().is_some()),
            Self::Ended => work.is_some_and(Work::is_ended),
        }
    }
}

/// Returns a reason as part of a sentence: a string as its text, other JSON as it is, both cut.
fn shown_reason(reason: &Json) -> String {
    let text = reason.text();
    let is_text = json::kind(text) == json::Kind::String;
    let text = if is_text { json::decode(text) } else { text.into() };
    let end = text.floor_char_boundary(REASON_SHOWN_MAX.min(text.len()));
    let cut = if end < text.len() { "…" } else { "" };
    format!("{}{cut}", text.get(..end).unwrap_or_default())
}

/// The maximum length of a reason in a sentence, in bytes.
const REASON_SHOWN_MAX: usize = 500;

/// Takes the condition on a value.
fn of_value(params: &mut Params, name: &'static str) -> Result<Option<Until>, Refusal> {
    let Some(text) = not_past(params, name)? else { return Ok(None) };
    match (text.as_str(), text.strip_prefix("equals:")) {
        ("exists", _) => Ok(Some(Until::Exists)),
        ("absent", _) => Ok(Some(Until::Absent)),
        (_, Some(value)) => equals(name, value).map(Some),
        (_, None) => {
            Err(invalid(name, "must be exists, absent, or equals: followed by a JSON value"))
        }
    }
}

/// Takes the condition on a session.
fn of_session(params: &mut Params, name: &'static str) -> Result<Option<Until>, Refusal> {
    match params.text(name)?.as_deref() {
        None => Ok(None),
        Some("exists") => Ok(Some(Until::Exists)),
        Some("absent") => Ok(Some(Until::Absent)),
        Some(_) => Err(invalid(name, "must be exists or absent")),
    }
}

/// Takes the condition on an agent: the status to wait for.
fn of_agent(params: &mut Params, name: &'static str) -> Result<Option<String>, Refusal> {
    let Some(text) = not_past(params, name)? else { return Ok(None) };
    match text.strip_prefix("status:") {
        Some(status) if !status.is_empty() => Ok(Some(status.to_owned())),
        _ => Err(invalid(name, "must be status: followed by a status, such as status:FINISH")),
    }
}

/// Takes the condition on a resource that has a past, which cannot be waited for.
fn not_past(params: &mut Params, name: &'static str) -> Result<Option<String>, Refusal> {
    let text = params.text(name)?;
    if text.is_some() && params.has("at") {
        return Err(invalid(name, "cannot be combined with 'at': a past revision never changes"));
    }
    Ok(text)
}

fn equals(name: &str, text: &str) -> Result<Until, Refusal> {
    let text = json::syntax(text.as_bytes())
        .map_err(|malformed| invalid(name, format!("needs JSON after 'equals:': {malformed}")))?;
    Json::from_json(text, DEPTH_MAX).map(Until::Equals).map_err(|unsupported| {
        invalid(name, format!("needs a value after 'equals:': {}", unsupported.reason))
    })
}
