//! The index: a SQLite database with the words of each entry, without the texts.
//!
//! Its rows are kept apart by session and log, and a search reads those in its reach alone: what a caller may not read
//! changes neither an answer nor the work for it.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};
use uuid::Uuid;

use super::batch::{Batch, Position, SessionKey};
use super::error::SearchError;
use super::inversion::Corpus;
use super::log_key::log_of;
use super::matching::Matching;
use super::query::Query;
use super::reach::Reach;
use super::segment::row::{SEGMENT, Segment, SegmentRow};
use super::segment::{SegmentReader, TABLES};
use super::words::{QueryWords, WORDS_VERSION, Words};
use blackboard_board::{Epoch, LogName, Revision, Seq, SessionId, SessionName, size};
use blackboard_owner_files as owner_files;

/// The version of the file and of the words in it. A file of another version is made anew.
const VERSION: i64 = 5_000 + WORDS_VERSION;

/// The maximum number of matches that are ranked: the best ones.
pub const RANKED_MAX: usize = 10_000;

/// The maximum number of occurrences of its words that a query reads, within its reach.
pub const EXAMINED_MAX: usize = 4_000_000;

/// The pages of the file that a connection keeps in memory, in KiB: for queries, all inner pages and the index of words of
/// some million entries.
const CACHE_KIB: i64 = 24 << 10;

/// The size to which the file's log is cut when it begins anew.
const LOG_BYTES: i64 = 4 << 20;

/// The number of statements that a connection keeps: more than writing has.
const STATEMENTS: usize = 32;

/// The number of connections that are kept for queries.
const READERS_MAX: usize = 2;

/// What SQLite adds to the name of the file for those beside it.
const FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// The index of a data directory.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    writer: Mutex<Writer>,
    readers: Mutex<Readers>,
}

/// The writing connection, the tokenizer of texts, and room for their words.
#[derive(Debug)]
struct Writer {
    connection: Connection,
    words: Words,
    corpus: Corpus,
}

/// Idle connections for queries.
#[derive(Debug, Default)]
struct Readers {
    idle: Vec<Reader>,
    is_closed: bool,
}

/// A connection for queries, and the tokenizer of queries.
#[derive(Debug)]
struct Reader {
    connection: Connection,
    words: Words,
}

/// The memory of a session's position in a table by name, with a name of usual length.
pub const SESSION_BYTES: usize =
    size::hashed(size_of::<(SessionName, Position)>()) + size::shared(16);

/// A match.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The session.
    pub session: SessionName,
    /// The log.
    pub log: LogName,
    /// The entry.
    pub seq: Seq,
    /// The rank by the entry's text alone; higher is better.
    pub score: f64,
}

/// The matches of a query, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matches {
    /// At most [`RANKED_MAX`].
    pub ranked: Vec<Ranked>,
    /// True if there may be more within reach.
    pub is_cut: bool,
}

impl Index {
    /// Opens the index of a store's epoch. A file of another version or of another epoch is made anew.
    ///
    /// # Errors
    ///
    /// [`SearchError::Damaged`], or [`SearchError`] if the file can be neither opened nor made.
    pub fn open(path: &Path, epoch: Epoch) -> Result<Self, SearchError> {
        match existing(path, epoch)? {
            Some(connection) => Self::of(path, connection),
            None => Self::make(path, epoch),
        }
    }

    /// Deletes the file and makes an empty one. An index that had it open must be closed.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if that fails.
    pub fn make(path: &Path, epoch: Epoch) -> Result<Self, SearchError> {
        Self::of(path, made(path, epoch)?)
    }

    fn of(path: &Path, connection: Connection) -> Result<Self, SearchError> {
        let writer = Writer { connection, words: Words::new()?, corpus: Corpus::default() };
        let (writer, readers) = (Mutex::new(writer), Mutex::default());
        Ok(Self { path: path.to_owned(), writer, readers })
    }

    /// Closes the file for writing, and for queries that come. The last connection that can write removes the log by its
    /// name when it closes, so this comes before another file of the name.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite cannot.
    pub fn close(&self) -> Result<(), SearchError> {
        let mut readers = self.readers.lock();
        readers.is_closed = true;
        readers.idle.clear();
        drop(readers);
        self.writer.lock().connection = Connection::open_in_memory()?;
        Ok(())
    }

    /// Returns how far the index has followed each session.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be read.
    pub fn positions(&self) -> Result<HashMap<SessionName, Position>, SearchError> {
        let writer = self.writer.lock();
        let sql = "SELECT name, session, revision FROM sessions";
        let mut select = writer.connection.prepare(sql)?;
        let mut rows = select.query([])?;
        let mut positions = HashMap::new();
        while let Some(row) = rows.next()? {
            let (name, session, revision): (Vec<u8>, [u8; 16], i64) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let name = SessionName::from_bytes(&name).ok_or(SearchError::Damaged)?;
            let session = SessionId(Uuid::from_bytes(session));
            positions
                .insert(name, Position { session, revision: Revision(revision.cast_unsigned()) });
        }
        Ok(positions)
    }

