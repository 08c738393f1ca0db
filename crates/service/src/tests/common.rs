//! A test store that several services write to: the embedded one behind the shared engine's traits.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use uuid::Uuid;

use super::clock::open;
use super::double::double;
use super::service::POLICY;
use crate::Service;
use blackboard_board::{Digest, Epoch, Frame, Revision, SessionId, Timestamp};
use blackboard_clock::Clock;
use blackboard_store::*;

/// What another server does before an append.
type Between = Box<dyn FnMut(&SqliteStore, &[Run]) + Send>;

/// What all servers of a store share besides it.
#[derive(Default)]
struct Both {
    /// Held by each append of any server.
    turn: Mutex<()>,
    /// The rows of sessions, by name.
    rows: Mutex<HashMap<Vec<u8>, SessionRow>>,
    /// The server that leads.
    leader: Mutex<Option<usize>>,
}

/// One server's handle to the common store.
pub(crate) struct Common {
    store: Arc<SqliteStore>,
    both: Arc<Both>,
    number: usize,
    pub(crate) between: Mutex<Option<Between>>,
    pub(crate) conflicts: AtomicUsize,
    pub(crate) exclusive: AtomicUsize,
}

impl Common {
    pub(crate) fn in_dir(dir: &Path) -> Self {
        Self::on(Arc::new(open(dir)), Arc::default(), 0)
    }

    fn on(store: Arc<SqliteStore>, both: Arc<Both>, number: usize) -> Self {
        let (conflicts, exclusive) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { store, both, number, between: Mutex::default(), conflicts, exclusive }
    }

    /// The handle of another server.
    pub(crate) fn another(&self) -> Self {
        Self::on(Arc::clone(&self.store), Arc::clone(&self.both), self.number + 1)
    }

    /// Ends this server's lead.
    pub(crate) fn resign(&self) {
        self.both.leader.lock().take_if(|leader| *leader == self.number);
    }

    pub(crate) fn embedded_store(&self) -> &SqliteStore {
        &self.store
    }

    fn append_in_turn(&self, batch: &[Run], _turn: &MutexGuard<'_, ()>) -> Vec<Outcome> {
        let outcomes = self.store.append(batch);
        let conflicts = outcomes.iter().filter(|one| matches!(one, Outcome::Conflict { .. }));
        self.conflicts.fetch_add(conflicts.count(), Ordering::SeqCst);
        let named = self.store.names().unwrap();
        for (run, _) in batch.iter().zip(&outcomes).filter(|(_, one)| **one == Outcome::Appended) {
            let name = named.iter().find(|row| row.session == run.session);
            if let (Some(name), Some(row)) = (name.and_then(|row| row.name.clone()), &run.row) {
                self.both.rows.lock().insert(name, SessionRow::clone(row));
            }
        }
        outcomes
    }
}

/// A service on such a store.
pub(crate) fn serve(store: &Arc<Common>) -> Service {
    Service::start(Arc::clone(store) as Arc<dyn Store>, POLICY, Clock::system()).unwrap()
}

/// Two services on one store.
pub(crate) fn two(dir: &Path) -> ([Arc<Common>; 2], [Service; 2]) {
    let one = Arc::new(Common::in_dir(dir));
    let other = Arc::new(one.another());
    let services = [serve(&one), serve(&other)];
    ([one, other], services)
}

impl SharedStore for Common {
    fn heads(&self, asked: &[(Vec<u8>, Revision)]) -> Result<Vec<Option<Head>>, StoreError> {
        let sessions = self.store.sessions();
        let rows = self.store.names()?;
        let head_of = |(name, asked): &(Vec<u8>, Revision)| {
            let named = rows.iter().filter(|row| row.name.as_ref() == Some(name));
            let heads = named.filter_map(|row| {
                let stored = sessions.iter().find(|stored| stored.session == row.session)?;
                let (session, revision) = (stored.session, stored.head);
                let base = self.store.base(session).unwrap();
                let max = PageMax { commits: usize::MAX, bytes: usize::MAX };
                let kept = self.store.commits(session, base.unwrap_or_default(), max).unwrap();
                let history_bytes = kept.iter().map(|(_, frame)| Frame::bytes(frame) as u64).sum();
                let commit = kept.iter().find(|(revision, _)| revision == asked);
                let asked = commit.and_then(|(_, frame)| Frame::seal(frame));
                Some(Head { session, revision, base, history_bytes, asked })
            });
            heads.max_by_key(|head| head.revision)
        };
        Ok(asked.iter().map(head_of).collect())
    }

    /// The embedded store loses nothing.
    fn draw_epoch(&self, _known: Epoch) -> Result<(), StoreError> {
        Ok(())
    }

