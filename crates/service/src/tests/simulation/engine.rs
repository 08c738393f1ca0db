//! An engine in memory: durable after a crash, and failing on command.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use uuid::Uuid;

use super::super::double::double;
use super::disk::{Disk, History, hold_together};
use blackboard_board::{Digest, Epoch, Revision, SessionId};
use blackboard_store::*;

/// The fault of the next write: an append or a base in force, or, without room, a blob or a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No room for runs that grow.
    Full,
    /// Another program's lock.
    Busy,
    /// A damaged page under one of the batch's sessions, counted around them.
    Malformed(usize),
    /// The sync fails, and the batch is durable nevertheless.
    UnknownKept,
    /// The sync fails, and the batch is lost.
    UnknownLost,
}

/// Sees each batch before it is durable.
type Seen = Box<dyn Fn(&[Run]) + Send>;

/// An open engine on a disk.
pub(super) struct Engine {
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) fault: Mutex<Option<Fault>>,
    pub(super) before: Mutex<Option<Seen>>,
    poisoned: AtomicBool,
    key: SigningKey,
}

impl Engine {
    pub(super) fn on(disk: &Arc<Mutex<Disk>>) -> Self {
        disk.lock().open();
        Self {
            disk: Arc::clone(disk),
            fault: Mutex::default(),
            before: Mutex::default(),
            poisoned: AtomicBool::new(false),
            key: SigningKey::ephemeral().unwrap(),
        }
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::SeqCst)
    }

    /// Fails, so that no step of the ended service changes what is durable.
    pub(super) fn poison(&self) {
        self.poisoned.store(true, Ordering::SeqCst);
    }

    /// Returns the disk for a write that takes no room.
    fn changed(&self) -> Result<MutexGuard<'_, Disk>, StoreError> {
        if self.is_poisoned() { Err(StoreError::Poisoned) } else { Ok(self.disk.lock()) }
    }

    /// Returns the disk for a write that takes room.
    fn grown(&self) -> Result<MutexGuard<'_, Disk>, StoreError> {
        let disk = self.changed()?;
        let is_full = self.fault.lock().take_if(|fault| *fault == Fault::Full).is_some();
        if is_full { Err(StoreError::Full) } else { Ok(disk) }
    }

    fn history<T>(&self, session: SessionId, read: impl FnOnce(&History) -> T) -> Option<T> {
        self.disk.lock().histories.get(&session).map(read)
    }
}

impl Store for Engine {
    double!(always Epoch(1); epoch);
    double!(always Ok(0); tokens_version);
    double!(always None; logout_store);
    double!(always Ok(()); close);

    fn embedded(&self) -> Option<&dyn EmbeddedStore> {
        Some(self)
    }

    fn append(&self, batch: &[Run]) -> Vec<Outcome> {
        if self.is_poisoned() {
            return vec![Outcome::Refused; batch.len()];
        }
        if let Some(before) = &*self.before.lock() {
            before(batch);
        }
        let fault = self.fault.lock().take();
        let mut disk = self.disk.lock();
        let mut outcomes = disk.judge(batch);
        match fault {
            Some(Fault::Busy) => return vec![Outcome::Busy; batch.len()],
            Some(Fault::Full) => {
                let grows = batch.iter().zip(&mut outcomes).filter(|(run, _)| run.grows);
                grows.for_each(|(_, outcome)| *outcome = Outcome::Full);
                hold_together(batch, &mut outcomes);
            }
            Some(Fault::Malformed(which)) => {
                // The runs have no order that is the same each time.
                let sessions: BTreeSet<_> = batch.iter().map(|run| run.session).collect();
                let session = sessions.iter().nth(which % sessions.len()).copied().unwrap();
                let of_it =
                    batch.iter().zip(&mut outcomes).filter(|(run, _)| run.session == session);
                of_it.for_each(|(_, outcome)| *outcome = Outcome::Malformed);
                hold_together(batch, &mut outcomes);
            }
            Some(Fault::UnknownKept | Fault::UnknownLost) | None => {}
        }
        let accepted = batch.iter().zip(&outcomes);
        let accepted = accepted.filter(|(_, outcome)| **outcome == Outcome::Appended);
        let mut accepted = accepted.map(|(run, _)| run);
        match fault {
            Some(Fault::UnknownKept) => disk.unread.runs = accepted.cloned().collect(),
            Some(Fault::UnknownLost) => {}
            Some(Fault::Full | Fault::Busy | Fault::Malformed(_)) | None => {
                accepted.by_ref().for_each(|run| disk.store(run));
                return outcomes;
            }
        }
        self.poison();
        vec![Outcome::Unknown; batch.len()]
    }

