//! Salvage of a damaged store: its readable rows, copied into a new one.
//!
//! The damaged store is not changed: copies of its database and log are read. Beyond an unreadable place in a table,
//! the first readable key is sought. Frames are copied unchecked. Caches are left out, except summaries.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params_from_iter};
use uuid::Uuid;

use crate::blobs::{digest_of, list, write_synced};
use crate::files::disk::{create_dir, sync_dir};
use crate::files::lock::Lock;
use crate::sqlite::rows::bases::{HistoryRow, session_of};
use crate::sqlite::schema::{self, PAGE_BYTES};
use crate::sqlite::wal::repair::mend;
use crate::sqlite::{DATABASE, deletion, epoch, last_commit};
use crate::{StoreError, blobs};
use blackboard_board::Digest;

/// The directory of the copies while they are read.
const SCRATCH: &str = "scratch";

/// The first bytes of a database: its magic and page size.
const MAGIC: [u8; 18] = *b"SQLite format 3\0\x10\x00";

/// The bytes after the read and write versions: no reserved space, and three fractions.
const FRACTIONS: [u8; 4] = [0, 64, 32, 32];

/// The length of the header up to the end of both.
const HEADER_BYTES: usize = 24;

/// The offset of the number of pages.
const PAGES_AT: u64 = 28;

/// The maximum number of missing pages: a higher count in the header is taken for damaged.
const PAGES_LOST_MAX: u64 = 1 << 28;

const EPOCH_BYTES: i64 = 16;

/// The parts of a damaged store that could not be salvaged.
#[derive(Debug, Default)]
pub struct Wreckage {
    /// Unreadable or damaged places, one sentence each.
    pub places: Vec<String>,
    /// The number of damaged or unreadable images.
    pub images: usize,
}

/// The key by which the rows of a table are found.
#[derive(Clone, Copy)]
enum Key {
    Rowid,
    /// The first column, of sixteen bytes.
    Id,
}

struct Table {
    name: &'static str,
    key: Key,
}

/// All tables of a store except snapshots; a store of an earlier format may lack some.
const TABLES: [Table; 8] = [
    Table { name: "journal", key: Key::Rowid },
    Table { name: "segment", key: Key::Rowid },
    Table { name: "base", key: Key::Rowid },
    Table { name: "ending", key: Key::Rowid },
    Table { name: "session", key: Key::Rowid },
    Table { name: "name", key: Key::Id },
    Table { name: "history", key: Key::Id },
    Table { name: "token", key: Key::Id },
];

/// Copies everything readable of the store in `from` into a new store in `to`, an empty directory.
///
/// # Errors
/// [`StoreError::InUse`] while a server holds `from`, or the reason nothing at all can be read or written.
pub fn take_out(from: &Path, to: &Path) -> Result<Wreckage, StoreError> {
    let _lock = Lock::take_if_there(from)?;
    let scratch = to.join(SCRATCH);
    create_dir(&scratch)?;
    let database = scratch.join(DATABASE);
    copy(&from.join(DATABASE), &database)?;
    let header = mend_header(&database).map_err(StoreError::io(&database))?;
    let cut_off = fill_up(&database).map_err(StoreError::io(&database))?;
    let log = database.with_extension("db-wal");
    let mut wreckage = Wreckage::default();
    wreckage.places.extend(header);
    wreckage.places.extend(cut_off);
    if copy(&from.join(DATABASE).with_extension("db-wal"), &log).is_ok() {
        let frames = mend(&log).map_err(StoreError::io(&log))?;
        let told =
            (frames > 0).then(|| format!("{frames} frames of the write-ahead log are damaged"));
        wreckage.places.extend(told);
    }
    let new = to.join(DATABASE);
    drop(schema::open(&new, None, schema::STEPS)?);
    {
        let wreck = schema::open_as_is(&database)?;
        wreckage.places.extend(schema::unlike(&wreck, &from.join(DATABASE))?);
        let mut rows =
            Rows { wreck: &wreck, new: schema::open_as_is(&new)?, wreckage: &mut wreckage };
        rows.new.execute_batch("PRAGMA journal_mode = MEMORY; BEGIN")?;
        for table in &TABLES {
            rows.take(table)?;
        }
        rows.raise_mark()?;
        rows.find_missing(from)?;
        rows.new.execute_batch("COMMIT")?;
    }
    let written = File::open(&new).and_then(|file| file.sync_all());
    written.map_err(StoreError::io(&new))?;
    fs::remove_dir_all(&scratch).map_err(StoreError::io(&scratch))?;
    take_blobs(&from.join("blobs"), &to.join("blobs"), &mut wreckage)?;
    sync_dir(to)?;
    Ok(wreckage)
}

fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::copy(from, to).map(drop).map_err(StoreError::io(from))
}

/// Repairs the constant bytes of the header. Returns the damage found.
fn mend_header(database: &Path) -> io::Result<Vec<String>> {
    let file = OpenOptions::new().read(true).write(true).open(database)?;
    let (mut header, mut wrong) = ([0; HEADER_BYTES], Vec::new());
    if file.metadata()?.len() < PAGE_BYTES {
        return Ok(wrong);
    }
    file.read_exact_at(&mut header, 0)?;
    let due = MAGIC
        .iter()
        .enumerate()
        .chain(FRACTIONS.iter().enumerate().map(|(at, byte)| (at + 20, byte)));
    let mut is_changed = false;
    for (at, byte) in due {
        is_changed |= header.get(at) != Some(byte);
        header.iter_mut().skip(at).take(1).for_each(|found| *found = *byte);
    }
    if is_changed {
        file.write_all_at(&header, 0)?;
        wrong.push("the header of the database is damaged".to_owned());
    }
    Ok(wrong)
}

/// Extends the database to the length in its header, since SQLite reads nothing of a shorter file. Returns the damage
/// found. Pages of zeros are malformed and take no room.
fn fill_up(database: &Path) -> io::Result<Option<String>> {
    let file = OpenOptions::new().read(true).write(true).open(database)?;
    let (bytes, mut pages) = (file.metadata()?.len(), [0; 4]);
    if bytes < PAGE_BYTES {
        return Ok(None);
    }
    file.read_exact_at(&mut pages, PAGES_AT)?;
    let (pages, found) = (u64::from(u32::from_be_bytes(pages)), bytes / PAGE_BYTES);
    let lost = pages.saturating_sub(found);
    if lost == 0 || lost > PAGES_LOST_MAX {
        return Ok(None);
    }
    file.set_len(pages * PAGE_BYTES)?;
    Ok(Some(format!("the database is truncated: {found} of its {pages} pages are left")))
}

struct Rows<'a> {
    wreck: &'a Connection,
    new: Connection,
    wreckage: &'a mut Wreckage,
}

/// A row and its key, after which the next one is sought.
type KeyedRow = Option<(u128, Vec<Value>)>;

