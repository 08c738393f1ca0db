//! Waking those who wait, on a thread of its own: waking ten thousand takes milliseconds, which no
//! writer is to wait for.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tokio::sync::{broadcast, watch};

use super::session::Session;
use super::supervisor::{Supervised, Supervisor};
use crate::board::{AgentName, Change, LogName, Revision, SessionName};

/// How many wake-ups may wait; beyond, the writer waits for the waker.
const WAKE_UPS_MAX: usize = 64 << 10;

/// How many notices a slow reader of them may be behind.
pub const NOTICES_MAX: usize = 1024;

/// That a session went on.
#[derive(Clone, Debug)]
pub struct Notice {
    /// Its name.
    pub session: SessionName,
    /// The revision that it came to.
    pub revision: Revision,
    /// What happened, each kind once, and once more for each memory where it happened.
    pub kinds: Arc<[(&'static str, Option<AgentName>)]>,
}

/// The agent whose memory a change is in, if it is in one.
pub(super) fn memory_of(change: &Change) -> Option<&AgentName> {
    if let Change::Appended { log: LogName::Memory(agent), .. }
    | Change::Cleared { log: LogName::Memory(agent) }
    | Change::Removed { log: LogName::Memory(agent), .. }
    | Change::Updated { log: LogName::Memory(agent), .. } = change
    {
        Some(agent)
    } else {
        None
    }
}

/// What the writer asks of the waker.
pub(super) struct WakeUp {
    /// A session whose watchers are to look again, where it has any.
    pub(super) session: Option<Arc<Session>>,
    /// What to tell those who follow all sessions.
    pub(super) notice: Option<Notice>,
    /// Whether questions were asked or answered.
    pub(super) asked: bool,
}

/// What tells of all sessions together.
#[derive(Debug)]
pub(super) struct Bells {
    notices: broadcast::Sender<Notice>,
    lists: watch::Sender<u64>,
    inbox: watch::Sender<u64>,
}

impl Bells {
    pub(super) fn new() -> Self {
        let (notices, _) = broadcast::channel(NOTICES_MAX);
        Self { notices, lists: watch::Sender::new(0), inbox: watch::Sender::new(0) }
    }

    /// Whether somebody follows all sessions.
    pub(super) fn are_noticed(&self) -> bool {
        self.notices.receiver_count() > 0
    }

    /// Whether somebody waits for a list or the inbox.
    pub(super) fn are_listed(&self) -> bool {
        self.lists.receiver_count() > 0 || self.inbox.receiver_count() > 0
    }

    pub(super) fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// Ticks when any session changed.
    pub(super) fn lists(&self) -> watch::Receiver<u64> {
        self.lists.subscribe()
    }

    /// Ticks when a question was asked or answered.
    pub(super) fn inbox(&self) -> watch::Receiver<u64> {
        self.inbox.subscribe()
    }
}

/// The waker's thread. It ends when the writer does.
pub(super) struct Waker {
    wake_ups: Receiver<WakeUp>,
    bells: Arc<Bells>,
}

impl Waker {
    /// Starts the thread; the writer sends to what is returned.
    pub(super) fn start(
        bells: Arc<Bells>,
        supervisor: &Supervisor,
    ) -> io::Result<(SyncSender<WakeUp>, Supervised)> {
        let (sender, wake_ups) = sync_channel(WAKE_UPS_MAX);
        let waker = Self { wake_ups, bells };
        let thread = supervisor.start("waker", Arc::default(), move |_| waker.run())?;
        Ok((sender, thread))
    }

    fn run(&self) {
        while let Ok(first) = self.wake_ups.recv() {
            let mut sessions = HashMap::new();
            let mut asked = false;
            for wake_up in std::iter::once(first).chain(self.wake_ups.try_iter()) {
                asked |= wake_up.asked;
                if let Some(session) = wake_up.session {
                    sessions.insert(Arc::as_ptr(&session), session);
                }
                if let Some(notice) = wake_up.notice {
                    // Nobody may be listening any more.
                    self.bells.notices.send(notice).ok();
                }
            }
            sessions.values().for_each(|session| session.wake());
            self.bells.lists.send_modify(|ticks| *ticks += 1);
            if asked {
                self.bells.inbox.send_modify(|ticks| *ticks += 1);
            }
        }
    }
}