    fn commits(
        &self,
        session: SessionId,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        self.history(session, |history| history.page(session, after, max)).unwrap_or(Ok(vec![]))
    }

    fn base(&self, session: SessionId) -> Result<Option<Revision>, StoreError> {
        Ok(self.disk.lock().base(session))
    }

    fn read_base(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if let Some(history) = self.history(session, History::clone) {
            history.visit_base(visit);
        }
        Ok(())
    }

    fn pin(&self, session: SessionId) -> Result<Box<dyn Pinned>, StoreError> {
        let history = self.history(session, History::clone);
        let history = history.ok_or(StoreError::NoHistory { session })?;
        Ok(Box::new(PinnedHistory { session, history }))
    }

    fn stage(&self, session: SessionId) -> Result<(), StoreError> {
        let history = History { staged: true, ..History::default() };
        match self.grown()?.histories.insert(session, history) {
            None => Ok(()),
            Some(_) => Err(StoreError::HistoryExists { session }),
        }
    }

    fn put_base(
        &self,
        session: SessionId,
        base: Revision,
        _frees: u64,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError> {
        let parts = parts.collect();
        let mut disk = self.grown()?;
        let history = disk.histories.get_mut(&session).ok_or(StoreError::NoHistory { session })?;
        history.put = Some((base, parts));
        Ok(())
    }

    fn set_base(&self, session: SessionId, base: Revision) -> Outcome {
        if self.is_poisoned() {
            return Outcome::Refused;
        }
        let fault = self.fault.lock().take();
        let mut disk = self.disk.lock();
        match fault {
            None if disk.set_base(session, base) => Outcome::Appended,
            None => Outcome::Conflict { head: Revision::default() },
            Some(Fault::Full) => Outcome::Full,
            Some(Fault::Busy) => Outcome::Busy,
            Some(Fault::Malformed(_)) => Outcome::Malformed,
            Some(Fault::UnknownKept) => {
                disk.unread.base = Some((session, base));
                self.poison();
                Outcome::Unknown
            }
            Some(Fault::UnknownLost) => {
                self.poison();
                Outcome::Unknown
            }
        }
    }

    fn discard(&self, session: SessionId) -> Result<(), StoreError> {
        self.changed()?.histories.retain(|id, history| *id != session || !history.staged);
        Ok(())
    }

    fn forget(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        let mut disk = self.changed()?;
        disk.histories.retain(|session, _| !sessions.contains(session));
        disk.names.retain(|_, session| !sessions.contains(session));
        Ok(())
    }

    fn tokens(&self) -> Result<Vec<TokenRow>, StoreError> {
        let row = |(id, body): (&Uuid, &Vec<u8>)| TokenRow { id: *id, body: Some(body.clone()) };
        Ok(self.disk.lock().tokens.iter().map(row).collect())
    }

    fn put_token(&self, id: Uuid, body: Option<&[u8]>) -> Result<(), StoreError> {
        let mut disk = self.changed()?;
        match body {
            Some(body) => drop(disk.tokens.insert(id, body.to_owned())),
            None => drop(disk.tokens.remove(&id)),
        }
        Ok(())
    }

    fn signing_key(&self) -> &SigningKey {
        &self.key
    }

    fn health(&self) -> Health {
        if self.is_poisoned() { Health::Poisoned } else { Health::Ready }
    }
}

impl EmbeddedStore for Engine {
    double!(always Ok(()); summaries put_summaries put_snapshot);
    double!(always Ok(Vec::new()); misfits);
    double!(always Ok(None); read_snapshot);
    double!(always Ok(false); compact);
    double!(always 0; uncompacted_bytes);
    double!(always FileBytes::default(); file_bytes);
    double!(always None; free_space);
    double!(always false; has_unpinned idle);
    double!(always Err(StoreError::Closed); back_up look_at);

