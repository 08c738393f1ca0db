//! Events of a session: its commits, by server-sent events or long poll.
//!
//! Every commit after the cursor comes exactly once and in order. Who cannot be served from his cursor on gets
//! one `resync`, and goes on from the head. A slow reader is read for when he has taken what he got.

pub(crate) mod notices;
pub(crate) mod sse;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use super::openapi;
use super::read::Early;
use super::read::wait::wait_param;
use super::request::conditions::is_known;
use super::request::path::SessionPath;
use super::response::EVENT_STREAM;
use super::response::problem::Problem;
use super::response::tag::Tag;
use super::response::{Answer, JSON, prefers};
use crate::api::intake::filter::Wanted;
use crate::api::params::{Params, invalid};
use crate::api::view::change::write_event;
use crate::api::view::entry::push;
use crate::api::view::event::EventBody;
use crate::api::view::{raw, write_json};
use crate::auth::Caller;
use crate::board::{Code, Commit, Extent, Revision, SessionName};
use crate::service::{Commits, Service, ServiceError, Watch};
use sse::{Frames, Streams, respond};

/// The header in which a reader of events says where it was cut off.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How many commits one poll examines at most, wanted or not, before it answers.
const EXAMINED_MAX: usize = 10_000;

/// The commits after a cursor.
#[derive(Serialize, ToSchema)]
pub(super) struct EventPage {
    /// The commits in order; absent with `resync`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<Vec<EventBody>>)]
    events: Option<Box<RawValue>>,
    /// That commits are missing, because the cursor is before what is kept, or beyond the head.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    resync: Option<ResyncBody>,
    /// Where to go on, as `after`.
    next: u64,
    /// Whether there are more already.
    more: bool,
}

/// Where a session stands whose commits cannot all be given.
#[derive(Serialize, ToSchema)]
pub(super) struct ResyncBody {
    /// Its revision, from which the events go on.
    revision: u64,
    /// The oldest revision that its history can show.
    oldest_revision: u64,
}

/// Follow a session
///
/// Its commits in order, each once: from the store if need be, then as they come. The session need not exist.
/// Each is an event whose `id` is its revision and whose name is its kind; every 15 s without one there is a frame
/// with the revision read so far as `id`. What cannot be given is told by one event `resync`. With
/// `Accept: application/json` it is a page of them, which waits for the first one if it is asked to.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/events", operation_id = "follow_session", tag = "events",
    params(openapi::InSession, openapi::EventsQuery),
    responses(
        (status = 200, description = "Events, for as long as the client listens, or a page of them",
            content((EventBody = "text/event-stream"), (EventPage = "application/json")),
            headers(("Blackboard-Revision" = u64, description = "The revision that the events begin at; of a page, where it ends"))),
        openapi::FollowRefusals,
    )
)]
pub(super) async fn get(
    State(service): State<Service>,
    State(streams): State<Streams>,
    SessionPath(session): SessionPath,
    caller: Caller,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Early> {
    let polls = !prefers(&headers, &[EVENT_STREAM]) && prefers(&headers, &[JSON]);
    let wanted = Wanted::params(&mut params)?;
    let after = params.number("after", 0..=u64::MAX)?.map(Revision);
    let after = last_event(&headers)?.or(after);
    let wait = wait_param(&mut params, &headers, true)?;
    params.finish()?;
    if wait.is_some() && !polls {
        return Err(invalid("wait", "needs Accept: application/json").into());
    }
    let watch = service.watch(&session)?;
    let cursor = after.unwrap_or_else(|| watch.extent().revision);
    let mut events = Events { service, caller, watch, session, wanted, cursor };
    if polls {
        return events.poll(wait.unwrap_or_default()).await?.respond(&events, &headers);
    }
    let place = streams.place()?;
    let mut first = String::new();
    let begins_at = events.begin(&mut first).await?;
    Ok(respond(Answer::of(begins_at), first, events, place))
}

/// The revision at which the reader was cut off.
fn last_event(headers: &HeaderMap) -> Result<Option<Revision>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let digits = value
        .to_str()
        .ok()
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    let digits = digits.ok_or_else(|| {
        Problem::new(Code::InvalidParameter, "Last-Event-ID must be a revision, as a whole number")
    })?;
    // One that no revision can be is beyond the head.
    Ok(Some(Revision(digits.parse().unwrap_or(u64::MAX))))
}

/// A session's commits on their way to one reader.
struct Events {
    service: Service,
    caller: Caller,
    watch: Watch,
    session: SessionName,
    wanted: Wanted,
    /// The revision read so far.
    cursor: Revision,
}

