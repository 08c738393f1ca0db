//! A test store that several services write to: the embedded one behind the shared engine's traits.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use uuid::Uuid;

use super::clock::open;
use super::service::POLICY;
use crate::Service;
use blackboard_board::{Digest, Epoch, Frame, Revision, SessionId, Timestamp};
use blackboard_clock::Clock;
use blackboard_store::{
    Among, BlobDraft, BlobStore, EmbeddedStore, Head, Health, Hint, LogoutRow, Outcome, PageMax,
    Pinned, RowQuery, Run, SessionRow, SharedStore, SigningKey, SqliteStore, Store, StoreError,
    StoredBlob, SummaryRow, TextChange, TextFound, TextLog, TextQuery, TextStore, TokenRow,
};

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

    fn tokens_version(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Nobody logs in here.
    fn log_out(&self, _logout: &LogoutRow, _max: usize) -> Result<(), StoreError> {
        Ok(())
    }

    fn logouts(&self, _after: i64) -> Result<Vec<(i64, LogoutRow)>, StoreError> {
        Ok(Vec::new())
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

    fn commits(
        &self,
        session: SessionId,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        self.store.commits(session, after, max)
    }

    fn base(&self, session: SessionId) -> Result<Option<Revision>, StoreError> {
        self.store.base(session)
    }

    fn read_base(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.read_base(session, visit)
    }

    fn pin(&self, session: SessionId) -> Result<Box<dyn Pinned>, StoreError> {
        self.store.pin(session)
    }

    fn stage(&self, session: SessionId) -> Result<(), StoreError> {
        self.store.stage(session)
    }

    fn put_base(
        &self,
        session: SessionId,
        base: Revision,
        frees: u64,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError> {
        self.store.put_base(session, base, frees, parts)
    }

    fn set_base(&self, session: SessionId, base: Revision) -> Outcome {
        self.store.set_base(session, base)
    }

    fn discard(&self, session: SessionId) -> Result<(), StoreError> {
        self.store.discard(session)
    }

    fn forget(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.store.forget(sessions)
    }

    fn tokens(&self) -> Result<Vec<TokenRow>, StoreError> {
        self.store.tokens()
    }

    fn put_token(&self, id: Uuid, body: Option<&[u8]>) -> Result<(), StoreError> {
        self.store.put_token(id, body)
    }

    fn epoch(&self) -> Epoch {
        self.store.epoch()
    }

    fn signing_key(&self) -> &SigningKey {
        self.store.signing_key()
    }

    fn health(&self) -> Health {
        self.store.health()
    }

    /// Another server may go on.
    fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl BlobStore for Common {
    fn put_blob(&self, session: SessionId, digest: Digest, bytes: &[u8]) -> Result<(), StoreError> {
        self.store.put_blob(session, digest, bytes)
    }

    fn begin_blob(&self, session: SessionId) -> Result<Box<dyn BlobDraft>, StoreError> {
        self.store.begin_blob(session)
    }

    fn blob(&self, session: SessionId, digest: Digest) -> Result<Vec<u8>, StoreError> {
        self.store.blob(session, digest)
    }

    fn link_blobs(
        &self,
        from: SessionId,
        to: SessionId,
        digests: &mut dyn Iterator<Item = Digest>,
    ) -> Result<(), StoreError> {
        self.store.link_blobs(from, to, digests)
    }

    fn remove_blob(
        &self,
        session: SessionId,
        digest: Digest,
        is_free: &dyn Fn() -> bool,
    ) -> Result<bool, StoreError> {
        self.store.remove_blob(session, digest, is_free)
    }

    fn remove_blobs(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.store.remove_blobs(sessions)
    }

    fn sweep_blobs(&self) -> Result<bool, StoreError> {
        self.store.sweep_blobs()
    }

    fn clear_blobs(
        &self,
        live: &HashSet<SessionId>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), StoreError> {
        self.store.clear_blobs(live, go_on)
    }

    fn blobs_of(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.blobs_of(session, visit)
    }

    fn blobs(
        &self,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.blobs(visit)
    }
}
