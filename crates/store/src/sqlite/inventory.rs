//! Inventory of a database on opening: each session's history, and orphaned rows.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode};

use super::deletion;
use super::deletion::Garbage;
use super::index::{Histories, Owner};
use super::rows::bases::{DamagedRow, HistoryRow};
use super::rows::{parts, read};
use super::schema::Source;
use super::{segments, session_names};
use crate::{IsOver, JournalId, NameRow, StoreError};
use blackboard_board::{Revision, SessionId};

/// The number of SQLite's steps between two checks for cancellation.
const STEPS_PER_LOOK: i32 = 10_000;

/// The histories and garbage of a database.
pub(crate) struct Inventory {
    pub(crate) histories: Histories,
    pub(crate) garbage: Garbage,
    /// The last id of the journal, deleted rows included; 0 if it never had any.
    pub(crate) last: JournalId,
}

impl Inventory {
    pub(crate) fn read(connection: &Connection) -> Result<Self, StoreError> {
        check_tree(connection)?;
        let (mut histories, mut last) = (Histories::default(), deletion::mark(connection)?);
        let (mut forgotten, mut discarded) = (Vec::new(), Vec::new());
        let (sound, damaged) = HistoryRow::all_and_damaged(connection)?;
        for HistoryRow { session, beginning, staged } in sound.iter().copied() {
            // No run adopts a staged history after a restart.
            let owner = if staged { Owner::Discarded } else { Owner::Session };
            histories.begin(session, owner, beginning);
            discarded.extend(staged.then_some(session));
        }
        let mut compacted = Vec::new();
        for (session, first, last) in segments::ranges(connection)? {
            histories.find_compacted(session, last);
            compacted.push((session, first));
        }
        let mut select = connection
            .prepare("SELECT id, session, revision, length(frame) FROM journal ORDER BY id")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let id = read::journal_id(row)?;
            last = last.max(id);
            histories.add_journal_bytes(row.get::<_, i64>(3)?.cast_unsigned());
            // A row without a readable session has no place; a replay reports it.
            if let Some((session, revision)) = read::whose(row)?
                && !histories.find(session, revision, id)
            {
                forgotten.push(id);
            }
        }
        for row in damaged {
            set_damaged(connection, &mut histories, &sound, row)?;
        }
        for NameRow { session, name } in session_names::all(connection)? {
            name.into_iter().for_each(|name| histories.find_name(session, &name));
        }
        let garbage = Garbage::find(connection, &histories, forgotten, &compacted, discarded)?;
        Ok(Self { histories, garbage, last })
    }
}

/// Marks the session of a damaged row. Other sessions are not in doubt; without other data under a similar id it
/// fails.
fn set_damaged(
    connection: &Connection,
    histories: &mut Histories,
    sound: &[HistoryRow],
    row: DamagedRow,
) -> Result<(), StoreError> {
    let mut known: HashMap<SessionId, Revision> = HashMap::new();
    let mut found = |session: SessionId, head: Revision| {
        if row.key.is_near(session) {
            let known = known.entry(session).or_default();
            *known = head.max(*known);
        }
    };
    histories.sessions().iter().for_each(|stored| found(stored.session, stored.head));
    sound.iter().for_each(|row| found(row.session, Revision::default()));
    for table in [parts::BASE, parts::END] {
        table.revisions(connection)?.into_iter().for_each(|(session, head)| found(session, head));
    }
    for NameRow { session, name } in session_names::all(connection)? {
        if name.is_some() {
            found(session, Revision::default());
        }
    }
    if known.keys().any(|session| row.is_of(*session)) {
        known.retain(|session, _| row.is_of(*session));
    } else if known.contains_key(&row.key) {
        known.retain(|session, _| *session == row.key);
    }
    if known.is_empty() {
        return Err(StoreError::DamagedHistory);
    }
    for (session, head) in known {
        // A sound row of the same session was written after this one was damaged.
        if !sound.iter().any(|row| row.session == session) {
            histories.set_damaged(session, row.key, head);
        }
    }
    Ok(())
}

/// Checks the journal's pages: a damaged page may hide rows without an error, also a session's last, which no other
/// row reveals. Compacted commits need no check: a summary has their last revision.
fn check_tree(connection: &Connection) -> Result<(), StoreError> {
    let found: String =
        connection.query_one("PRAGMA quick_check(journal)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(StoreError::DamagedTree { found }) }
}

/// Returns SQLite's findings in the whole database, including its indexes and free pages.
pub(crate) fn misfits(source: &Source, is_over: &IsOver) -> Result<Vec<String>, StoreError> {
    let (mut connection, is_over) = (source.connect()?, Arc::clone(is_over));
    connection.progress_handler(STEPS_PER_LOOK, Some(move || is_over()))?;
    let mut check = connection.prepare("PRAGMA main.integrity_check")?;
    let found = check.query_map([], |row| row.get(0)).and_then(Iterator::collect);
    let found: Vec<String> = match found {
        Ok(found) => found,
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => return Err(StoreError::Closed),
            // The check cannot continue beyond this page.
            Some(ErrorCode::DatabaseCorrupt) => vec![error.to_string()],
            Some(_) | None => return Err(error.into()),
        },
    };
    // One result may contain several findings, under a heading for the database.
    let lines = found.iter().flat_map(|found| found.lines());
    Ok(lines.filter(|line| *line != "ok" && !line.starts_with("***")).map(str::to_owned).collect())
}