impl Rows<'_> {
    fn take(&mut self, table: &Table) -> Result<(), StoreError> {
        let Some(columns) = self.columns(table)? else {
            // An earlier format lacks some tables.
            let is_lost = schema::is_present(self.wreck);
            self.wreckage
                .places
                .extend(is_lost.then(|| format!("table {} is missing", table.name)));
            return Ok(());
        };
        let placeholders = vec!["?"; columns.len()].join(", ");
        let names = columns.join(", ");
        let (key, name) = (table.key, table.name);
        let by = match key {
            Key::Rowid => "rowid",
            Key::Id => columns.first().map_or("rowid", String::as_str),
        };
        let select =
            format!("SELECT {by}, {names} FROM {name} WHERE {by} >= ?1 ORDER BY {by} LIMIT 1");
        // The journal's rowid is its column `id`, to which histories refer.
        let (into, values) = match key {
            Key::Rowid if name != "journal" => {
                (format!("rowid, {names}"), format!("?, {placeholders}"))
            }
            Key::Rowid | Key::Id => (names, placeholders),
        };
        let insert = format!("INSERT OR IGNORE INTO {name} ({into}) VALUES ({values})");
        let keeps_rowid = matches!(key, Key::Rowid) && name != "journal";
        let mut at = Some(key.first());
        while let Some(from) = at {
            match self.next(&select, key, from) {
                Ok(None) => break,
                Ok(Some((found, row))) => {
                    self.put(name, &insert, &row, keeps_rowid)?;
                    at = found.checked_add(1);
                }
                Err(_) => at = self.pass_over(table, &select, from),
            }
        }
        Ok(())
    }

    /// Returns the columns of both stores, `None` if the damaged one lacks the table.
    fn columns(&mut self, table: &Table) -> Result<Option<Vec<String>>, StoreError> {
        let of = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
            let mut select = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            select.query_map([table.name], |row| row.get(0))?.collect()
        };
        let (mut columns, old) = (of(&self.new)?, of(self.wreck)?);
        columns.retain(|column| old.contains(column));
        Ok(Some(columns).filter(|columns| !columns.is_empty()))
    }

    fn next(&self, select: &str, key: Key, from: u128) -> rusqlite::Result<KeyedRow> {
        let mut select = self.wreck.prepare_cached(select)?;
        let count = select.column_count();
        let row = select.query_row([key.bound(from)], |row| {
            (0..count).map(|column| row.get(column)).collect::<rusqlite::Result<Vec<Value>>>()
        });
        let Some(row) = row.optional()? else { return Ok(None) };
        // A key of another type, or a descending one, would be read forever.
        let found = row.first().and_then(|found| key.number(found)).filter(|found| *found >= from);
        found.map(|found| Some((found, row))).ok_or(rusqlite::Error::InvalidQuery)
    }

    /// Returns the first key from which the table is readable again.
    fn pass_over(&mut self, table: &Table, select: &str, from: u128) -> Option<u128> {
        let key = table.key;
        let reads = |at: u128| self.next(select, key, at).is_ok();
        let (mut bad, mut step) = (from, 1_u128);
        // The last key is tried too and ends the search: doubled beyond it, the step would stay the same forever.
        let mut good = loop {
            let at = from.saturating_add(step).min(key.last());
            if reads(at) {
                break at;
            }
            if at == key.last() {
                self.wreckage.places.push(lost(table, from, None));
                return None;
            }
            (bad, step) = (at, step.saturating_mul(2));
        };
        while good - bad > 1 {
            let middle = bad + (good - bad) / 2;
            if reads(middle) { good = middle } else { bad = middle }
        }
        self.wreckage.places.push(lost(table, from, Some(good)));
        Some(good)
    }

    fn put(
        &mut self,
        name: &str,
        insert: &str,
        row: &[Value],
        keeps_rowid: bool,
    ) -> Result<(), StoreError> {
        let values = if keeps_rowid { row } else { row.get(1..).unwrap_or_default() };
        let key = row.first().map(shown).unwrap_or_default();
        if name != "token" && !says_whose(name, row) {
            self.wreckage.places.push(format!("row {key} of {name} has no readable session"));
            return Ok(());
        }
        let written = self.new.prepare_cached(insert)?.execute(params_from_iter(values));
        match written {
            Ok(1) => {}
            // The key of another row.
            Ok(_) => self.wreckage.places.push(format!("row {key} of {name} is damaged")),
            // A value of another type than its column's.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                self.wreckage.places.push(format!("row {key} of {name} is damaged"));
            }
            Err(error) => return Err(error.into()),
        }
        let session = row.get(1).and_then(|session| session_of(session.into()));
        let Some(session) = session.filter(|_| name == "history") else { return Ok(()) };
        if !matches!(HistoryRow::of(&self.new, session), Ok(Some(Some(_)))) {
            self.wreckage.places.push(format!("row {key} of {name} is damaged"));
            HistoryRow::delete(&self.new, session)?;
        }
        Ok(())
    }

    /// Raises the mark, so that no id known to a row or a history is reused.
    fn raise_mark(&mut self) -> Result<(), StoreError> {
        let row = "SELECT journal_mark, length(epoch) FROM meta WHERE id = 1";
        let row = self.wreck.query_row(row, [], |row| <(i64, i64)>::try_from(row));
        let (mark, epoch_bytes) = row.unwrap_or_default();
        if epoch_bytes != EPOCH_BYTES {
            self.wreckage.places.push("the database's meta row is damaged".to_owned());
        }
        self.new.execute(
            "UPDATE meta SET journal_mark = max(?1,
                 coalesce((SELECT max(id) FROM journal), 0),
                 coalesce((SELECT max(forgotten) FROM history), 0))",
            [mark.max(0)],
        )?;
        Ok(())
    }

    /// Reports commits that were durable and are in no table.
    fn find_missing(&mut self, from: &Path) -> Result<(), StoreError> {
        // Without a readable epoch, the note may be another store's.
        let noted =
            epoch::stored(self.wreck).ok().and_then(|epoch| last_commit::noted(from, epoch));
        let last = deletion::mark(&self.new)?;
        if let Some(noted) = noted.filter(|noted| last < *noted) {
            let (first, last) = (last.0.saturating_add(1), noted.0);
            let told = format!("commits {first} to {last} of the journal are missing");
            self.wreckage.places.push(told);
        }
        Ok(())
    }
}

