//! Questions: answer or skip one.
//!
//! Questions are otherwise a log like the others; only their own operations are here.
use axum::body::Body;
use axum::response::Response;

use super::openapi;
use super::request::body::{BODY_BYTES_MAX, from_json, only_json};
use super::request::path::EntryPath;
use super::response::problem::Problem;
use super::write::Writing;
use super::write::response::WrittenBody;
use blackboard_api::intake::input::body as body_of;
use blackboard_api::intake::query::{Of, Text, queries};
use blackboard_api::ops::questions::{Answering, Waiting};

use blackboard_api::params::{Params, invalid};
use blackboard_api::refusal::Refusal;
use blackboard_api::schema::pattern;
use blackboard_api::tag::Resource;
use blackboard_board::{LogName, Ttl};

queries! {
    /// The expiry of questions.
    pub(crate) WaitingQuery {
        /// The time that questions wait for an answer. Then `default` becomes the answer, marked as `expired`. No
        /// effect on the other logs
        expires: Of<Ttl>,
        /// With `expires`: the answer of an expired question; null by default
        default: Text => pattern("\\S"),
    }
}

/// Takes the parameters of a POST, which only questions have.
pub(super) fn waiting_params(
    log: &LogName,
    params: &mut Params,
) -> Result<Option<Waiting>, Refusal> {
    let WaitingQuery { expires, default } = WaitingQuery::take(params)?;
    if *log != LogName::Questions {
        return Ok(None);
    }
    Waiting::of(expires, default).map_err(|why| invalid("default", why))
}

/// Answer or skip a question
///
/// The first answer wins; a later one is rejected.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/questions/{seq}/answer", operation_id = "answer_question", tag = "questions",
    request_body(content = Answering, description = "The answer, or a skip"),
    responses(
        (status = 200, description = "Answered or skipped", body = WrittenBody, headers(("ETag" = String, description = "The entry's tag"))),
        openapi::AnswerRefusals,
    )
)]
pub(super) async fn answer(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    only_json(&writing.headers)?;
    let command = from_json(bytes, body_of::<Answering>).await?.of(seq)?;
    let resource = Resource::Entry(LogName::Questions, seq);
    writing
        .write(resource, command, Vec::new(), move |written| {
            written.changed(written.entry_tag(&LogName::Questions, seq), None)
        })
        .await
}
