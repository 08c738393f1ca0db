//! The parameter `until`: a condition that a read waits for.

use crate::api::params::{Params, invalid};
use crate::api::refusal::Refusal;
use crate::board::Json;
use crate::board::json;
use crate::board::json::DEPTH_MAX;

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
        let Some(text) = params.text("until")? else { return Ok(None) };
        if params.has("at") {
            return Err(invalid(
                "until",
                "cannot be combined with 'at': a past revision never changes",
            ));
        }
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

fn equals(text: &str) -> Result<Until, Refusal> {
    let text = json::syntax(text.as_bytes()).map_err(|malformed| {
        invalid("until", format!("needs JSON after 'equals:': {malformed}"))
    })?;
    Json::from_json(text, DEPTH_MAX).map(Until::Equals).map_err(|unsupported| {
        invalid("until", format!("needs a value after 'equals:': {}", unsupported.reason))
    })
}
