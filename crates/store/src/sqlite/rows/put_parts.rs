//! Putting a whole board part by part, in several transactions.

use super::parts;
use super::parts::Table;
use crate::sqlite::index::Base;
use crate::{SqliteStore, StoreError};
use blackboard_board::{Revision, SessionId};

/// The maximum bytes of parts in one transaction, which ends with the part that reaches it. The writer waits for at
/// most one such transaction.
const PARTS_BYTES_MAX: usize = 1 << 20;

impl SqliteStore {
    /// Refuses a write that needs the reserve.
    pub(crate) fn claim_room(&self, bytes: usize) -> Result<(), StoreError> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.room.is_for(bytes).then_some(()).ok_or(StoreError::Full)
    }

    pub(crate) fn put_base_parts(
        &self,
        session: SessionId,
        base: Revision,
        frees: u64,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError> {
        let _turn = self.putting.take(session);
        match self.histories.read().base_or_none(session)? {
            Some(set) if set.revision == base && !set.ends => return Ok(()),
            Some(set) if set.revision > base || set.ends => {
                return Err(StoreError::Forgotten { session, base: set.revision });
            }
            Some(_) | None => {}
        }
        while !self.write(|journal| journal.clear_base(session, base))? {}
        let put = self.put_parts(parts::BASE, session, base, frees, parts);
        let mut journal = self.journal.lock();
        let journal = journal.as_mut().ok_or(StoreError::Closed)?;
        match put {
            // Without parts there is no base.
            Ok(0) => {}
            Ok(parts) => journal.put_base(session, Base { revision: base, parts, ends: false }),
            Err(_) => journal.abandon_base(session, base),
        }
        put.map(drop)
    }

    /// Puts the parts in several transactions. Returns their number. The first `frees` bytes may use the reserve.
    pub(crate) fn put_parts(
        &self,
        table: Table,
        session: SessionId,
        revision: Revision,
        frees: u64,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<u64, StoreError> {
        let (mut stored, mut stored_bytes) = (0, 0_u64);
        loop {
            let (mut some, mut bytes) = (Vec::new(), 0);
            while let Some(part) = (bytes < PARTS_BYTES_MAX).then(|| parts.next()).flatten() {
                bytes += part.len();
                some.push(part);
            }
            if some.is_empty() {
                return Ok(stored);
            }
            stored_bytes = stored_bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
            // Puts of many parts may outrun the regular checkpoints.
            self.move_long_log();
            self.claim_room_to_shrink(bytes, stored_bytes < frees)?;
            if !self.write(|journal| journal.put_parts(table, session, revision, stored, &some))? {
                let base = self.histories.read().base(session);
                let base = base.map(|base| base.revision).unwrap_or_default();
                return Err(StoreError::Forgotten { session, base });
            }
            stored += u64::try_from(some.len()).unwrap_or(u64::MAX);
        }
    }
}
