//! Schemas of events.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use crate::intake::settings::SettingsBody;
use crate::view::entry::ImageBody;

/// A commit: the data of an event.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is written here")]
pub struct EventBody {
    /// The revision of the commit.
    revision: u64,
    /// The time of the commit, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    at: String,
    /// The author, if named.
    #[schema(required = false, nullable = false)]
    agent: Option<String>,
    /// The trace id of the request's `traceparent` (W3C Trace Context), if it had one.
    #[schema(required = false, nullable = false, example = "0af7651916cd43dd8448eb211c80319c")]
    trace: Option<String>,
    /// The kind of the changes, or `transaction` if they differ. In a stream, the event's name has the kind instead.
    #[schema(required = false, nullable = false)]
    kind: Option<String>,
    /// The changes, in order.
    changes: Vec<EventChangeBody>,
}

/// One change of a commit. `kind` names the kind of change, which determines the other members. In brief, as in the
/// audit and in events over 256 KiB, `url` replaces the contents.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of JSON that is written as text")]
pub(crate) struct EventChangeBody {
    /// The kind of change.
    #[schema(example = "appended")]
    kind: String,
    /// The changed log, as an address within the session.
    #[schema(required = false, nullable = false, example = "trajectories")]
    log: Option<String>,
    /// The appended entries.
    #[schema(required = false, nullable = false)]
    entries: Option<Vec<ChangedEntry>>,
    /// In brief, the seq of the first appended entry. For questions with a deadline, the first of them.
    #[schema(required = false, nullable = false)]
    first: Option<u64>,
    /// For questions with a deadline, the seq of the last one.
    #[schema(required = false, nullable = false)]
    last: Option<u64>,
    /// In brief, the number of appended entries or forgotten images.
    #[schema(required = false, nullable = false)]
    count: Option<u64>,
    /// The ranges of removed entries, each with both ends included.
    #[schema(required = false, nullable = false)]
    ranges: Option<Vec<[u64; 2]>>,
    /// The seq of the changed entry.
    #[schema(required = false, nullable = false)]
    seq: Option<u64>,
    /// The entry's new item.
    #[schema(required = false, nullable = false, value_type = BTreeMap<String, serde_json::Value>)]
    item: Option<Value>,
    /// The entry's stored image.
    #[schema(required = false, nullable = false)]
    image: Option<ImageBody<'static>>,
    /// The digests of forgotten images, which no retained content refers to.
    #[schema(required = false, nullable = false)]
    images: Option<Vec<String>>,
    /// The path in the state; empty for the whole state.
    #[schema(required = false, nullable = false, example = "tasks/t1")]
    path: Option<String>,
    /// The new value at the path, or the agent's new profile.
    #[schema(required = false)]
    value: Option<Value>,
    /// The JSON Merge Patch that was applied at the path.
    #[schema(required = false)]
    patch: Option<Value>,
    /// The elements appended to the array at the path.
    #[schema(required = false, nullable = false)]
    elements: Option<Vec<Value>>,
    /// The deadline of a value, claim or question, RFC 3339 in UTC.
    #[schema(required = false, nullable = false, format = DateTime)]
    expires_at: Option<String>,
    /// The agent that was changed, or that claimed the request.
    #[schema(required = false, nullable = false)]
    agent: Option<String>,
    /// The request that was claimed, released or finished.
    #[schema(required = false, nullable = false)]
    request: Option<u64>,
    /// The revision at which the claim was won.
    #[schema(required = false, nullable = false)]
    fence: Option<u64>,
    /// The result of the request.
    #[schema(required = false)]
    result: Option<Value>,
    /// The question that expired.
    #[schema(required = false, nullable = false)]
    question: Option<u64>,
    /// The default answer.
    #[schema(required = false, nullable = false)]
    default: Option<String>,
    /// The session's settings.
    #[schema(required = false, nullable = false)]
    settings: Option<SettingsBody>,
    /// The session's labels.
    #[schema(required = false, nullable = false)]
    labels: Option<BTreeMap<String, String>>,
    /// The checkpoint that was created, moved or removed.
    #[schema(required = false, nullable = false)]
    name: Option<String>,
    /// The restored revision.
    #[schema(required = false, nullable = false)]
    to: Option<u64>,
    /// The logs that a restore changed.
    #[schema(required = false, nullable = false)]
    logs: Option<Vec<RestoredLogBody>>,
    /// The paths of the state that a restore changed.
    #[schema(required = false, nullable = false)]
    state: Option<Vec<String>>,
    /// The agents that a restore changed.
    #[schema(required = false, nullable = false)]
    agents: Option<Vec<String>>,
    /// The last revision of the name before this history was attached to it.
    #[schema(required = false, nullable = false)]
    after: Option<u64>,
    /// The session that this session was forked from.
    #[schema(required = false, nullable = false)]
    fork_of: Option<String>,
    /// In brief, the address of the contents.
    #[schema(required = false, nullable = false)]
    url: Option<String>,
}

/// An entry that was appended.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of JSON that is written as text")]
pub(crate) struct ChangedEntry {
    /// The entry's place in its log.
    seq: u64,
    /// The item.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    item: Value,
    /// The entry's stored image.
    #[schema(required = false, nullable = false)]
    image: Option<ImageBody<'static>>,
}

/// A log that a restore changed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of JSON that is written as text")]
pub(crate) struct RestoredLogBody {
    /// The log, as an address within the session.
    log: String,
    /// The ranges of removed entries.
    removed: Vec<[u64; 2]>,
    /// The number of restored entries.
    restored: u64,
}
