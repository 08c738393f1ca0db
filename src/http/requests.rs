//! Work on requests: claim one, give it back, finish it.

use axum::body::Body;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::openapi;
use super::request::body::{BODY_BYTES_MAX, json_or_nothing, members, work};
use super::request::conditions::Resource;
use super::request::path::{EntryPath, entry_url};
use super::response::error::{Place, invalid_field, invalid_item, unknown_field};
use super::response::problem::Problem;
use super::write::Writing;
use super::write::response::{ShapeResult, Written, WrittenBody};
use crate::board;
use crate::board::json;
use crate::board::json::{DEPTH_MAX, Kind};
use crate::board::{Command, ITEM_BYTES_MAX, InvalidItem, Json, LogName, Revision, Seq, Ttl};

/// An agent's claim on a request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClaimBody {
    /// Whose it is.
    agent: String,
    /// The revision at which it was won.
    fence: u64,
    /// When it runs out, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    expires_at: String,
}

impl From<&board::Claim> for ClaimBody {
    fn from(claim: &board::Claim) -> Self {
        Self {
            agent: claim.agent.to_string(),
            fence: claim.fence.0,
            expires_at: claim.expires_at.to_string(),
        }
    }
}

/// The end of a request.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what a view writes")]
pub(super) struct DoneBody {
    /// Who finished it, where somebody was named.
    #[schema(required = false, nullable = false)]
    agent: Option<String>,
    /// When, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    at: String,
    /// The fence of the claim under which it was finished.
    #[schema(required = false, nullable = false)]
    fence: Option<u64>,
    /// What came of it.
    #[schema(required = false, value_type = Value)]
    result: Box<RawValue>,
}

/// What claiming came to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClaimedBody {
    /// The session's revision after it.
    revision: u64,
    claim: ClaimBody,
}

/// For how long a request is claimed.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the document's form of what is read here")]
pub(super) struct NewClaimBody {
    /// A whole number with `ms`, `s`, `m`, `h` or `d`; a minute unless it is said.
    #[schema(required = false, nullable = false)]
    ttl: Option<openapi::TtlText>,
}

/// How a request ends.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the document's form of what is read here")]
pub(super) struct NewDoneBody {
    /// The fence of the claim under which it was worked on.
    #[schema(required = false, nullable = false, minimum = 1)]
    fence: Option<u64>,
    /// What came of it, at most 1 MiB.
    #[schema(required = false, value_type = Value)]
    result: Box<RawValue>,
}

/// Claim a request
///
/// One agent has it at a time; its own PUT renews the claim. Every write may then say
/// `?claim=SEQ&fence=N`, and is refused once the claim was lost to another agent, or given back.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/requests/{seq}/claim", operation_id = "claim_request", tag = "claims",
    params(openapi::InSession, openapi::AtSeq, openapi::Writes),
    request_body(content = NewClaimBody, description = "For how long; it may be left out"),
    responses(
        (status = 200, description = "Renewed", body = ClaimedBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        (status = 201, description = "Won", body = ClaimedBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Location" = String, description = "The entry"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::ClaimRefusals,
    )
)]
pub(super) async fn claim(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Writing,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    writing.by_an_agent()?;
    let (length, headers) = (bytes.len(), writing.headers.clone());
    let ttl = work(length, move || new_claim(json_or_nothing(&headers, &bytes)?)).await?;
    let command = Command::Claim { request: seq, ttl };
    let shape = move |written: &Written<'_>| {
        let board::Answer::Claimed { claim, won } = &written.receipt.answer else {
            return finished(written, seq);
        };
        let revision = written.receipt.board.revision().0;
        let made = won.then(|| entry_url(written.session, &LogName::Requests, seq));
        let body = ClaimedBody { revision, claim: claim.into() };
        written.json(Some(written.entry_tag(&LogName::Requests, seq)), made, &body)
    };
    writing.write(resource(seq), command, Vec::new(), shape).await
}

