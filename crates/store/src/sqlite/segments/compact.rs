//! Compaction of the journal: commits move from it into segments, one session in a row.
//!
//! Segments are packed on a separate connection and replace the journal's rows in one transaction, so a commit is
//! always in one of the two. Nothing is locked while rows are read and packed. Histories that changed meanwhile wait
//! for the next time.

use std::collections::HashMap;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::codec::{Packer, Unpacker};
use super::{Filling, Segment};
use crate::sqlite::database::Failure;
use crate::sqlite::deletion;
use crate::sqlite::index::{Front, Histories, Owner};
use crate::sqlite::rows::journal::Journal;
use crate::sqlite::rows::{read, summaries};
use crate::sqlite::segments;
use crate::{EmbeddedStore as _, JournalId, SqliteStore, StoreError, SummaryRow};
use blackboard_board::{Revision, SessionId};

/// The maximum bytes of frames in one piece, which ends with the commit that reaches it. No write is stored while a
/// piece replaces its rows: 5 ms at this size, 20 ms at four times as much.
const PIECE_BYTES: u64 = 1 << 20;

/// The lower bound of that maximum when room is short.
const PIECE_BYTES_MIN: u64 = 64 << 10;

/// Divisor of the room for the size of a piece, which temporarily takes several times its size.
const ROOM_PART: u64 = 8;

/// The maximum bytes of short segments that a piece rewrites.
const SHORT_BYTES_MAX: u64 = 16 * PIECE_BYTES;

/// Log bytes of a group besides its own, for deleted rows and indexed segments.
const GROUP_WAL_BYTES: usize = 2 * 4096;

/// The journal's oldest uncompacted rows, packed.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The row before its first.
    after: JournalId,
    /// Its last row.
    pub(crate) last: JournalId,
    /// Rows that stay in the journal: damaged ones, and forgotten ones that are pinned.
    pub(crate) left: Vec<JournalId>,
    pub(crate) left_bytes: u64,
    /// Bytes of frames in all its rows.
    pub(crate) frame_bytes: u64,
    pub(crate) groups: Vec<Group>,
}

/// The commits of one session in a piece.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) session: SessionId,
    /// The session's base when this was packed.
    pub(crate) base: Revision,
    pub(crate) rows: Vec<(Revision, JournalId)>,
    pub(crate) frame_bytes: u64,
    owner: Owner,
    /// True if commits before the base are pinned, so that its segments stay unchanged.
    is_pinned: bool,
    /// The positions of its rows among those that were read.
    places: Vec<usize>,
    /// The last revision of the first segment that `segments` replace, with those after it.
    replaces: Option<Revision>,
    segments: Vec<Segment>,
}

impl SqliteStore {
    /// Compacts a piece of the journal, or does housekeeping if everything is compacted. Returns true if more is
    /// left.
    pub(crate) fn compact_piece(
        &self,
        summarize: &mut dyn FnMut(&[SessionId]) -> Vec<SummaryRow>,
    ) -> Result<bool, StoreError> {
        let _turn = self.compaction.lock();
        let (after, last) = self.write(|journal| Ok(journal.uncompacted()))?;
        if after == last {
            return Ok(self.idle());
        }
        let piece_bytes = (self.room.in_all() / ROOM_PART).clamp(PIECE_BYTES_MIN, PIECE_BYTES);
        let pack = |connection: &_| self.pack(connection, after, last, piece_bytes);
        let Some(piece) = self.readers.read(pack)? else {
            self.write(|journal| {
                journal.pass_over(last);
                Ok(())
            })?;
            return Ok(true);
        };
        let own = |group: &&Group| group.owner == Owner::Session;
        let sessions: Vec<_> = piece.groups.iter().filter(own).map(|group| group.session).collect();
        let summaries = if sessions.is_empty() { Vec::new() } else { summarize(&sessions) };
        let summary_bytes = summaries.iter().map(|summary| summary.frame.len()).sum();
        // The log takes the bytes first, the file at the next checkpoint, before the log is free again.
        let bytes = piece.wal_bytes().saturating_add(summary_bytes).saturating_mul(2);
        self.claim_room_to_shrink(bytes, piece.shrinks())?;
        self.write(|journal| journal.compact(&piece, &summaries))?;
        // After the last piece, housekeeping is left.
        Ok(true)
    }

