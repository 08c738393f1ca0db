//! Sessions: list, create or configure, describe, delete.
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use serde::Serialize;
use serde::ser::Error as _;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;
use utoipa::ToSchema;

use super::access::session_detail::Sight;
use super::openapi;
use super::read::shared_scans::{ListText, Listed};
use super::read::until::SoughtSession;
use super::read::{Early, Reading, RevisionQuery};
use super::request::body::{BODY_BYTES_MAX, from_json, json_or_nothing};
use super::request::path::SessionPath;
use super::response::problem::Problem;
use super::response::unwritten;
use super::write::Writing;
use super::write::response::{Written, WrittenBody};
use blackboard_address::session_url;
use blackboard_api::inbox::{PAGE_BYTES, listing};
use blackboard_api::intake::input::body as body_of;
use blackboard_api::intake::query::{Count, Labels, Of, Text, queries};
use blackboard_api::intake::settings::SettingsBody;
use blackboard_api::intake::until::SessionUntilQuery;
use blackboard_api::offload::offload;
use blackboard_api::ops::sessions::Configuring;
use blackboard_api::refusal::no_session;
use blackboard_api::tag::Resource;
use blackboard_api::view::write_json;
use blackboard_auth::Caller;
use blackboard_board::{Command, Extent, SessionCommand, SessionName, Summary};
use blackboard_service::{Listed as ListedSession, Published, Service};

/// A session's description.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionBody {
    /// The session's name.
    #[schema(example = "sess_12345")]
    session: String,
    /// The revision of the last commit.
    revision: u64,
    /// In the answer to a write: the session's tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    etag: Option<String>,
    /// The oldest readable revision in the history.
    oldest_revision: u64,
    /// True if the four logs are empty; state, memories and blobs do not count.
    is_empty: bool,
    counts: Counts,
    /// The bytes of the text of items, state and agents' profiles, without images. This and all that counts memories
    /// is absent for a token that may not read all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    bytes: Option<u64>,
    /// The bytes of the commits that the history keeps; absent like `bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    history_bytes: Option<u64>,
    /// The sum of `cost` over the agents' memories, counted in billionths; absent like `bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cost: Option<f64>,
    /// The number of registered agents.
    agents: usize,
    /// The bytes of the state's text, 0 if it is empty.
    state_bytes: u64,
    /// The number of steps in all memories; absent like `bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    memory_entries: Option<u64>,
    /// The number of blobs; absent like `bytes`, since memories may name blobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    blobs: Option<usize>,
    /// The time of creation, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// The time of the last commit, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    updated_at: String,
    settings: SettingsBody,
    /// The session's labels.
    labels: BTreeMap<String, String>,
    /// True in a list if the stored history is damaged. Such a session is not served, and its members here cover only
    /// the readable part. It can be deleted, exported as an archive up to the damage, or replaced by an archive.
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    damaged: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A damaged session of which only the name could be read.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UnreadBody {
    /// The session's name.
    #[schema(example = "sess_12345")]
    session: String,
    /// The last revision known to the store.
    revision: u64,
    /// Always true.
    damaged: bool,
}

/// A session in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum ListedBody {
    /// A session that could be read, at least in part.
    Known(Box<SessionBody>),
    /// A session of which only the name could be read.
    Unread(UnreadBody),
}

impl ListedBody {
    fn seen_by(caller: &Caller, listed: &ListedSession) -> Self {
        let ListedSession { summary, is_damaged } = listed;
        match SessionBody::seen_by(caller, summary) {
            Some(body) => Self::Known(Box::new(SessionBody { damaged: *is_damaged, ..body })),
            None => Self::Unread(UnreadBody {
                session: summary.name.to_string(),
                revision: summary.extent.revision.0,
                damaged: *is_damaged,
            }),
        }
    }
}

/// The number of entries in each log of the board.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Counts {
    /// The number of entries in `questions`.
    questions: usize,
    /// The number of entries in `requests`.
    requests: usize,
    /// The number of entries in `trajectories`.
    trajectories: usize,
    /// The number of entries in `screenshots`.
    screenshots: usize,
}

