//! Compaction: a thread that packs the journal by session and deletes forgotten rows.
//!
//! Each compacted session gets a summary, so that the next start reads little. While the store is idle, one piece
//! follows another. While others write, the thread rests after each piece for a multiple of the time that it took, and
//! leaves busy processors to them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::deps::Deps;
use crate::sessions::directory::Directory;
use crate::sessions::session::Shown;
use crate::sessions::snapshots::put_snapshot_if_due;
use crate::threads::pace::Pace;
use crate::threads::signal::Signal;
use blackboard_board::SessionId;
use blackboard_store::{EmbeddedStore, Store, StoreError};

/// The time without a write after which the store counts as idle.
const QUIET: Duration = Duration::from_millis(200);

/// The uncompacted bytes that are compacted at once, even under writes: a whole piece of the store.
const WORTHWHILE_BYTES: u64 = 4 << 20;

/// The time after which fewer bytes are compacted under writes: each time rewrites a session's last segment.
const COMPACT_AFTER: Duration = Duration::from_secs(10);

/// The rest after a piece under writes, as a multiple of its time.
const REST_TIMES: u32 = 4;

/// The fraction of busy processors' time that the thread uses (one in so many), below [`UNCOMPACTED_BYTES_MAX`].
const SHARE_PART: u32 = 128;

/// The uncompacted bytes beyond which the thread rests less.
const UNCOMPACTED_BYTES_MAX: u64 = 512 << 20;

/// The shorter rest, as a multiple of a piece's time.
const SHORT_REST_TIMES: u32 = 2;

/// The pause after a failure, such as a full disk.
const FAILED_REST: Duration = Duration::from_secs(10);

/// The time for compaction at a stop.
const COMPACTION_AT_END_MAX: Duration = Duration::from_millis(1500);

/// The time for storing summaries after that.
const SUMMARIES_AT_END_MAX: Duration = Duration::from_millis(500);

/// The number of summaries stored at once.
const SUMMARIES_AT_ONCE: usize = 1024;

/// Counter of the writer's appends, read by the compaction.
#[derive(Debug, Default)]
pub(crate) struct Activity(AtomicU64);