    /// Changes the index: all that `change` does, or nothing if it fails.
    ///
    /// # Errors
    ///
    /// The error of `change`, or [`SearchError`].
    pub fn write<E: From<SearchError>>(
        &self,
        change: impl FnOnce(&mut Batch<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut writer = self.writer.lock();
        let Writer { connection, words, corpus } = &mut *writer;
        let transaction = connection.transaction().map_err(SearchError::from)?;
        let mut batch = Batch::new(&transaction, words, corpus);
        change(&mut batch)?;
        batch.finish()?;
        transaction.commit().map_err(SearchError::from)?;
        Ok(())
    }

    /// Frees what writing keeps in memory: pages of the file, and room for words.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite cannot.
    pub fn rest(&self) -> Result<(), SearchError> {
        let mut writer = self.writer.lock();
        writer.corpus = Corpus::default();
        Ok(writer.connection.release_memory()?)
    }

    /// Returns true if the file has words of entries that were removed, or segments to merge.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be read.
    pub fn is_untidy(&self) -> Result<bool, SearchError> {
        let writer = self.writer.lock();
        let sql = "SELECT EXISTS (SELECT 1 FROM untidy)";
        Ok(writer.connection.query_row(sql, [], |row| row.get(0))?)
    }

    /// Erases words of removed entries and merges segments, one log at a time. Returns true if there is more to do.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be written.
    pub fn tidy(&self) -> Result<bool, SearchError> {
        let mut writer = self.writer.lock();
        let Writer { connection, words, corpus } = &mut *writer;
        let transaction = connection.transaction()?;
        let more = Batch::new(&transaction, words, corpus).tidy()?;
        transaction.commit()?;
        if !more {
            // A query that still reads the log keeps it; the next pass cuts it.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
        Ok(more)
    }

    /// Returns the matches of a query within reach, best first; of equal ones, the newest first. `goes_on` is asked
    /// between segments.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be read, or [`SearchError::Ended`] if the search does not go on.
    pub fn search(
        &self,
        query: &Query,
        reach: &Reach,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Matches, SearchError> {
        let reader = self.reader()?;
        let words = reader.words.query(query)?;
        let found = found(&reader.connection, &words, reach, goes_on)?;
        self.give_back(reader)?;
        Ok(found)
    }

    fn reader(&self) -> Result<Reader, SearchError> {
        let mut readers = self.readers.lock();
        if readers.is_closed {
            return Err(SearchError::Closed);
        }
        if let Some(idle) = readers.idle.pop() {
            return Ok(idle);
        }
        // Opened under the lock: once the index is closed, the name is another file's.
        let connection = opened(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        Ok(Reader { connection, words: Words::new()? })
    }

    fn give_back(&self, reader: Reader) -> Result<(), SearchError> {
        let mut readers = self.readers.lock();
        if readers.is_closed {
            return Err(SearchError::Closed);
        }
        if readers.idle.len() < READERS_MAX {
            readers.idle.push(reader);
        }
        Ok(())
    }
}

/// Opens the file if it is an index of this version and epoch.
fn existing(path: &Path, epoch: Epoch) -> Result<Option<Connection>, SearchError> {
    if !path.exists() {
        return Ok(None);
    }
    let files = FILES.map(|suffix| beside(path, suffix));
    if files.iter().any(|file| file.is_dir()) {
        return Err(SearchError::Damaged);
    }
    files.iter().for_each(|file| owner_files::narrow(file));
    let connection = opened(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version != VERSION {
        return Ok(None);
    }
    let of: [u8; 16] = connection.query_row("SELECT epoch FROM origin", [], |row| row.get(0))?;
    Ok((of == epoch.0.to_be_bytes()).then_some(connection))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push(suffix);
    file.into()
}

/// Makes an empty index.
fn made(path: &Path, epoch: Epoch) -> Result<Connection, SearchError> {
    for suffix in FILES {
        owner_files::remove(&beside(path, suffix))?;
    }
    // The files beside it inherit the mode.
    owner_files::make_file(path)?;
    let connection = opened(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         BEGIN;
         CREATE TABLE origin(epoch BLOB NOT NULL, last_segment INTEGER NOT NULL);
         CREATE TABLE sessions(
             id INTEGER PRIMARY KEY AUTOINCREMENT, name BLOB NOT NULL UNIQUE, session BLOB NOT NULL,
             revision INTEGER NOT NULL);
         CREATE TABLE segments(
             session INTEGER NOT NULL, log TEXT NOT NULL, id INTEGER NOT NULL, first_seq INTEGER NOT NULL,
             last_seq INTEGER NOT NULL, words INTEGER NOT NULL, newest INTEGER NOT NULL, dead BLOB NOT NULL,
             PRIMARY KEY (session, log, id)) WITHOUT ROWID;
         CREATE TABLE untidy(
             session INTEGER NOT NULL, log TEXT NOT NULL, PRIMARY KEY (session, log)) WITHOUT ROWID;
         {TABLES}
         PRAGMA user_version = {VERSION};
         COMMIT;"
    ))?;
    connection.execute("INSERT INTO origin VALUES (?, 0)", [epoch.0.to_be_bytes()])?;
    Ok(connection)
}

fn opened(path: &Path, flags: OpenFlags) -> Result<Connection, SearchError> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // A plan by the values of a query would be made anew for each one.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // The file is made anew after a loss; what it says must still be whole.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

/// A segment within reach.
struct Reached {
    session: SessionName,
    log: LogName,
    segment: Segment,
}

/// Returns the segments within reach, those with the newest entries first.
fn reached(reader: &Connection, reach: &Reach) -> Result<Vec<Reached>, SearchError> {
    let mut all = Vec::new();
    let names = "SELECT id, name FROM sessions WHERE name >= ? AND name < ? ORDER BY name";
    let segments = format!("{SEGMENT} WHERE session = ? AND log >= ? AND log < ?");
    let (mut names, mut segments) =
        (reader.prepare_cached(names)?, reader.prepare_cached(&segments)?);
    let logs = reach.log_ranges();
    for (from, to) in reach.name_ranges() {
        let mut rows = names.query(params![from, to])?;
        while let Some(row) = rows.next()? {
            let name = row.get_ref(1)?.as_blob().map_err(|_| SearchError::Damaged)?;
            let session = SessionName::from_bytes(name).ok_or(SearchError::Damaged)?;
            if !(reach.admits)(&session) {
                continue;
            }
            let key = SessionKey(row.get(0)?);
            for (from, to) in &logs {
                for row in segments.query_map(params![key.0, from, to], SegmentRow::read)? {
                    let row = row?;
                    let log = log_of(&row.log).ok_or(SearchError::Damaged)?;
                    let (session, segment) = (session.clone(), row.segment()?);
                    all.push(Reached { session, log, segment });
                }
            }
        }
    }
    all.sort_by(|a, b| {
        let newest = b.segment.newest.cmp(&a.segment.newest);
        newest.then_with(|| {
            (&a.session, &a.log, a.segment.id).cmp(&(&b.session, &b.log, b.segment.id))
        })
    });
    Ok(all)
}

/// A match before it is ranked.
struct Candidate {
    reached: usize,
    seq: u64,
    at: i64,
    score: f64,
}

impl Candidate {
    /// Orders by score; of equal ones the newest comes first.
    fn order(&self, other: &Self, all: &[Reached]) -> Ordering {
        let place =
            |one: &Self| all.get(one.reached).map(|reached| (&reached.session, &reached.log));
        let by_score = other.score.total_cmp(&self.score).then(other.at.cmp(&self.at));
        by_score.then_with(|| place(self).cmp(&place(other))).then(other.seq.cmp(&self.seq))
    }
}

fn found(
    reader: &Connection,
    words: &QueryWords,
    reach: &Reach,
    goes_on: &dyn Fn() -> bool,
) -> Result<Matches, SearchError> {
    // All is read as of one moment: a merge in between would take a segment away.
    let reader = reader.unchecked_transaction()?;
    let all = reached(&reader, reach)?;
    let mut matching = Matching::new(words, EXAMINED_MAX);
    let (mut candidates, mut is_cut) = (Vec::new(), false);
    for (at, one) in all.iter().enumerate() {
        if !goes_on() {
            return Err(SearchError::Ended);
        }
        if matching.is_spent() {
            is_cut = true;
            break;
        }
        let mut segment = SegmentReader::new(&reader, one.segment.id);
        let found = matching.matches(&segment)?;
        for (index, document) in found.documents.iter().enumerate() {
            let filed = segment.document(*document)?;
            let is_wanted = reach.since.is_none_or(|since| filed.at >= since.0)
                && reach.author_in(&one.log).is_none_or(|author| *filed.agent == *author)
                && !one.segment.dead.has(filed.seq);
            if is_wanted {
                let (seq, score) = (filed.seq, found.score(index, filed.class));
                candidates.push(Candidate { reached: at, seq, at: filed.at, score });
            }
        }
        if candidates.len() > 2 * RANKED_MAX {
            candidates.sort_unstable_by(|a, b| a.order(b, &all));
            candidates.truncate(RANKED_MAX);
            is_cut = true;
        }
    }
    candidates.sort_unstable_by(|a, b| a.order(b, &all));
    is_cut |= candidates.len() > RANKED_MAX;
    candidates.truncate(RANKED_MAX);
    let ranked = candidates.into_iter().filter_map(|Candidate { reached, seq, score, .. }| {
        let Reached { session, log, .. } = all.get(reached)?;
        Some(Ranked { session: session.clone(), log: log.clone(), seq: Seq(seq), score })
    });
    Ok(Matches { ranked: ranked.collect(), is_cut })
}

#[cfg(test)]
mod tests;
