//! Snapshots: boards beside a history, a cache to read it faster.

use std::ops::ControlFlow;

use super::parts::SNAPSHOT;
use crate::sqlite::segments::codec::{Packer, Unpacker};
use crate::{SqliteStore, StoreError};
use blackboard_board::{Revision, SessionId};

impl SqliteStore {
    pub(crate) fn put_snapshot_parts(
        &self,
        session: SessionId,
        revision: Revision,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError> {
        let _turn = self.putting.take(session);
        if self.histories.read().base_or_none(session)?.is_some_and(|base| base.ends) {
            return Ok(());
        }
        while !self.write(|journal| journal.clear_snapshots(session, revision))? {}
        let mut packer = Packer::new();
        let mut packed = parts.map(|part| packer.pack(&part));
        let put = self.put_parts(SNAPSHOT, session, revision, 0, &mut packed);
        let mut journal = self.journal.lock();
        let journal = journal.as_mut().ok_or(StoreError::Closed)?;
        // An incomplete snapshot is deleted too. The one before it is not worth a distinction.
        let before = if put.is_ok() { revision } else { revision.next() };
        journal.forget_snapshots(session, before);
        put.map(drop)
    }

    pub(crate) fn visit_snapshot(
        &self,
        session: SessionId,
        up_to: Revision,
        visit: &mut dyn FnMut(Revision, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<Revision>, StoreError> {
        let newest = |connection: &_| Ok(SNAPSHOT.newest(connection, session, up_to)?);
        let Some(revision) = self.readers.read(newest)? else { return Ok(None) };
        if !self.is_kept(session, revision) {
            return Ok(None);
        }
        let mut unpacker = Unpacker::new();
        for part in 0.. {
            let read = |connection: &_| Ok(SNAPSHOT.read(connection, session, revision, part)?);
            let Some(packed) = self.readers.read(read)? else { break };
            // A part that does not unpack has empty bytes, which no frame has.
            if visit(revision, &unpacker.unpack(&packed).unwrap_or_default()).is_break() {
                break;
            }
        }
        // The snapshot may have been forgotten meanwhile.
        Ok(self.is_kept(session, revision).then_some(revision))
    }

    fn is_kept(&self, session: SessionId, revision: Revision) -> bool {
        let base = self.histories.read().base_or_none(session);
        base.is_ok_and(|base| base.is_none_or(|base| base.revision <= revision))
    }
}
