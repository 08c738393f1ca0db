//! A test store with injected faults: full disk, panics, counted reads, no compaction.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;
use uuid::Uuid;

use super::clock::open;
use super::double::double;
use super::service::POLICY;
use crate::*;
use blackboard_board::{Digest, Revision, SessionId};
use blackboard_clock::Clock;
use blackboard_store::*;

/// A store whose disk has no room for some sessions, until there is some.
pub(crate) struct Cramped {
    store: SqliteStore,
    pub(crate) no_room_for: Mutex<HashSet<SessionId>>,
    pub(crate) refused: watch::Sender<usize>,
    pages_read: AtomicUsize,
    /// The threads that read them.
    pub(crate) readers: Mutex<HashSet<String>>,
    compacts: bool,
    pub(crate) appends: AtomicUsize,
    /// How many of the next appends panic, and how many pieces of compaction.
    pub(crate) append_panics: AtomicUsize,
    pub(crate) compact_panics: AtomicUsize,
    /// What the images of whole sessions pass through.
    pub(crate) gate: Gate,
    /// What the readers of commits pass through.
    pub(crate) read_gate: Gate,
}

/// Panics as often as it is told to.
fn panic_if_told(times: &AtomicUsize) {
    let told = times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    assert!(told.is_err(), "it was told to panic");
}

/// What holds up whoever comes while it is closed.
#[derive(Default)]
pub(crate) struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
    /// How many came while it was closed.
    pub(crate) came: watch::Sender<usize>,
}

impl Gate {
    pub(crate) fn set_closed(&self, is_closed: bool) {
        *self.is_closed.lock() = is_closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut is_closed = self.is_closed.lock();
        if *is_closed {
            self.came.send_modify(|came| *came += 1);
        }
        while *is_closed {
            self.opened.wait(&mut is_closed);
        }
    }
}

impl Cramped {
    /// A store with room for all.
    pub(crate) fn in_dir(dir: &Path) -> Self {
        let (refused, pages_read) = (watch::Sender::new(0), AtomicUsize::new(0));
        let (append_panics, compact_panics) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self {
            appends: AtomicUsize::new(0),
            store: open(dir),
            no_room_for: Mutex::default(),
            refused,
            pages_read,
            readers: Mutex::default(),
            compacts: true,
            append_panics,
            compact_panics,
            gate: Gate::default(),
            read_gate: Gate::default(),
        }
    }

    /// One whose commits stay where they were appended.
    pub(crate) fn uncompacted(dir: &Path) -> Self {
        Self { compacts: false, ..Self::in_dir(dir) }
    }

    /// How many pages of commits were read.
    pub(crate) fn pages_read(&self) -> usize {
        self.pages_read.load(Ordering::SeqCst)
    }
}

/// A service on such a store.
pub(crate) fn start_uncompacted(dir: &Path) -> Service {
    start_uncompacted_at(dir, Clock::system())
}

pub(crate) fn start_uncompacted_at(dir: &Path, clock: Clock) -> Service {
    Service::start(Arc::new(Cramped::uncompacted(dir)), POLICY, clock).unwrap()
}

impl Store for Cramped {
    double!(to store:
        base read_base pin stage put_base set_base discard forget tokens put_token
        tokens_version logout_store epoch signing_key health close);

    fn embedded(&self) -> Option<&dyn EmbeddedStore> {
        Some(self)
    }

    fn append(&self, batch: &[Run]) -> Vec<Outcome> {
        panic_if_told(&self.append_panics);
        self.appends.fetch_add(1, Ordering::SeqCst);
        let no_room_for = self.no_room_for.lock().clone();
        let (mut fitting, mut outcomes) = (Vec::new(), Vec::new());
        for run in batch {
            let fits = !no_room_for.contains(&run.session);
            fitting.extend(fits.then(|| run.clone()));
            outcomes.push(if fits { Outcome::Appended } else { Outcome::Full });
        }
        let stored = self.store.append(&fitting);
        assert!(stored.iter().all(|outcome| *outcome == Outcome::Appended));
        if fitting.len() < batch.len() {
            self.refused.send_modify(|times| *times += 1);
        }
        outcomes
    }

    fn commits(
        &self,
        session: SessionId,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        self.pages_read.fetch_add(1, Ordering::SeqCst);
        self.readers.lock().extend(thread::current().name().map(str::to_owned));
        self.read_gate.pass();
        self.store.commits(session, after, max)
    }
}

impl EmbeddedStore for Cramped {
    double!(to store:
        replay sessions summaries replay_journal misfits file_bytes put_snapshot read_snapshot
        has_unpinned names free_space back_up look_at idle);

    fn uncompacted_bytes(&self) -> u64 {
        if self.compacts { self.store.uncompacted_bytes() } else { 0 }
    }

    fn compact(
        &self,
        summarize: &mut dyn FnMut(&[SessionId]) -> Vec<SummaryRow>,
    ) -> Result<bool, StoreError> {
        panic_if_told(&self.compact_panics);
        if !self.compacts {
            return Ok(false);
        }
        self.store.compact(summarize)
    }

    fn put_summaries(&self, summaries: &[SummaryRow]) -> Result<(), StoreError> {
        if self.compacts { self.store.put_summaries(summaries) } else { Ok(()) }
    }
}

impl BlobStore for Cramped {
    double!(to store: put_blob begin_blob blob remove_blob sweep_blobs blobs_of blobs);

    fn link_blobs(
        &self,
        from: SessionId,
        to: SessionId,
        digests: &mut dyn Iterator<Item = Digest>,
    ) -> Result<(), StoreError> {
        self.gate.pass();
        self.store.link_blobs(from, to, digests)
    }

    fn remove_blobs(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.gate.pass();
        self.store.remove_blobs(sessions)
    }

    fn clear_blobs(
        &self,
        live: &HashSet<SessionId>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), StoreError> {
        self.gate.pass();
        self.store.clear_blobs(live, go_on)
    }
}