/// Give a claim back
///
/// What is claimed by nobody may be given back too.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/requests/{seq}/claim", operation_id = "release_request", tag = "claims",
    params(openapi::InSession, openapi::AtSeq, openapi::Removes),
    responses(
        (status = 200, description = "Nobody has it now", body = WrittenBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::ReleaseRefusals,
    )
)]
pub(super) async fn release(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Writing,
) -> Result<Response, Problem> {
    writing.no_body()?;
    writing.by_an_agent()?;
    let command = Command::Release { request: seq };
    writing.write(resource(seq), command, Vec::new(), move |written| finished(written, seq)).await
}

/// Finish a request
///
/// It is neither pending nor claimable any more.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/requests/{seq}/done", operation_id = "finish_request", tag = "claims",
    params(openapi::InSession, openapi::AtSeq, openapi::Writes),
    request_body(content = NewDoneBody, description = "Under which claim, and what came of it; it may be left out"),
    responses(
        (status = 200, description = "It is done", body = WrittenBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::FinishRefusals,
    )
)]
pub(super) async fn finish(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Writing,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    let (length, headers) = (bytes.len(), writing.headers.clone());
    let end = work(length, move || new_end(seq, json_or_nothing(&headers, &bytes)?));
    let command = end.await?;
    writing.write(resource(seq), command, Vec::new(), move |written| finished(written, seq)).await
}

/// Reads `{"ttl": …}`, which may be left out.
fn new_claim(text: &str) -> Result<Ttl, Problem> {
    let mut ttl = Ttl::MINUTE;
    for (pointer, value) in members("", text)? {
        match pointer.as_str() {
            "/ttl" => ttl = ttl_member(&pointer, value)?,
            _ => return Err(unknown_field(pointer)),
        }
    }
    Ok(ttl)
}

/// Reads `{"fence": …, "result": …}`, which may be left out.
fn new_end(request: Seq, text: &str) -> Result<Command, Problem> {
    let (mut fence, mut result) = (None, None);
    for (pointer, value) in members("", text)? {
        match pointer.as_str() {
            "/fence" => fence = Some(fence_member(&pointer, value)?),
            "/result" => result = Some(result_member(&pointer, value)?),
            _ => return Err(unknown_field(pointer)),
        }
    }
    Ok(Command::Finish { request, fence, result })
}

fn resource(seq: Seq) -> Resource {
    Resource::Entry(LogName::Requests, seq)
}

fn finished(written: &Written<'_>, seq: Seq) -> ShapeResult {
    written.changed(written.entry_tag(&LogName::Requests, seq), None)
}

/// A time to live, as a body says it.
pub(super) fn ttl_member(pointer: &str, value: &str) -> Result<Ttl, Problem> {
    let text = (json::kind(value) == Kind::String).then(|| json::decode(value));
    let ttl = text.as_deref().unwrap_or_default().parse::<Ttl>();
    ttl.map_err(|why| invalid_field(pointer.to_owned(), why.to_string()))
}

/// A fence, as a body says it.
pub(super) fn fence_member(pointer: &str, value: &str) -> Result<Revision, Problem> {
    let fence = json::whole(value).filter(|fence| *fence > 0);
    let why = "the revision of a claim is needed here, a whole number";
    fence.map(Revision).ok_or_else(|| invalid_field(pointer.to_owned(), why))
}

/// What came of a request, as a body says it.
pub(super) fn result_member(pointer: &str, value: &str) -> Result<Json, Problem> {
    if value.len() > ITEM_BYTES_MAX {
        let invalid = InvalidItem::TooLarge { bytes: value.len() };
        return Err(invalid_item(&invalid, Place::default()));
    }
    Json::from_json(value, DEPTH_MAX).map_err(|unsupported| {
        let invalid = InvalidItem::Unsupported(unsupported.below(pointer));
        invalid_item(&invalid, Place::default())
    })
}
