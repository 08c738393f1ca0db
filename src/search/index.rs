//! The index: a SQLite database with the words of each entry (FTS5, without the texts) and the place of each.

use std::collections::{HashMap, hash_map};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use uuid::Uuid;

use super::error::SearchError;
use super::query::Query;
use super::text::segmented;
use crate::board::{
    AgentName, Epoch, LogName, Revision, Seq, SessionId, SessionName, Timestamp, size,
};

/// The version of the file. A file of another version is made anew.
const VERSION: i64 = 1;

/// The tokenizer: words of letters, digits and combining marks, without case and accents.
pub(super) const TOKENIZER: &str =
    "tokenize = \"unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\"";

/// The maximum number of matches that are ranked, the last indexed first.
pub const RANKED_MAX: usize = 10_000;

/// The maximum number of matches that a query examines, those that the caller may not see included.
pub const EXAMINED_MAX: usize = 100_000;

/// The pages of the file that a connection keeps in memory, in KiB.
const CACHE_KIB: i64 = 8 << 10;

/// The size to which the file's log is cut when it begins anew.
const LOG_BYTES: i64 = 4 << 20;

/// The number of pages that are merged at once to erase words.
const ERASED_PAGES: i64 = 500;

/// The number of connections that are kept for queries.
const READERS_MAX: usize = 2;

/// The index of a data directory.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    epoch: Epoch,
    writer: Mutex<Connection>,
    readers: Mutex<Readers>,
}

/// Idle connections for queries. Those of an earlier file are closed when they come back.
#[derive(Debug, Default)]
struct Readers {
    idle: Vec<Connection>,
    generation: u64,
}

/// How far the index has followed a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The session's identity.
    pub session: SessionId,
    /// The revision whose entries are indexed.
    pub revision: Revision,
}

/// The memory of a session's position in a table by name, with a name of usual length.
pub(crate) const SESSION_BYTES: usize =
    size::hashed(size_of::<(SessionName, Position)>()) + size::shared(16);

/// A session within the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(i64);

/// An entry to be indexed.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Its log.
    pub log: &'a LogName,
    /// Its place in the log.
    pub seq: Seq,
    /// The time of the append.
    pub at: Timestamp,
    /// The author, if named.
    pub agent: Option<&'a AgentName>,
    /// Its text.
    pub text: &'a str,
}

/// A match, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The session.
    pub session: SessionName,
    /// The log.
    pub log: LogName,
    /// The entry.
    pub seq: Seq,
    /// The rank by BM25; higher is better.
    pub score: f64,
}

/// The selection among the matches.
pub struct Accept<'a> {
    /// Returns true for a session that is searched.
    pub session: &'a dyn Fn(&SessionName) -> bool,
    /// Returns true for a log that is searched.
    pub log: &'a dyn Fn(&LogName) -> bool,
    /// The author of the entries, if selected.
    pub agent: Option<&'a AgentName>,
    /// The time of the oldest entry, if selected.
    pub since: Option<Timestamp>,
}

