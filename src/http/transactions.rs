//! Transactions: tests, then one of two branches, in one commit.
use axum::body::Body;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::openapi;
use super::request::body::{BODY_BYTES_MAX, only_json};
use super::response::problem::Problem;
use super::response::tag::Resource;
use super::write::Writing;
use super::write::response::{ShapeResult, Written};
use crate::api::intake::fields::json_text;
use crate::api::intake::transaction::{Operation, Read, read};
use crate::api::offload::work;
use crate::api::view::state::text_of;
use crate::api::view::{Shown, raw, write_json};
use crate::board;
use crate::board::{Command, StatePath, Timestamp, json};

/// Tests, operations for when all tests hold, and operations for when one fails.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is parsed here")]
pub(super) struct TransactionBody {
    /// The tests, all of which must hold.
    #[schema(rename = "if", required = false, max_items = 1000)]
    r#if: Vec<openapi::TestBody>,
    /// The operations to apply if all tests hold.
    #[schema(required = false, max_items = 1000)]
    then: Vec<openapi::OperationBody>,
    /// The operations to apply if a test fails.
    #[schema(rename = "else", required = false, max_items = 1000)]
    r#else: Vec<openapi::OperationBody>,
}

/// The outcome of a transaction.
#[derive(Serialize, ToSchema)]
pub(super) struct TransactedBody {
    /// True if all tests held.
    succeeded: bool,
    /// The session's revision after the transaction.
    revision: u64,
    /// The tag that `If-Match` of the next write to the same address compares with.
    etag: String,
    /// The result of each operation.
    #[schema(value_type = Vec<ResultBody>)]
    results: Vec<Box<RawValue>>,
}

/// The result of one operation: its verb with the target, and its outcome.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct ResultBody {
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

/// Run a transaction
///
/// All operations of one branch are applied in one commit, or none. A failed test selects the branch `else` and is
/// not an error.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/transactions", operation_id = "transact", tag = "transactions",
    params(openapi::InSession, openapi::Writes),
    request_body(content = TransactionBody, description = "The tests and operations"),
    responses(
        (status = 200, description = "One branch was applied", body = TransactedBody,
            headers(("ETag" = String, description = "The session's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::TransactRefusals,
    )
)]
pub(super) async fn post(mut writing: Writing, body: Body) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    let length = bytes.len();
    only_json(&writing.headers)?;
    let read = move || {
        let versions =
            |tag: &str, path: &StatePath| writing.version(tag, &Resource::State(path.clone()));
        let read = read(json_text(&bytes)?, &versions)?;
        Ok((read, writing))
    };
    let (Read { transaction, then, otherwise, images }, writing) = work(length, read).await?;
    let command = Command::Transact(Box::new(transaction));
    writing
        .write(Resource::Session, command, images, move |written| {
            answer(written, &then, &otherwise)
        })
        .await
}

fn answer(written: &Written<'_>, then: &[Operation], otherwise: &[Operation]) -> ShapeResult {
    let board = &written.receipt.board;
    let tag = written.session_tag();
    let board::Answer::Transacted { succeeded, results } = &written.receipt.answer else {
        return written.changed(tag, None);
    };
    let operations = if *succeeded { then } else { otherwise };
    let results =
        operations.iter().zip(results).map(|(operation, result)| shown(operation, result));
    let (succeeded, revision, results) = (*succeeded, board.revision().0, results.collect());
    let body = TransactedBody { succeeded, revision, etag: tag.to_string(), results };
    written.json(Some(tag), None, &body)
}

/// Renders an operation's result: its verb and target, then the members of a [`ResultBody`].
fn shown(operation: &Operation, result: &board::Answer) -> Box<RawValue> {
    let mut text = format!("{{\"{}\":{}", operation.verb, operation.target);
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
