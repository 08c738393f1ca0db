//! The events of a session, through broken connections and restarts of the server: each once and in order.
//!
//! The cursor is the last revision that the server said it had read, in a frame that came whole. A new stream begins
//! after it, so nothing is missed; a revision at or before it is passed over, so nothing is doubled.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;

use super::refusal::Refusal;
use super::server::Server;
use crate::note;
use blackboard_client::{Error, Event, Events};

/// The first pause before the connection is tried again, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// An event of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// A commit, as the server wrote it.
    Commit { kind: String, data: String },
    /// Commits up to a revision cannot be sent.
    Resync(Resync),
}

/// A gap in the events.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct Resync {
    /// The revision from which the events continue.
    pub(super) revision: u64,
    /// The oldest revision that is retained.
    pub(super) oldest_revision: u64,
}

#[derive(Deserialize)]
struct Kinded {
    #[serde(rename = "kind")]
    _kind: String,
}

impl News {
    /// Returns the event as one line of JSON, in which the kind is a member.
    pub(super) fn json(&self) -> String {
        match self {
            Self::Commit { kind, data } => {
                let members = data.trim_start().trim_start_matches('{');
                // An event of a page has it among its members.
                if serde_json::from_str::<Kinded>(data).is_ok() {
                    return data.clone();
                }
                format!("{{\"kind\":{},{members}", serde_json::Value::from(kind.as_str()))
            }
            Self::Resync(Resync { revision, oldest_revision }) => format!(
                "{{\"kind\":\"resync\",\"revision\":{revision},\"oldest_revision\":{oldest_revision}}}"
            ),
        }
    }
}

/// A stream that is opened again when it breaks off.
#[derive(Debug)]
pub(super) struct Feed<'a> {
    server: &'a Server,
    address: String,
    events: Option<Events>,
    cursor: Option<u64>,
    /// A stream was open before, so a failure is an interruption.
    has_begun: bool,
    pause: Duration,
}

impl<'a> Feed<'a> {
    pub(super) const fn new(server: &'a Server, address: String, after: Option<u64>) -> Self {
        let pause = PAUSES.0;
        Self { server, address, events: None, cursor: after, has_begun: false, pause }
    }

    /// Opens the stream, unless it is open.
    pub(super) async fn connect(&mut self) -> Result<(), Refusal> {
        while self.events.is_none() {
            self.open().await?;
        }
        Ok(())
    }

    /// Waits for the next event. Nothing is lost if the wait is cancelled.
    pub(super) async fn next(&mut self) -> Result<News, Refusal> {
        loop {
            let Some(events) = &mut self.events else {
                self.connect().await?;
                continue;
            };
            let read = events.next().await;
            let position = events.position().and_then(|id| id.parse().ok());
            match read {
                Ok(Some(event)) => {
                    self.pause = PAUSES.0;
                    if let Some(news) = self.take(event) {
                        return Ok(news);
                    }
                }
                Err(error @ (Error::TooLong { .. } | Error::Encoding)) => {
                    return Err(Refusal::Unreached { url: self.address.clone(), error });
                }
                Ok(None) | Err(_) => {
                    self.advance(position);
                    self.events = None;
                }
            }
        }
    }

    /// Returns the revision up to which every event was returned by [`Feed::next`], also over commits that the filters
    /// leave out.
    pub(super) fn position(&self) -> Option<u64> {
        let position = self.events.as_ref().and_then(Events::position);
        self.cursor.max(position.and_then(|id| id.parse().ok()))
    }

    /// Opens the stream after the cursor. The first time a failure is the end; later it is waited out.
    async fn open(&mut self) -> Result<(), Refusal> {
        match self.server.events(&self.address, self.cursor).await {
            Ok(events) => {
                self.events = Some(events);
                self.has_begun = true;
                Ok(())
            }
            Err(refusal) if self.has_begun && refusal.is_passing() => {
                if self.pause == PAUSES.0 {
                    note(format_args!("{refusal}; trying again"));
                }
                sleep(self.pause).await;
                self.pause = (self.pause * 2).min(PAUSES.1);
                Ok(())
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Returns an event unless it came before.
    fn take(&mut self, event: Event) -> Option<News> {
        let kind = event.kind.unwrap_or_default();
        if kind == "resync" {
            let resync: Resync = serde_json::from_str(&event.data).ok()?;
            self.cursor = Some(resync.revision);
            return Some(News::Resync(resync));
        }
        let revision: u64 = event.id?.parse().ok()?;
        if self.cursor.is_some_and(|cursor| revision <= cursor) {
            return None;
        }
        self.cursor = Some(revision);
        Some(News::Commit { kind, data: event.data })
    }

    /// Moves the cursor over commits that the filters left out.
    fn advance(&mut self, position: Option<u64>) {
        self.cursor = self.cursor.max(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_object_with_its_kind() {
        let data = r#"{"revision":3,"changes":[{"n":1.0}]}"#.to_owned();
        let news = News::Commit { kind: "appended".to_owned(), data };
        assert_eq!(news.json(), r#"{"kind":"appended","revision":3,"changes":[{"n":1.0}]}"#);
        let resync = News::Resync(Resync { revision: 7, oldest_revision: 5 });
        assert_eq!(resync.json(), r#"{"kind":"resync","revision":7,"oldest_revision":5}"#);
    }
}
