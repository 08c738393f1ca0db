//! Questions: answer or skip one.
//!
//! Questions are otherwise a log like the others; only their own operations are here.
use axum::body::Body;
use axum::response::Response;
use utoipa::ToSchema;

use super::openapi;
use super::request::body::{BODY_BYTES_MAX, from_json, only_json};
use super::request::path::EntryPath;
use super::response::problem::Problem;
use super::write::Writing;
use super::write::response::WrittenBody;
use crate::api::intake::fields::members;
use crate::api::intake::fields::{answer_member, is_blank};
use crate::api::params::{Params, invalid};
use crate::api::refusal::Refusal;
use crate::api::refusal::{invalid_field, unknown_field};
use crate::api::tag::Resource;
use crate::board::{Command, LogName, QuestionCommand, Seq, Ttl};

/// An answer, or a skip: exactly one of the two.
#[derive(ToSchema)]
#[schema(max_properties = 1, min_properties = 1)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is parsed here")]
pub(super) struct NewAnswerBody {
    /// The answer, not blank.
    #[schema(required = false, nullable = false, min_length = 1, pattern = "\\S")]
    answer: Option<String>,
    #[schema(required = false, schema_with = openapi::skip)]
    skip: Option<bool>,
}

/// The time that posted questions wait, and their default answer after it.
pub(super) struct Waiting {
    pub(super) ttl: Ttl,
    pub(super) default: Option<String>,
}

impl Waiting {
    /// Takes the parameters of a POST, which only questions have.
    pub(super) fn params(log: &LogName, params: &mut Params) -> Result<Option<Self>, Refusal> {
        let ttl: Option<Ttl> = params.parsed("expires")?;
        let default = params.text("default")?;
        if *log != LogName::Questions {
            return Ok(None);
        }
        if default.as_deref().is_some_and(is_blank) {
            return Err(invalid("default", "must not be blank"));
        }
        match (ttl, default) {
            (Some(ttl), default) => Ok(Some(Self { ttl, default })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(invalid("default", "needs 'expires'")),
        }
    }
}

/// Answer or skip a question
///
/// The first answer wins; a later one is refused.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/questions/{seq}/answer", operation_id = "answer_question", tag = "questions",
    params(openapi::InSession, openapi::AtSeq, openapi::Writes),
    request_body(content = NewAnswerBody, description = "The answer, or a skip"),
    responses(
        (status = 200, description = "Answered or skipped", body = WrittenBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::AnswerRefusals,
    )
)]
pub(super) async fn answer(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Writing,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    only_json(&writing.headers)?;
    let command = from_json(bytes, move |text| answering(seq, text)).await?;
    let resource = Resource::Entry(LogName::Questions, seq);
    writing
        .write(resource, command, Vec::new(), move |written| {
            written.changed(written.entry_tag(&LogName::Questions, seq), None)
        })
        .await
}

/// Reads `{"answer": …}` or `{"skip": true}`.
fn answering(question: Seq, text: &str) -> Result<Command, Refusal> {
    let mut read = None;
    for (pointer, value) in members("", text)? {
        let command = match (pointer.as_str(), value) {
            ("/answer", value) => Command::Question(
                question,
                QuestionCommand::Answer { answer: answer_member(&pointer, value)? },
            ),
            ("/skip", "true") => Command::Question(question, QuestionCommand::Skip),
            ("/skip", _) => return Err(invalid_field(pointer, "expected true")),
            _ => return Err(unknown_field(pointer, &["answer", "skip"])),
        };
        if read.replace(command).is_some() {
            return Err(invalid_field(pointer, "send either 'answer' or 'skip', not both"));
        }
    }
    let none = || invalid_field(String::new(), "expected 'answer' or 'skip'");
    read.ok_or_else(none)
}
