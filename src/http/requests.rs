//! Handlers of work on a board's requests: claim, release, finish, fail, retry.
use axum::Extension;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::connection::Peer;
use super::openapi;
use super::read::wait::wait_param;
use super::request::body::{BODY_BYTES_MAX, from_json, json_or_nothing};
use super::request::path::EntryPath;
use super::response::problem::Problem;
use super::write::Writing;
use super::write::response::{ShapeResult, Written, WrittenBody};
use crate::api::address::entry_url;
use crate::api::intake::fields::{fence_member, named, result_member, ttl_member};
use crate::api::intake::tasks::{failure, next_claim};
use crate::api::refusal::Refusal;
use crate::api::tag::Resource;
use crate::api::view::entry::{ClaimBody, EntryBody};
use crate::board;
use crate::board::{Command, LogName, RequestCommand, Seq, Ttl};
use crate::service::Wait;

/// The result of a claim.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClaimedBody<'a> {
    /// The session's revision after the write.
    revision: u64,
    /// The tag that `If-Match` of the next write to the same address compares with.
    etag: String,
    claim: ClaimBody<'a>,
}

/// The claimed request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NextBody<'a> {
    #[serde(flatten)]
    entry: EntryBody<'a>,
    /// The tag that `If-Match` of the next write to the entry compares with.
    etag: String,
}

/// The request to look for.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is parsed here")]
pub(super) struct NextClaimBody {
    /// A whole number with `ms`, `s`, `m`, `h` or `d`; one minute by default.
    #[schema(required = false, nullable = false)]
    ttl: Option<openapi::TtlText>,
    #[schema(required = false, rename = "match", schema_with = openapi::wanted_members)]
    r#match: Box<RawValue>,
}

/// The duration of a claim.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is parsed here")]
pub(super) struct NewClaimBody {
    /// A whole number with `ms`, `s`, `m`, `h` or `d`; one minute by default.
    #[schema(required = false, nullable = false)]
    ttl: Option<openapi::TtlText>,
}

/// The end of a request.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is parsed here")]
pub(super) struct NewDoneBody {
    /// The fence of the claim under which the work was done.
    #[schema(required = false, nullable = false, minimum = 1)]
    fence: Option<u64>,
    /// The result, at most 1 MiB.
    #[schema(required = false, value_type = Value)]
    result: Box<RawValue>,
}

/// The end of a claim without success.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is parsed here")]
pub(super) struct NewFailureBody {
    /// The fence of the claim under which the work failed.
    #[schema(required = false, nullable = false, minimum = 1)]
    fence: Option<u64>,
    /// The reason, at most 1 MiB.
    #[schema(required = false, value_type = Value)]
    reason: Box<RawValue>,
}

/// Claim a request
///
/// One agent at a time holds a claim; its own PUT renews the claim. Its writes may then carry `?claim=SEQ&fence=N`.
/// They are refused once the claim is released, or lost to another agent.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/requests/{seq}/claim", operation_id = "claim_request", tag = "requests",
    params(openapi::InSession, openapi::AtSeq, openapi::Writes),
    request_body(content = NewClaimBody, description = "The duration of the claim; the body may be omitted"),
    responses(
        (status = 200, description = "Claim renewed", body = ClaimedBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        (status = 201, description = "Claim won", body = ClaimedBody,
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
    let ttl = from_json(json_or_nothing(&writing.headers, bytes)?, new_claim).await?;
    let command = Command::Request(seq, RequestCommand::Claim { ttl });
    let shape = move |written: &Written<'_>| {
        let board::Answer::Claimed { claim, won } = &written.receipt.answer else {
            return finished(written, seq);
        };
        let revision = written.receipt.board.revision().0;
        let made = won.then(|| entry_url(written.session, &LogName::Requests, seq));
        let tag = written.entry_tag(&LogName::Requests, seq);
        let body = ClaimedBody { revision, etag: tag.to_string(), claim: ClaimBody::of(claim) };
        written.json(Some(tag), made, &body)
    };
    writing.write(resource(seq), command, Vec::new(), shape).await
}

/// Release a claim
///
/// Releasing an unclaimed request succeeds too.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/requests/{seq}/claim", operation_id = "release_request", tag = "requests",
    params(openapi::InSession, openapi::AtSeq, openapi::Removes),
    responses(
        (status = 200, description = "The request is unclaimed", body = WrittenBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::ReleaseRefusals,
    )
)]
pub(super) async fn release(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Writing,
) -> Result<Response, Problem> {
    writing.finish_query()?;
    writing.by_an_agent()?;
    let command = Command::Request(seq, RequestCommand::Release);
    writing.write(resource(seq), command, Vec::new(), move |written| finished(written, seq)).await
}