impl std::fmt::Debug for Accept<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accept").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index of a store's epoch. A file that is damaged, of another version or of another epoch is made
    /// anew.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file can be neither opened nor made.
    pub fn open(path: &Path, epoch: Epoch) -> Result<Self, SearchError> {
        let connection = match existing(path, epoch) {
            Ok(Some(connection)) => connection,
            Ok(None) | Err(SearchError::Damaged) => made(path, epoch)?,
            Err(error) => return Err(error),
        };
        let (writer, readers) = (Mutex::new(connection), Mutex::default());
        Ok(Self { path: path.to_owned(), epoch, writer, readers })
    }

    /// Deletes the file and makes an empty one.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if that fails.
    pub fn reset(&self) -> Result<(), SearchError> {
        let mut writer = self.writer.lock();
        *writer = Connection::open_in_memory()?;
        let mut readers = self.readers.lock();
        readers.idle.clear();
        readers.generation += 1;
        *writer = made(&self.path, self.epoch)?;
        Ok(())
    }

    /// Returns how far the index has followed each session.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be read.
    pub fn positions(&self) -> Result<HashMap<SessionName, Position>, SearchError> {
        let writer = self.writer.lock();
        let mut select = writer.prepare("SELECT name, session, revision FROM sessions")?;
        let mut rows = select.query([])?;
        let mut positions = HashMap::new();
        while let Some(row) = rows.next()? {
            let (name, session, revision): (String, [u8; 16], i64) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let name = name.parse().map_err(|_| SearchError::Damaged)?;
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
        let transaction = writer.transaction().map_err(SearchError::from)?;
        let mut batch = Batch { connection: &transaction, has_removed: false };
        change(&mut batch)?;
        if batch.has_removed {
            let note = "UPDATE origin SET has_removed = TRUE WHERE NOT has_removed";
            transaction.execute(note, []).map_err(SearchError::from)?;
        }
        transaction.commit().map_err(SearchError::from)?;
        Ok(())
    }

    /// Frees the pages of the file that the writing connection keeps in memory.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite cannot.
    pub fn rest(&self) -> Result<(), SearchError> {
        Ok(self.writer.lock().release_memory()?)
    }

    /// Returns true if the file has words of entries that were removed.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be read.
    pub fn has_removed(&self) -> Result<bool, SearchError> {
        let writer = self.writer.lock();
        Ok(writer.query_row("SELECT has_removed FROM origin", [], |row| row.get(0))?)
    }

    /// Erases words of removed entries, a piece at a time. Returns true if there is more to do; the first piece of
    /// each pass is `begins`.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be written.
    pub fn erase(&self, begins: bool) -> Result<bool, SearchError> {
        let writer = self.writer.lock();
        let before = writer.total_changes();
        // A negative number of pages begins to merge all parts into one, which leaves out what was removed.
        let pages = if begins { -ERASED_PAGES } else { ERASED_PAGES };
        let mut merge =
            writer.prepare_cached("INSERT INTO words(words, rank) VALUES ('merge', ?)")?;
        merge.execute([pages])?;
        // SQLite's documentation: with fewer than two changes there was nothing to merge.
        if writer.total_changes() - before >= 2 {
            return Ok(true);
        }
        writer.execute("UPDATE origin SET has_removed = FALSE", [])?;
        // A query that still reads the log keeps it; the next pass cuts it.
        writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(false)
    }

    /// Returns the matches of a query that are accepted, best first; of equal ones, the last indexed first.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be read.
    pub fn search(&self, query: &Query, accept: &Accept<'_>) -> Result<Vec<Ranked>, SearchError> {
        let (idle, generation) = {
            let mut readers = self.readers.lock();
            (readers.idle.pop(), readers.generation)
        };
        let reader = match idle {
            Some(reader) => reader,
            None => opened(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        };
        let found = matches(&reader, query, accept)?;
        let mut readers = self.readers.lock();
        if readers.generation == generation && readers.idle.len() < READERS_MAX {
            readers.idle.push(reader);
        }
        Ok(found)
    }
}

/// A change of the index under way.
#[derive(Debug)]
pub struct Batch<'a> {
    connection: &'a Connection,
    has_removed: bool,
}