/// A page of sessions in the order of their names.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionPage {
    /// At most `limit` sessions; a page of about 1 MiB ends early.
    #[schema(value_type = Vec<ListedBody>)]
    sessions: Vec<Box<RawValue>>,
    /// The value of `after` for the next page; null if nothing has been listed yet.
    #[schema(required)]
    next: Option<String>,
    /// True if more sessions follow.
    more: bool,
}

impl SessionBody {
    /// Describes the session as far as this caller may see it.
    fn seen_by(caller: &Caller, summary: &Summary) -> Option<Self> {
        let sight = Sight::of(caller);
        let life = summary.life.as_ref()?;
        let [questions, requests, trajectories, screenshots] = summary.counts;
        Some(Self {
            session: summary.name.to_string(),
            revision: summary.extent.revision.0,
            etag: None,
            oldest_revision: summary.extent.oldest.0,
            is_empty: summary.is_empty(),
            counts: Counts { questions, requests, trajectories, screenshots },
            bytes: sight.of_all(summary.bytes),
            history_bytes: sight.of_all(summary.history_bytes),
            cost: sight.of_all(summary.cost.to_f64()),
            agents: summary.agents,
            state_bytes: summary.state_bytes,
            memory_entries: sight.of_all(summary.memory_entries),
            blobs: sight.of_all(summary.blobs),
            created_at: life.created_at.to_string(),
            updated_at: summary.updated_at.to_string(),
            settings: SettingsBody::from(&*life.settings),
            labels: (*life.labels).clone(),
            damaged: false,
        })
    }
}

/// List sessions
///
/// Sessions are sorted by name, a page at a time.
#[utoipa::path(
    get, path = "/v1/sessions", operation_id = "list_sessions", tag = "sessions",
    params(SessionsQuery, openapi::ListWaitQuery),
    responses(
        (status = 200, description = "A page of sessions", body = SessionPage, headers(("ETag" = String, description = "Changes with the response"))),
        openapi::ListRefusals,
    )
)]
pub(super) async fn list(mut reading: Reading) -> Result<Response, Early> {
    let query = SessionsQuery::take(&mut reading.params)?;
    reading.list(&query).await
}

queries! {
    /// The query of a page of sessions.
    pub(crate) SessionsQuery {
        /// The maximum number of sessions on a page; 100 by default
        limit: Count<1, 1000> = 100,
        /// Only names after this one, in byte order
        after: Of<SessionName>,
        /// Only names that begin with this text
        prefix: Text = String::new(),
        /// Only sessions with all of these labels, each as `name:value`
        label: Labels = Vec::new(),
    }
}

impl SessionsQuery {
    /// Returns the current page, rendered only if it differs from the last one.
    fn page(
        &self,
        service: &Service,
        caller: &Caller,
        last: Option<&ListText>,
    ) -> Result<ListText, Problem> {
        let listing = listing(&self.prefix, &self.label, caller);
        let found = service.list(&listing, self.after.as_ref(), self.limit + 1)?;
        let version = Some(version(&found));
        if let Some(last) = last.filter(|last| last.version == version) {
            return Ok(last.clone());
        }
        Ok(ListText { version, text: self.render(caller, &found)?.into() })
    }

    fn render(&self, caller: &Caller, found: &[ListedSession]) -> Result<String, Problem> {
        let (mut sessions, mut bytes) = (Vec::new(), 0);
        for listed in found.iter().take(self.limit) {
            if bytes >= PAGE_BYTES {
                break;
            }
            let body = to_raw_value(&ListedBody::seen_by(caller, listed)).map_err(unwritten)?;
            bytes += body.get().len();
            sessions.push(body);
        }
        let last = found.iter().take(sessions.len()).next_back();
        let next = last.map(|listed| &listed.summary.name).or(self.after.as_ref());
        let (next, more) = (next.map(ToString::to_string), found.len() > sessions.len());
        let mut text = String::new();
        write_json(&SessionPage { sessions, next, more }, &mut text);
        text.push('\n');
        Ok(text)
    }
}

impl Listed for SessionsQuery {
    fn name(&self) -> String {
        format!("{self:?}")
    }

    fn ticks(&self, service: &Service) -> watch::Receiver<u64> {
        service.channels().lists()
    }

    async fn text(
        &self,
        service: &Service,
        caller: &Caller,
        last: Option<&ListText>,
    ) -> Result<ListText, Problem> {
        let (query, service) = (self.clone(), service.clone());
        let (caller, last) = (caller.clone(), last.cloned());
        let page = offload(move || Ok(query.page(&service, &caller, last.as_ref())));
        page.await?
    }
}