/// Claim the next request
///
/// The oldest claimable request with these members goes to the caller. With `wait` the next one that comes goes to the
/// worker that has waited longest for such a request.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/requests/claim", operation_id = "claim_next_request", tag = "requests",
    params(openapi::InSession, openapi::ClaimWaitQuery, openapi::Writes),
    request_body(content = NextClaimBody, description = "The members to look for, and the duration of the claim; the body may be omitted"),
    responses(
        (status = 200, description = "The claimed request", body = NextBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Location" = String, description = "The entry"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        (status = 204, description = "No request to claim",
            headers(("ETag" = String, description = "The log's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::ClaimNextRefusals,
    )
)]
pub(super) async fn claim_next(
    mut writing: Writing,
    peer: Option<Extension<Peer>>,
    body: Body,
) -> Result<Response, Problem> {
    let wait = wait_param(&mut writing.params, &writing.headers, true)?;
    let wait = wait.map(|wait| Wait {
        deadline: Instant::now() + wait,
        // A worker that has left must get no request.
        given_up: peer.map(|peer| peer.departure.watch().child_token()).unwrap_or_default(),
    });
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    writing.by_an_agent()?;
    let claim = from_json(json_or_nothing(&writing.headers, bytes)?, next_claim).await?;
    let shape = |written: &Written<'_>| {
        let board::Answer::Next(Some((seq, _))) = &written.receipt.answer else {
            return written.changed(written.log_tag(&LogName::Requests), None);
        };
        let tag = written.entry_tag(&LogName::Requests, *seq);
        let board = &written.receipt.board;
        let entry = board.log(&LogName::Requests).and_then(|requests| requests.get(*seq));
        let Some(entry) = entry.map(|entry| EntryBody::whole(entry)) else {
            return written.changed(tag, None);
        };
        let body = NextBody { entry, etag: tag.to_string() };
        let location = entry_url(written.session, &LogName::Requests, *seq);
        Ok(written.json(Some(tag), Some(location), &body)?.with_status(StatusCode::OK))
    };
    writing.claim_next(claim, wait, shape).await
}

/// Finish a request
///
/// A finished request is neither pending nor claimable.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/requests/{seq}/done", operation_id = "finish_request", tag = "requests",
    params(openapi::InSession, openapi::AtSeq, openapi::Writes),
    request_body(content = NewDoneBody, description = "The claim's fence and the result; the body may be omitted"),
    responses(
        (status = 200, description = "Finished", body = WrittenBody,
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
    let bytes = json_or_nothing(&writing.headers, bytes)?;
    let command = from_json(bytes, move |text| new_end(seq, text)).await?;
    writing.write(resource(seq), command, Vec::new(), move |written| finished(written, seq)).await
}

/// End a claim without success
///
/// The request is claimable again until its `attempts` are spent; then it has failed. The end of a lapsed claim is
/// counted already.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/requests/{seq}/failed", operation_id = "fail_request", tag = "requests",
    params(openapi::InSession, openapi::AtSeq, openapi::Writes),
    request_body(content = NewFailureBody, description = "The claim's fence and the reason; the body may be omitted"),
    responses(
        (status = 200, description = "The claim has ended", body = WrittenBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::FinishRefusals,
    )
)]
pub(super) async fn fail(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Writing,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    let command = from_json(json_or_nothing(&writing.headers, bytes)?, failure).await?;
    let command = Command::Request(seq, command);
    writing.write(resource(seq), command, Vec::new(), move |written| finished(written, seq)).await
}

/// Retry a failed request
///
/// The request is claimable again, with all its attempts. A request that has not failed stays as it is.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/requests/{seq}/retry", operation_id = "retry_request", tag = "requests",
    params(openapi::InSession, openapi::AtSeq, openapi::Writes),
    responses(
        (status = 200, description = "The request is claimable, or had not failed", body = WrittenBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::RetryRefusals,
    )
)]
pub(super) async fn retry(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Writing,
) -> Result<Response, Problem> {
    writing.finish_query()?;
    let command = Command::Request(seq, RequestCommand::Retry);
    writing.write(resource(seq), command, Vec::new(), move |written| finished(written, seq)).await
}

/// Reads `{"ttl": …}`; the body may be absent.
fn new_claim(text: &str) -> Result<Ttl, Refusal> {
    let [ttl] = named(text, ["ttl"])?;
    ttl.map_or(Ok(Ttl::MINUTE), |ttl| ttl_member("/ttl", ttl))
}

/// Reads `{"fence": …, "result": …}`; the body may be absent.
fn new_end(request: Seq, text: &str) -> Result<Command, Refusal> {
    let [fence, result] = named(text, ["fence", "result"])?;
    let fence = fence.map(|fence| fence_member("/fence", fence)).transpose()?;
    let result = result.map(|result| result_member("/result", result)).transpose()?;
    Ok(Command::Request(request, RequestCommand::Finish { fence, result }))
}

fn resource(seq: Seq) -> Resource {
    Resource::Entry(LogName::Requests, seq)
}

fn finished(written: &Written<'_>, seq: Seq) -> ShapeResult {
    written.changed(written.entry_tag(&LogName::Requests, seq), None)
}
