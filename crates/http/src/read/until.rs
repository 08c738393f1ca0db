//! Reads that wait for `until`: on values, entries, agents and sessions.
//!
//! A met condition gets the usual response (`absent` gets 204), and a condition not met in time gets 412.

use axum::http::StatusCode;
use serde_json::value::RawValue;

use super::Early;
use super::deadline::Sought;
use crate::access::session_detail::Sight;
use crate::response::Answer;
use crate::response::problem::Problem;
use crate::response::{REVISION_HEADER, revision_value};
use blackboard_api::intake::until::{Prospect, Until};
use blackboard_api::refusal::{no_session, no_value};
use blackboard_api::tag::{Rendering, Resource};
use blackboard_board::{Board, Code, Revision, StatePath, StateValue};
use blackboard_service::{Published, SessionHandle};

/// The maximum size of a value that the refusal of an unmet condition shows.
const CURRENT_BYTES_MAX: u64 = 64 << 10;

/// A value of the state, perhaps with a condition to wait for.
pub(crate) struct SoughtValue<'a> {
    pub(crate) session: &'a SessionHandle,
    pub(crate) path: &'a StatePath,
    pub(crate) until: Option<Until>,
}

impl SoughtValue<'_> {
    fn value(&self, now: Option<&Published>) -> Option<StateValue> {
        now.and_then(|now| now.board.state().value(self.path))
    }

    /// Returns what to show if the condition holds now.
    fn held(&self, now: Option<&Published>) -> Result<Option<Rendering>, Early> {
        let value = self.value(now);
        let holds = match &self.until {
            None | Some(Until::Equals(_)) if now.is_none() => {
                return Err(no_session(self.session.name()).into());
            }
            None | Some(Until::Exists) => value.is_some(),
            Some(Until::Equals(json)) => value.as_ref().is_some_and(|v| v.equals(json.text())),
            Some(Until::Absent) if value.is_none() => {
                return Err(gone(last_revision(self.session, now)?));
            }
            Some(Until::Absent) => false,
        };
        let (Some(now), Some(value)) = (now, value.filter(|_| holds)) else { return Ok(None) };
        let version = now.board.at_version(value.changed());
        Ok(Some(Rendering::of(Resource::State(self.path.clone()), version)))
    }
}

impl Sought for SoughtValue<'_> {
    fn may_come(&self) -> bool {
        self.until.is_some()
    }

    async fn look(&mut self, now: Option<&Published>) -> Result<Option<Rendering>, Early> {
        match &self.until {
            Some(_) => self.held(now),
            None => self.at_last(now).await.map(Some),
        }
    }

    async fn at_last(&mut self, now: Option<&Published>) -> Result<Rendering, Early> {
        if let Some(rendering) = self.held(now)? {
            return Ok(rendering);
        }
        let revision = last_revision(self.session, now)?;
        Err(match &self.until {
            Some(_) => not_met(revision, self.value(now).and_then(|value| current(&value))),
            None => no_value(self.path, revision).into(),
        })
    }
}

/// A part of a board that exists, perhaps with a condition to wait for.
pub(crate) struct SoughtPart<'a, R, H, C> {
    pub(crate) session: &'a SessionHandle,
    /// Says what is shown of the board, or refuses.
    pub(crate) rendering: R,
    /// Returns the state of the condition.
    pub(crate) until: Option<H>,
    /// Returns the part as JSON.
    pub(crate) current: C,
}

impl<R, H, C> Sought for SoughtPart<'_, R, H, C>
where
    R: FnMut(&Board) -> Result<Rendering, Problem> + Send,
    H: Fn(&Board) -> Prospect + Send,
    C: Fn(&Board) -> Option<String> + Send,
{
    fn may_come(&self) -> bool {
        self.until.is_some()
    }

    async fn look(&mut self, now: Option<&Published>) -> Result<Option<Rendering>, Early> {
        let Some(now) = now else { return Err(no_session(self.session.name()).into()) };
        let rendering = (self.rendering)(&now.board)?;
        match self.until.as_ref().map(|until| until(&now.board)) {
            None | Some(Prospect::Holds) => Ok(Some(rendering)),
            Some(Prospect::Open) => Ok(None),
            Some(Prospect::Never { why, detail }) => {
                Err(never_met(why, &detail, now.board.revision(), (self.current)(&now.board)))
            }
        }
    }

    async fn at_last(&mut self, now: Option<&Published>) -> Result<Rendering, Early> {
        let Some(now) = now else { return Err(no_session(self.session.name()).into()) };
        let rendering = (self.rendering)(&now.board)?;
        let current = || (self.current)(&now.board);
        match self.until.as_ref().map(|until| until(&now.board)) {
            None | Some(Prospect::Holds) => Ok(rendering),
            Some(Prospect::Open) => Err(not_met(now.board.revision(), current())),
            Some(Prospect::Never { why, detail }) => {
                Err(never_met(why, &detail, now.board.revision(), current()))
            }
        }
    }
}