    /// Reads and packs the oldest rows after `after`, up to `last`; `None` if there is none.
    fn pack(
        &self,
        connection: &Connection,
        after: JournalId,
        last: JournalId,
        bytes: u64,
    ) -> Result<Option<Piece>, StoreError> {
        let mut piece = Piece::after(after);
        let rows = piece.read(connection, last, bytes)?;
        if rows.is_empty() {
            return Ok(None);
        }
        piece.group(&self.histories.read(), &rows);
        let (mut packer, mut unpacker, mut short_bytes) = (Packer::new(), Unpacker::new(), 0);
        for mut group in std::mem::take(&mut piece.groups) {
            match group.pack(connection, &rows, (&mut packer, &mut unpacker), short_bytes) {
                Ok(bytes) => {
                    short_bytes += bytes;
                    piece.groups.push(group);
                }
                // SQLite cannot read a page of its segments: its commits stay in the journal.
                Err(error) if error.is_damage() => piece.leave(group),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(piece))
    }
}

impl Journal {
    /// Returns the last row that compaction has reached, and the journal's last row.
    pub(crate) fn uncompacted(&self) -> (JournalId, JournalId) {
        (self.compacted, self.last)
    }

    /// Passes over ids up to this one that no row has, as those of writes that are no commits. This takes no room: a full
    /// disk would stop deletions otherwise.
    fn pass_over(&mut self, last: JournalId) {
        self.compacted = last;
        if self.compacted == self.last {
            // As in `compact`: no row is left.
            self.histories.write().take_journal_bytes(u64::MAX);
        }
    }

    /// Replaces the rows of a piece by its segments, and stores the summaries. Rows of histories that changed since
    /// the read stay.
    pub(crate) fn compact(
        &mut self,
        piece: &Piece,
        new_summaries: &[SummaryRow],
    ) -> Result<(), Failure> {
        let (mut left, mut left_bytes, mut up_to) =
            (piece.left.clone(), piece.left_bytes, piece.last);
        let fits = {
            let histories = self.histories.read();
            let mut fits: Vec<&Group> = Vec::new();
            for group in &piece.groups {
                let front = histories.front(group.session, group.base, &group.rows);
                if front == Front::Same {
                    fits.push(group);
                    continue;
                }
                left.extend(group.rows.iter().map(|(_, id)| *id));
                left_bytes += group.frame_bytes;
                if let (Front::Advanced, Some((_, first))) = (front, group.rows.first()) {
                    up_to = up_to.min(JournalId(first.0.saturating_sub(1)));
                }
            }
            fits
        };
        left.sort_unstable();
        let summaries = self.sound_summaries(new_summaries);
        self.database.transact(|connection| {
            for group in &fits {
                group.write(connection)?;
            }
            for (summary, head) in &summaries {
                summaries::put(connection, summary, *head)?;
            }
            piece.delete_rows(connection, &left)?;
            deletion::raise_mark(connection, piece.last)
        })?;
        let mut histories = self.histories.write();
        for group in &fits {
            histories.compact(group.session, group.last());
        }
        histories.take_journal_bytes(piece.frame_bytes.saturating_sub(left_bytes));
        let wal_bytes = u64::try_from(piece.wal_bytes()).unwrap_or(u64::MAX);
        self.compacted = up_to;
        if self.compacted < self.last {
            self.database.note_written(wal_bytes);
        } else {
            // An idle store is short on the disk, too: the log will be emptied.
            self.database.note_deleted(wal_bytes);
            if left.is_empty() {
                // No row is left. Rows deleted by both sweep and compaction made the count inexact.
                histories.take_journal_bytes(u64::MAX);
            }
        }
        Ok(())
    }
}

/// A row of the journal, with the session and revision that it names.
struct Row {
    id: JournalId,
    whose: Option<(SessionId, Revision)>,
    frame: Vec<u8>,
}

impl Row {
    fn bytes(&self) -> u64 {
        u64::try_from(self.frame.len()).unwrap_or(u64::MAX)
    }
}

impl Piece {
    fn after(after: JournalId) -> Self {
        Self {
            after,
            last: after,
            left: Vec::new(),
            left_bytes: 0,
            frame_bytes: 0,
            groups: Vec::new(),
        }
    }

    fn read(
        &mut self,
        connection: &Connection,
        last: JournalId,
        bytes: u64,
    ) -> Result<Vec<Row>, StoreError> {
        let mut select = connection.prepare_cached(
            "SELECT id, session, revision, frame FROM journal
             WHERE id > ?1 AND id <= ?2 ORDER BY id",
        )?;
        let mut found = select.query((self.after.0.cast_signed(), last.0.cast_signed()))?;
        let mut rows = Vec::new();
        while self.frame_bytes < bytes {
            let Some(row) = found.next()? else {
                // No row is left, though `last` may have been one.
                self.last = last;
                break;
            };
            let id = read::journal_id(row)?;
            // A frame that is not a blob is damaged, and becomes empty bytes, which no frame has.
            let frame = if let ValueRef::Blob(frame) = row.get_ref(3)? { frame } else { &[] };
            let frame = frame.to_vec();
            let row = Row { id, whose: read::whose(row)?, frame };
            self.frame_bytes += row.bytes();
            self.last = id;
            rows.push(row);
        }
        Ok(rows)
    }

