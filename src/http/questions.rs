//! Questions: answer or skip one, and the inbox of open questions.
//!
//! Questions are otherwise a log like the others; only their own operations are here.
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::openapi;
use super::read::shared_scans::{ListText, Listed, PAGE_BYTES};
use super::read::{Early, Reading};
use super::request::body::{BODY_BYTES_MAX, from_json, only_json};
use super::request::path::EntryPath;
use super::response::problem::Problem;
use super::response::tag::Resource;
use super::sessions::{labels_param, listing};
use super::write::Writing;
use super::write::response::WrittenBody;
use crate::api::intake::fields::members;
use crate::api::intake::fields::{answer_member, is_blank};
use crate::api::params::{Params, invalid};
use crate::api::refusal::Refusal;
use crate::api::refusal::{invalid_field, unknown_field};
use crate::api::view::entry::{AskedBody, asked};
use crate::api::view::write_json;
use crate::auth::Caller;
use crate::board::{Command, LogName, QuestionCommand, Seq, SessionName, Ttl};
use crate::service::{Asking, Service};

/// The number of questions on a page by default.
const INBOX_DEFAULT: usize = 100;

/// The maximum number of questions on a page.
const INBOX_MAX: u64 = 1000;

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

/// A page of open questions, by session and then by seq.
#[derive(Serialize, ToSchema)]
pub(super) struct InboxPage {
    /// At most `limit` questions.
    #[schema(value_type = Vec<AskedBody>)]
    questions: Vec<Box<RawValue>>,
    /// The value of `after` for the next page; null if nothing has been listed yet.
    #[schema(required)]
    next: Option<String>,
    /// True if more questions follow.
    more: bool,
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

/// The query of a page of the inbox.
#[derive(Debug)]
struct InboxQuery {
    limit: usize,
    after: Option<(SessionName, Seq)>,
    prefix: String,
    labels: Vec<(String, String)>,
}

impl InboxQuery {
    fn params(params: &mut Params) -> Result<Self, Problem> {
        let after = params.text("after")?;
        let place = |text: &str| {
            place(text).ok_or_else(|| {
                invalid("after", "must be a 'next' value from an earlier page of this list")
            })
        };
        Ok(Self {
            limit: params.count("limit", 1, INBOX_MAX)?.unwrap_or(INBOX_DEFAULT),
            after: after.as_deref().map(place).transpose()?,
            prefix: params.text("prefix")?.unwrap_or_default(),
            labels: labels_param(params)?,
        })
    }
}

/// Parses the end of a page. A session's name has no slash.
fn place(text: &str) -> Option<(SessionName, Seq)> {
    let (session, seq) = text.rsplit_once('/')?;
    let digits = seq.bytes().all(|byte| byte.is_ascii_digit());
    Some((session.parse().ok()?, Seq(seq.parse().ok().filter(|_| digits)?)))
}

/// List open questions
///
/// Open questions of all sessions come by session and then by seq, a page at a time. A question is open while it has
/// a text as `question` or `text` and no `answer`.
#[utoipa::path(
    get, path = "/v1/questions", operation_id = "list_questions", tag = "questions",
    params(openapi::InboxParams, openapi::ListWaitQuery, openapi::IfNoneMatch),
    responses(
        (status = 200, description = "A page of questions", body = InboxPage,
            headers(("ETag" = String, description = "Changes with the response"))),
        openapi::ListRefusals,
    )
)]
pub(super) async fn inbox(mut reading: Reading) -> Result<Response, Early> {
    let query = InboxQuery::params(&mut reading.params)?;
    reading.list(&query).await
}

impl Listed for InboxQuery {
    fn name(&self) -> String {
        format!("{self:?}")
    }

    fn ticks(&self, service: &Service) -> watch::Receiver<u64> {
        service.inbox_ticks()
    }

    async fn text(
        &self,
        service: &Service,
        caller: &Caller,
        _: Option<&ListText>,
    ) -> Result<ListText, Problem> {
        let text = page(service, caller, self).await?.into();
        Ok(ListText { version: None, text })
    }
}

/// Renders the current page of the inbox as JSON.
async fn page(service: &Service, caller: &Caller, query: &InboxQuery) -> Result<String, Problem> {
    let InboxQuery { limit, after, prefix, labels } = query;
    let listing = Arc::new(listing(prefix, labels, caller));
    let found = service.inbox(&listing, after.as_ref(), limit + 1).await?;
    let (mut questions, mut next, mut bytes) = (Vec::new(), after.clone(), 0);
    let mut found = found.into_iter().peekable();
    while questions.len() < *limit
        && bytes < PAGE_BYTES
        && let Some(Asking { session, question }) = found.next()
    {
        let body = asked(&session, &question);
        bytes += body.get().len();
        questions.push(body);
        next = Some((session, question.entry.seq));
    }
    let next = next.map(|(session, seq)| format!("{session}/{seq}"));
    let mut text = String::new();
    write_json(&InboxPage { questions, next, more: found.peek().is_some() }, &mut text);
    text.push('\n');
    Ok(text)
}
