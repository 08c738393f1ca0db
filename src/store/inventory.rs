//! What a database has of each session's history when it is opened, and what of it is nobody's.

use rusqlite::Connection;

use super::bases::HistoryRow;
use super::histories::{Histories, Owner};
use super::housekeeping::Garbage;
use super::{JournalId, StoreError, reading, segments};

/// All of it.
pub(super) struct Inventory {
    pub(super) histories: Histories,
    pub(super) garbage: Garbage,
    /// The last row of the journal, 0 if it has none.
    pub(super) last: JournalId,
}

impl Inventory {
    pub(super) fn read(connection: &Connection) -> Result<Self, StoreError> {
        check_tree(connection)?;
        let (mut histories, mut last) = (Histories::default(), JournalId(0));
        let (mut forgotten, mut discarded) = (Vec::new(), Vec::new());
        for HistoryRow { session, beginning, staged } in HistoryRow::all(connection)? {
            // What nobody adopted until now nobody will.
            let owner = if staged { Owner::Discarded } else { Owner::Session };
            histories.begin(session, owner, beginning);
            discarded.extend(staged.then_some(session));
        }
        let mut settled = Vec::new();
        for (session, first, last) in segments::ranges(connection)? {
            histories.find_settled(session, last);
            settled.push((session, first));
        }
        let mut select = connection
            .prepare("SELECT id, session, revision, length(frame) FROM journal ORDER BY id")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let id = reading::journal_id(row)?;
            last = last.max(id);
            histories.add_journal_bytes(row.get::<_, i64>(3)?.cast_unsigned());
            // A row that does not say whose it is has no place; a replay reports it.
            if let Some((session, revision)) = reading::whose(row)?
                && !histories.find(session, revision, id)
            {
                forgotten.push(id);
            }
        }
        let garbage = Garbage::find(connection, &histories, forgotten, &settled, discarded)?;
        Ok(Self { histories, garbage, last })
    }
}

/// A damaged page may hide rows without an error, the last of a session too, which nothing else tells of. What is
/// settled need not be looked through: a summary tells how far that goes.
fn check_tree(connection: &Connection) -> Result<(), StoreError> {
    let found: String =
        connection.query_one("PRAGMA quick_check(journal)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(StoreError::DamagedTree { found }) }
}
