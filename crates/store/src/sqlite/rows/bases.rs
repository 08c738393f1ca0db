//! Bases: the board with which a session's history begins.
//!
//! A base is put in several transactions and takes effect with its row in `history`. The row has a checksum: a
//! changed bit must not move the beginning of a history.

use std::ops::ControlFlow;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row};
use uuid::Uuid;

use crate::sqlite::index::{Base, Beginning};
use crate::{JournalId, StoreError, Stored};
use blackboard_board::{Revision, SessionId};

/// Selects rows with the columns that [`HistoryRow::read`] takes.
macro_rules! select {
    () => {
        "SELECT session, base, parts, forgotten, staged, sum FROM history"
    };
}

/// The row of a history that has a base or is staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HistoryRow {
    pub(crate) session: SessionId,
    pub(crate) beginning: Beginning,
    pub(crate) staged: bool,
}

/// A damaged row, its id perhaps damaged too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DamagedRow {
    pub(crate) key: SessionId,
    /// Its columns and checksum, if each column has the right type.
    says: Option<(HistoryRow, i64)>,
}

impl DamagedRow {
    /// Returns true if only its id is damaged, and this is the correct one.
    pub(crate) fn is_of(&self, session: SessionId) -> bool {
        self.says.is_some_and(|(row, sum)| i64::from(HistoryRow { session, ..row }.sum()) == sum)
    }
}

impl HistoryRow {
    /// Returns all intact rows, by session id.
    pub(crate) fn all(connection: &Connection) -> Result<Vec<Self>, StoreError> {
        Self::all_and_damaged(connection).map(|(sound, _)| sound)
    }

    /// Returns all intact rows, and the damaged ones.
    pub(crate) fn all_and_damaged(
        connection: &Connection,
    ) -> Result<(Vec<Self>, Vec<DamagedRow>), StoreError> {
        let mut select = connection.prepare(concat!(select!(), " ORDER BY session"))?;
        let mut rows = select.query([])?;
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next()? {
            match Self::read(row)? {
                Some(row) => sound.push(row),
                None => {
                    let key = session_of(row.get_ref(0)?).ok_or(StoreError::DamagedHistory)?;
                    damaged.push(DamagedRow { key, says: Self::say(row)? });
                }
            }
        }
        Ok((sound, damaged))
    }

    /// Returns a session's row, if any; `Some(None)` if it is damaged.
    pub(crate) fn of(
        connection: &Connection,
        session: SessionId,
    ) -> Result<Option<Option<Self>>, StoreError> {
        let sql = concat!(select!(), " WHERE session = ?1");
        let mut select = connection.prepare_cached(sql)?;
        let id = session.0.as_bytes().as_slice();
        Ok(select.query_one([id], Self::read).optional()?)
    }

    /// Returns `None` for a damaged row.
    fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let said = Self::say(row)?.filter(|(found, sum)| *sum == i64::from(found.sum()));
        Ok(said.map(|(found, _)| found))
    }

    /// Returns a row unverified, with its checksum; `None` if a column has the wrong type.
    fn say(row: &Row<'_>) -> rusqlite::Result<Option<(Self, i64)>> {
        let Some(session) = session_of(row.get_ref(0)?) else { return Ok(None) };
        let revision = match row.get_ref(1)? {
            ValueRef::Null => None,
            ValueRef::Integer(revision) => Some(Revision(revision.cast_unsigned())),
            ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => return Ok(None),
        };
        let (
            ValueRef::Integer(parts),
            ValueRef::Integer(forgotten),
            ValueRef::Integer(staged),
            ValueRef::Integer(sum),
        ) = (row.get_ref(2)?, row.get_ref(3)?, row.get_ref(4)?, row.get_ref(5)?)
        else {
            return Ok(None);
        };
        let (parts, ends) = (parts.unsigned_abs(), parts < 0);
        let base = revision.map(|revision| Base { revision, parts, ends });
        let beginning = Beginning { base, forgotten: JournalId(forgotten.cast_unsigned()) };
        Ok(Some((Self { session, beginning, staged: staged != 0 }, sum)))
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

    /// Inserts or replaces the session's row.
    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
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

    pub(crate) fn delete(connection: &Connection, session: SessionId) -> rusqlite::Result<()> {
        connection
            .prepare_cached("DELETE FROM history WHERE session = ?1")?
            .execute([session.0.as_bytes().as_slice()])
            .map(drop)
    }
}

/// Returns a base's number of parts as stored: negative for an end.
fn parts(base: Option<Base>) -> i64 {
    let signed = |base: Base| {
        let parts = base.parts.cast_signed();
        if base.ends { parts.saturating_neg() } else { parts }
    };
    base.map_or(0, signed)
}

/// Returns the session in a column, if readable.
pub(crate) fn session_of(column: ValueRef<'_>) -> Option<SessionId> {
    let ValueRef::Blob(session) = column else { return None };
    Uuid::from_slice(session).ok().map(SessionId)
}

/// Visits all parts of a history's base. A missing part has empty bytes, which no frame has.
pub(crate) fn visit(
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
