//! Which session's history begins with which base.
//!
//! A base is put in several transactions, and is part of a history only once its row in `history` says so.
//! That row has a checksum: a changed bit in it must not move the beginning of a history.

use std::ops::ControlFlow;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row};
use uuid::Uuid;

use super::histories::{Base, Beginning};
use super::{JournalId, StoreError, Stored};
use crate::board::{Revision, SessionId};

/// Selects rows with the columns that [`HistoryRow::read`] takes.
macro_rules! select {
    () => {
        "SELECT session, base, parts, forgotten, staged, sum FROM history"
    };
}

/// The row of a session whose history has a base, or is not its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HistoryRow {
    pub(super) session: SessionId,
    pub(super) beginning: Beginning,
    pub(super) staged: bool,
}

impl HistoryRow {
    /// All of them, in the order of the ids.
    pub(super) fn all(connection: &Connection) -> Result<Vec<Self>, StoreError> {
        let mut select = connection.prepare(concat!(select!(), " ORDER BY session"))?;
        let mut rows = select.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(Self::read(row)?.ok_or(StoreError::DamagedHistory)?);
        }
        Ok(all)
    }

    /// A session's row, if it has one; none within if that is not as it was written.
    pub(super) fn of(
        connection: &Connection,
        session: SessionId,
    ) -> Result<Option<Option<Self>>, StoreError> {
        let sql = concat!(select!(), " WHERE session = ?1");
        let mut select = connection.prepare_cached(sql)?;
        let id = session.0.as_bytes().as_slice();
        Ok(select.query_one([id], Self::read).optional()?)
    }

    /// None if it is not as it was written.
    fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let Some(session) = session_of(row.get_ref(0)?) else { return Ok(None) };
        let revision: Option<i64> = row.get(1)?;
        let parts: i64 = row.get(2)?;
        let (parts, ends) = (parts.unsigned_abs(), parts < 0);
        let forgotten = row.get::<_, i64>(3)?.cast_unsigned();
        let base = revision.map(|revision| Revision(revision.cast_unsigned()));
        let base = base.map(|revision| Base { revision, parts, ends });
        let beginning = Beginning { base, forgotten: JournalId(forgotten) };
        let found = Self { session, beginning, staged: row.get::<_, i64>(4)? != 0 };
        Ok((row.get::<_, i64>(5)? == i64::from(found.sum())).then_some(found))
    }

    fn sum(&self) -> u32 {
        let Beginning { base, forgotten } = self.beginning;
        let mut crc = crc32fast::Hasher::new();
        crc.update(self.session.0.as_bytes());
        crc.update(&[u8::from(base.is_some()), u8::from(self.staged)]);
        crc.update(&base.map_or(0, |base| base.revision.0).to_le_bytes());
        crc.update(&parts(base).to_le_bytes());
        crc.update(&forgotten.0.to_le_bytes());
        crc.finalize()
    }

    /// Writes it over the session's row, if that has one.
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let Beginning { base, forgotten } = self.beginning;
        connection
            .prepare_cached("INSERT OR REPLACE INTO history VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute((
                self.session.0.as_bytes().as_slice(),
                base.map(|base| base.revision.0.cast_signed()),
                parts(base),
                forgotten.0.cast_signed(),
                self.staged,
                self.sum(),
            ))
            .map(drop)
    }

    pub(super) fn delete(connection: &Connection, session: SessionId) -> rusqlite::Result<()> {
        connection
            .prepare_cached("DELETE FROM history WHERE session = ?1")?
            .execute([session.0.as_bytes().as_slice()])
            .map(drop)
    }
}

/// How many parts a base has, as a row says it: below zero for an end.
fn parts(base: Option<Base>) -> i64 {
    let signed = |base: Base| {
        let parts = base.parts.cast_signed();
        if base.ends { parts.saturating_neg() } else { parts }
    };
    base.map_or(0, signed)
}

/// Whose row it is, if it says.
pub(super) fn session_of(column: ValueRef<'_>) -> Option<SessionId> {
    let ValueRef::Blob(session) = column else { return None };
    Uuid::from_slice(session).ok().map(SessionId)
}

/// Visits all parts of a history's base. One that is missing has no bytes, which no frame is.
pub(super) fn visit(
    connection: &Connection,
    row: &HistoryRow,
    visit: &mut dyn FnMut(Stored<'_>) -> ControlFlow<()>,
) -> rusqlite::Result<ControlFlow<()>> {
    let Some(base) = row.beginning.base else {
        return Ok(ControlFlow::Continue(()));
    };
    let (session, revision) = (row.session, base.revision);
    for part in 0..base.parts {
        let frame = base.table().read(connection, session, revision, part)?.unwrap_or_default();
        if visit(Stored::Base { session, revision, frame: &frame }).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