impl Batch<'_> {
    /// Returns the key of a session, which is empty if it is new.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be written.
    pub fn session(&mut self, name: &SessionName) -> Result<SessionKey, SearchError> {
        let sql = "SELECT id FROM sessions WHERE name = ?";
        let known = self.connection.prepare_cached(sql)?;
        if let Some(id) = id_of(known, name.as_str())? {
            return Ok(SessionKey(id));
        }
        let sql = "INSERT INTO sessions(name, session, revision) VALUES (?, zeroblob(16), 0)";
        self.connection.prepare_cached(sql)?.execute([name.as_str()])?;
        Ok(SessionKey(self.connection.last_insert_rowid()))
    }

    /// Notes how far a session was followed.
    ///
    /// # Errors
    ///
    /// As for [`session`](Self::session).
    pub fn reached(&mut self, key: SessionKey, at: Position) -> Result<(), SearchError> {
        let sql = "UPDATE sessions SET session = ?, revision = ? WHERE id = ?";
        let mut update = self.connection.prepare_cached(sql)?;
        update.execute(params![at.session.0.as_bytes(), signed(at.revision.0), key.0])?;
        Ok(())
    }

    /// Removes a session with its entries.
    ///
    /// # Errors
    ///
    /// As for [`session`](Self::session).
    pub fn forget(&mut self, name: &SessionName) -> Result<(), SearchError> {
        let key = self.session(name)?;
        self.clear(key)?;
        self.connection.prepare_cached("DELETE FROM sessions WHERE id = ?")?.execute([key.0])?;
        Ok(())
    }

    /// Removes all entries of a session.
    ///
    /// # Errors
    ///
    /// As for [`session`](Self::session).
    pub fn clear(&mut self, key: SessionKey) -> Result<(), SearchError> {
        self.remove_all("session = ?1", params![key.0])
    }

    /// Removes all entries of a log.
    ///
    /// # Errors
    ///
    /// As for [`session`](Self::session).
    pub fn clear_log(&mut self, key: SessionKey, log: &LogName) -> Result<(), SearchError> {
        let log = self.log(log)?;
        self.remove_all("session = ?1 AND log = ?2", params![key.0, log])
    }

    /// Removes the entries of a log from `first` to `last`.
    ///
    /// # Errors
    ///
    /// As for [`session`](Self::session).
    pub fn remove(
        &mut self,
        key: SessionKey,
        log: &LogName,
        first: Seq,
        last: Seq,
    ) -> Result<(), SearchError> {
        let log = self.log(log)?;
        let places = "session = ?1 AND log = ?2 AND seq BETWEEN ?3 AND ?4";
        self.remove_all(places, params![key.0, log, signed(first.0), signed(last.0)])
    }

    /// Indexes an entry, in place of what was indexed of it.
    ///
    /// # Errors
    ///
    /// As for [`session`](Self::session).
    pub fn put(&mut self, key: SessionKey, document: Document<'_>) -> Result<(), SearchError> {
        let Document { log, seq, at, agent, text } = document;
        let log = self.log(log)?;
        let sql = "SELECT id FROM entries WHERE session = ? AND log = ? AND seq = ?";
        let mut known = self.connection.prepare_cached(sql)?;
        let place = params![key.0, log, signed(seq.0)];
        let known: Option<i64> = known.query_row(place, |row| row.get(0)).optional()?;
        if let Some(id) = known {
            self.has_removed = true;
            for sql in ["DELETE FROM words WHERE rowid = ?", "DELETE FROM entries WHERE id = ?"] {
                self.connection.prepare_cached(sql)?.execute([id])?;
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        let agent = agent.map(|agent| self.agent(agent)).transpose()?;
        let sql = "INSERT INTO entries(session, log, seq, at, agent) VALUES (?, ?, ?, ?, ?)";
        let mut insert = self.connection.prepare_cached(sql)?;
        insert.execute(params![key.0, log, signed(seq.0), at.0, agent])?;
        let id = self.connection.last_insert_rowid();
        let mut insert =
            self.connection.prepare_cached("INSERT INTO words(rowid, text) VALUES (?, ?)")?;
        insert.execute(params![id, segmented(text)])?;
        Ok(())
    }

    fn remove_all(
        &mut self,
        places: &str,
        values: impl rusqlite::Params + Copy,
    ) -> Result<(), SearchError> {
        let words =
            format!("DELETE FROM words WHERE rowid IN (SELECT id FROM entries WHERE {places})");
        if self.connection.prepare_cached(&words)?.execute(values)? > 0 {
            let entries = format!("DELETE FROM entries WHERE {places}");
            self.connection.prepare_cached(&entries)?.execute(values)?;
            self.has_removed = true;
        }
        Ok(())
    }

    /// Returns the number of a log: those of the board come first, then the memories.
    fn log(&mut self, log: &LogName) -> Result<i64, SearchError> {
        if let Some((at, _)) = (0_i64..).zip(LogName::BOARD).find(|(_, board)| board == log) {
            return Ok(at);
        }
        let LogName::Memory(agent) = log else { return Err(SearchError::Damaged) };
        Ok(self.agent(agent)? + MEMORIES_FROM)
    }

    fn agent(&mut self, agent: &AgentName) -> Result<i64, SearchError> {
        let known = self.connection.prepare_cached("SELECT id FROM agents WHERE name = ?")?;
        if let Some(id) = id_of(known, agent.as_str())? {
            return Ok(id);
        }
        let mut insert = self.connection.prepare_cached("INSERT INTO agents(name) VALUES (?)")?;
        insert.execute([agent.as_str()])?;
        Ok(self.connection.last_insert_rowid())
    }
}

/// The number of the log of the memory of agent 0; rows begin with 1.
const MEMORIES_FROM: i64 = 3;

/// SQLite's integers are signed. No seq or revision is this large.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn id_of(
    mut statement: rusqlite::CachedStatement<'_>,
    name: &str,
) -> Result<Option<i64>, SearchError> {
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// Opens the file if it is an index of this version and epoch.
fn existing(path: &Path, epoch: Epoch) -> Result<Option<Connection>, SearchError> {
    if !path.exists() {
        return Ok(None);
    }
    let connection = opened(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version != VERSION {
        return Ok(None);
    }
    let of: [u8; 16] = connection.query_row("SELECT epoch FROM origin", [], |row| row.get(0))?;
    Ok((of == epoch.0.to_be_bytes()).then_some(connection))
}

/// Makes an empty index.
fn made(path: &Path, epoch: Epoch) -> Result<Connection, SearchError> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = opened(path, flags)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         BEGIN;
         CREATE TABLE origin(epoch BLOB NOT NULL, has_removed INTEGER NOT NULL);
         CREATE TABLE sessions(
             id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, session BLOB NOT NULL,
             revision INTEGER NOT NULL);
         CREATE TABLE agents(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
         CREATE TABLE entries(
             id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, log INTEGER NOT NULL,
             seq INTEGER NOT NULL, at INTEGER NOT NULL, agent INTEGER);
         CREATE UNIQUE INDEX places ON entries(session, log, seq);
         CREATE VIRTUAL TABLE words
             USING fts5(text, content = '', contentless_delete = 1, {TOKENIZER});
         PRAGMA user_version = {VERSION};
         COMMIT;"
    ))?;
    connection.execute("INSERT INTO origin VALUES (?, FALSE)", [epoch.0.to_be_bytes()])?;
    Ok(connection)
}

