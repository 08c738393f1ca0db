//! Events of a session: its commits, by server-sent events or long poll.
//!
//! A reader gets every commit after its cursor exactly once and in order. If that is impossible, the reader gets one
//! `resync` and continues from the head. Commits for a slow reader are read only when it has taken the previous
//! frames. Readers without a filter share the texts of new commits, which are the same for all of them.

pub(crate) mod notices;
pub(crate) mod sse;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use super::openapi;
use super::read::Early;
use super::read::deadline::wait_param;
use super::request::conditions::is_known;
use super::request::path::SessionPath;
use super::response::EVENT_STREAM;
use super::response::problem::Problem;
use super::response::{Answer, JSON, prefers};
use crate::request::query::Query;
use blackboard_api::intake::filter::Wanted;
use blackboard_api::intake::query::{AnyRevision, Choice, queries};
use blackboard_api::params::invalid;
use blackboard_api::push;
use blackboard_api::tag::Tag;
use blackboard_api::view::change::write_event;
use blackboard_api::view::event::EventBody;
use blackboard_api::view::{raw, write_json};
use blackboard_auth::is_open;
use blackboard_board::{Code, Commit, Extent, Revision};
use blackboard_service::{Commits, ServiceError, SessionHandle, SessionWait, SharedText};
use sse::{COMMENT, Frames, Heartbeat, Streams, respond};

/// The header in which a reader names the last event it received.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The maximum number of commits that one poll examines, wanted or not, before it answers.
const EXAMINED_MAX: usize = 10_000;

/// The commits after a cursor.
#[derive(Serialize, ToSchema)]
pub(super) struct EventPage {
    /// The commits in order; absent with `resync`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<Vec<EventBody>>)]
    events: Option<Box<RawValue>>,
    /// Present if commits are missing, because the cursor is before the retained history or beyond the head.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    resync: Option<ResyncBody>,
    /// The value of `after` for the next request.
    next: u64,
    /// True if more commits exist already.
    more: bool,
}

/// The position of a session whose commits cannot all be sent.
#[derive(Serialize, ToSchema)]
pub(super) struct ResyncBody {
    /// The session's revision, from which the events continue.
    revision: u64,
    /// The oldest readable revision in the history.
    oldest_revision: u64,
}

queries! {
    /// The revision after which events begin.
    pub(crate) AfterQuery {
        /// The last revision read; the current revision by default
        after: AnyRevision,
    }

    /// The frames of a stream that has nothing to send.
    pub(crate) HeartbeatQuery {
        /// The frame sent after 15 s without an event: `id`, the default, has the revision read so far; `comment` is a
        /// comment, for readers that take a frame with only an id for an event
        heartbeat: Choice<Heartbeat> = Heartbeat::default(),
    }
}

/// Follow a session
///
/// Commits are sent in order, each once: stored commits first, then new ones as they are made. The session need not
/// exist. Each commit is an event whose `id` is its revision and whose name is its kind. After 15 s without an event,
/// a frame with the revision read so far as `id` is sent. Commits that cannot be sent are replaced by one event
/// `resync`. With `Accept: application/json`, the response is a page of commits; with `wait`, it waits for the first
/// commit.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/events", operation_id = "follow_session", tag = "events",
    params(AfterQuery, openapi::LastEventId, Wanted, HeartbeatQuery, openapi::EventsWaitQuery),
    responses(
        (status = 200, description = "Events, for as long as the client listens, or a page of them",
            // JSON first: generators take the answer's type from the first.
            content((EventPage = "application/json"), (EventBody = "text/event-stream")),
            headers(("Blackboard-Revision" = u64, description = "The revision at which the events begin, or at which a page ends"))),
        openapi::FollowRefusals,
    )
)]
pub(super) async fn get(
    State(streams): State<Streams>,
    SessionPath(session): SessionPath,
    headers: HeaderMap,
    Query(mut params): Query,
) -> Result<Response, Early> {
    let polls = !prefers(&headers, &[EVENT_STREAM]) && prefers(&headers, &[JSON]);
    let wanted = Wanted::take(&mut params)?;
    let AfterQuery { after } = AfterQuery::take(&mut params)?;
    let HeartbeatQuery { heartbeat } = HeartbeatQuery::take(&mut params)?;
    let after = last_event(&headers)?.or(after);
    let wait = wait_param(&mut params, &headers, true)?;
    params.finish()?;
    if wait.is_some() && !polls {
        return Err(invalid("wait", "needs Accept: application/json").into());
    }
    let commits = session.wait()?;
    let cursor = after.unwrap_or_else(|| commits.extent().revision);
    let mut events = Events { commits, wanted, heartbeat, cursor };
    if polls {
        return events.poll(wait.unwrap_or_default()).await?.respond(&events, &headers);
    }
    let place = streams.place()?;
    let mut first = String::new();
    let begins_at = events.begin(&mut first).await?;
    Ok(respond(Answer::of(begins_at), first, events, place))
}