impl Key {
    const fn first(self) -> u128 {
        0
    }

    const fn last(self) -> u128 {
        match self {
            Self::Rowid => i64::MAX.unsigned_abs() as u128,
            Self::Id => u128::MAX,
        }
    }

    fn bound(self, at: u128) -> Value {
        match self {
            Self::Rowid => Value::Integer(i64::try_from(at).unwrap_or(i64::MAX)),
            Self::Id => Value::Blob(at.to_be_bytes().to_vec()),
        }
    }

    fn number(self, found: &Value) -> Option<u128> {
        match (self, found) {
            (Self::Rowid, Value::Integer(id)) => u128::try_from(*id).ok(),
            (Self::Id, Value::Blob(id)) => Uuid::from_slice(id).ok().map(|id| id.as_u128()),
            (
                Self::Rowid | Self::Id,
                Value::Null | Value::Integer(_) | Value::Real(_) | Value::Text(_) | Value::Blob(_),
            ) => None,
        }
    }
}

fn lost(table: &Table, from: u128, to: Option<u128>) -> String {
    let name = table.name;
    match (table.key, to) {
        (Key::Rowid, Some(to)) => format!("rows {from} to {} of {name} cannot be read", to - 1),
        (Key::Rowid, None) => format!("rows from {from} on of {name} cannot be read"),
        (Key::Id, _) => format!("some rows of {name} cannot be read"),
    }
}

fn shown(key: &Value) -> String {
    match key {
        Value::Integer(id) => id.to_string(),
        Value::Blob(id) => Uuid::from_slice(id).map(|id| id.to_string()).unwrap_or_default(),
        Value::Null | Value::Real(_) | Value::Text(_) => String::new(),
    }
}

/// Returns true if a row names a session.
fn says_whose(name: &str, row: &[Value]) -> bool {
    let column = if name == "journal" { 2 } else { 1 };
    row.get(column).is_some_and(|session| session_of(session.into()).is_some())
}

/// Copies the intact images.
fn take_blobs(from: &Path, to: &Path, wreckage: &mut Wreckage) -> Result<(), StoreError> {
    create_dir(to)?;
    for home in list(from)? {
        let Some(session) = blobs::session_of(&home) else { continue };
        let copied = to.join(session.to_string());
        create_dir(&copied)?;
        for file in list(&home)? {
            let Some(digest) = digest_of(&file) else { continue };
            match fs::read(&file) {
                Ok(bytes) if Digest::of(&bytes) == digest => {
                    let copy = copied.join(digest.to_string());
                    write_synced(&copy, &bytes).map_err(StoreError::io(&copy))?;
                }
                Ok(_) | Err(_) => wreckage.images += 1,
            }
        }
        sync_dir(&copied)?;
    }
    sync_dir(to)
}
