//! The parameter `until`: a condition that a read waits for.

use crate::api::params::{Params, invalid};
use crate::api::refusal::Refusal;
use crate::board::json;
use crate::board::json::DEPTH_MAX;
use crate::board::{Entry, Json, LogName};

/// A condition on a value or a session.
#[derive(Clone, Debug)]
pub(crate) enum Until {
    /// The value or session exists.
    Exists,
    /// The value or session does not exist.
    Absent,
    /// The value equals this one.
    Equals(Json),
}

impl Until {
    /// Takes the parameter of a place in the state.
    pub(crate) fn of_state(params: &mut Params) -> Result<Option<Self>, Refusal> {
        let Some(text) = text_param(params)? else { return Ok(None) };
        match (text.as_str(), text.strip_prefix("equals:")) {
            ("exists", _) => Ok(Some(Self::Exists)),
            ("absent", _) => Ok(Some(Self::Absent)),
            (_, Some(value)) => equals(value).map(Some),
            (_, None) => {
                Err(invalid("until", "must be exists, absent, or equals: followed by a JSON value"))
            }
        }
    }

    /// Takes the parameter of a session.
    pub(crate) fn of_session(params: &mut Params) -> Result<Option<Self>, Refusal> {
        match params.text("until")?.as_deref() {
            None => Ok(None),
            Some("exists") => Ok(Some(Self::Exists)),
            Some("absent") => Ok(Some(Self::Absent)),
            Some(_) => Err(invalid("until", "must be exists or absent")),
        }
    }
}

/// A condition on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryUntil {
    /// The question has an answer, was skipped, or has expired.
    Answered,
    /// The request was claimed. The claim may have expired, and the request may have ended.
    Claimed,
    /// The request is done.
    Done,
    /// The request has failed.
    Failed,
}

impl EntryUntil {
    /// Takes the parameter of an entry in this log.
    pub(crate) fn param(params: &mut Params, log: &LogName) -> Result<Option<Self>, Refusal> {
        let Some(text) = text_param(params)? else { return Ok(None) };
        match (log, text.as_str()) {
            (LogName::Questions, "answered") => Ok(Some(Self::Answered)),
            (LogName::Requests, "claimed") => Ok(Some(Self::Claimed)),
            (LogName::Requests, "done") => Ok(Some(Self::Done)),
            (LogName::Requests, "failed") => Ok(Some(Self::Failed)),
            (LogName::Questions, _) => Err(invalid("until", "must be answered on a question")),
            (LogName::Requests, _) => {
                Err(invalid("until", "must be claimed, done or failed on a request"))
            }
            (LogName::Trajectories | LogName::Screenshots | LogName::Memory(_), _) => {
                Err(invalid("until", "needs a question or a request"))
            }
        }
    }

    /// Returns true if the condition holds for the entry.
    pub(crate) fn holds(self, entry: &Entry) -> bool {
        let work = entry.work.as_deref();
        match self {
            Self::Answered => entry.item.get("answer").is_some(),
            Self::Claimed => work.is_some(),
            Self::Done => work.is_some_and(|work| work.done().is_some()),
            Self::Failed => work.is_some_and(|work| work.failed().is_some()),
        }
    }
}

/// Takes the parameter of an agent: the status to wait for.
pub(crate) fn status_until(params: &mut Params) -> Result<Option<String>, Refusal> {
    let Some(text) = text_param(params)? else { return Ok(None) };
    match text.strip_prefix("status:") {
        Some(status) if !status.is_empty() => Ok(Some(status.to_owned())),
        _ => Err(invalid("until", "must be status: followed by a status, such as status:FINISH")),
    }
}

/// Takes the parameter of a resource that has a past, which cannot be waited for.
fn text_param(params: &mut Params) -> Result<Option<String>, Refusal> {
    let text = params.text("until")?;
    if text.is_some() && params.has("at") {
        return Err(invalid(
            "until",
            "cannot be combined with 'at': a past revision never changes",
        ));
    }
    Ok(text)
}

fn equals(text: &str) -> Result<Until, Refusal> {
    let text = json::syntax(text.as_bytes()).map_err(|malformed| {
        invalid("until", format!("needs JSON after 'equals:': {malformed}"))
    })?;
    Json::from_json(text, DEPTH_MAX).map(Until::Equals).map_err(|unsupported| {
        invalid("until", format!("needs a value after 'equals:': {}", unsupported.reason))
    })
}
