//! One running session: its published board, behind a lock that is held only to clone or swap it.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::board::{Board, Revision};

/// What readers of a session see: durable, and never changed once published.
#[derive(Clone, Debug)]
pub struct Published {
    /// The board; one without life where the session was deleted.
    pub board: Arc<Board>,
    /// The bytes of the commits that its history keeps, as stored.
    pub history_bytes: u64,
}

/// A running session. Only the writer publishes.
#[derive(Debug)]
pub(super) struct Session {
    published: RwLock<Published>,
    revision: watch::Sender<Revision>,
    damaged: bool,
}

impl Session {
    pub(super) fn new(published: Published) -> Self {
        let revision = watch::Sender::new(published.board.revision());
        Self { published: RwLock::new(published), revision, damaged: false }
    }

    /// A session whose stored history cannot be read; it serves nothing and takes nothing.
    pub(super) fn damaged(published: Published) -> Self {
        Self { damaged: true, ..Self::new(published) }
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// What is published now.
    pub(super) fn published(&self) -> Published {
        self.published.read().clone()
    }

    /// Shows a newer board to all later readers, and wakes those who wait for it.
    pub(super) fn publish(&self, published: Published) {
        let revision = published.board.revision();
        *self.published.write() = published;
        self.revision.send_replace(revision);
    }

    /// The revision as it goes on; a wake-up carries no data, so none can be lost.
    pub(super) fn watch(&self) -> watch::Receiver<Revision> {
        self.revision.subscribe()
    }
}
