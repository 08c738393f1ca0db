//! Transactions: tests, then one of two branches, in one commit.

use std::convert::identity;

use axum::body::Body;
use axum::response::Response;

use super::openapi;
use super::request::body::{BODY_BYTES_MAX, only_json};
use super::response::problem::Problem;
use super::write::Writing;
use blackboard_api::intake::fields::json_text;
use blackboard_api::intake::input::body as body_of;
use blackboard_api::offload::work;
use blackboard_api::ops::transactions::{Read, Transacting};
use blackboard_api::tag::Resource;
use blackboard_api::view::transaction::TransactedBody;
use blackboard_board::Command;

/// Run a transaction
///
/// All operations of one branch are applied in one commit, or none. A failed test selects the branch `else` and is
/// not an error.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/transactions", operation_id = "transact", tag = "transactions",
    request_body(content = Transacting, description = "The tests and operations"),
    responses(
        (status = 200, description = "One branch was applied", body = TransactedBody, headers(("ETag" = String, description = "The session's tag"))),
        openapi::TransactRefusals,
    )
)]
pub(super) async fn post(mut writing: Box<Writing>, body: Body) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    let length = bytes.len();
    only_json(&writing.headers)?;
    let session = writing.session().clone();
    let read = move || Ok(body_of::<Transacting>(json_text(&bytes)?)?.of(&session, identity)?);
    let Read { transaction, names, images } = work(length, read).await?;
    let command = Command::Transact(Box::new(transaction));
    writing
        .write(Resource::Session, command, images, move |written| {
            let tag = written.session_tag();
            let Some((succeeded, results)) = names.shown(&written.receipt.answer) else {
                return written.changed(tag, None);
            };
            let revision = written.receipt.board.revision().0;
            let body = TransactedBody { succeeded, revision, etag: tag.to_string(), results };
            written.json(Some(tag), None, &body)
        })
        .await
}
