//! The audit: authors, times and kinds of commits, as pages or lines.
//!
//! The audit is read from the store in batches, so that a long history takes no more memory than a short one.
use axum::response::Response;

use super::LOOKS_MAX;
use crate::openapi;
use crate::read::{Early, Reading, RevisionQuery};
use crate::request::path::SessionPath;
use crate::response::chunked;
use crate::response::{JSON, NDJSON, prefers};
use blackboard_api::history::audit::AuditPage;
use blackboard_api::history::audit::{AuditPieces, Chosen, Span};
use blackboard_api::intake::query::{AnyRevision, Count, Of, OrderName, queries};
use blackboard_api::params::{Params, invalid};
use blackboard_api::refusal::Refusal;
use blackboard_api::schema::shapes::one_of;
use blackboard_api::tag::{Rendering, Resource};
use blackboard_board::COMMIT_KINDS as KINDS;
use blackboard_board::{AgentName, Order, Timestamp, TraceId};
use blackboard_service::{Published, ServiceError};

/// The number of commits on a page by default.
const LIMIT_DEFAULT: usize = 100;

queries! {
    /// The query of an audit.
    pub(crate) AuditQuery {
        /// Only commits after this revision
        after: AnyRevision,
        /// Only commits before this revision
        before: AnyRevision,
        /// The maximum number of commits; 100 by default, or all as lines
        limit: Count<1, 1000>,
        /// `asc`, the default, starts with the oldest, `desc` with the newest
        order: OrderName = Order::default(),
        /// Only commits by this agent
        agent: Of<AgentName>,
        /// Only commits of requests with this trace id in their `traceparent`
        trace: Of<TraceId>,
        /// Only commits of this kind, or with a change of this kind
        kind via kind: &'static str => one_of(KINDS),
        /// Only commits at or after this time, RFC 3339
        since: Of<Timestamp>,
        /// Only commits at or before this time, RFC 3339
        till: Of<Timestamp>,
    }
}

/// Takes a kind of commits or changes.
fn kind(params: &mut Params, name: &'static str) -> Result<Option<&'static str>, Refusal> {
    let Some(text) = params.text(name)? else { return Ok(None) };
    let known = KINDS.into_iter().find(|known| *known == text);
    let why = "must be a kind of commit or change, such as appended";
    known.map(Some).ok_or_else(|| invalid(name, why))
}

/// Read the audit of a session
///
/// The response is a page of commits, each with its author, time and changes in brief. With `Accept:
/// application/x-ndjson` it has one commit per line, all of them unless `limit` is given.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/audit", operation_id = "audit_session", tag = "history",
    params(AuditQuery, RevisionQuery, openapi::WaitQuery),
    responses(
        (status = 200, description = "The commits, as a page or as lines",
            content((AuditPage = "application/json"), (String = "application/x-ndjson")),
            headers(("ETag" = String, description = "Changes with every commit and with the query"))),
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
        let (of, chosen) = (session.clone(), chosen.clone());
        let pieces = AuditPieces::new(of, board, chosen, span, limit, lines);
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