/// A session, perhaps with a condition to wait for.
pub(crate) struct SoughtSession<'a> {
    pub(crate) session: &'a SessionHandle,
    pub(crate) sight: Sight,
    pub(crate) until: Option<Until>,
}

impl SoughtSession<'_> {
    fn last_revision(&self, now: Option<&Published>) -> Result<Revision, Early> {
        last_revision(self.session, now)
    }
}

impl Sought for SoughtSession<'_> {
    fn may_come(&self) -> bool {
        self.until.is_some()
    }

    async fn look(&mut self, now: Option<&Published>) -> Result<Option<Rendering>, Early> {
        match (&self.until, now) {
            (Some(Until::Exists | Until::Equals(_)), None) | (Some(Until::Absent), Some(_)) => {
                Ok(None)
            }
            (None | Some(Until::Exists | Until::Equals(_)), Some(_))
            | (None | Some(Until::Absent), None) => self.at_last(now).await.map(Some),
        }
    }

    async fn at_last(&mut self, now: Option<&Published>) -> Result<Rendering, Early> {
        match (&self.until, now) {
            (None | Some(Until::Exists | Until::Equals(_)), Some(now)) => {
                Ok(self.sight.rendering(now.board.extent(), now.history_bytes))
            }
            (None, None) => Err(no_session(self.session.name()).into()),
            (Some(Until::Absent), None) => Err(gone(self.last_revision(now)?)),
            (Some(Until::Exists | Until::Equals(_)), None) | (Some(Until::Absent), Some(_)) => {
                Err(not_met(self.last_revision(now)?, None))
            }
        }
    }
}

/// Returns the last revision of a session's name, even if the session does not exist.
fn last_revision(session: &SessionHandle, now: Option<&Published>) -> Result<Revision, Early> {
    match now {
        Some(now) => Ok(now.board.revision()),
        None => Ok(session.wait()?.extent().revision),
    }
}

/// Answers a met condition `absent`.
fn gone(revision: Revision) -> Early {
    Early::bare(Answer::of(revision).status(StatusCode::NO_CONTENT))
}

/// Returns a value as JSON, if it is small enough to be shown.
fn current(value: &StateValue) -> Option<String> {
    let mut text = String::new();
    (value.bytes() <= CURRENT_BYTES_MAX).then(|| value.write(&mut text))?;
    Some(text)
}

/// Refuses a condition that was not met in time, with the current value if there is one and it is small enough.
fn not_met(revision: Revision, current: Option<String>) -> Early {
    unmet("condition 'until' was not met within 'wait'", revision, current)
}

/// Refuses a condition that can be met no more, for this reason.
fn never_met(why: &str, detail: &str, revision: Revision, current: Option<String>) -> Early {
    let detail = format!("condition 'until' can be met no more: {detail}");
    Early::Refused(unmet_problem(&detail, revision, current).member("why", why))
}

fn unmet(detail: &str, revision: Revision, current: Option<String>) -> Early {
    Early::Refused(unmet_problem(detail, revision, current))
}

fn unmet_problem(detail: &str, revision: Revision, current: Option<String>) -> Problem {
    let problem = Problem::new(Code::ConditionNotMet, detail)
        .header(REVISION_HEADER, revision_value(revision));
    let small = current.filter(|text| text.len() as u64 <= CURRENT_BYTES_MAX);
    let shown = small.and_then(|text| RawValue::from_string(text).ok());
    match shown {
        Some(text) => problem.member("current", &text),
        None => problem,
    }
}
