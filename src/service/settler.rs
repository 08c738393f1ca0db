//! Settling: while nobody writes, or where too much has gathered, a thread lets the store pack the journal by
//! session, with a summary of each, so that the next start reads little.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::directory::Directory;
use super::session::Shown;
use super::signal::Signal;
use super::snapshots::put_snapshot_if_due;
use super::supervisor::{Supervised, Supervisor};
use crate::board::SessionId;
use crate::store::{Store, StoreError};

/// How long nothing was written where the store is taken to have time.
const QUIET: Duration = Duration::from_millis(200);

/// From so many bytes on it settles although others write.
const UNSETTLED_BYTES_MAX: u64 = 512 << 20;

/// How many times as long as a piece took it rests then, so that writers have most of the time.
const REST_TIMES: u32 = 2;

/// How long it waits where there is no room.
const FULL_REST: Duration = Duration::from_secs(10);

/// How long it waits after any other failure.
const FAILED_REST: Duration = Duration::from_secs(10);

/// How long it may settle at the end.
const SETTLING_AT_END_MAX: Duration = Duration::from_millis(1500);

/// How long it may store summaries after that.
const SUMMARIES_AT_END_MAX: Duration = Duration::from_millis(500);

/// How many summaries are stored at once.
const SUMMARIES_AT_ONCE: usize = 1024;

/// What the writer does, as the settler sees it.
#[derive(Debug, Default)]
pub(super) struct Activity(AtomicU64);

impl Activity {
    /// Something is appended.
    pub(super) fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn seen(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the thread works on.
pub(super) struct Settler {
    pub(super) directory: Arc<Directory>,
    pub(super) store: Arc<dyn Store>,
    pub(super) activity: Arc<Activity>,
}

impl Settler {
    /// Starts the thread. Once it is stopped it settles what it can in a bounded time.
    pub(super) fn start(self, supervisor: &Supervisor) -> io::Result<Supervised> {
        supervisor.start("settler", Arc::default(), move |signal| self.run(signal))
    }

    fn run(&self, signal: &Signal) {
        let (mut seen, mut rest, mut more) = (self.activity.seen(), QUIET, false);
        while signal.rest(rest) {
            let now = self.activity.seen();
            let is_quiet = std::mem::replace(&mut seen, now) == now;
            rest = QUIET;
            let unsettled = self.store.unsettled_bytes();
            // After the last piece the files are still to shrink, and the writer may be asleep by then.
            let is_left = || unsettled > 0 || more || self.store.has_unpinned();
            let is_due = unsettled > UNSETTLED_BYTES_MAX || is_quiet && is_left();
            if !is_due {
                continue;
            }
            let begun = Instant::now();
            match self.settle().inspect(|left| more = *left) {
                // In a quiet moment the next piece comes at once.
                Ok(true) if is_quiet => rest = Duration::ZERO,
                Ok(true) => rest = begun.elapsed() * REST_TIMES,
                Ok(false) => {}
                Err(StoreError::Full | StoreError::Busy) => rest = FULL_REST,
                Err(error) => {
                    tracing::warn!(%error, "a piece of the journal could not be settled");
                    rest = FAILED_REST;
                }
            }
        }
        self.end();
    }

    /// Settles a piece; whether there is more.
    fn settle(&self) -> Result<bool, StoreError> {
        let identities = self.directory.identities();
        let (mut given, mut settled) = (Vec::new(), Vec::new());
        let more = self.store.settle(&mut |sessions| {
            given = identities.rows(sessions);
            settled = sessions.to_vec();
            given.clone()
        })?;
        identities.note_stored(&given);
        settled.into_iter().for_each(|session| self.tend(session));
        Ok(more)
    }

    /// Stores a snapshot of a session in memory, where that is worth it.
    fn tend(&self, session: SessionId) {
        let Some(session) = self.directory.identities().running(session) else { return };
        if let Shown::Hot(published) = session.shown() {
            put_snapshot_if_due(&*self.store, &session, &published);
        }
    }

    /// Leaves little for the next start to read. The writer has ended.
    fn end(&self) {
        let begun = Instant::now();
        loop {
            match self.settle() {
                Ok(true) if begun.elapsed() < SETTLING_AT_END_MAX => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::debug!(%error, "what is not settled is read by the next start");
                    return;
                }
            }
        }
        let (begun, identities) = (Instant::now(), self.directory.identities());
        for some in identities.behind().chunks(SUMMARIES_AT_ONCE) {
            let rows = identities.rows(some);
            if let Err(error) = self.store.put_summaries(&rows) {
                tracing::debug!(%error, "the next start reads the histories of some sessions");
                return;
            }
            if begun.elapsed() > SUMMARIES_AT_END_MAX {
                return;
            }
        }
    }
}
