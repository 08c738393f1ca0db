//! Notices of all sessions, for clients that list or follow many.

use std::collections::BTreeSet;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use utoipa::ToSchema;

use super::sse::{COMMENT, Frames, Streams, respond};
use crate::access::Calling;
use crate::openapi;
use crate::request::query::Query;
use crate::response::Answer;
use crate::response::problem::Problem;
use blackboard_api::push;
use blackboard_auth::Caller;
use blackboard_board::{AgentName, json};
use blackboard_fairness::cancellation::Cancellation;
use blackboard_service::{Heard, Notice, Service};

/// The maximum number of notices sent at once.
const NOTICES_AT_ONCE_MAX: usize = 256;

/// Reports missing notices, so that the reader lists the sessions again.
const RESYNC: &str = "event: resync\ndata: {}\n\n";

/// A notice of a session's change: the data of an event.
#[derive(Serialize, ToSchema)]
pub(crate) struct NoticeBody {
    /// The session's name.
    #[schema(example = "sess_12345")]
    session: String,
    /// The session's new revision.
    revision: u64,
    /// The kinds of the changes.
    kinds: Vec<String>,
}

/// Follow all sessions
///
/// The response is a stream of server-sent events without `id`: `notice` for each commit, and `resync` after a gap.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "follow_sessions", tag = "events",
    responses(
        (status = 200, description = "Events, for as long as the client listens", content((NoticeBody = "text/event-stream"))),
        openapi::NoticesRefusals,
    )
)]
pub(crate) async fn get(
    State(service): State<Service>,
    Calling(caller): Calling,
    State(streams): State<Streams>,
    Query(params): Query,
) -> Result<Response, Problem> {
    params.finish()?;
    let place = streams.place()?;
    let stopping = Cancellation::of(service.stopping());
    let notices = Notices { stopping, caller, notices: service.channels().notices() };
    Ok(respond(Answer::plain(), String::new(), notices, place))
}

struct Notices {
    stopping: Cancellation,
    caller: Caller,
    notices: Receiver<Heard>,
}

impl Frames for Notices {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let out = self.look().await?;
            // Notices of sessions that the caller does not reach are left out.
            if !out.is_empty() {
                return Some(Bytes::from(out));
            }
        }
    }

    fn keep_alive(&self) -> String {
        COMMENT.to_owned()
    }
}

impl Notices {
    /// Waits for a notice and returns all available ones.
    async fn look(&mut self) -> Option<String> {
        let received = tokio::select! {
            biased;
            () = self.stopping.reached() => return None,
            received = self.notices.recv() => received,
        };
        let mut out = String::new();
        match received {
            Ok(heard) => self.tell(&heard, &mut out),
            Err(RecvError::Lagged(_)) => out.push_str(RESYNC),
            Err(RecvError::Closed) => return None,
        }
        for _ in 1..NOTICES_AT_ONCE_MAX {
            match self.notices.try_recv() {
                Ok(heard) => self.tell(&heard, &mut out),
                Err(TryRecvError::Lagged(_)) => out.push_str(RESYNC),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        Some(out)
    }

    fn tell(&self, heard: &Heard, out: &mut String) {
        match heard {
            Heard::Notice(notice) => self.write(notice, out),
            Heard::Gap => out.push_str(RESYNC),
        }
    }

    fn write(&self, notice: &Notice, out: &mut String) {
        if !self.caller.reaches(&notice.session) {
            return;
        }
        out.push_str("event: notice\ndata: {\"session\":");
        json::quote(notice.session.as_str(), out);
        push(out, format_args!(",\"revision\":{},\"kinds\":[", notice.revision));
        let seen = |(_, agent): &&(_, Option<AgentName>)| {
            agent.as_ref().is_none_or(|agent| self.caller.sees_logs_of(agent))
        };
        let kinds: BTreeSet<_> = notice.kinds.iter().filter(seen).map(|(kind, _)| kind).collect();
        for (index, kind) in kinds.into_iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            push(out, format_args!("{comma}\"{kind}\""));
        }
        out.push_str("]}\n\n");
    }
}