/// Hashes the versions of the listed sessions, which tells apart pages of one query.
fn version(found: &[ListedSession]) -> u64 {
    // The key is random for each process, so that nobody can choose names with equal hashes.
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = KEY.build_hasher();
    for ListedSession { summary, is_damaged } in found {
        let Extent { session, oldest, revision, .. } = summary.extent;
        (session, oldest.0, revision.0, summary.history_bytes, is_damaged).hash(&mut hasher);
        summary.name.as_str().hash(&mut hasher);
    }
    hasher.finish()
}

/// Describe a session
///
/// With `until` and `wait`, the request waits until the session exists, or no longer exists.
#[utoipa::path(
    get, path = "/v1/sessions/{session}", operation_id = "describe_session", tag = "sessions",
    params(RevisionQuery, SessionUntilQuery, openapi::UntilWaitQuery),
    responses(
        (status = 200, description = "The session", body = SessionBody,
            headers(("ETag" = String, description = "Changes with every commit and with the retained history"))),
        (status = 204, description = "With `until=absent`: the session does not exist",
            headers(("Blackboard-Revision" = u64, description = "The last revision of the name"))),
        openapi::DescribeRefusals,
    )
)]
pub(super) async fn describe(
    SessionPath(session): SessionPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let SessionUntilQuery { until } = SessionUntilQuery::take(&mut reading.params)?;
    let sight = Sight::of(&reading.caller);
    let mut sought = SoughtSession { session: &session, sight, until };
    let (answer, shown) = reading.seek(&session, None, &mut sought).await?;
    let Published { board, history_bytes } = shown;
    let now = Summary::of(&board, session.name(), history_bytes, 0);
    let body = SessionBody::seen_by(&reading.caller, &now);
    Ok(answer.json(&body.ok_or_else(|| no_session(session.name()))?)?)
}

/// Create a session, or change its settings and labels
///
/// An absent member stays unchanged; null resets it. `qa_pairs` are loaded as answered questions, only if this
/// request creates the session. A token without the right to read gets the revision alone.
#[utoipa::path(
    put, path = "/v1/sessions/{session}", operation_id = "put_session", tag = "sessions",
    request_body(content = Configuring, description = "The changes; the body may be omitted"),
    responses(
        (status = 200, description = "The session, changed or already the same", body = SessionBody,
            headers(("ETag" = String, description = "The session's tag"))),
        (status = 201, description = "The session, created", body = SessionBody,
            headers(("ETag" = String, description = "The session's tag"), ("Location" = String, description = "The session"))),
        openapi::PutRefusals,
    )
)]
pub(super) async fn put(mut writing: Box<Writing>, body: Body) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    let bytes = json_or_nothing(&writing.headers, bytes)?;
    let command = from_json(bytes, body_of::<Configuring>).await?.command();
    writing
        .write(Resource::Session, command, Vec::new(), move |written| {
            let Written { receipt, session, caller, .. } = written;
            let tag = written.session_tag();
            let made = (!receipt.existed).then(|| session_url(session));
            if Sight::of(caller) == Sight::Revision {
                return written.changed(tag, made);
            }
            let now = Summary::of(&receipt.board, session, receipt.history_bytes, 0);
            let body = SessionBody::seen_by(caller, &now);
            let body = body.ok_or_else(|| {
                serde_json::Error::custom("the session was written but cannot be described")
            })?;
            let body = SessionBody { etag: Some(tag.to_string()), ..body };
            written.json(Some(tag), made, &body)
        })
        .await
}

/// Delete a session with all its data
///
/// A session created again with the same name continues from its last revision. A damaged session can be deleted too.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}", operation_id = "delete_session", tag = "sessions",
    responses(
        (status = 200, description = "Deleted", body = WrittenBody, headers(("Blackboard-Revision" = u64, description = "The deletion's revision"))),
        openapi::RemoveRefusals,
    )
)]
pub(super) async fn delete(mut writing: Box<Writing>) -> Result<Response, Problem> {
    writing.finish_query()?;
    let command = Command::Session(SessionCommand::Delete);
    writing.write(Resource::Session, command, Vec::new(), |written| written.removed(None)).await
}
