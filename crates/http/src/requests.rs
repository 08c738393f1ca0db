//! Handlers of work on a board's requests: claim, release, finish, fail, retry, cancel, judge.
use axum::Extension;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::connection::Peer;
use super::openapi;
use super::read::deadline::wait_param;
use super::request::body::{BODY_BYTES_MAX, from_json, json_or_nothing, only_json};
use super::request::path::EntryPath;
use super::response::problem::Problem;
use super::write::Writing;
use super::write::response::{ShapeResult, Written, WrittenBody};
use blackboard_address::entry_url;
use blackboard_api::intake::input::{Input, body as body_of};
use blackboard_api::ops::requests::{
    Cancelling, Claimed, Claiming, ClaimingNext, Failing, Finishing, Judging, Retrying,
};
use blackboard_api::tag::Resource;
use blackboard_api::view::entry::{CancelBody, ClaimBody, EntryBody};
use blackboard_board::{Command, LogName, RequestCommand, Seq};
use blackboard_service::Wait;

/// The result of a claim.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClaimedBody<'a> {
    /// The session's revision after the write.
    revision: u64,
    /// The tag that `If-Match` of the next write to the same address compares with.
    etag: String,
    claim: ClaimBody<'a>,
    /// The cancellation of the request, if it was cancelled: the holder should stop its work and end the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    cancel: Option<CancelBody<'a>>,
}

/// The claimed request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NextBody<'a> {
    #[serde(flatten)]
    entry: EntryBody<'a>,
    /// The tag that `If-Match` of the next write to the entry compares with.
    etag: String,
}

/// Claim a request
///
/// One agent at a time holds a claim; the same agent renews it by another PUT. Its writes may then carry
/// `?claim=SEQ&fence=N`. They are rejected once the claim is released, or lost to another agent.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/requests/{seq}/claim", operation_id = "claim_request", tag = "requests",
    request_body(content = Claiming, description = "The duration of the claim; the body may be omitted"),
    responses(
        (status = 200, description = "Claim renewed", body = ClaimedBody, headers(("ETag" = String, description = "The entry's tag"))),
        (status = 201, description = "Claim won", body = ClaimedBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Location" = String, description = "The entry"))),
        openapi::ClaimRefusals,
    )
)]
pub(super) async fn claim(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    writing.by_an_agent()?;
    let claiming =
        from_json(json_or_nothing(&writing.headers, bytes)?, body_of::<Claiming>).await?;
    let shape = move |written: &Written<'_>| {
        let Some(claimed) = Claimed::of(written.receipt, Some(seq)) else {
            return finished(written, seq);
        };
        let revision = written.receipt.board.revision().0;
        let made = claimed.is_won.then(|| entry_url(written.session, &LogName::Requests, seq));
        let tag = written.entry_tag(&LogName::Requests, seq);
        let claim = ClaimBody::of(claimed.claim);
        let task = claimed.entry.and_then(|entry| entry.task.as_deref());
        let cancel = task.and_then(|task| task.cancel.as_deref()).map(CancelBody::of);
        let body = ClaimedBody { revision, etag: tag.to_string(), claim, cancel };
        written.json(Some(tag), made, &body)
    };
    writing.write(resource(seq), claiming.of(seq), Vec::new(), shape).await
}

/// Release a claim
///
/// Releasing an unclaimed request succeeds too.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/requests/{seq}/claim", operation_id = "release_request", tag = "requests",
    responses(
        (status = 200, description = "The request is unclaimed", body = WrittenBody, headers(("ETag" = String, description = "The entry's tag"))),
        openapi::ReleaseRefusals,
    )
)]
pub(super) async fn release(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Box<Writing>,
) -> Result<Response, Problem> {
    writing.finish_query()?;
    writing.by_an_agent()?;
    let command = Command::Request(seq, RequestCommand::Release);
    writing.write(resource(seq), command, Vec::new(), move |written| finished(written, seq)).await
}

/// Claim the next request
///
/// The claimable request with these members that has the highest priority, and of those the oldest, goes to the caller. With
/// `wait`, the next request that becomes
/// claimable goes to the worker that has waited longest among those it matches.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/requests/claim", operation_id = "claim_next_request", tag = "requests",
    params(openapi::ClaimWaitQuery),
    request_body(content = ClaimingNext, description = "The members to look for, and the duration of the claim; the body may be omitted"),
    responses(
        (status = 200, description = "The claimed request", body = NextBody,
            headers(("ETag" = String, description = "The entry's tag"), ("Location" = String, description = "The entry"))),
        (status = 204, description = "No request to claim", headers(("ETag" = String, description = "The log's tag"))),
        openapi::ClaimNextRefusals,
    )
)]
pub(super) async fn claim_next(
    mut writing: Box<Writing>,
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
    let claiming =
        from_json(json_or_nothing(&writing.headers, bytes)?, body_of::<ClaimingNext>).await?;
    let shape = |written: &Written<'_>| {
        let Some(Claimed { seq, entry, .. }) = Claimed::of(written.receipt, None) else {
            return written.changed(written.log_tag(&LogName::Requests), None);
        };
        let tag = written.entry_tag(&LogName::Requests, seq);
        let Some(entry) = entry.map(EntryBody::whole) else {
            return written.changed(tag, None);
        };
        let body = NextBody { entry, etag: tag.to_string() };
        let location = entry_url(written.session, &LogName::Requests, seq);
        Ok(written.json(Some(tag), Some(location), &body)?.with_status(StatusCode::OK))
    };
    writing.claim_next(claiming.next(), wait, shape).await
}

