//! Transactions: tests, then one of two branches, in one commit.
use axum::body::Body;
use axum::response::Response;
use utoipa::ToSchema;

use super::openapi;
use super::request::body::{BODY_BYTES_MAX, only_json};
use super::response::problem::Problem;
use super::write::Writing;
use super::write::response::{ShapeResult, Written};
use crate::api::intake::fields::json_text;
use crate::api::offload::work;
use crate::api::ops::transactions::{Operation, Read, read};
use crate::api::tag::Resource;
use crate::api::view::transaction::{TransactedBody, shown};
use crate::board;
use crate::board::{Command, StatePath};

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

/// Run a transaction
///
/// All operations of one branch are applied in one commit, or none. A failed test selects the branch `else` and is
/// not an error.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/transactions", operation_id = "transact", tag = "transactions",
    request_body(content = TransactionBody, description = "The tests and operations"),
    responses(
        (status = 200, description = "One branch was applied", body = TransactedBody, headers(("ETag" = String, description = "The session's tag"))),
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
