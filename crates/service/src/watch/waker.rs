//! Waker of watchers, on a thread of its own.
//!
//! Waking ten thousand watchers takes milliseconds, which would delay the writer.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};

use crate::deps::Deps;
use crate::inbox::Inbox;
use crate::sessions::session::Session;
use crate::threads::signal::Signal;
use blackboard_board::{AgentName, Change, Revision, SessionName};

/// The number of notices that a slow reader, or the waker, may be behind.
pub const NOTICES_MAX: usize = 1024;

/// Notice of a session's new commits.
#[derive(Clone, Debug)]
pub struct Notice {
    /// Its name.
    pub session: SessionName,
    /// The revision after these commits.
    pub revision: Revision,
    /// Kinds of changes without repeats; a change in a log of an agent is listed with its agent.
    pub kinds: Arc<[(&'static str, Option<AgentName>)]>,
}

/// Returns the agent in whose logs a change is, if any.
pub(crate) fn owner_of(change: &Change) -> Option<&AgentName> {
    if let Change::Log(log, _) = change { log.owner() } else { None }
}

/// Event for subscribers of all sessions.
#[derive(Clone, Debug)]
pub enum Heard {
    /// New commits of a session.
    Notice(Notice),
    /// Some notices were dropped.
    Gap,
}

/// Request of the writer to the waker.
pub(crate) struct WakeUp {
    /// A watched session that changed.
    pub(crate) session: Option<Arc<Session>>,
    /// Notice for subscribers of all sessions.
    pub(crate) notice: Option<Notice>,
    /// True if questions were asked or answered.
    pub(crate) asked: bool,
    /// True if requests became claimable, or no longer are.
    pub(crate) requested: bool,
}

/// The pending wake-ups. A watched session is pending once however often it changed, so the writer never waits.
#[derive(Debug, Default)]
pub(crate) struct WakeUps {
    waiting: Mutex<Waiting>,
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// True if anything waits.
    is_any: bool,
    /// Watched sessions, by address.
    sessions: HashMap<usize, Arc<Session>>,
    /// At most [`NOTICES_MAX`].
    notices: Vec<Notice>,
    /// True if notices were dropped.
    has_gap: bool,
    asked: bool,
    requested: bool,
}

impl WakeUps {
    /// Adds a wake-up. Blocks only for another such call.
    pub(crate) fn add(&self, WakeUp { session, notice, asked, requested }: WakeUp) {
        let mut waiting = self.waiting.lock();
        waiting.is_any = true;
        waiting.asked |= asked;
        waiting.requested |= requested;
        if let Some(session) = session {
            waiting.sessions.insert(Arc::as_ptr(&session).addr(), session);
        }
        if let Some(notice) = notice {
            if waiting.notices.len() < NOTICES_MAX {
                waiting.notices.push(notice);
            } else {
                waiting.has_gap = true;
            }
        }
        drop(waiting);
        self.signal.wake();
    }

    /// Adds that notices were lost.
    pub(crate) fn add_gap(&self) {
        let mut waiting = self.waiting.lock();
        (waiting.is_any, waiting.has_gap) = (true, true);
        drop(waiting);
        self.signal.wake();
    }
}

/// Channels about all sessions together: what streams of notices, lists and inboxes wait for.
#[derive(Debug)]
pub struct Channels {
    notices: broadcast::Sender<Heard>,
    lists: watch::Sender<u64>,
    questions: watch::Sender<u64>,
    requests: watch::Sender<u64>,
}

impl Channels {
    pub(crate) fn new() -> Self {
        let (notices, _) = broadcast::channel(NOTICES_MAX);
        let ticks = || watch::Sender::new(0);
        Self { notices, lists: ticks(), questions: ticks(), requests: ticks() }
    }

    /// Returns true if all sessions have a subscriber to notices.
    pub(crate) fn are_noticed(&self) -> bool {
        self.notices.receiver_count() > 0
    }

    /// Returns true if a request waits for a list or the inbox.
    pub(crate) fn are_listed(&self) -> bool {
        let all = [&self.lists, &self.questions, &self.requests];
        all.iter().any(|ticks| ticks.receiver_count() > 0)
    }

    /// Subscribes to the notices of all sessions.
    #[must_use]
    pub fn notices(&self) -> broadcast::Receiver<Heard> {
        self.notices.subscribe()
    }

    /// Ticks when any session changed.
    #[must_use]
    pub fn lists(&self) -> watch::Receiver<u64> {
        self.lists.subscribe()
    }

    /// Ticks when an inbox changed.
    #[must_use]
    pub fn inbox(&self, inbox: Inbox) -> watch::Receiver<u64> {
        match inbox {
            Inbox::Questions => self.questions.subscribe(),
            Inbox::Requests => self.requests.subscribe(),
        }
    }
}

/// The waker's thread.
pub(crate) struct Waker {
    pub(crate) wake_ups: Arc<WakeUps>,
    pub(crate) channels: Arc<Channels>,
}

impl Waker {
    /// Starts the thread. When stopped it sends the last wake-ups; none are added after that.
    pub(crate) fn start(self, deps: &Deps) -> io::Result<()> {
        let signal = Arc::clone(&self.wake_ups.signal);
        deps.threads.start("waker", signal, move |signal| {
            while signal.rest(Duration::MAX) {
                self.tell();
            }
            self.tell();
        })
    }

    /// Sends the pending wake-ups, one for each session.
    fn tell(&self) {
        let waiting = std::mem::take(&mut *self.wake_ups.waiting.lock());
        let Waiting { is_any, sessions, notices, has_gap, asked, requested } = waiting;
        if !is_any {
            return;
        }
        let gap = has_gap.then_some(Heard::Gap);
        for heard in notices.into_iter().map(Heard::Notice).chain(gap) {
            // The last subscriber may have left.
            self.channels.notices.send(heard).ok();
        }
        sessions.values().for_each(|session| session.wake());
        self.channels.lists.send_modify(|ticks| *ticks += 1);
        let inboxes = [(asked, &self.channels.questions), (requested, &self.channels.requests)];
        for (_, ticks) in inboxes.into_iter().filter(|(changed, _)| *changed) {
            ticks.send_modify(|ticks| *ticks += 1);
        }
    }
}

#[cfg(test)]
mod tests;
