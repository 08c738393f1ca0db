//! Inboxes: the open questions, and the claimable requests, of all sessions.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::params::{Params, invalid};
use super::refusal::Refusal;
use super::view::entry::{AskedBody, asked};
use super::view::write_json;
use crate::auth::Caller;
use crate::board::{Seq, SessionName};
use crate::service::{Delivered, Inbox, Listing, Service, ServiceError};

/// The size in bytes at which a page of a list ends, whatever its limit.
pub(crate) const PAGE_BYTES: usize = 1 << 20;

/// The number of entries on a page by default.
const PAGE_DEFAULT: usize = 100;

/// The maximum number of entries on a page.
const PAGE_MAX: u64 = 1000;

/// A page of open questions, by session and then by seq.
#[derive(Serialize, ToSchema)]
pub(crate) struct InboxPage {
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
pub(crate) struct RequestsPage {
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
pub(crate) struct InboxQuery {
    pub(crate) inbox: Inbox,
    limit: usize,
    after: Option<(SessionName, Seq)>,
    prefix: String,
    labels: Vec<(String, String)>,
}

impl InboxQuery {
    /// Takes the parameters of the list.
    pub(crate) fn params(inbox: Inbox, params: &mut Params) -> Result<Self, Refusal> {
        let after = params.text("after")?;
        let place = |text: &str| {
            place(text).ok_or_else(|| {
                invalid("after", "must be a 'next' value from an earlier page of this list")
            })
        };
        let pending = if inbox == Inbox::Requests { params.text("pending")? } else { None };
        if pending.is_some_and(|pending| pending != "true") {
            return Err(invalid("pending", "must be true: only pending requests are listed"));
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

/// Renders the current page of an inbox as JSON.
pub(crate) async fn page(
    service: &Service,
    caller: &Caller,
    query: &InboxQuery,
) -> Result<String, ServiceError> {
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

pub(crate) fn labels_param(params: &mut Params) -> Result<Vec<(String, String)>, Refusal> {
    let labels = params.list("label")?.unwrap_or_default();
    if labels.iter().any(|label| label.contains('\0')) {
        return Err(invalid("label", "must not contain U+0000, which no label has"));
    }
    let pair = |label: &String| {
        let (name, value) = label.split_once(':')?;
        Some((name.to_owned(), value.to_owned()))
    };
    let pairs = labels.iter().map(pair).collect::<Option<_>>();
    pairs.ok_or_else(|| invalid("label", "must be name:value, several separated by commas; a value with a comma needs a JSON array"))
}

/// Lists the sessions that the caller reaches and that have this prefix and all these labels.
pub(crate) fn listing(prefix: &str, labels: &[(String, String)], caller: &Caller) -> Listing {
    let (prefix, labels, stems) = (prefix.to_owned(), labels.to_vec(), caller.stems());
    let caller = caller.clone();
    Listing { prefix, labels, stems, reaches: Arc::new(move |name| caller.reaches(name)) }
}
