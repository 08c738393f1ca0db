//! Staged histories: stored under an id without a name, deleted when dropped.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::images::reaper::Orphans;
use blackboard_board::SessionId;
use blackboard_store::{Store, StoreError};

/// A stored history without a name.
pub(crate) struct StagedHistory {
    store: Arc<dyn Store>,
    orphans: Arc<Orphans>,
    id: SessionId,
    /// True until it is handed over or deleted: a drop deletes it.
    is_owned: bool,
}

impl fmt::Debug for StagedHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedHistory").field("id", &self.id).finish_non_exhaustive()
    }
}

impl StagedHistory {
    /// Begins a history under a new id, on a blocking thread.
    pub(crate) fn begin(
        store: Arc<dyn Store>,
        orphans: Arc<Orphans>,
        id: SessionId,
    ) -> Result<Self, StoreError> {
        store.stage(id)?;
        Ok(Self { store, orphans, id, is_owned: true })
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Hands the history to the writer, which names it. A refused one must be [discarded](discard).
    pub(crate) fn hand_over(mut self) -> SessionId {
        self.is_owned = false;
        self.id
    }

    /// Deletes the history, on a blocking thread.
    pub(crate) fn forget(mut self) {
        self.is_owned = false;
        discard(&*self.store, &self.orphans, self.id);
    }
}

impl Drop for StagedHistory {
    fn drop(&mut self) {
        if !self.is_owned {
            return;
        }
        let (store, orphans, id) = (Arc::clone(&self.store), Arc::clone(&self.orphans), self.id);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || discard(&*store, &orphans, id))),
            Err(_) => discard(&*store, &orphans, id),
        }
    }
}

/// Deletes a history that was not adopted. The next start deletes what is left.
pub(crate) fn discard(store: &dyn Store, orphans: &Orphans, id: SessionId) {
    // The images are out of sight before the caller is answered; the reaper deletes them.
    for gone in [store.discard(id), store.remove_blobs(&[id])] {
        if let Err(error) = gone {
            tracing::warn!(session = %id, %error, "a staged history could not be deleted");
        }
    }
    orphans.add(id);
}
