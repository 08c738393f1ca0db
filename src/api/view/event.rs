//! Events as the document describes them.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use crate::api::intake::settings::SettingsBody;
use crate::api::view::entry::ImageBody;

/// A commit as it is shown: the data of an event.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what is written here")]
pub(crate) struct EventBody {
    /// The revision that it made.
    revision: u64,
    /// When, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    at: String,
    /// Who, where somebody was named.
    #[schema(required = false, nullable = false)]
    agent: Option<String>,
    /// The kind of its changes, or `transaction` where they differ; in an event's data it is the event's name.
    #[schema(required = false, nullable = false)]
    kind: Option<String>,
    /// What changed, in order.
    changes: Vec<EventChangeBody>,
}

/// One change of a commit. `kind` tells which; the other members are those that its kind has. In brief, which is
/// how the audit shows it and an event over 256 KiB, `url` is in place of what was brought.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what is written as text")]
pub(crate) struct EventChangeBody {
    /// What it is, in one word.
    #[schema(example = "appended")]
    kind: String,
    /// The log that was changed, as an address within the session.
    #[schema(required = false, nullable = false, example = "trajectories")]
    log: Option<String>,
    /// The entries that were appended.
    #[schema(required = false, nullable = false)]
    entries: Option<Vec<ChangedEntry>>,
    /// In brief, the first entry that was appended; of questions that wait, the first.
    #[schema(required = false, nullable = false)]
    first: Option<u64>,
    /// Of questions that wait, the last.
    #[schema(required = false, nullable = false)]
    last: Option<u64>,
    /// In brief, how many entries were appended, or images forgotten.
    #[schema(required = false, nullable = false)]
    count: Option<u64>,
    /// The ranges of entries that were removed, each with both of its ends.
    #[schema(required = false, nullable = false)]
    ranges: Option<Vec<[u64; 2]>>,
    /// The entry that was changed.
    #[schema(required = false, nullable = false)]
    seq: Option<u64>,
    /// What it holds now.
    #[schema(required = false, nullable = false, value_type = Object)]
    item: Option<Value>,
    /// Its stored image.
    #[schema(required = false, nullable = false)]
    image: Option<ImageBody<'static>>,
    /// The digests of the images that were forgotten, since nothing of what is kept names them.
    #[schema(required = false, nullable = false)]
    images: Option<Vec<String>>,
    /// Where in the state; empty for all of it.
    #[schema(required = false, nullable = false, example = "tasks/t1")]
    path: Option<String>,
    /// What stands there now; what an agent says of itself.
    #[schema(required = false)]
    value: Option<Value>,
    /// The JSON Merge Patch that was applied there.
    #[schema(required = false)]
    patch: Option<Value>,
    /// What was added to the array there.
    #[schema(required = false, nullable = false)]
    elements: Option<Vec<Value>>,
    /// Until when a value, a claim or a question stands, RFC 3339 in UTC.
    #[schema(required = false, nullable = false, format = DateTime)]
    expires_at: Option<String>,
    /// The agent that was changed, or that claimed.
    #[schema(required = false, nullable = false)]
    agent: Option<String>,
    /// The request that was claimed, given back or finished.
    #[schema(required = false, nullable = false)]
    request: Option<u64>,
    /// The revision at which its claim was won.
    #[schema(required = false, nullable = false)]
    fence: Option<u64>,
    /// What came of it.
    #[schema(required = false)]
    result: Option<Value>,
    /// The question that waits no longer.
    #[schema(required = false, nullable = false)]
    question: Option<u64>,
    /// What its answer is without one.
    #[schema(required = false, nullable = false)]
    default: Option<String>,
    /// The session's settings.
    #[schema(required = false, nullable = false)]
    settings: Option<SettingsBody>,
    /// The session's labels.
    #[schema(required = false, nullable = false)]
    labels: Option<BTreeMap<String, String>>,
    /// The checkpoint that was made, moved or removed.
    #[schema(required = false, nullable = false)]
    name: Option<String>,
    /// The revision that was restored.
    #[schema(required = false, nullable = false)]
    to: Option<u64>,
    /// The logs that a restore changed.
    #[schema(required = false, nullable = false)]
    logs: Option<Vec<RestoredLogBody>>,
    /// The places of the state that a restore changed.
    #[schema(required = false, nullable = false)]
    state: Option<Vec<String>>,
    /// The agents that a restore changed.
    #[schema(required = false, nullable = false)]
    agents: Option<Vec<String>>,
    /// The last revision that the name had before this history came to it.
    #[schema(required = false, nullable = false)]
    after: Option<u64>,
    /// The session that it was forked from.
    #[schema(required = false, nullable = false)]
    fork_of: Option<String>,
    /// In brief, where to read what was brought.
    #[schema(required = false, nullable = false)]
    url: Option<String>,
}

/// An entry that was appended.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what is written as text")]
pub(crate) struct ChangedEntry {
    /// Its place in its log.
    seq: u64,
    /// What was sent.
    #[schema(value_type = Object)]
    item: Value,
    /// Its stored image.
    #[schema(required = false, nullable = false)]
    image: Option<ImageBody<'static>>,
}

/// A log that a restore changed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what is written as text")]
pub(crate) struct RestoredLogBody {
    /// Which log, as an address within the session.
    log: String,
    /// The ranges of entries that were removed.
    removed: Vec<[u64; 2]>,
    /// How many entries are as they were.
    restored: u64,
}
