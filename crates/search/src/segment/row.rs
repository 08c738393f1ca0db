//! Rows of segments: of which log each is, which entries it has, and which of them were removed.

use rusqlite::{Connection, params};

use super::ranges::Ranges;
use crate::error::SearchError;

/// A segment of a log.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) id: i64,
    /// The first and the last seq.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) words: u64,
    /// The time of the newest entry.
    pub(crate) newest: i64,
    /// Seqs of removed entries.
    pub(crate) dead: Ranges,
    /// True if these were added since it was read.
    pub(crate) is_changed: bool,
}

impl Segment {
    /// Returns true if all entries were removed.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.has_all(self.first, self.last)
    }
}

/// The columns of a segment.
pub(crate) const SEGMENT: &str =
    "SELECT id, first_seq, last_seq, words, newest, dead, log FROM segments";

/// A row with a segment, not yet decoded.
pub(crate) struct SegmentRow {
    id: i64,
    seqs: (i64, i64),
    words: i64,
    newest: i64,
    dead: Vec<u8>,
    pub(crate) log: String,
}

impl SegmentRow {
    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            seqs: (row.get(1)?, row.get(2)?),
            words: row.get(3)?,
            newest: row.get(4)?,
            dead: row.get(5)?,
            log: row.get(6)?,
        })
    }

    pub(crate) fn segment(&self) -> Result<Segment, SearchError> {
        Ok(Segment {
            id: self.id,
            first: self.seqs.0.cast_unsigned(),
            last: self.seqs.1.cast_unsigned(),
            words: self.words.cast_unsigned(),
            newest: self.newest,
            dead: Ranges::of(&self.dead)?,
            is_changed: false,
        })
    }
}

/// Returns the segments of a log, in the order in which they were made.
pub(crate) fn segments(
    connection: &Connection,
    session: i64,
    log: &str,
) -> Result<Vec<Segment>, SearchError> {
    let sql = format!("{SEGMENT} WHERE session = ? AND log = ? ORDER BY id");
    let mut select = connection.prepare_cached(&sql)?;
    let rows: rusqlite::Result<Vec<_>> =
        select.query_map(params![session, log], SegmentRow::read)?.collect();
    rows?.iter().map(SegmentRow::segment).collect()
}