    fn replay(
        &self,
        visit: &mut dyn FnMut(Stored<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let histories = self.disk.lock().histories.clone();
        for (session, history) in histories.iter().filter(|(_, history)| !history.staged) {
            let (session, revision) = (*session, history.base().unwrap_or_default());
            history.visit_base(&mut |frame| visit(Stored::Base { session, revision, frame }));
        }
        self.replay_journal(&mut |record| visit(Stored::Commit(record)))
    }

    fn sessions(&self) -> Vec<StoredSession> {
        let disk = self.disk.lock();
        let own = disk.histories.iter().filter(|(_, history)| !history.staged);
        own.filter_map(|(session, history)| {
            Some(StoredSession {
                session: *session,
                head: history.head()?,
                compacted: history.base().unwrap_or_default(),
                is_damaged: false,
            })
        })
        .collect()
    }

    fn replay_journal(
        &self,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let histories = self.disk.lock().histories.clone();
        let own = histories.iter().filter(|(_, history)| !history.staged);
        let mut rows: Vec<_> = own
            .flat_map(|(session, history)| history.commits.iter().map(|row| (*session, row)))
            .collect();
        rows.sort_by_key(|(_, (id, ..))| *id);
        for (session, (id, revision, frame)) in rows {
            let (journal_id, revision) = (Some(JournalId(*id)), *revision);
            if visit(Record { journal_id, session, revision, frame }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<NameRow>, StoreError> {
        let disk = self.disk.lock();
        let row = |(name, session): (&Vec<u8>, &SessionId)| NameRow {
            session: *session,
            name: Some(name.clone()),
        };
        Ok(disk.names.iter().map(row).collect())
    }
}

impl BlobStore for Engine {
    double!(always Ok(()); clear_blobs blobs_of blobs);
    double!(always Ok(false); sweep_blobs);
    double!(always Err(StoreError::Closed); begin_blob);

    fn put_blob(&self, session: SessionId, digest: Digest, bytes: &[u8]) -> Result<(), StoreError> {
        self.grown()?.blobs.insert((session, digest), bytes.to_owned());
        Ok(())
    }

    fn blob(&self, session: SessionId, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let blob = self.disk.lock().blobs.get(&(session, digest)).cloned();
        blob.ok_or(StoreError::BlobMissing { session, digest })
    }

    fn link_blobs(
        &self,
        from: SessionId,
        to: SessionId,
        digests: &mut dyn Iterator<Item = Digest>,
    ) -> Result<(), StoreError> {
        for digest in digests {
            self.put_blob(to, digest, &self.blob(from, digest)?)?;
        }
        Ok(())
    }

    fn remove_blob(
        &self,
        session: SessionId,
        digest: Digest,
        is_free: &dyn Fn() -> bool,
    ) -> Result<bool, StoreError> {
        let mut disk = self.changed()?;
        let is_free = is_free();
        if is_free {
            disk.blobs.remove(&(session, digest));
        }
        Ok(is_free)
    }

    fn remove_blobs(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.changed()?.blobs.retain(|(session, _), _| !sessions.contains(session));
        Ok(())
    }
}

/// A history as it was when it was pinned.
struct PinnedHistory {
    session: SessionId,
    history: History,
}

impl Pinned for PinnedHistory {
    fn session(&self) -> SessionId {
        self.session
    }

    fn base(&self) -> Option<Revision> {
        self.history.base()
    }

    fn commits(
        &self,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        self.history.page(self.session, after, max)
    }

    fn read_base(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), StoreError> {
        self.history.visit_base(visit);
        Ok(())
    }
}
