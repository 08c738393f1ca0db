//! What comes for an agent, each thing once, for as long as somebody listens.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::sleep;

use super::PIECE;
use super::lists::Kind;
use super::waiting::{Thing, Waiting};
use super::watch::{Wanted, Watch};
use crate::connection::Connected;
use crate::remote::place::InvalidJson;
use crate::remote::refusal::Refusal;
use crate::remote::server::{Received, Server};
use blackboard_board::{AgentName, SessionName};

/// The things that are remembered as reported; the oldest go first. More than an agent has unacknowledged messages.
const TOLD_MAX: usize = 12_000;

/// The first pause before a server is asked again, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// An agent of whom somebody waits for news.
#[derive(Debug)]
pub(crate) struct Arrivals {
    server: Server,
    session: SessionName,
    watch: Watch,
    reported: Reported,
    pause: Duration,
}

/// What was reported so far.
#[derive(Debug, Default)]
struct Reported {
    keys: VecDeque<String>,
    after: Option<u64>,
}

impl Arrivals {
    pub(crate) fn new(
        connected: Connected,
        session: SessionName,
        agent: &AgentName,
        wanted: Wanted,
    ) -> Result<Self, InvalidJson> {
        let watch = Watch::new(&session, agent, wanted)?;
        let (server, reported) = (Server::new(connected), Reported::default());
        Ok(Self { server, session, watch, reported, pause: PAUSES.0 })
    }

    pub(crate) const fn session(&self) -> &SessionName {
        &self.session
    }

    /// Waits for what is new, over errors too: what waits already, but for old answers, and then what comes.
    pub(crate) async fn next(&mut self) -> Vec<Thing> {
        loop {
            let news = match self.watch.change(&self.server, PIECE).await {
                Ok(None) => Ok(Vec::new()),
                Ok(Some(received)) => self.reported.news(&received),
                Err(refusal) => Err(refusal),
            };
            match news {
                Ok(news) => {
                    self.pause = PAUSES.0;
                    self.watch.skip(self.reported.after);
                    if !news.is_empty() {
                        return news;
                    }
                }
                Err(refusal) => {
                    // A session that nobody has written to is no fault.
                    if self.pause == PAUSES.0 && !refusal.is_of("session-not-found") {
                        tracing::warn!("the channel does not see what waits: {refusal}");
                    }
                    sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(PAUSES.1);
                }
            }
        }
    }
}

impl Reported {
    /// Returns what is new; nothing while the agent is paused.
    fn news(&mut self, received: &Received) -> Result<Vec<Thing>, Refusal> {
        let waiting: Waiting<'_> = received.read()?;
        if waiting.paused {
            return Ok(Vec::new());
        }
        let is_first = self.after.is_none();
        self.after = Some(waiting.next);
        let mut things = waiting.things();
        things.retain(|thing| !(is_first && thing.kind == Kind::Answers));
        things.retain(|thing| !self.keys.contains(&thing.key));
        self.keys.extend(things.iter().map(|thing| thing.key.clone()));
        let surplus = self.keys.len().saturating_sub(TOLD_MAX);
        self.keys.drain(..surplus);
        Ok(things)
    }
}
