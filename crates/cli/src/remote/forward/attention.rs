//! What waits for an agent, delivered until the receiver or the agent itself acknowledges it.
//!
//! The server shows the newest messages only, so that older ones are read from their log: each is delivered, in its
//! order. The cursor holds the keys of what was delivered and waits still, so that it is delivered once.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::cursor::{CursorFile, Watched};
use super::message::Message;
use super::receiver::{Delivery, Receiver};
use super::waiting::{Contents, Parcel, Waiting, is_message, is_passing, message_keys};
use crate::note;
use crate::remote::end::End;
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::server::Server;
use blackboard_address::{agent_url, log_url, session_url};
use blackboard_board::{AgentName, LogName, SessionName};

/// The most keys that are kept before those of acknowledged messages are looked for: more than an agent has
/// unacknowledged ones.
const KEYS_MAX: usize = 12_000;

/// The messages of a page of their log.
const PAGE_ENTRIES: usize = 1_000;

/// The time to wait for a change.
const WAIT: &str = "60s";

/// The pause before a server that does not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// An agent, and what of its attention is wanted.
#[derive(Debug)]
pub(super) struct Attention<'a> {
    pub(super) server: &'a Server,
    pub(super) session: SessionName,
    pub(super) agent: AgentName,
    pub(super) include: Vec<String>,
    pub(super) wanted: Option<String>,
}

/// What was delivered so far, and to whom.
pub(super) struct Outbox<'a> {
    pub(super) receiver: &'a Receiver,
    pub(super) cursor: &'a CursorFile,
    pub(super) end: &'a mut End,
}

/// A page of the log of messages.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    entries: Vec<&'a RawValue>,
    next: u64,
    more: bool,
}

impl Attention<'_> {
    /// Delivers what waits until a signal comes.
    pub(super) async fn forward(
        &self,
        outbox: Outbox<'_>,
        after: Option<u64>,
    ) -> Result<(), Refusal> {
        let (session, agent) = (self.session.as_str(), self.agent.as_str());
        let watched = outbox.cursor.watched(session, agent)?;
        let watched = watched.unwrap_or_else(|| Watched::new(session, agent, after));
        let mut round = Round { of: self, outbox, watched };
        // Another run goes on from here, and the file can be written.
        round.save()?;
        let (mut has_begun, mut is_told) = (false, false);
        loop {
            match round.run().await {
                Ok(true) => (has_begun, is_told) = (true, false),
                Ok(false) => return Ok(()),
                Err(refusal) if has_begun && refusal.is_passing() => {
                    if !is_told {
                        note(format_args!("{refusal}; trying again"));
                    }
                    is_told = true;
                    if round.outbox.end.or(sleep(PAUSE)).await.is_none() {
                        return Ok(());
                    }
                }
                Err(refusal) => return Err(refusal),
            }
        }
    }

    fn look(&self, after: u64) -> Query {
        let agent = agent_url(&self.session, &self.agent);
        Query::of(format!("{agent}/attention"))
            .with("after", (after > 0).then_some(after))
            .list("include", &self.include)
            .with("match", self.wanted.as_ref())
    }

    /// Returns the query for unacknowledged messages after this seq.
    fn unacked(&self, after: u64) -> Query {
        self.messages()
            .with("unacked", Some(true))
            .with("after", Some(after))
            .with("limit", Some(PAGE_ENTRIES))
    }

    fn messages(&self) -> Query {
        Query::of(log_url(&self.session, &LogName::Messages(self.agent.clone())))
    }

    /// Waits until the session exists.
    async fn exists(&self) -> Result<(), Refusal> {
        let query = Query::of(session_url(&self.session))
            .with("until", Some("exists"))
            .with("wait", Some(WAIT));
        match self.server.get(&query.address()).await {
            Err(refusal) if refusal.is_of("condition-not-met") => Ok(()),
            read => read.map(drop),
        }
    }

    /// Waits until none of these messages is unacknowledged; forever if there are none.
    async fn acknowledged(&self, messages: &[(u64, String)]) {
        if messages.is_empty() {
            return pending().await;
        }
        // A wait on a page after a seq ends once the page has an entry, which it never may again. A wait on the whole log
        // ends with its next change.
        let changed = self.messages().with("limit", Some(1));
        let mut tag: Option<String> = None;
        loop {
            let read = match &tag {
                Some(tag) => {
                    let address = changed.clone().with("wait", Some(WAIT)).address();
                    self.server.get_newer(&address, tag).await
                }
                None => self.server.get(&changed.clone().address()).await.map(Some),
            };
            let Ok(received) = read else {
                // What the server rejects is the next look's to say.
                sleep(PAUSE).await;
                continue;
            };
            let Some(received) = received else { continue };
            match self.all_acknowledged(messages).await {
                Ok(true) => return,
                // The tag is older than the page that was read, so no change is missed.
                Ok(false) => tag = Some(received.etag.clone()),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Returns true if none of these messages is unacknowledged.
    async fn all_acknowledged(&self, messages: &[(u64, String)]) -> Result<bool, Refusal> {
        let (Some((first, _)), Some((last, _))) = (messages.first(), messages.last()) else {
            return Ok(true);
        };
        let address = self.unacked(first.saturating_sub(1)).address();
        self.server.get(&address).await?.read::<Page<'_>>()?.lacks(*last, messages)
    }
}

impl Page<'_> {
    /// Returns true if none of these messages is on the page or after it.
    fn lacks(&self, last: u64, messages: &[(u64, String)]) -> Result<bool, Refusal> {
        let keys = message_keys(&self.entries)?;
        let is_beyond = !self.more || self.next >= last;
        Ok(is_beyond && !messages.iter().any(|(_, key)| keys.contains(key)))
    }
}

/// A forward of one agent's attention.
struct Round<'a> {
    of: &'a Attention<'a>,
    outbox: Outbox<'a>,
    watched: Watched,
}

