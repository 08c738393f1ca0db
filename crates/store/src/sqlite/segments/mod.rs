//! Segments: many commits of one session, packed into one row with a checksum.
//!
//! Unpacked, a segment is one commit after another: revision (u64), length of the frame (u32), both little-endian,
//! then the frame. A session's segments are contiguous. Of a segment that begins before the session's base only the
//! later part is read, until the sweep rewrites it. Of a damaged segment the commits before the damage are read, by the
//! checksums of their frames.

pub(crate) mod codec;
mod compact;

use std::ops::{ControlFlow, Range};

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row};

use super::rows::bases::session_of;
use super::rows::parts::REVISION_END;
use crate::{PageMax, Record, StoreError, Stored};
use blackboard_board::{Frame, Revision, SessionId};
use codec::{Packer, ReadablePart, Unpacker};

/// The maximum bytes of commits in a segment, unless it has only one.
const SEGMENT_BYTES: usize = 256 << 10;

/// A segment that fits into a page is rewritten, however few bytes follow it.
const PAGE_BYTES: u64 = 4096;

/// A block ends with the commit by which it has this part of the bytes before its end. A changed bit costs its block:
/// more blocks keep more of what is before it, and take more room and time. With a 32nd, compression took a fifth more
/// time than with an eighth, and 2 to 5 % more room.
const BLOCK_PART: usize = 8;

/// The length of the header before each frame.
const COMMIT_HEADER_BYTES: usize = 12;

/// A row of packed commits.
#[derive(Debug)]
pub(crate) struct Segment {
    session: SessionId,
    first: Revision,
    pub(crate) last: Revision,
    commits: u64,
    /// Their unpacked length.
    bytes: u64,
    body: Vec<u8>,
}

/// Selects segments with the columns that [`Segment::read`] takes.
macro_rules! select {
    ($which:literal) => {
        concat!("SELECT session, first, last, commits, bytes, crc, body FROM segment ", $which)
    };
}

/// Commits with their frames, in order.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    raw: Vec<u8>,
    /// The range of each frame in `raw`.
    places: Vec<(Revision, Range<usize>)>,
}

impl Commits {
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (Revision, &[u8])> {
        let frame = |place: &Range<usize>| self.raw.get(place.clone()).unwrap_or_default();
        self.places.iter().map(move |(revision, place)| (*revision, frame(place)))
    }

    fn unpack(body: &[u8], unpacker: &mut Unpacker) -> Option<Self> {
        Some(Self::split(unpacker.unpack(body)?)).filter(Self::is_whole)
    }

    /// Splits bytes into commits, as far as their lengths allow.
    fn split(raw: Vec<u8>) -> Self {
        let mut commits = Self { raw, places: Vec::new() };
        while let Some(next) = commits.next_place() {
            commits.places.push(next);
        }
        commits
    }

    fn next_place(&self) -> Option<(Revision, Range<usize>)> {
        let at = self.end();
        let header: &[u8; COMMIT_HEADER_BYTES] = self.raw.get(at..)?.first_chunk()?;
        let [r0, r1, r2, r3, r4, r5, r6, r7, l0, l1, l2, l3] = *header;
        let revision = Revision(u64::from_le_bytes([r0, r1, r2, r3, r4, r5, r6, r7]));
        let length = usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).ok()?;
        let begin = at + COMMIT_HEADER_BYTES;
        let end = begin.checked_add(length).filter(|end| *end <= self.raw.len())?;
        Some((revision, begin..end))
    }

    /// Returns the end of the last commit.
    fn end(&self) -> usize {
        self.places.last().map_or(0, |(_, place)| place.end)
    }

    fn is_whole(&self) -> bool {
        self.end() == self.raw.len()
    }
}

/// The commits of a row that may be damaged.
struct Readable {
    /// All commits, or those before the damage.
    commits: Commits,
    /// True if no commit is missing.
    is_whole: bool,
    /// True if the row's own checksum holds too.
    is_sound: bool,
}

