//! The outcome of a transaction as JSON.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::state::text_of;
use super::{Shown, raw, write_json};
use blackboard_board as board;
use blackboard_board::{Timestamp, json};

/// The outcome of a transaction.
#[derive(Serialize, ToSchema)]
pub struct TransactedBody {
    /// True if all tests held.
    pub succeeded: bool,
    /// The session's revision after the transaction.
    pub revision: u64,
    /// The tag that `If-Match` of the next write to the same address compares with.
    pub etag: String,
    /// The result of each operation.
    #[schema(value_type = Vec<ResultBody>)]
    pub results: Vec<Box<RawValue>>,
}

/// The result of one operation: its verb with the target, and its outcome.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct ResultBody {
    /// After `add`: the value at the path; after `status`: the agent's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Value)]
    value: Option<Box<RawValue>>,
    /// After `append`: the seq of the new entry; after `claim_next`: that of the claimed request, absent if none
    /// matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    seq: Option<u64>,
    /// The number of screenshots that the session's settings discard.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    dropped: Option<usize>,
    /// The fence of a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    fence: Option<u64>,
    /// The deadline of a claim, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<String>, format = DateTime)]
    expires_at: Option<Shown<Timestamp>>,
}

/// The name of an operation in the response: its verb, and the text of its target.
#[derive(Clone, Debug)]
pub(crate) struct OperationName {
    pub(crate) verb: &'static str,
    pub(crate) target: Box<str>,
}

/// The names of both branches' operations.
pub struct BranchNames {
    pub(crate) then: Vec<OperationName>,
    pub(crate) otherwise: Vec<OperationName>,
}

impl BranchNames {
    /// Returns true if all tests held, and the result of each operation.
    pub fn shown(&self, answer: &board::Answer) -> Option<(bool, Vec<Box<RawValue>>)> {
        let board::Answer::Transacted { succeeded, results } = answer else { return None };
        let names = if *succeeded { &self.then } else { &self.otherwise };
        let shown = names.iter().zip(results).map(|(name, result)| shown(name, result));
        Some((*succeeded, shown.collect()))
    }
}

/// Renders an operation's result: its verb and target, then the members of a [`ResultBody`].
fn shown(name: &OperationName, result: &board::Answer) -> Box<RawValue> {
    let mut text = format!("{{\"{}\":{}", name.verb, name.target);
    let members = text.len();
    write_json(&ResultBody::of(result), &mut text);
    // Joins the two objects.
    let joint = if text.ends_with("{}") { "" } else { "," };
    text.replace_range(members..=members, joint);
    raw(text)
}

impl ResultBody {
    fn of(answer: &board::Answer) -> Self {
        let none = Self::default();
        match answer {
            board::Answer::Value(value) => Self { value: Some(raw(text_of(value))), ..none },
            board::Answer::Added { first, count: 1.., .. } => Self { seq: Some(first.0), ..none },
            board::Answer::Added { dropped, .. } => Self { dropped: Some(*dropped), ..none },
            board::Answer::Claimed { claim, .. } => {
                let expires_at = Some(Shown(claim.expires_at));
                Self { fence: Some(claim.fence.0), expires_at, ..none }
            }
            board::Answer::Next(next) => {
                let claim = next.as_ref().map(|(_, claim)| claim);
                Self {
                    seq: next.as_ref().map(|(seq, _)| seq.0),
                    fence: claim.map(|claim| claim.fence.0),
                    expires_at: claim.map(|claim| Shown(claim.expires_at)),
                    ..none
                }
            }
            board::Answer::Status(status) => {
                let mut text = String::new();
                json::quote(status.as_str(), &mut text);
                Self { value: Some(raw(text)), ..none }
            }
            board::Answer::Done
            | board::Answer::Removed { .. }
            | board::Answer::Transacted { .. } => none,
        }
    }
}