    fn due(&self, now: Timestamp, max: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let rows = self.both.rows.lock();
        let is_due = |row: &SessionRow| row.next_due.is_some_and(|due| due <= now);
        let due = rows.iter().filter(|(_, row)| is_due(row)).map(|(name, _)| name.clone());
        Ok(due.take(max).collect())
    }

    fn limited(&self, after: &[u8], max: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let rows = self.both.rows.lock();
        let mut limited: Vec<_> = rows.iter().filter(|(_, row)| row.is_limited).collect();
        limited.sort_by_key(|(name, _)| *name);
        let names = limited.into_iter().map(|(name, _)| name.clone());
        Ok(names.filter(|name| name.as_slice() > after).take(max).collect())
    }

    fn collectable(
        &self,
        _before: Timestamp,
        _after: &[u8],
        _max: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(Vec::new())
    }

    fn sweep(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn over(&self, _deleted_before: Timestamp, _max: usize) -> Result<Vec<SessionId>, StoreError> {
        Ok(Vec::new())
    }

    fn rows(&self, sought: &RowQuery<'_>) -> Result<Vec<(Vec<u8>, SummaryRow)>, StoreError> {
        let names = self.both.rows.lock().keys().cloned().collect::<BTreeSet<_>>();
        let names: Vec<_> = names.into_iter().collect();
        let asked: Vec<_> = names.iter().map(|name| (name.clone(), Revision(0))).collect();
        let heads = self.heads(&asked)?;
        let rows = self.both.rows.lock();
        let found = names.into_iter().zip(heads).filter_map(|(name, head)| {
            let (row, head) = (&rows[&name], head?);
            let belongs = match sought.among {
                Among::All => row.exists,
                Among::Asking => row.asks,
                Among::Requesting => row.requests,
                Among::OverBudget => row.is_over_budget,
            };
            let comes = name.as_slice() > sought.from
                || sought.includes_from && name.as_slice() == sought.from;
            let has = sought.labels.iter().all(|label| row.labels.contains(label));
            let (session, revision) = (head.session, head.revision);
            let frame = row.summary.clone();
            (belongs && comes && has && name.starts_with(sought.prefix))
                .then_some((name, SummaryRow { session, revision, frame }))
        });
        Ok(found.take(sought.limit).collect())
    }

    fn count(&self) -> Result<usize, StoreError> {
        Ok(self.both.rows.lock().values().filter(|row| row.exists).count())
    }

    fn texts(&self) -> &dyn TextStore {
        self
    }

    /// Hints may be lost, and here all are.
    fn on_hint(&self, _hear: Box<dyn Fn(Hint) + Send + Sync>) {}

    fn lead(&self) -> bool {
        *self.both.leader.lock().get_or_insert(self.number) == self.number
    }

    fn exclusively(
        &self,
        _names: &[Vec<u8>],
        decide: &mut dyn FnMut() -> Vec<Run>,
    ) -> Vec<Outcome> {
        let turn = self.both.turn.lock();
        self.exclusive.fetch_add(1, Ordering::SeqCst);
        self.append_in_turn(&decide(), &turn)
    }
}

/// There is no search in this store.
impl TextStore for Common {
    fn texts_behind(&self, _version: i64, _max: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(Vec::new())
    }

    fn texts_at(
        &self,
        _version: i64,
        _sessions: &[SessionId],
    ) -> Result<HashMap<SessionId, Revision>, StoreError> {
        Ok(HashMap::new())
    }

    fn change_texts(&self, _changes: &[(SessionId, TextChange)]) -> Result<(), StoreError> {
        Ok(())
    }

    fn text_logs(
        &self,
        _names: &[(Vec<u8>, Vec<u8>)],
        _logs: &[(String, String)],
    ) -> Result<Vec<TextLog>, StoreError> {
        Ok(Vec::new())
    }

    fn find_texts(&self, _query: &TextQuery) -> Result<Option<Vec<TextFound>>, StoreError> {
        Ok(Some(Vec::new()))
    }
}

impl Store for Common {
    double!(to store:
        commits base read_base pin stage put_base set_base discard forget tokens put_token
        tokens_version logout_store epoch signing_key health);

    fn embedded(&self) -> Option<&dyn EmbeddedStore> {
        None
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }

    fn append(&self, batch: &[Run]) -> Vec<Outcome> {
        let turn = self.both.turn.lock();
        if let Some(between) = &mut *self.between.lock() {
            between(&self.store, batch);
        }
        self.append_in_turn(batch, &turn)
    }

    /// Another server may go on.
    fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl BlobStore for Common {
    double!(to store:
        put_blob begin_blob blob link_blobs remove_blob remove_blobs sweep_blobs clear_blobs
        blobs_of blobs);
}