impl Activity {
    /// Counts an append.
    pub(crate) fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn seen(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// When a piece is due, and how long the thread rests after it.
struct Schedule {
    pace: Pace,
    seen: u64,
    written_at: Instant,
    compacted_at: Instant,
    /// When it failed last.
    failed_at: Option<Instant>,
    /// True if more work is known.
    more: bool,
}

impl Schedule {
    fn begin(seen: u64) -> Self {
        let now = Instant::now();
        Self {
            pace: Pace::begin(SHARE_PART),
            seen,
            written_at: now,
            compacted_at: now,
            failed_at: None,
            more: true,
        }
    }

    fn look(&mut self, seen: u64) {
        if std::mem::replace(&mut self.seen, seen) != seen {
            self.written_at = Instant::now();
            self.more = true;
        }
    }

    fn is_quiet(&self) -> bool {
        self.written_at.elapsed() >= QUIET
    }

    /// After the last piece the files must still shrink, and the writer may be asleep by then.
    fn has_work(&self, uncompacted: u64) -> bool {
        self.more || uncompacted > 0
    }

    fn compacts(&self, uncompacted: u64) -> bool {
        if self.failed_at.is_some_and(|failed| failed.elapsed() < FAILED_REST) {
            return false;
        }
        let is_due =
            uncompacted >= WORTHWHILE_BYTES || self.compacted_at.elapsed() >= COMPACT_AFTER;
        self.is_quiet() || (uncompacted > 0 && is_due)
    }

    fn rest(&mut self, took: Duration, uncompacted: u64) -> Duration {
        let left_to_others = self.pace.rest();
        match (self.more, self.is_quiet()) {
            (false, _) => QUIET,
            (true, true) => Duration::ZERO,
            (true, false) if uncompacted > UNCOMPACTED_BYTES_MAX => took * SHORT_REST_TIMES,
            (true, false) => left_to_others.max(took * REST_TIMES),
        }
    }
}

/// The compaction's thread.
pub(crate) struct Compaction {
    directory: Arc<Directory>,
    store: Arc<dyn Store>,
    activity: Arc<Activity>,
}

impl Compaction {
    /// Starts the thread for an embedded store. It compacts what it can in a bounded time once it is stopped. Returns the
    /// counter that the writer advances.
    pub(crate) fn start(deps: &Deps, directory: &Arc<Directory>) -> io::Result<Arc<Activity>> {
        let activity = Arc::new(Activity::default());
        let (directory, store) = (Arc::clone(directory), Arc::clone(&deps.store));
        let compactor = Self { directory, store, activity: Arc::clone(&activity) };
        if deps.store.embedded().is_some() {
            let run = move |signal: &Signal| {
                compactor
                    .store
                    .embedded()
                    .into_iter()
                    .for_each(|store| compactor.run(store, signal));
            };
            deps.threads.start("compactor", Arc::default(), run)?;
        }
        Ok(activity)
    }

    fn run(&self, store: &dyn EmbeddedStore, signal: &Signal) {
        let (mut schedule, mut rest) = (Schedule::begin(self.activity.seen()), QUIET);
        while signal.rest(rest) {
            schedule.look(self.activity.seen());
            let uncompacted = store.uncompacted_bytes();
            if !schedule.has_work(uncompacted) && !store.has_unpinned() {
                rest = QUIET;
                continue;
            }
            let begun = Instant::now();
            self.turn(store, &mut schedule, uncompacted);
            rest = schedule.rest(begun.elapsed(), uncompacted);
        }
        self.end(store);
    }

    /// Deletes forgotten rows, which needs no room, and compacts a piece if that is due.
    fn turn(&self, store: &dyn EmbeddedStore, schedule: &mut Schedule, uncompacted: u64) {
        schedule.more = store.maintain();
        if !schedule.compacts(uncompacted) {
            return;
        }
        match self.compact(store) {
            Ok(more) => {
                schedule.more |= more;
                schedule.compacted_at = Instant::now();
            }
            Err(error) => {
                schedule.failed_at = Some(Instant::now());
                if !matches!(error, StoreError::Full | StoreError::Busy) {
                    tracing::warn!(%error, "a part of the journal could not be compacted");
                }
            }
        }
    }

    /// Compacts a piece; returns true if there is more.
    fn compact(&self, store: &dyn EmbeddedStore) -> Result<bool, StoreError> {
        let identities = self.directory.identities();
        let (mut given, mut compacted) = (Vec::new(), Vec::new());
        let more = store.compact(&mut |sessions| {
            given = identities.rows(sessions);
            compacted = sessions.to_vec();
            given.clone()
        })?;
        identities.note_stored(&given);
        compacted.into_iter().for_each(|session| self.put_snapshot(store, session));
        Ok(more)
    }

    /// Stores a snapshot of a session in memory, if it is due.
    fn put_snapshot(&self, store: &dyn EmbeddedStore, session: SessionId) {
        let Some(session) = self.directory.identities().running(session) else { return };
        if let Shown::Hot(published) = session.shown() {
            put_snapshot_if_due(store, &session, &published);
        }
    }

    /// Compacts what remains, so that the next start reads little. The writer has ended.
    fn end(&self, store: &dyn EmbeddedStore) {
        let begun = Instant::now();
        loop {
            match self.compact(store) {
                Ok(true) if begun.elapsed() < COMPACTION_AT_END_MAX => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::debug!(%error, "the next start reads the rest of the journal");
                    return;
                }
            }
        }
        let (begun, identities) = (Instant::now(), self.directory.identities());
        for some in identities.behind().chunks(SUMMARIES_AT_ONCE) {
            let rows = identities.rows(some);
            if let Err(error) = store.put_summaries(&rows) {
                tracing::debug!(%error, "the next start reads the histories of some sessions");
                return;
            }
            if begun.elapsed() > SUMMARIES_AT_END_MAX {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;
    use blackboard_board::stored::Body;
    use blackboard_board::{Frame, Revision, SessionId};
    use blackboard_store::{Outcome, Run, SqliteOptions, SqliteStore, SyncLevel};

    /// A store in which a session has five commits.
    fn five(dir: &TempDir) -> SqliteStore {
        let options = SqliteOptions { sync: SyncLevel::Full, free_bytes_min: 0, free_part: 1 };
        let store = SqliteStore::open(dir.path(), options).unwrap();
        let session = SessionId(Uuid::from_u128(0xa));
        let frame = |revision| Frame::encode(session, Revision(revision), &Body::plain(b"a"));
        let run = Run {
            session,
            expected: Revision(0),
            ends: None,
            frames: (1..6).map(|revision| frame(revision).unwrap()).collect(),
            claim: None,
            grows: true,
            adopts: false,
            group: None,
            row: None,
        };
        assert_eq!(store.append(&[run]), [Outcome::Appended]);
        store
    }

    #[test]
    fn a_turn_compacts_only_if_a_piece_is_due() {
        let dir = TempDir::new().unwrap();
        let store = Arc::new(five(&dir));
        let directory = Arc::new(Directory::new());
        let activity = Arc::default();
        let compaction = Compaction { directory, store: Arc::clone(&store) as _, activity };
        let turn = |failed_at| {
            let written_at = Instant::now() - QUIET;
            let mut schedule = Schedule { written_at, failed_at, ..Schedule::begin(0) };
            let before = store.uncompacted_bytes();
            compaction.turn(&*store, &mut schedule, before);
            (before, store.uncompacted_bytes())
        };
        let (before, after) = turn(Some(Instant::now()));
        assert!(before > 0 && after == before, "{after} of {before} after a failure");
        assert_eq!(turn(None), (before, 0));
    }
}
