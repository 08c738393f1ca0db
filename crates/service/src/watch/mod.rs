//! Watching a session: wait past a revision, then read the newer commits.
//!
//! A wake-up carries no data, so none can be lost. A watched name may have no session yet.

pub(crate) mod matches;
pub(crate) mod waker;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::poll_immediate;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Service;
use super::deps::Deps;
use super::error::ServiceError;
use super::sessions::Sessions;
use super::sessions::recent_commits::{COMMIT_BYTES_AT_ONCE_MAX, RecentText, SharedText};
use super::sessions::session::Session;
use blackboard_board::{Commit, Extent, Revision, SessionName};
use blackboard_fairness::cancellation::Cancellation;
use blackboard_metrics as metrics;
use blackboard_metrics::Counted;
use waker::{Channels, WakeUps, Waker};

/// Subscribers of all sessions, and the waker's queue.
pub(super) struct Watches {
    pub(super) channels: Arc<Channels>,
    pub(super) wake_ups: Arc<WakeUps>,
}

impl Watches {
    /// Starts the thread that wakes those who wait.
    pub(super) fn start(deps: &Deps) -> io::Result<Self> {
        let watches = Self { channels: Arc::new(Channels::new()), wake_ups: Arc::default() };
        let (wake_ups, channels) = (Arc::clone(&watches.wake_ups), Arc::clone(&watches.channels));
        Waker { wake_ups, channels }.start(deps)?;
        Ok(watches)
    }
}

/// A session under watch, by its name.
pub(crate) struct Watch {
    service: Service,
    name: SessionName,
    session: Arc<Session>,
    ticks: Option<watch::Receiver<()>>,
    stopping: Cancellation,
    /// Revision of the last delivered commit.
    followed: Option<Revision>,
    /// The losses of the store after which it reads.
    losses: u64,
    /// True if nothing follows the last delivered commit, unless a tick tells otherwise.
    is_at_head: bool,
    _counted: Counted,
}

/// A page of the commits after a revision.
#[derive(Clone, Debug)]
pub enum Commits {
    /// The next commits; empty if there are none yet.
    These(Vec<Arc<Commit>>),
    /// The next commit is not retained, belongs to another history, or does not exist yet.
    Gap,
}

impl Service {
    /// Watches the session of this name, whether it exists or not.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`].
    pub(crate) fn watch(&self, name: &SessionName) -> Result<Watch, ServiceError> {
        let (session, ticks) = self.inner.sessions.directory.watch(name);
        if session.is_damaged() {
            return Err(ServiceError::Damaged);
        }
        let (_, losses) = session.extent_after_losses();
        Ok(Watch {
            losses,
            service: self.clone(),
            name: name.clone(),
            session,
            ticks: Some(ticks),
            stopping: Cancellation::of(&self.inner.deps.stopping),
            followed: None,
            is_at_head: false,
            _counted: metrics::WATCHERS.count(),
        })
    }

    /// Returns the token that is cancelled when the server stops; waiting requests answer then.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        &self.inner.deps.stopping
    }

    /// Returns the channels of notices, lists and inboxes.
    #[must_use]
    pub fn channels(&self) -> &Channels {
        &self.inner.watches.channels
    }
}

impl Watch {
    /// Returns the extent of the session's history; revision 0 if the name never had a session.
    #[must_use]
    pub(crate) fn extent(&self) -> Extent {
        self.session.extent()
    }

    /// Returns true if the server stops.
    pub(crate) async fn is_stopping(&mut self) -> bool {
        poll_immediate(self.stopping.reached()).await.is_some()
    }

    /// Waits for a commit since the last call or the begin of the watch. Returns false when the server stops.
    pub(crate) async fn changed(&mut self) -> bool {
        let Some(ticks) = &mut self.ticks else { return false };
        tokio::select! {
            biased;
            () = self.stopping.reached() => false,
            // The sender lives in the session, which is held here.
            ticked = ticks.changed() => {
                self.is_at_head = false;
                ticked.is_ok()
            }
        }
    }

    /// Returns true if the last delivered commit was the newest, so that [`changed`](Self::changed) tells of the next.
    #[must_use]
    pub(crate) fn is_at_head(&self) -> bool {
        self.is_at_head
    }

    /// Returns the text of the commits after a revision, and the last of these, if another watcher shared it. A text
    /// of commits that not everyone may see is only for a reader that sees all.
    pub(crate) fn shared(&mut self, after: Revision, sees_all: bool) -> Option<(Bytes, Revision)> {
        if self.session.extent_after_losses().1 != self.losses {
            return None;
        }
        let RecentText { text, until, is_last } = self.session.shared(after, sees_all)?;
        if !self.serves(after, || self.session.extent()) {
            return None;
        }
        (self.followed, self.is_at_head) = (Some(until), is_last);
        Some((text, until))
    }

    /// Shares the text of commits that were delivered with the other watchers of the session.
    pub(crate) fn share(&self, shared: SharedText) {
        self.session.share(shared, &self.service.inner.sessions.recent_bytes);
    }

    /// Returns true if the recent commits after a revision may be delivered: a watcher that followed until now sees a
    /// deletion; a later one sees nothing of the session.
    fn serves(&self, after: Revision, now: impl FnOnce() -> Extent) -> bool {
        self.followed == Some(after) || after >= now().oldest_cursor()
    }

    /// Returns the commits after a revision, at most [`COMMITS_AT_ONCE_MAX`](super::COMMITS_AT_ONCE_MAX) and about 1
    /// MiB of them.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] if the store cannot be read.
    pub(crate) async fn commits(&mut self, after: Revision) -> Result<Commits, ServiceError> {
        let (now, losses) = self.session.extent_after_losses();
        if std::mem::replace(&mut self.losses, losses) != losses {
            // What was delivered may be among the lost commits.
            self.followed = None;
            return Ok(Commits::Gap);
        }
        let served = self.serves(after, || now);
        self.is_at_head = false;
        let commits = match self.session.recent(after, COMMIT_BYTES_AT_ONCE_MAX) {
            Some(page) if served => {
                self.is_at_head = page.is_last;
                page.commits
            }
            Some(_) | None if after == now.revision => Vec::new(),
            Some(_) | None if after < now.oldest_cursor() || after > now.revision => {
                return Ok(Commits::Gap);
            }
            Some(_) | None => match self.service.history(now, after).await {
                Ok(commits) => commits,
                Err(ServiceError::Compacted { .. }) => return Ok(Commits::Gap),
                Err(error) => return Err(error),
            },
        };
        self.followed = Some(commits.last().map_or(after, |commit| commit.revision));
        Ok(Commits::These(commits))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.ticks.take());
        let Sessions { recent_bytes, directory, memory, .. } = &self.service.inner.sessions;
        self.session.forget_recent(recent_bytes);
        if directory.forget_placeholder(&self.name, &self.session) {
            // Forgotten after its removal, so that the evictor does not count it again.
            memory.forget(&self.session);
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
