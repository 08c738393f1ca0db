//! The audit: authors, times and kinds of commits, as pages or lines.
//!
//! The audit is read from the store in batches, so that a long history takes no more memory than a short one.
use axum::response::Response;

use super::LOOKS_MAX;
use crate::api::history::audit::AuditPage;
use crate::api::history::audit::{AuditPieces, Chosen, Span};
use crate::api::params::{Params, invalid};
use crate::api::refusal::Refusal;
use crate::api::tag::{Rendering, Resource};
use crate::api::view::change::KINDS;
use crate::board::{Order, Revision};
use crate::http::openapi;
use crate::http::read::{Early, Reading};
use crate::http::request::path::SessionPath;
use crate::http::response::chunked;
use crate::http::response::{JSON, NDJSON, prefers};
use crate::service::{Published, ServiceError};

/// The number of commits on a page by default.
const LIMIT_DEFAULT: usize = 100;

/// The maximum number of commits on a page.
const LIMIT_MAX: u64 = 1000;

/// Read the audit of a session
///
/// The response is a page of commits, each with its author, time and changes in brief. With `Accept:
/// application/x-ndjson` it has one commit per line, all of them unless `limit` is given.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/audit", operation_id = "audit_session", tag = "history",
    params(openapi::InSession, openapi::AuditQuery, openapi::MinRevision, openapi::WaitQuery, openapi::IfNoneMatch),
    responses(
        (status = 200, description = "The commits, as a page or as lines",
            content((AuditPage = "application/json"), (String = "application/x-ndjson")),
            headers(("ETag" = String, description = "Changes with every commit and with the query"), ("Blackboard-Revision" = u64, description = "The revision shown"))),
        openapi::AuditRefusals,
    )
)]
pub(crate) async fn get(
    SessionPath(session): SessionPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let lines = prefers(&reading.headers, &[NDJSON, "application/jsonl"]);
    let params = &mut reading.params;
    let chosen = chosen(params)?;
    let after = params.number("after", 0..=u64::MAX)?.map(Revision);
    let before = params.number("before", 0..=u64::MAX)?.map(Revision);
    let limit = params.count("limit", 1, LIMIT_MAX)?.or((!lines).then_some(LIMIT_DEFAULT));
    let orders = [("asc", Order::Ascending), ("desc", Order::Descending)];
    let order = params.choice("order", &orders)?.unwrap_or_default();
    let rendering = |now: &Published| {
        let oldest = now.board.oldest();
        if after.is_some_and(|after| after < oldest) {
            return Err(ServiceError::Compacted { oldest }.into());
        }
        let rendering = Rendering::of(Resource::Audit, now.board.version());
        Ok(rendering.in_format(format!("{lines} from {oldest}")))
    };
    let media_type = if lines { NDJSON } else { JSON };
    for _ in 0..LOOKS_MAX {
        let (answer, Published { board, .. }) = reading.published(&session, rendering).await?;
        let span = Span::new(&board, after, before, order);
        let reader = (reading.service.clone(), reading.caller.clone());
        let (name, chosen) = (session.name().clone(), chosen.clone());
        let pieces = AuditPieces::new(reader, board, name, chosen, span, limit, lines);
        match chunked::body(pieces).await {
            // Another server truncated the history meanwhile; without `after` the page begins where it does.
            Err(ServiceError::Compacted { .. }) if after.is_none() => {
                session.renew().await?;
            }
            body => return Ok(answer.body(media_type, body?)),
        }
    }
    Err(ServiceError::Overloaded.into())
}

fn chosen(params: &mut Params) -> Result<Chosen, Refusal> {
    let kind = params.text("kind")?;
    let kind = kind.map(|kind| KINDS.into_iter().find(|known| *known == kind));
    Ok(Chosen {
        agent: params.parsed("agent")?,
        trace: params.parsed("trace")?,
        kind: kind
            .map(|kind| {
                kind.ok_or_else(|| {
                    invalid("kind", "must be a kind of commit or change, such as appended")
                })
            })
            .transpose()?,
        since: params.parsed("since")?,
        till: params.parsed("till")?,
    })
}