impl Readable {
    /// Reads a row of a session.
    fn of(row: &Row<'_>, session: SessionId, unpacker: &mut Unpacker) -> rusqlite::Result<Self> {
        let segment = Segment::read(row)?.filter(|segment| segment.session == session);
        if let Some(commits) = segment.and_then(|segment| segment.unpack(unpacker)) {
            return Ok(Self { commits, is_whole: true, is_sound: true });
        }
        let ReadablePart { raw, is_complete } =
            ReadablePart::of(row.get_ref(6)?.as_blob().unwrap_or_default());
        let mut commits = Commits::split(raw);
        let is_sound = |(revision, frame)| Frame::check(session, revision, frame).is_ok();
        let sound = commits.iter().take_while(|commit| is_sound(*commit)).count();
        commits.places.truncate(sound);
        let is_whole = is_complete && sound > 0 && commits.is_whole();
        tracing::warn!(%session, commits = sound, is_whole, "a segment is damaged; its commits are read one by one");
        Ok(Self { commits, is_whole, is_sound: false })
    }
}

impl Segment {
    fn unpack(&self, unpacker: &mut Unpacker) -> Option<Commits> {
        Commits::unpack(&self.body, unpacker)
    }

    pub(crate) fn packed_bytes(&self) -> usize {
        self.body.len()
    }

    /// Returns `None` for a damaged row.
    fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let mut numbers = [0; 5];
        for (column, number) in (1..).zip(&mut numbers) {
            let ValueRef::Integer(found) = row.get_ref(column)? else { return Ok(None) };
            *number = found.cast_unsigned();
        }
        let [first, last, commits, bytes, sum] = numbers;
        let (Some(session), ValueRef::Blob(body)) = (session_of(row.get_ref(0)?), row.get_ref(6)?)
        else {
            return Ok(None);
        };
        let (first, last, body) = (Revision(first), Revision(last), body.to_vec());
        let found = Self { session, first, last, commits, bytes, body };
        Ok((sum == u64::from(found.sum())).then_some(found))
    }

    fn sum(&self) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(self.session.0.as_bytes());
        for number in [self.first.0, self.last.0, self.commits, self.bytes] {
            crc.update(&number.to_le_bytes());
        }
        crc.update(&self.body);
        crc.finalize()
    }

    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection
            .prepare_cached("INSERT INTO segment VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
            .execute((
                self.session.0.as_bytes().as_slice(),
                self.first.0.cast_signed(),
                self.last.0.cast_signed(),
                self.commits.cast_signed(),
                self.bytes.cast_signed(),
                self.sum(),
                self.body.as_slice(),
            ))
            .map(drop)
    }
}

/// Packs one session's commits into segments.
pub(crate) struct Filling<'a> {
    packer: &'a mut Packer,
    session: SessionId,
    first: Revision,
    last: Revision,
    commits: u64,
    raw: Vec<u8>,
    /// The ends of the blocks in `raw`.
    blocks: Vec<usize>,
    full: Vec<Segment>,
}

impl<'a> Filling<'a> {
    pub(crate) fn new(packer: &'a mut Packer, session: SessionId) -> Self {
        let (first, last) = (Revision(0), Revision(0));
        let (raw, blocks, full) = (Vec::new(), Vec::new(), Vec::new());
        Self { packer, session, first, last, commits: 0, raw, blocks, full }
    }

