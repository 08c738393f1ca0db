//! Parts of a whole board, a row each: of a base or a snapshot.

use rusqlite::{Connection, OptionalExtension as _, Row};

use blackboard_board::{Revision, SessionId};

/// A table of parts: session, revision, number from 0, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    insert: &'static str,
    first: &'static str,
    delete: &'static str,
    read: &'static str,
    revisions: &'static str,
    newest: &'static str,
    of_session: &'static str,
}

macro_rules! table {
    ($name:literal) => {
        Table {
            insert: concat!("INSERT INTO ", $name, " VALUES (?1, ?2, ?3, ?4)"),
            first: concat!(
                "SELECT rowid, length(frame) FROM ",
                $name,
                " WHERE session = ?1 AND revision >= ?2 AND revision < ?3
                  ORDER BY revision, part LIMIT 1"
            ),
            delete: concat!("DELETE FROM ", $name, " WHERE rowid = ?1"),
            read: concat!(
                "SELECT frame FROM ",
                $name,
                " WHERE session = ?1 AND revision = ?2 AND part = ?3"
            ),
            revisions: concat!(
                "SELECT DISTINCT session, revision FROM ",
                $name,
                " ORDER BY session, revision"
            ),
            newest: concat!(
                "SELECT max(revision) FROM ",
                $name,
                " WHERE session = ?1 AND revision <= ?2"
            ),
            of_session: concat!("SELECT DISTINCT revision FROM ", $name, " WHERE session = ?1"),
        }
    };
}

pub(crate) const BASE: Table = table!("base");
pub(crate) const SNAPSHOT: Table = table!("snapshot");
/// The bases of deleted sessions.
pub(crate) const END: Table = table!("ending");

/// A revision above all stored ones: a column holds no higher number.
pub(crate) const REVISION_END: Revision = Revision(i64::MAX.cast_unsigned());

impl Table {
    /// Stores these parts, numbered from `from`.
    pub(crate) fn write(
        self,
        connection: &Connection,
        session: SessionId,
        revision: Revision,
        from: u64,
        parts: &[Vec<u8>],
    ) -> rusqlite::Result<()> {
        let mut insert = connection.prepare_cached(self.insert)?;
        for (part, frame) in (from..).zip(parts) {
            insert.execute((
                session.0.as_bytes().as_slice(),
                revision.0.cast_signed(),
                part.cast_signed(),
                frame,
            ))?;
        }
        Ok(())
    }

    /// Deletes the first part at or above `from` and below another revision. Returns its length, if any.
    pub(crate) fn delete_first(
        self,
        connection: &Connection,
        session: SessionId,
        from: Revision,
        below: Revision,
    ) -> rusqlite::Result<Option<u64>> {
        let of = (session.0.as_bytes().as_slice(), from.0.cast_signed(), below.0.cast_signed());
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()));
        let first: Option<(i64, u64)> =
            connection.prepare_cached(self.first)?.query_one(of, read).optional()?;
        let Some((row, bytes)) = first else { return Ok(None) };
        connection.prepare_cached(self.delete)?.execute([row])?;
        Ok(Some(bytes))
    }

    /// Deletes all parts of a session that has few.
    pub(crate) fn delete_few(
        self,
        connection: &Connection,
        session: SessionId,
    ) -> rusqlite::Result<()> {
        while self.delete_first(connection, session, Revision(0), REVISION_END)?.is_some() {}
        Ok(())
    }

    /// Returns the bytes of a part, if it is stored.
    pub(crate) fn read(
        self,
        connection: &Connection,
        session: SessionId,
        revision: Revision,
        part: u64,
    ) -> rusqlite::Result<Option<Vec<u8>>> {
        let of = (session.0.as_bytes().as_slice(), revision.0.cast_signed(), part.cast_signed());
        connection.prepare_cached(self.read)?.query_one(of, |row| row.get(0)).optional()
    }

    /// Returns the revisions with parts. Rows without a readable session are skipped.
    pub(crate) fn revisions(
        self,
        connection: &Connection,
    ) -> rusqlite::Result<Vec<(SessionId, Revision)>> {
        let mut select = connection.prepare(self.revisions)?;
        let mut rows = select.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let revision = Revision(row.get::<_, i64>(1)?.cast_unsigned());
            found.extend(
                super::bases::session_of(row.get_ref(0)?).map(|session| (session, revision)),
            );
        }
        Ok(found)
    }

    /// Returns the revisions with parts of this session.
    pub(crate) fn of_session(
        self,
        connection: &Connection,
        session: SessionId,
    ) -> rusqlite::Result<Vec<Revision>> {
        let mut select = connection.prepare_cached(self.of_session)?;
        let revision = |row: &Row<'_>| row.get(0).map(|found: i64| Revision(found.cast_unsigned()));
        select.query_map([session.0.as_bytes().as_slice()], revision)?.collect()
    }

    /// Returns the last revision with parts, up to this one.
    pub(crate) fn newest(
        self,
        connection: &Connection,
        session: SessionId,
        up_to: Revision,
    ) -> rusqlite::Result<Option<Revision>> {
        let of = (session.0.as_bytes().as_slice(), up_to.min(REVISION_END).0.cast_signed());
        let newest: Option<i64> =
            connection.prepare_cached(self.newest)?.query_one(of, |row| row.get(0))?;
        Ok(newest.map(|revision| Revision(revision.cast_unsigned())))
    }
}
