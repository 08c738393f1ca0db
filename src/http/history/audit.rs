//! The audit: authors, times and kinds of commits, as pages or lines.
//!
//! The audit is read from the store in batches, so that a long history takes no more memory than a short one.
use axum::response::Response;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::LOOKS_MAX;
use crate::api::history::audit::AuditPage;
use crate::api::history::audit::{AuditPieces, Chosen, Span};
use crate::api::intake::query::{AnyRevision, Count, Form, Of, OrderOfPage, queries};
use crate::api::params::{Params, invalid};
use crate::api::refusal::Refusal;
use crate::api::schema::shapes::one_of;
use crate::api::tag::{Rendering, Resource};
use crate::board::COMMIT_KINDS as KINDS;
use crate::board::{AgentName, Order, Timestamp, TraceId};
use crate::http::openapi;
use crate::http::read::{Early, Reading};
use crate::http::request::path::SessionPath;
use crate::http::response::chunked;
use crate::http::response::{JSON, NDJSON, prefers};
use crate::service::{Published, ServiceError};

/// The number of commits on a page by default.
const LIMIT_DEFAULT: usize = 100;

/// A kind of commits or changes.
pub(crate) struct KindOf;

impl Form for KindOf {
    type Value = &'static str;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<&'static str>, Refusal> {
        let Some(text) = params.text(name)? else { return Ok(None) };
        let known = KINDS.into_iter().find(|known| *known == text);
        let why = "must be a kind of commit or change, such as appended";
        known.map(Some).ok_or_else(|| invalid(name, why))
    }

    fn schema() -> RefOr<Schema> {
        one_of(KINDS).into()
    }
}

queries! {
    /// The query of an audit.
    AuditQuery {
        /// Only commits after this revision
        after: AnyRevision,
        /// Only commits before this revision
        before: AnyRevision,
        /// The maximum number of commits; 100 by default, or all as lines
        limit: Count<1, 1000>,
        /// `asc`, the default, starts with the oldest, `desc` with the newest
        order: OrderOfPage = Order::default(),
        /// Only commits by this agent
        agent: Of<AgentName>,
        /// Only commits of requests with this trace id in their `traceparent`
        trace: Of<TraceId>,
        /// Only commits of this kind, or with a change of this kind
        kind: KindOf,
        /// Only commits at or after this time, RFC 3339
        since: Of<Timestamp>,
        /// Only commits at or before this time, RFC 3339
        till: Of<Timestamp>,
    }
}

/// Read the audit of a session
///
/// The response is a page of commits, each with its author, time and changes in brief. With `Accept:
/// application/x-ndjson` it has one commit per line, all of them unless `limit` is given.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/audit", operation_id = "audit_session", tag = "history",
    params(openapi::InSession, AuditQuery, openapi::MinRevision, openapi::WaitQuery, openapi::IfNoneMatch),
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
    let query = AuditQuery::take(&mut reading.params)?;
    let AuditQuery { after, before, limit, order, agent, trace, kind, since, till } = query;
    let chosen = Chosen { agent, trace, kind, since, till };
    let limit = limit.or((!lines).then_some(LIMIT_DEFAULT));
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
