//! Reads on a small pool of connections, separate from the writer's.
//!
//! A read transaction keeps checkpoints from emptying the write-ahead log, so it covers one page and is never held
//! while a callback runs. Only the replay is one long transaction.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, RwLock};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::bases;
use super::bases::HistoryRow;
use super::parts::REVISION_END;
use crate::sqlite::index::{Base, Histories};
use crate::sqlite::pins::PinId;
use crate::sqlite::schema::Source;
use crate::sqlite::segments;
use crate::{JournalId, PageMax, Record, StoreError, Stored};
use blackboard_board::{Revision, SessionId};

/// The maximum number of concurrent reads; others wait for the time of a page.
const READERS_MAX: usize = 4;

/// The maximum number of commits on a page, whatever its reader asks for: a page is one read transaction.
const PAGE_COMMITS_MAX: usize = 10_000;

/// The pool of connections that read pages. Connections are opened on first use.
#[derive(Debug)]
pub(crate) struct Readers {
    source: Source,
    /// The positions of all commits.
    pub(crate) histories: Arc<RwLock<Histories>>,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    free: Vec<Connection>,
    lent: usize,
}

impl Readers {
    pub(crate) fn new(source: Source, histories: Arc<RwLock<Histories>>) -> Self {
        Self { source, histories, pool: Mutex::default(), returned: Condvar::new() }
    }

    /// Runs a read in one transaction.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut lent = self.lend();
        let connection = match lent.connection.take() {
            Some(connection) => connection,
            None => self.source.connect()?,
        };
        let transaction = connection.unchecked_transaction()?;
        let done = read(&transaction);
        transaction.finish()?;
        // A connection is not reused after a failed read.
        lent.connection = done.is_ok().then_some(connection);
        done
    }

    fn lend(&self) -> Lent<'_> {
        let mut pool = self.pool.lock();
        while pool.lent >= READERS_MAX {
            self.returned.wait(&mut pool);
        }
        pool.lent += 1;
        Lent { readers: self, connection: pool.free.pop() }
    }

    /// Returns a page of a session's commits after a revision; with a pin, of the pinned commits.
    pub(crate) fn page(
        &self,
        session: SessionId,
        after: Revision,
        max: PageMax,
        pin: Option<PinId>,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        let max = PageMax { commits: max.commits.clamp(1, PAGE_COMMITS_MAX), ..max };
        let (compacted, places) = {
            let histories = self.histories.read();
            let compacted = histories.is_compacted_after(session, after);
            (compacted, histories.page(session, after, max.commits, pin)?)
        };
        let first = match places.first() {
            None if !compacted => return Ok(Vec::new()),
            first => first.map(|(revision, _)| *revision),
        };
        let page = self.read(|connection| {
            if compacted && first != Some(after.next()) {
                let mut page = segments::read_page(connection, session, after, max)?;
                // In pinned history, some journal rows lie between segments.
                page.retain(|(revision, _)| first.is_none_or(|first| *revision < first));
                if first.is_none() || !page.is_empty() {
                    return Ok(page);
                }
            }
            let found = read_commits(connection, session, &places, max.bytes);
            // A commit missing from the journal was compacted meanwhile, or is damaged.
            found.or_else(|damaged| match segments::read_page(connection, session, after, max) {
                Ok(page) if page.first().map(|(revision, _)| *revision) == first => Ok(page),
                Ok(_) | Err(_) => Err(damaged),
            })
        });
        // The page may have been forgotten meanwhile.
        self.histories.read().page(session, after, 0, pin)?;
        let page = page?;
        if page.is_empty() {
            return Err(StoreError::DamagedSegment { session: Some(session), after });
        }
        Ok(page)
    }

    /// Visits the parts of a base that is in force or pinned.
    pub(crate) fn visit_base(
        &self,
        session: SessionId,
        base: Base,
        pin: Option<PinId>,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let (table, revision) = (base.table(), base.revision);
        for part in 0..base.parts {
            let frame =
                self.read(|connection| Ok(table.read(connection, session, revision, part)?))?;
            let Some(frame) = frame else {
                self.histories.read().page(session, revision, 0, pin)?;
                return Err(StoreError::DamagedBase { session, revision, part });
            };
            if visit(&frame).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// A slot in the pool, released on drop, also after a panic.
struct Lent<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut pool = self.readers.pool.lock();
        pool.lent -= 1;
        pool.free.extend(self.connection.take());
        drop(pool);
        self.readers.returned.notify_one();
    }
}