/// Parses the last revision that the reader received.
fn last_event(headers: &HeaderMap) -> Result<Option<Revision>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let digits = value
        .to_str()
        .ok()
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    let digits = digits.ok_or_else(|| {
        Problem::new(Code::InvalidParameter, "Last-Event-ID must be a revision, as a whole number")
    })?;
    // A number too large for a revision is beyond the head.
    Ok(Some(Revision(digits.parse().unwrap_or(u64::MAX))))
}

/// The stream of a session's commits to one reader.
struct Events {
    commits: SessionWait,
    wanted: Wanted,
    heartbeat: Heartbeat,
    /// The revision read so far.
    cursor: Revision,
}

impl Events {
    fn session(&self) -> &SessionHandle {
        self.commits.session()
    }

    /// Reads the next commits and passes each of them to `write`.
    async fn look(&mut self, mut write: impl FnMut(&Commit, &Self)) -> Result<Look, ServiceError> {
        // Boxed, so that the memory is used only during the read.
        let commits = match Box::pin(self.commits.commits(self.cursor)).await? {
            Commits::These(commits) => commits,
            Commits::Gap => return Ok(Look::Gap),
        };
        let Some(last) = commits.last() else { return Ok(Look::Nothing) };
        let last = Arc::clone(last);
        let mut is_whole = self.wanted.is_all();
        for commit in &commits {
            let visible = self.session().caller().visible(commit);
            is_whole &= matches!(visible, Cow::Borrowed(_));
            write(&visible, self);
        }
        self.cursor = last.revision;
        let is_open = is_whole && commits.iter().all(|commit| is_open(commit));
        Ok(Look::Examined(Examined { commits: commits.len(), last, is_whole, is_open }))
    }

    /// Waits for more commits; false when the server stops or the reader's rights end.
    async fn changed(&mut self) -> bool {
        self.commits.changed().await.unwrap_or(false)
    }

    /// Returns the frames of the next commits if another reader shared them.
    fn shared(&mut self) -> Option<Bytes> {
        if !self.wanted.is_all() {
            return None;
        }
        let (frames, cursor) = self.commits.shared(self.cursor)?;
        self.cursor = cursor;
        Some(frames)
    }

    /// Reads the next commits and adds their frames.
    async fn frames(&mut self, out: &mut String) -> Result<Look, ServiceError> {
        let look = self.look(|commit, events| events.write_frame(commit, out)).await?;
        if matches!(look, Look::Gap) {
            self.resync(out);
        }
        Ok(look)
    }

    /// Writes the first frames and returns the revision at which they begin.
    async fn begin(&mut self, out: &mut String) -> Result<Revision, ServiceError> {
        let begins_at = self.cursor;
        out.push_str(&self.keep_alive());
        let mut more = String::new();
        Ok(match self.frames(&mut more).await? {
            Look::Gap => {
                *out = more;
                self.cursor
            }
            Look::Examined(_) | Look::Nothing => {
                out.push_str(&more);
                begins_at
            }
        })
    }

    fn write_frame(&self, commit: &Commit, out: &mut String) {
        let Some(changes) = self.wanted.of(commit) else { return };
        push(out, format_args!("id: {}\nevent: {}\ndata: ", commit.revision, commit.kind()));
        write_event(self.session().name(), commit, &changes, false, out);
        out.push_str("\n\n");
    }