impl Round<'_> {
    /// Looks at what waits, and delivers it or waits for a change. Returns false if a signal came.
    async fn run(&mut self) -> Result<bool, Refusal> {
        let query = self.of.look(self.watched.after);
        let looked = self.outbox.end.or(self.of.server.get(&query.clone().address())).await;
        let received = match looked {
            Some(Err(refusal)) if refusal.is_of("session-not-found") => {
                let found = self.outbox.end.or(self.of.exists()).await;
                return found.transpose().map(|found| found.is_some());
            }
            Some(received) => received?,
            None => return Ok(false),
        };
        let waiting: Waiting<'_> = received.read()?;
        if received.revision.is_some_and(|revision| revision < self.watched.after) {
            // An older backup was restored: what came since is delivered again rather than not.
            self.watched.after = 0;
            return Ok(true);
        }
        let delivered = &self.watched.delivered;
        if waiting.hides_messages(delivered)? || delivered.len() > KEYS_MAX {
            return self.deliver_log(&waiting).await;
        }
        if let Some(parcel) = waiting.parcel(self.of.agent.as_str(), None, delivered)? {
            let delivered = self.deliver(parcel).await?;
            if delivered == Some(true) {
                self.pass(waiting.next)?;
            }
            return Ok(delivered.is_some());
        }
        waiting.retain(&mut self.watched.delivered)?;
        let address = query.with("wait", Some(WAIT)).address();
        let newer = self.outbox.end.or(self.of.server.get_newer(&address, &received.etag)).await;
        newer.transpose().map(|newer| newer.is_some())
    }

    /// Delivers all unacknowledged messages of the log that were not, with what else waits.
    async fn deliver_log(&mut self, waiting: &Waiting<'_>) -> Result<bool, Refusal> {
        let (mut after, mut unacked, mut is_whole) = (0, BTreeSet::new(), false);
        loop {
            let address = self.of.unacked(after).address();
            let Some(received) = self.outbox.end.or(self.of.server.get(&address)).await else {
                return Ok(false);
            };
            let received = received?;
            let page: Page<'_> = received.read()?;
            loop {
                let delivered = &self.watched.delivered;
                let (agent, entries) = (self.of.agent.as_str(), page.entries.as_slice());
                let Some(parcel) = waiting.parcel(agent, Some(entries), delivered)? else { break };
                match self.deliver(parcel).await? {
                    Some(whole) => is_whole |= whole,
                    None => return Ok(false),
                }
            }
            unacked.extend(message_keys(&page.entries)?);
            if !page.more {
                let keys = &mut self.watched.delivered;
                keys.retain(|key| !is_message(key) || unacked.contains(key));
                // Not before: the pages share one look, by whose keys a request is delivered once.
                if is_whole {
                    self.pass(waiting.next)?;
                }
                return Ok(true);
            }
            after = page.next;
        }
    }

    /// Delivers a message unless those in it are acknowledged before. Returns true if all that waits besides messages is
    /// delivered then, and nothing if a signal came.
    async fn deliver(&mut self, parcel: Parcel<'_>) -> Result<Option<bool>, Refusal> {
        let message = Message::of_attention(self.of.session.as_str(), &parcel)?;
        let Contents { keys, messages, is_whole, .. } = parcel.contents;
        let moot = self.of.acknowledged(&messages);
        let Outbox { receiver, end, .. } = &mut self.outbox;
        let delivered = &mut self.watched.delivered;
        let is_whole = match receiver.deliver_unless(&message, end, moot).await? {
            Delivery::Interrupted => return Ok(None),
            // What else was in it is in the next message.
            Delivery::Moot => {
                delivered.extend(messages.into_iter().map(|(_, key)| key));
                false
            }
            Delivery::Acknowledged => {
                delivered.extend(keys);
                is_whole
            }
        };
        self.save()?;
        Ok((!self.outbox.end.has_come()).then_some(is_whole))
    }

    /// Goes on after this revision, since all that waited at it is delivered.
    fn pass(&mut self, next: u64) -> Result<(), Refusal> {
        self.watched.delivered.retain(|key| !is_passing(key));
        self.watched.after = next;
        self.save()
    }

    fn save(&self) -> Result<(), Refusal> {
        Ok(self.outbox.cursor.write_watched(&self.watched)?)
    }
}