fn opened(path: &Path, flags: OpenFlags) -> Result<Connection, SearchError> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // The file is made anew after a loss; what it says must still be whole.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

fn matches(
    reader: &Connection,
    query: &Query,
    accept: &Accept<'_>,
) -> Result<Vec<Ranked>, SearchError> {
    let mut select = reader.prepare_cached(
        "SELECT entries.session, entries.log, entries.seq, entries.at, entries.agent, bm25(words)
         FROM words JOIN entries ON entries.id = words.rowid
         WHERE words MATCH ? ORDER BY words.rowid DESC",
    )?;
    let mut rows = select.query([query.expression()])?;
    let agent = match accept.agent {
        Some(agent) => {
            let known = reader.prepare_cached("SELECT id FROM agents WHERE name = ?")?;
            let Some(id) = id_of(known, agent.as_str())? else { return Ok(Vec::new()) };
            Some(id)
        }
        None => None,
    };
    let (mut sessions, mut logs) = (HashMap::new(), HashMap::new());
    let (mut found, mut examined) = (Vec::new(), 0);
    while found.len() < RANKED_MAX
        && examined < EXAMINED_MAX
        && let Some(row) = rows.next()?
    {
        examined += 1;
        let since = accept.since.is_none_or(|since| row.get(3).is_ok_and(|at: i64| at >= since.0));
        if !since || agent.is_some() && row.get::<_, Option<i64>>(4)? != agent {
            continue;
        }
        let (session, log): (i64, i64) = (row.get(0)?, row.get(1)?);
        let in_session = admitted(&mut sessions, session, || {
            Ok(session_name(reader, session)?.filter(|name| (accept.session)(name)))
        })?;
        let in_log = admitted(&mut logs, log, || {
            Ok(log_name(reader, log)?.filter(|name| (accept.log)(name)))
        })?;
        if in_session && in_log {
            let (seq, score): (i64, f64) = (row.get(2)?, row.get(5)?);
            found.push((session, log, Seq(seq.cast_unsigned()), -score));
        }
    }
    // The sort is stable: of equal scores, the last indexed comes first.
    found.sort_by(|a, b| b.3.total_cmp(&a.3));
    let ranked = found.into_iter().filter_map(|(session, log, seq, score)| {
        let (session, log) = (sessions.get(&session)?.clone()?, logs.get(&log)?.clone()?);
        Some(Ranked { session, log, seq, score })
    });
    Ok(ranked.collect())
}

/// Returns true if the caller admits a name, which is looked up once.
fn admitted<T>(
    known: &mut HashMap<i64, Option<T>>,
    id: i64,
    look_up: impl FnOnce() -> Result<Option<T>, SearchError>,
) -> Result<bool, SearchError> {
    Ok(match known.entry(id) {
        hash_map::Entry::Occupied(place) => place.get().is_some(),
        hash_map::Entry::Vacant(place) => place.insert(look_up()?).is_some(),
    })
}

fn session_name(reader: &Connection, id: i64) -> Result<Option<SessionName>, SearchError> {
    let mut select = reader.prepare_cached("SELECT name FROM sessions WHERE id = ?")?;
    let name: Option<String> = select.query_row([id], |row| row.get(0)).optional()?;
    Ok(name.and_then(|name| name.parse().ok()))
}

fn log_name(reader: &Connection, id: i64) -> Result<Option<LogName>, SearchError> {
    if let Some(board) = usize::try_from(id).ok().and_then(|at| LogName::BOARD.get(at)) {
        return Ok(Some(board.clone()));
    }
    let mut select = reader.prepare_cached("SELECT name FROM agents WHERE id = ?")?;
    let agent = id - MEMORIES_FROM;
    let name: Option<String> = select.query_row([agent], |row| row.get(0)).optional()?;
    Ok(name.and_then(|name| name.parse().ok()).map(LogName::Memory))
}
