//! Transactions: tests, then one of two branches, in one commit.

use axum::body::Body;
use axum::response::Response;
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
use crate::api::view::entry::push;
use crate::board;
use crate::board::{Command, StatePath, json};

/// Tests, what to do if all of them hold, and what if not.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the document's form of what is read here")]
pub(super) struct TransactionBody {
    /// All of them must hold.
    #[schema(rename = "if", required = false, max_items = 1000)]
    r#if: Vec<openapi::TestBody>,
    /// What to do if they do.
    #[schema(required = false, max_items = 1000)]
    then: Vec<openapi::OperationBody>,
    /// What to do if one does not.
    #[schema(rename = "else", required = false, max_items = 1000)]
    r#else: Vec<openapi::OperationBody>,
}

/// What a transaction came to.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what is written here")]
pub(super) struct TransactedBody {
    /// Whether all tests held.
    succeeded: bool,
    /// The session's revision after it.
    revision: u64,
    /// What each operation came to.
    results: Vec<openapi::ResultBody>,
}

/// Do one thing or another, at once
///
/// All operations of a branch are done in one commit, or none. A test that does not hold is no failure.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/transactions", operation_id = "transact", tag = "transactions",
    params(openapi::InSession, openapi::Writes),
    request_body(content = TransactionBody, description = "Tests and operations"),
    responses(
        (status = 200, description = "One branch was done", body = TransactedBody,
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
    let (revision, mut text) = (board.revision(), String::new());
    push(
        &mut text,
        format_args!("{{\"succeeded\":{succeeded},\"revision\":{revision},\"results\":["),
    );
    let operations = if *succeeded { then } else { otherwise };
    for (index, (operation, result)) in operations.iter().zip(results).enumerate() {
        if index > 0 {
            text.push(',');
        }
        push(&mut text, format_args!("{{\"{}\":{}", operation.verb, operation.target));
        write_result(result, &mut text);
        text.push('}');
    }
    text.push_str("]}");
    Ok(written.text(Some(tag), None, text))
}

fn write_result(result: &board::Answer, out: &mut String) {
    match result {
        board::Answer::Value(value) => {
            out.push_str(",\"value\":");
            value.write(out);
        }
        board::Answer::Added { first, count: 1.., .. } => {
            push(out, format_args!(",\"seq\":{first}"));
        }
        board::Answer::Added { dropped, .. } => push(out, format_args!(",\"dropped\":{dropped}")),
        board::Answer::Claimed { claim, .. } => push(
            out,
            format_args!(",\"fence\":{},\"expires_at\":\"{}\"", claim.fence, claim.expires_at),
        ),
        board::Answer::Status(status) => {
            out.push_str(",\"value\":");
            json::quote(status.as_str(), out);
        }
        board::Answer::Done | board::Answer::Removed { .. } | board::Answer::Transacted { .. } => {}
    }
}