/// Finish a request
///
/// A finished request is neither pending nor claimable. One that was posted with `review` waits for a verdict first.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/requests/{seq}/done", operation_id = "finish_request", tag = "requests",
    request_body(content = Finishing, description = "The claim's fence and the result; the body may be omitted"),
    responses(
        (status = 200, description = "Finished", body = WrittenBody, headers(("ETag" = String, description = "The entry's tag"))),
        openapi::FinishRefusals,
    )
)]
pub(super) async fn finish(
    EntryPath { seq, .. }: EntryPath,
    writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    write(writing, body, seq, Finishing::of).await
}

/// End a claim without success
///
/// The request is claimable again, with `retry_in` after that time, until its `attempts` are used up; then it has failed. The
/// end of an expired claim
/// was counted already.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/requests/{seq}/failed", operation_id = "fail_request", tag = "requests",
    request_body(content = Failing, description = "The claim's fence and the reason; the body may be omitted"),
    responses(
        (status = 200, description = "The claim has ended", body = WrittenBody, headers(("ETag" = String, description = "The entry's tag"))),
        openapi::FinishRefusals,
    )
)]
pub(super) async fn fail(
    EntryPath { seq, .. }: EntryPath,
    writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    write(writing, body, seq, Failing::of).await
}

/// Retry a request
///
/// A request that failed or was cancelled is claimable again, with all its attempts. Its deadline goes, unless the body
/// has a new one. Any other request stays as it is.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/requests/{seq}/retry", operation_id = "retry_request", tag = "requests",
    request_body(content = Retrying, description = "The new deadline; the body may be omitted"),
    responses(
        (status = 200, description = "The request is claimable, or had not ended", body = WrittenBody,
            headers(("ETag" = String, description = "The entry's tag"))),
        openapi::RetryRefusals,
    )
)]
pub(super) async fn retry(
    EntryPath { seq, .. }: EntryPath,
    writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    write(writing, body, seq, Retrying::of).await
}

/// Cancel a request
///
/// A request that nobody has claimed ends at once. A claimed one shows `cancel` to its holder and ends with the claim:
/// `done` still counts, and `failed`, a release, the end of the claim and the deadline end it cancelled. Renewals work for
/// five minutes more. A second cancellation ends it at once.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/requests/{seq}/cancelled", operation_id = "cancel_request", tag = "requests",
    request_body(content = Cancelling, description = "The reason; the body may be omitted"),
    responses(
        (status = 200, description = "Cancelled, or to be cancelled with its claim", body = WrittenBody,
            headers(("ETag" = String, description = "The entry's tag"))),
        openapi::CancelRefusals,
    )
)]
pub(super) async fn cancel(
    EntryPath { seq, .. }: EntryPath,
    writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    write(writing, body, seq, Cancelling::of).await
}

/// Judge a result
///
/// An accepted request is done. A refused one counts as a failed attempt. The verdict is another agent's than that which
/// did the request.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/requests/{seq}/verdict", operation_id = "judge_request", tag = "requests",
    request_body(content = Judging, description = "The verdict, with the fence of the attempt"),
    responses(
        (status = 200, description = "Judged", body = WrittenBody, headers(("ETag" = String, description = "The entry's tag"))),
        openapi::VerdictRefusals,
    )
)]
pub(super) async fn judge(
    EntryPath { seq, .. }: EntryPath,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    writing.by_an_agent()?;
    only_json(&writing.headers)?;
    let command = from_json(bytes, body_of::<Judging>).await?.of(seq);
    writing.write(resource(seq), command, Vec::new(), move |written| finished(written, seq)).await
}

/// Writes the command of a body that may be omitted.
async fn write<I: Input + Send + 'static>(
    mut writing: Box<Writing>,
    body: Body,
    seq: Seq,
    command: fn(I, Seq) -> Command,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    let bytes = json_or_nothing(&writing.headers, bytes)?;
    let command = command(from_json(bytes, body_of::<I>).await?, seq);
    writing.write(resource(seq), command, Vec::new(), move |written| finished(written, seq)).await
}

fn resource(seq: Seq) -> Resource {
    Resource::Entry(LogName::Requests, seq)
}

fn finished(written: &Written<'_>, seq: Seq) -> ShapeResult {
    written.changed(written.entry_tag(&LogName::Requests, seq), None)
}
