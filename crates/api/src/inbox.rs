//! Inboxes: the open questions, and the claimable requests, of all sessions.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::intake::query::{Count, Labels, Text, queries};
use super::params::{Params, invalid};
use super::refusal::Refusal;
use super::schema::pattern;
use super::schema::shapes::{INBOX_PLACE, one_of};
use super::view::entry::{AskedBody, asked};
use super::view::write_json;
use blackboard_auth::Caller;
use blackboard_board::{Seq, SessionName};
use blackboard_service::{Delivered, Inbox, Listing, Service, ServiceError};

/// The size in bytes at which a page of a list ends, whatever its limit.
pub const PAGE_BYTES: usize = 1 << 20;

/// A page of open questions, by session and then by seq.
#[derive(Serialize, ToSchema)]
pub struct InboxPage {
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
pub struct RequestsPage {
    /// At most `limit` requests.
    #[schema(value_type = Vec<AskedBody>)]
    requests: Vec<Box<RawValue>>,
    /// The value of `after` for the next page; null if nothing has been listed yet.
    #[schema(required)]
    next: Option<String>,
    /// True if more requests follow.
    more: bool,
}

queries! {
    /// The query of a page of an inbox.
    pub InboxQuery {
        /// The maximum number of entries on a page; 100 by default
        limit: Count<1, 1000> = 100,
        /// Only entries after this cursor, the `next` of another page
        after via place_after: (SessionName, Seq) => pattern(INBOX_PLACE),
        /// Only entries of sessions whose names begin with this text
        prefix: Text = String::new(),
        /// Only entries of sessions with all of these labels, each as `name:value`
        label: Labels = Vec::new(),
    }

    /// The parameter that lists of requests have in common.
    pub PendingQuery {
        /// `true`: only pending requests are listed
        pending via only_true: () => one_of(["true"]),
    }
}

/// Takes the end of a page.
fn place_after(
    params: &mut Params,
    name: &'static str,
) -> Result<Option<(SessionName, Seq)>, Refusal> {
    let Some(text) = params.text(name)? else { return Ok(None) };
    let why = "must be a 'next' value from an earlier page of this list";
    place(&text).map(Some).ok_or_else(|| invalid(name, why))
}

/// Takes the word `true`, which changes nothing.
fn only_true(params: &mut Params, name: &'static str) -> Result<Option<()>, Refusal> {
    match params.text(name)?.as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(())),
        Some(_) => Err(invalid(name, "must be true: only pending requests are listed")),
    }
}

/// Parses the end of a page. A session's name has no slash.
fn place(text: &str) -> Option<(SessionName, Seq)> {
    let (session, seq) = text.rsplit_once('/')?;
    let digits = seq.bytes().all(|byte| byte.is_ascii_digit());
    Some((session.parse().ok()?, Seq(seq.parse().ok().filter(|_| digits)?)))
}

/// Renders the current page of an inbox as JSON.
pub async fn page(
    service: &Service,
    caller: &Caller,
    inbox: Inbox,
    query: &InboxQuery,
) -> Result<String, ServiceError> {
    let InboxQuery { limit, after, prefix, label } = query;
    let listing = Arc::new(listing(prefix, label, caller));
    let found = service.inbox(inbox, &listing, after.as_ref(), limit + 1).await?;
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

/// Lists the sessions that the caller reaches and that have this prefix and all these labels.
pub fn listing(prefix: &str, labels: &[(String, String)], caller: &Caller) -> Listing {
    let (prefix, labels, stems) = (prefix.to_owned(), labels.to_vec(), caller.stems());
    let caller = caller.clone();
    Listing { prefix, labels, stems, reaches: Arc::new(move |name| caller.reaches(name)) }
}