    /// Reports missing commits and moves the cursor to the head.
    fn resync(&mut self, out: &mut String) {
        let body = self.resync_body();
        out.push_str("event: resync\ndata: ");
        write_json(&body, out);
        // A frame with only the id follows, unless the reader takes such a frame for an event.
        if matches!(self.heartbeat, Heartbeat::Id) {
            out.push('\n');
        }
        push(out, format_args!("\nid: {}\n\n", self.cursor));
    }

    /// Moves the cursor to the head and returns its position.
    fn resync_body(&mut self) -> ResyncBody {
        let Extent { revision, oldest, .. } = self.commits.extent();
        self.cursor = revision;
        ResyncBody { revision: revision.0, oldest_revision: oldest.0 }
    }

    /// Returns the available commits, or waits this long for the first ones.
    async fn poll(&mut self, wait: Duration) -> Result<Page, Early> {
        let until = Instant::now() + wait;
        let (mut events, mut examined) = (String::new(), 0);
        loop {
            let look = self.look(|commit, reader| {
                let Some(changes) = reader.wanted.of(commit) else { return };
                if !events.is_empty() {
                    events.push(',');
                }
                write_event(reader.session().name(), commit, &changes, true, &mut events);
            });
            match look.await? {
                Look::Gap => return Ok(Page::Resync(self.resync_body())),
                Look::Examined(page) => examined += page.commits,
                Look::Nothing => match timeout_at(until, self.commits.changed()).await {
                    Ok(Ok(true)) => {}
                    Ok(Err(ended)) => return Err(ended.into()),
                    Ok(Ok(false)) | Err(_) => break,
                },
            }
            if !events.is_empty() || examined >= EXAMINED_MAX {
                break;
            }
        }
        Ok(Page::Events(events))
    }
}

/// The result of a read.
enum Look {
    /// Some commits were read.
    Examined(Examined),
    /// No new commits.
    Nothing,
    /// Commits are missing.
    Gap,
}

/// The commits of a read.
struct Examined {
    commits: usize,
    last: Arc<Commit>,
    /// True if the reader wants, and may see, all of them.
    is_whole: bool,
    /// True if so may every reader.
    is_open: bool,
}

impl Frames for Events {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.commits.is_at_head() && !self.changed().await {
                return None;
            }
            if self.commits.is_stopping().await {
                return None;
            }
            if let Some(frames) = self.shared() {
                return Some(frames);
            }
            let (after, mut out) = (self.cursor, String::new());
            // Boxed, so that a stream that waits has no room for a read.
            let look = match Box::pin(self.frames(&mut out)).await {
                Ok(look) => look,
                Err(error) => {
                    tracing::error!(%error, session = %self.session(), "a stream of events ended");
                    return None;
                }
            };
            let frames = Bytes::from(out);
            if let Look::Examined(Examined { last, is_whole: true, is_open, .. }) = &look {
                let (last, is_open, text) = (Arc::clone(last), *is_open, frames.clone());
                self.commits.share(SharedText { after, last, is_open, text });
            }
            if !frames.is_empty() {
                return Some(frames);
            }
            match look {
                Look::Nothing if !self.changed().await => return None,
                Look::Nothing => {}
                // A reader that wants few commits of a long history must not occupy a worker.
                Look::Examined(_) | Look::Gap => tokio::task::yield_now().await,
            }
        }
    }

    fn keep_alive(&self) -> String {
        match self.heartbeat {
            Heartbeat::Id => format!("id: {}\n\n", self.cursor),
            Heartbeat::Comment => COMMENT.to_owned(),
        }
    }
}

/// The outcome of a poll.
enum Page {
    Events(String),
    Resync(ResyncBody),
}

impl Page {
    fn respond(self, events: &Events, headers: &HeaderMap) -> Result<Response, Early> {
        let next = events.cursor;
        let more = events.commits.extent().revision > next;
        let (found, resync) = match self {
            Self::Events(events) => (Some(raw(format!("[{events}]"))), None),
            Self::Resync(resync) => (None, Some(resync)),
        };
        let mut text = String::new();
        write_json(&EventPage { events: found, resync, next: next.0, more }, &mut text);
        let tag = Tag::of_bytes(events.session().service().epoch(), text.as_bytes());
        let answer = Answer::of(next).tag(&tag);
        if is_known(headers, &tag)? {
            return Err(Early::bare(answer.status(StatusCode::NOT_MODIFIED)));
        }
        Ok(answer.text(text))
    }
}