    pub(crate) fn push(&mut self, revision: Revision, frame: &[u8]) {
        if !self.raw.is_empty() && self.raw.len() + frame.len() > SEGMENT_BYTES {
            self.fill();
        }
        if self.commits == 0 {
            self.first = revision;
        }
        self.last = revision;
        self.commits += 1;
        self.raw.extend_from_slice(&revision.0.to_le_bytes());
        self.raw.extend_from_slice(&u32::try_from(frame.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.raw.extend_from_slice(frame);
        let block = self.raw.len() - self.blocks.last().copied().unwrap_or_default();
        if block >= self.raw.len() / BLOCK_PART {
            self.blocks.push(self.raw.len());
        }
    }

    fn fill(&mut self) {
        self.full.push(Segment {
            session: self.session,
            first: self.first,
            last: self.last,
            commits: self.commits,
            bytes: u64::try_from(self.raw.len()).unwrap_or(u64::MAX),
            body: self.packer.pack_in_blocks(&self.raw, &self.blocks),
        });
        self.raw.clear();
        self.blocks.clear();
        self.commits = 0;
    }

    pub(crate) fn end(mut self) -> Vec<Segment> {
        if self.commits > 0 {
            self.fill();
        }
        self.full
    }
}

/// Prepares the query for the session's segments after a revision.
fn select_after(connection: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    connection.prepare_cached(select!("WHERE session = ?1 AND last > ?2 ORDER BY last"))
}

/// Returns a page of compacted commits after a revision, at least one if there is any.
pub(crate) fn read_page(
    connection: &Connection,
    session: SessionId,
    after: Revision,
    max: PageMax,
) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
    let mut select = select_after(connection)?;
    let mut rows =
        select.query((session.0.as_bytes().as_slice(), after.min(REVISION_END).0.cast_signed()))?;
    let (mut page, mut bytes, mut read) = (Vec::new(), 0_usize, after);
    let mut unpacker = Unpacker::new();
    while let Some(row) = rows.next()? {
        let Readable { commits, is_whole, .. } = Readable::of(row, session, &mut unpacker)?;
        for (revision, frame) in commits.iter().filter(|(revision, _)| *revision > after) {
            bytes = bytes.saturating_add(frame.len());
            let full = page.len() >= max.commits || bytes > max.bytes;
            if full && !page.is_empty() {
                return Ok(page);
            }
            page.push((revision, frame.to_vec()));
            read = revision;
        }
        if !is_whole {
            // Returns the commits before the damage; the next page reports it.
            let damaged = StoreError::DamagedSegment { session: Some(session), after: read };
            return if page.is_empty() { Err(damaged) } else { Ok(page) };
        }
    }
    Ok(page)
}

/// Returns the session's last segments after its base, in order, that are worth rewriting before this many bytes.
/// None of them is much longer than the commits after it. A commit is thus rewritten only a few times, and a session
/// has few short segments.
pub(crate) fn read_short(
    connection: &Connection,
    session: SessionId,
    base: Revision,
    bytes: u64,
    unpacker: &mut Unpacker,
) -> rusqlite::Result<Vec<(Revision, Commits)>> {
    let mut select = connection
        .prepare_cached(select!("WHERE session = ?1 AND last > ?2 ORDER BY last DESC"))?;
    let mut rows = select.query((session.0.as_bytes().as_slice(), base.0.cast_signed()))?;
    let (mut short, mut bytes) = (Vec::new(), bytes);
    while let Some(row) = rows.next()? {
        let these = row.get::<_, i64>(4)?.cast_unsigned();
        let together = bytes.saturating_add(these);
        let long = these > PAGE_BYTES && these / 2 > bytes;
        if long || usize::try_from(together).is_ok_and(|all| all > SEGMENT_BYTES) {
            break;
        }
        // A damaged segment stays as it is; its readers report it.
        let Some(segment) = Segment::read(row)? else { break };
        let Some(commits) = segment.unpack(unpacker) else { break };
        short.push((segment.last, commits));
        bytes = together;
    }
    short.reverse();
    Ok(short)
}

/// Deletes the session's segments with a last revision at or above this one.
pub(crate) fn delete_from(
    connection: &Connection,
    session: SessionId,
    last: Revision,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM segment WHERE session = ?1 AND last >= ?2")?
        .execute((session.0.as_bytes().as_slice(), last.0.cast_signed()))
        .map(drop)
}

/// Deletes the session's first segment if it has commits up to this revision, and rewrites its later commits. Returns
/// the deleted segment's length, if any.
pub(crate) fn forget_first(
    connection: &Connection,
    session: SessionId,
    up_to: Revision,
) -> rusqlite::Result<Option<u64>> {
    let first: Option<(i64, i64, i64, i64)> = connection
        .prepare_cached(
            "SELECT rowid, first, last, length(body) FROM segment
             WHERE session = ?1 ORDER BY last LIMIT 1",
        )?
        .query_one([session.0.as_bytes().as_slice()], |row| row.try_into())
        .optional()?;
    let up_to = up_to.min(REVISION_END);
    let up_to_column = up_to.0.cast_signed();
    let Some((row, _, last, bytes)) = first.filter(|first| first.1 <= up_to_column) else {
        return Ok(None);
    };
    if last > up_to_column {
        let after = Revision(last.cast_unsigned().saturating_sub(1));
        let mut select = select_after(connection)?;
        let mut rows = select.query((session.0.as_bytes().as_slice(), after.0.cast_signed()))?;
        let kept = rows.next()?.map(|row| Readable::of(row, session, &mut Unpacker::new()));
        // The later commits of a damaged segment are unknown: it stays.
        let Some(kept) = kept.transpose()?.filter(|kept| kept.is_whole) else { return Ok(None) };
        let mut packer = Packer::new();
        let mut filling = Filling::new(&mut packer, session);
        kept.commits.iter().filter(|commit| commit.0 > up_to).for_each(|(revision, frame)| {
            filling.push(revision, frame);
        });
        for segment in filling.end() {
            segment.write(connection)?;
        }
    }
    connection.prepare_cached("DELETE FROM segment WHERE rowid = ?1")?.execute([row])?;
    Ok(Some(bytes.cast_unsigned()))
}

/// Returns the first and last revision of each session's segments, from the index alone.
pub(crate) fn ranges(
    connection: &Connection,
) -> rusqlite::Result<Vec<(SessionId, Revision, Revision)>> {
    let mut select = connection
        .prepare("SELECT session, min(first), max(last) FROM segment GROUP BY session")?;
    let mut rows = select.query([])?;
    let mut ranges = Vec::new();
    while let Some(row) = rows.next()? {
        let revision = |column| row.get(column).map(|found: i64| Revision(found.cast_unsigned()));
        let (first, last) = (revision(1)?, revision(2)?);
        // A row without a readable session has no place; a replay reports it.
        ranges.extend(session_of(row.get_ref(0)?).map(|session| (session, first, last)));
    }
    Ok(ranges)
}

/// Visits all compacted commits after each session's beginning, by session. After the commits before the damage, a
/// damaged segment is visited as one commit with empty bytes, which no frame has.
pub(crate) fn visit(
    connection: &Connection,
    beginning: &dyn Fn(SessionId) -> Revision,
    visit: &mut dyn FnMut(Stored<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, StoreError> {
    let mut select = connection.prepare(select!("ORDER BY session, last"))?;
    let mut rows = select.query([])?;
    let mut unpacker = Unpacker::new();
    while let Some(row) = rows.next()? {
        let number = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
        let Some(session) = session_of(row.get_ref(0)?) else {
            return Err(StoreError::DamagedSegment { session: None, after: Revision(0) });
        };
        let after = beginning(session);
        if number(2)? <= after.0 {
            continue;
        }
        let mut give = |revision, frame: &_| {
            visit(Stored::Commit(Record { journal_id: None, session, revision, frame }))
        };
        let Readable { commits, is_sound, .. } = Readable::of(row, session, &mut unpacker)?;
        let mut next = Revision(number(1)?).max(after.next());
        for (revision, frame) in commits.iter().filter(|(revision, _)| *revision > after) {
            if give(revision, frame).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            next = revision.next();
        }
        if !is_sound && give(next, &[]).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

#[cfg(test)]
mod tests;