/// Returns the frames of these commits, up to `bytes_max` bytes but at least one.
pub(crate) fn read_commits(
    connection: &Connection,
    session: SessionId,
    places: &[(Revision, JournalId)],
    bytes_max: usize,
) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
    let mut select = connection
        .prepare_cached("SELECT id, session, revision, frame FROM journal WHERE id = ?1")?;
    let (mut commits, mut bytes) = (Vec::new(), 0_usize);
    for (revision, journal_id) in places.iter().copied() {
        let mut rows = select.query([journal_id.0.cast_signed()])?;
        let damaged = StoreError::DamagedRow { journal_id };
        let Some(row) = rows.next()? else { return Err(damaged) };
        let (Some(whose), ValueRef::Blob(frame)) = (whose(row)?, row.get_ref(3)?) else {
            return Err(damaged);
        };
        if whose != (session, revision) {
            return Err(damaged);
        }
        bytes = bytes.saturating_add(frame.len());
        if bytes > bytes_max && !commits.is_empty() {
            break;
        }
        commits.push((revision, frame.to_vec()));
    }
    Ok(commits)
}

/// Visits all sessions' histories as of one moment. A long visit keeps checkpoints from emptying the log.
pub(crate) fn replay(
    source: &Source,
    visit: &mut dyn FnMut(Stored<'_>) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let connection = source.connect()?;
    let snapshot = connection.unchecked_transaction()?;
    let histories = HistoryRow::all(&snapshot)?;
    for history in histories.iter().filter(|history| !history.staged) {
        if bases::visit(&snapshot, history, visit)?.is_break() {
            return Ok(());
        }
    }
    let beginning = |history: &HistoryRow| match history.staged {
        true => REVISION_END,
        false => history.beginning.base.map(|base| base.revision).unwrap_or_default(),
    };
    let beginnings: HashMap<_, _> =
        histories.iter().map(|history| (history.session, beginning(history))).collect();
    let beginning = |session| beginnings.get(&session).copied().unwrap_or_default();
    if segments::visit(&snapshot, &beginning, visit)?.is_break() {
        return Ok(());
    }
    visit_journal(&snapshot, &histories, &mut |record| visit(Stored::Commit(record)))
}

/// Visits the uncompacted commits as of one moment.
pub(crate) fn replay_journal(
    source: &Source,
    visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let connection = source.connect()?;
    let snapshot = connection.unchecked_transaction()?;
    visit_journal(&snapshot, &HistoryRow::all(&snapshot)?, visit)
}

fn visit_journal(
    connection: &Connection,
    histories: &[HistoryRow],
    visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    // The last row of each session that is skipped.
    let skipped = |history: &HistoryRow| match history.staged {
        true => JournalId(u64::MAX),
        false => history.beginning.forgotten,
    };
    let skipped: HashMap<_, _> =
        histories.iter().map(|history| (history.session, skipped(history))).collect();
    let mut select =
        connection.prepare("SELECT id, session, revision, frame FROM journal ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let journal_id = journal_id(row)?;
        let whose = whose(row)?;
        if let Some((session, _)) = whose
            && skipped.get(&session).is_some_and(|last| journal_id <= *last)
        {
            continue;
        }
        let (Some((session, revision)), ValueRef::Blob(frame)) = (whose, row.get_ref(3)?) else {
            return Err(StoreError::DamagedRow { journal_id });
        };
        let record = Record { journal_id: Some(journal_id), session, revision, frame };
        if visit(record).is_break() {
            break;
        }
    }
    Ok(())
}

pub(crate) fn journal_id(row: &Row<'_>) -> rusqlite::Result<JournalId> {
    row.get(0).map(|id: i64| JournalId(id.cast_unsigned()))
}

/// Returns the session and revision in a row of the journal, if readable.
pub(crate) fn whose(row: &Row<'_>) -> rusqlite::Result<Option<(SessionId, Revision)>> {
    let (Some(session), ValueRef::Integer(revision)) =
        (bases::session_of(row.get_ref(1)?), row.get_ref(2)?)
    else {
        return Ok(None);
    };
    Ok(Some((session, Revision(revision.cast_unsigned()))))
}

#[cfg(test)]
mod tests;
