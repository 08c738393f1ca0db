//! Inboxes: the open questions, and the claimable requests, of all sessions.
use std::sync::Arc;

use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::openapi;
use super::read::shared_scans::{ListText, Listed, PAGE_BYTES};
use super::read::{Early, Reading};
use super::response::problem::Problem;
use super::sessions::{labels_param, listing};
use crate::api::params::{Params, invalid};
use crate::api::view::entry::{AskedBody, asked};
use crate::api::view::write_json;
use crate::auth::Caller;
use crate::board::{Seq, SessionName};
use crate::service::{Delivered, Inbox, Service};

/// The number of entries on a page by default.
const PAGE_DEFAULT: usize = 100;

/// The maximum number of entries on a page.
const PAGE_MAX: u64 = 1000;

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

/// A page of claimable requests, by session and then by seq.
#[derive(Serialize, ToSchema)]
pub(super) struct RequestsPage {
    /// At most `limit` requests.
    #[schema(value_type = Vec<AskedBody>)]
    requests: Vec<Box<RawValue>>,
    /// The value of `after` for the next page; null if nothing has been listed yet.
    #[schema(required)]
    next: Option<String>,
    /// True if more requests follow.
    more: bool,
}

/// The query of a page of an inbox.
#[derive(Debug)]
struct InboxQuery {
    inbox: Inbox,
    limit: usize,
    after: Option<(SessionName, Seq)>,
    prefix: String,
    labels: Vec<(String, String)>,
}

impl InboxQuery {
    fn params(inbox: Inbox, params: &mut Params) -> Result<Self, Problem> {
        let after = params.text("after")?;
        let place = |text: &str| {
            place(text).ok_or_else(|| {
                invalid("after", "must be a 'next' value from an earlier page of this list")
            })
        };
        let pending = if inbox == Inbox::Requests { params.text("pending")? } else { None };
        if pending.is_some_and(|pending| pending != "true") {
            return Err(invalid("pending", "must be true: only pending requests are listed").into());
        }
        Ok(Self {
            inbox,
            limit: params.count("limit", 1, PAGE_MAX)?.unwrap_or(PAGE_DEFAULT),
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
pub(super) async fn questions(mut reading: Reading) -> Result<Response, Early> {
    let query = InboxQuery::params(Inbox::Questions, &mut reading.params)?;
    reading.list(&query).await
}

/// List pending requests
///
/// Pending requests of all sessions come by session and then by seq, a page at a time. A request is pending while it
/// is neither claimed, done, failed nor blocked.
#[utoipa::path(
    get, path = "/v1/requests", operation_id = "list_requests", tag = "requests",
    params(openapi::InboxParams, openapi::PendingQuery, openapi::ListWaitQuery, openapi::IfNoneMatch),
    responses(
        (status = 200, description = "A page of requests", body = RequestsPage,
            headers(("ETag" = String, description = "Changes with the response"))),
        openapi::ListRefusals,
    )
)]
pub(super) async fn requests(mut reading: Reading) -> Result<Response, Early> {
    let query = InboxQuery::params(Inbox::Requests, &mut reading.params)?;
    reading.list(&query).await
}

impl Listed for InboxQuery {
    fn name(&self) -> String {
        format!("{self:?}")
    }

    fn ticks(&self, service: &Service) -> watch::Receiver<u64> {
        service.inbox_ticks(self.inbox)
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

/// Renders the current page of an inbox as JSON.
async fn page(service: &Service, caller: &Caller, query: &InboxQuery) -> Result<String, Problem> {
    let InboxQuery { inbox, limit, after, prefix, labels } = query;
    let listing = Arc::new(listing(prefix, labels, caller));
    let found = service.inbox(*inbox, &listing, after.as_ref(), limit + 1).await?;
    let (mut entries, mut next, mut bytes) = (Vec::new(), after.clone(), 0);
    let mut found = found.into_iter().peekable();
    while entries.len() < *limit
        && bytes < PAGE_BYTES
        && let Some(Delivered { session, open }) = found.next()
    {
        let body = asked(&session, &open);
        bytes += body.get().len();
        entries.push(body);
        next = Some((session, open.entry.seq));
    }
    let next = next.map(|(session, seq)| format!("{session}/{seq}"));
    let (mut text, more) = (String::new(), found.peek().is_some());
    match inbox {
        Inbox::Questions => write_json(&InboxPage { questions: entries, next, more }, &mut text),
        Inbox::Requests => write_json(&RequestsPage { requests: entries, next, more }, &mut text),
    }
    text.push('\n');
    Ok(text)
}
