//! Segments: many commits of one session, packed into one row with a checksum.
//!
//! Unpacked, a segment is one commit after another: revision (u64), length of the frame (u32), both little-endian,
//! then the frame. A session's segments are contiguous. Of a segment that begins before the session's base only the
//! later part is read, until the sweep rewrites it.

pub(crate) mod codec;
mod compact;

use std::ops::{ControlFlow, Range};

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row};

use super::rows::bases::session_of;
use super::rows::parts::REVISION_END;
use crate::board::{Revision, SessionId};
use crate::store::{PageMax, Record, StoreError, Stored};
use codec::{Packer, Unpacker};

/// The maximum bytes of commits in a segment, unless it has only one.
const SEGMENT_BYTES: usize = 256 << 10;

/// A segment that fits into a page is rewritten, however few bytes follow it.
const PAGE_BYTES: u64 = 4096;

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
        let mut commits = Self { raw: unpacker.unpack(body)?, places: Vec::new() };
        let mut at = 0;
        while at < commits.raw.len() {
            let header: &[u8; COMMIT_HEADER_BYTES] = commits.raw.get(at..)?.first_chunk()?;
            let [r0, r1, r2, r3, r4, r5, r6, r7, l0, l1, l2, l3] = *header;
            let revision = Revision(u64::from_le_bytes([r0, r1, r2, r3, r4, r5, r6, r7]));
            let length = usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).ok()?;
            let begin = at + COMMIT_HEADER_BYTES;
            at = begin.checked_add(length).filter(|end| *end <= commits.raw.len())?;
            commits.places.push((revision, begin..at));
        }
        Some(commits)
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
        let number = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
        let Some(session) = session_of(row.get_ref(0)?) else { return Ok(None) };
        let found = Self {
            session,
            first: Revision(number(1)?),
            last: Revision(number(2)?),
            commits: number(3)?,
            bytes: number(4)?,
            body: row.get(6)?,
        };
        Ok((number(5)? == u64::from(found.sum())).then_some(found))
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
    full: Vec<Segment>,
}

impl<'a> Filling<'a> {
    pub(crate) fn new(packer: &'a mut Packer, session: SessionId) -> Self {
        let (first, last) = (Revision(0), Revision(0));
        Self { packer, session, first, last, commits: 0, raw: Vec::new(), full: Vec::new() }
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
    }

    fn fill(&mut self) {
        self.full.push(Segment {
            session: self.session,
            first: self.first,
            last: self.last,
            commits: self.commits,
            bytes: u64::try_from(self.raw.len()).unwrap_or(u64::MAX),
            body: self.packer.pack(&self.raw),
        });
        self.raw.clear();
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
        let damaged = StoreError::DamagedSegment { session: Some(session), after: read };
        let found = Segment::read(row)?.filter(|segment| segment.session == session);
        let Some(commits) = found.and_then(|segment| segment.unpack(&mut unpacker)) else {
            // Returns the commits before the damage; the next page reports it.
            return if page.is_empty() { Err(damaged) } else { Ok(page) };
        };
        for (revision, frame) in commits.iter().filter(|(revision, _)| *revision > after) {
            bytes = bytes.saturating_add(frame.len());
            let full = page.len() >= max.commits || bytes > max.bytes;
            if full && !page.is_empty() {
                return Ok(page);
            }
            page.push((revision, frame.to_vec()));
            read = revision;
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
        let kept = rows.next()?.map(Segment::read).transpose()?.flatten();
        let kept = kept.and_then(|segment| segment.unpack(&mut Unpacker::new()));
        // The later commits of a damaged segment are unknown: it stays.
        let Some(kept) = kept else { return Ok(None) };
        let mut packer = Packer::new();
        let mut filling = Filling::new(&mut packer, session);
        kept.iter().filter(|commit| commit.0 > up_to).for_each(|(revision, frame)| {
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

/// Visits all compacted commits after each session's beginning, by session. A damaged segment is visited as one
/// commit with empty bytes, which no frame has.
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
        let Some(commits) = Segment::read(row)?.and_then(|segment| segment.unpack(&mut unpacker))
        else {
            if give(Revision(number(1)?).max(after.next()), &[]).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            continue;
        };
        for (revision, frame) in commits.iter().filter(|(revision, _)| *revision > after) {
            if give(revision, frame).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

#[cfg(test)]
mod tests;