impl Events {
    /// What comes next; what is wanted of it goes to `write`.
    async fn look(&mut self, mut write: impl FnMut(&Commit, &Self)) -> Result<Look, ServiceError> {
        // In a box of its own, which is there only while it reads.
        let commits = match Box::pin(self.watch.commits(self.cursor)).await? {
            Commits::These(commits) => commits,
            Commits::Gap => return Ok(Look::Gap),
        };
        let Some(last) = commits.last() else { return Ok(Look::Nothing) };
        let last = last.revision;
        for commit in &commits {
            write(&self.caller.visible(commit), self);
        }
        self.cursor = last;
        Ok(Look::Examined(commits.len()))
    }

    /// A look whose frames are added.
    async fn frames(&mut self, out: &mut String) -> Result<Look, ServiceError> {
        let look = self.look(|commit, events| events.write_frame(commit, out)).await?;
        if matches!(look, Look::Gap) {
            self.resync(out);
        }
        Ok(look)
    }

    /// Writes the first frames, and gives the revision that they begin at.
    async fn begin(&mut self, out: &mut String) -> Result<Revision, ServiceError> {
        let begins_at = self.cursor;
        push(out, format_args!("id: {begins_at}\n\n"));
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
        write_event(&self.session, commit, &changes, false, out);
        out.push_str("\n\n");
    }

    /// Tells that commits are missing, and goes on from the head.
    fn resync(&mut self, out: &mut String) {
        out.push_str("event: resync\ndata: ");
        write_json(&self.resync_body(), out);
        push(out, format_args!("\n\nid: {}\n\n", self.cursor));
    }

    /// Goes to the head, and says where that is.
    fn resync_body(&mut self) -> ResyncBody {
        let Extent { revision, oldest, .. } = self.watch.extent();
        self.cursor = revision;
        ResyncBody { revision: revision.0, oldest_revision: oldest.0 }
    }

    /// The commits that are there, or the first that come in this time.
    async fn poll(&mut self, wait: Duration) -> Result<Page, ServiceError> {
        let until = Instant::now() + wait;
        let (mut events, mut examined) = (String::new(), 0);
        loop {
            let look = self.look(|commit, reader| {
                let Some(changes) = reader.wanted.of(commit) else { return };
                if !events.is_empty() {
                    events.push(',');
                }
                write_event(&reader.session, commit, &changes, true, &mut events);
            });
            match look.await? {
                Look::Gap => return Ok(Page::Resync(self.resync_body())),
                Look::Examined(commits) => examined += commits,
                Look::Nothing => match timeout_at(until, self.watch.changed()).await {
                    Ok(true) => {}
                    Ok(false) | Err(_) => break,
                },
            }
            if !events.is_empty() || examined >= EXAMINED_MAX {
                break;
            }
        }
        Ok(Page::Events(events))
    }
}

/// What a look found.
enum Look {
    /// So many commits.
    Examined(usize),
    /// No commits yet.
    Nothing,
    /// That commits are missing.
    Gap,
}

impl Frames for Events {
    async fn next(&mut self) -> Option<String> {
        loop {
            if self.service.stopping().is_cancelled() {
                return None;
            }
            let mut out = String::new();
            let look = match self.frames(&mut out).await {
                Ok(look) => look,
                Err(error) => {
                    tracing::error!(%error, session = %self.session, "a stream of events ended");
                    return None;
                }
            };
            if !out.is_empty() {
                return Some(out);
            }
            match look {
                Look::Nothing if !self.watch.changed().await => return None,
                Look::Nothing => {}
                // Whoever wants little of a long history must not keep a worker from all others.
                Look::Examined(_) | Look::Gap => tokio::task::yield_now().await,
            }
        }
    }

    fn keep_alive(&self) -> String {
        format!("id: {}\n\n", self.cursor)
    }
}

/// What a poll came to.
enum Page {
    Events(String),
    Resync(ResyncBody),
}

impl Page {
    fn respond(self, events: &Events, headers: &HeaderMap) -> Result<Response, Early> {
        let next = events.cursor;
        let more = events.watch.extent().revision > next;
        let (found, resync) = match self {
            Self::Events(events) => (Some(raw(format!("[{events}]"))), None),
            Self::Resync(resync) => (None, Some(resync)),
        };
        let mut text = String::new();
        write_json(&EventPage { events: found, resync, next: next.0, more }, &mut text);
        let tag = Tag::of_bytes(events.service.epoch(), text.as_bytes());
        let answer = Answer::of(next).tag(&tag);
        if is_known(headers, &tag)? {
            return Err(Early::bare(answer.status(StatusCode::NOT_MODIFIED)));
        }
        Ok(answer.text(text))
    }
}