    /// Groups the rows by session. Forgotten rows are only deleted, once they are not pinned.
    fn group(&mut self, histories: &Histories, rows: &[Row]) {
        let mut places: HashMap<SessionId, usize> = HashMap::new();
        for (place, row) in rows.iter().enumerate() {
            let compacts = |id| histories.is_known(id) && !histories.is_damaged(id);
            let Some((session, revision)) = row.whose.filter(|(id, _)| compacts(*id)) else {
                self.left.push(row.id);
                self.left_bytes += row.bytes();
                continue;
            };
            if histories.is_forgotten(session, row.id) {
                if histories.pins.keep_row(session, row.id) {
                    self.left.push(row.id);
                    self.left_bytes += row.bytes();
                }
                continue;
            }
            let index = *places.entry(session).or_insert_with(|| {
                self.groups.push(Group::of(session, histories));
                self.groups.len() - 1
            });
            let Some(group) = self.groups.get_mut(index) else { continue };
            group.places.push(place);
            group.rows.push((revision, row.id));
            group.frame_bytes += row.bytes();
        }
    }

    /// Leaves a session's rows in the journal.
    fn leave(&mut self, group: Group) {
        self.left.extend(group.rows.into_iter().map(|(_, id)| id));
        self.left_bytes += group.frame_bytes;
    }

    /// Deletes the piece's rows except `left`, which is sorted.
    pub(crate) fn delete_rows(
        &self,
        connection: &Connection,
        left: &[JournalId],
    ) -> rusqlite::Result<()> {
        let mut delete =
            connection.prepare_cached("DELETE FROM journal WHERE id > ?1 AND id < ?2")?;
        let mut after = self.after;
        for end in left.iter().copied().chain([JournalId(self.last.0.saturating_add(1))]) {
            delete.execute((after.0.cast_signed(), end.0.cast_signed()))?;
            after = end;
        }
        Ok(())
    }

    /// Returns true if the database becomes smaller by the piece.
    fn shrinks(&self) -> bool {
        let packed: usize = self.groups.iter().map(Group::packed_bytes).sum();
        u64::try_from(packed).is_ok_and(|packed| packed < self.frame_bytes)
    }

    /// Returns the growth of the write-ahead log by the piece, roughly.
    pub(crate) fn wal_bytes(&self) -> usize {
        let group = |group: &Group| group.packed_bytes().saturating_add(GROUP_WAL_BYTES);
        let groups: usize = self.groups.iter().map(group).sum();
        groups.saturating_add(usize::try_from(self.frame_bytes).unwrap_or(usize::MAX))
    }
}

impl Group {
    fn of(session: SessionId, histories: &Histories) -> Self {
        Self {
            session,
            owner: histories.standing(session).owner,
            is_pinned: histories.pins.keep_cuts_of(session),
            base: histories.base(session).map(|base| base.revision).unwrap_or_default(),
            rows: Vec::new(),
            frame_bytes: 0,
            places: Vec::new(),
            replaces: None,
            segments: Vec::new(),
        }
    }

    /// Packs its rows with the short segments before them. Returns the bytes of those segments.
    fn pack(
        &mut self,
        connection: &Connection,
        rows: &[Row],
        (packer, unpacker): (&mut Packer, &mut Unpacker),
        short_bytes: u64,
    ) -> Result<u64, StoreError> {
        let mut filling = Filling::new(packer, self.session);
        let mut bytes = 0;
        if short_bytes < SHORT_BYTES_MAX && !self.is_pinned {
            let short = segments::read_short(
                connection,
                self.session,
                self.base,
                self.frame_bytes,
                unpacker,
            )?;
            self.replaces = short.first().map(|(last, _)| *last);
            for (revision, frame) in short.iter().flat_map(|(_, commits)| commits.iter()) {
                if revision > self.base {
                    filling.push(revision, frame);
                    bytes += u64::try_from(frame.len()).unwrap_or(u64::MAX);
                }
            }
        }
        for ((revision, _), place) in self.rows.iter().zip(&self.places) {
            filling.push(
                *revision,
                rows.get(*place).map(|row| row.frame.as_slice()).unwrap_or_default(),
            );
        }
        self.segments = filling.end();
        Ok(bytes)
    }

    pub(crate) fn last(&self) -> Revision {
        self.rows.last().map(|(revision, _)| *revision).unwrap_or_default()
    }

    /// Writes its segments in the open transaction.
    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        if let Some(last) = self.replaces {
            segments::delete_from(connection, self.session, last)?;
        }
        self.segments.iter().try_for_each(|segment| segment.write(connection))
    }

    fn packed_bytes(&self) -> usize {
        self.segments.iter().map(Segment::packed_bytes).sum()
    }
}

#[cfg(test)]
mod tests;
