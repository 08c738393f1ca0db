//! Batch: a change of the index under way.
//!
//! Entries are gathered, then written as a new segment for each log. Small segments are merged with it, so that a log of n
//! entries has few. What is removed is noted at its segment, and leaves it with the next merge.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::error::SearchError;
use super::fold::folded;
use super::log_key::log_key;
use super::segment::part::Filed;
use super::segment::postings::{Postings, class_of, put, take};
use super::segment::{SegmentReader, SegmentWriter};
use super::words::Words;
use blackboard_board::{AgentName, LogName, Revision, Seq, SessionId, SessionName, Timestamp};

/// The number of words up to which the segments of a log are merged whenever it grows.
const SMALL_WORDS: u64 = 2000;

/// The number of words to which merges let a segment grow.
const SEGMENT_WORDS_MAX: u64 = 1 << 20;

/// A session within the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub(super) i64);

/// How far the index has followed a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The session's identity.
    pub session: SessionId,
    /// The revision whose entries are indexed.
    pub revision: Revision,
}

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

/// A log within the index.
type Log = (SessionKey, String);

/// A change of the index under way.
#[derive(Debug)]
pub struct Batch<'a> {
    connection: &'a Connection,
    words: &'a Words,
    /// Entries that are not written, by log and seq.
    gathered: BTreeMap<Log, BTreeMap<u64, Gathered>>,
}

/// The words of the entries of a log, in order, with their postings.
type Inverted = Vec<(Vec<u8>, Postings)>;

/// An entry that is not written.
#[derive(Debug)]
struct Gathered {
    at: i64,
    agent: String,
    text: String,
}

/// A segment of a log.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) id: i64,
    /// The first and the last seq.
    first: u64,
    last: u64,
    words: u64,
    /// The time of the newest entry.
    pub(super) newest: i64,
    /// Seqs of removed entries.
    pub(super) dead: Ranges,
}

/// Ranges of seqs, ascending, none next to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    pub(super) fn has(&self, seq: u64) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < seq);
        self.0.get(at).is_some_and(|(first, _)| *first <= seq)
    }

    fn has_all(&self, first: u64, last: u64) -> bool {
        self.0.iter().any(|range| range.0 <= first && last <= range.1)
    }

    fn add(&mut self, first: u64, last: u64) {
        // Those that overlap the new one or lie next to it become one with it.
        let from = self.0.partition_point(|range| range.1.saturating_add(1) < first);
        let to = self.0.partition_point(|range| range.0 <= last.saturating_add(1));
        let joined = self.0.get(from..to.max(from)).unwrap_or_default();
        let first = joined.first().map_or(first, |range| range.0.min(first));
        let last = joined.last().map_or(last, |range| range.1.max(last));
        self.0.splice(from..to.max(from), [(first, last)]);
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (first, last) in &self.0 {
            put(&mut out, *first);
            put(&mut out, last - first);
        }
        out
    }

    fn of(mut bytes: &[u8]) -> Result<Self, SearchError> {
        let mut ranges = Vec::new();
        while !bytes.is_empty() {
            let (first, length) = (take(&mut bytes)?, take(&mut bytes)?);
            ranges.push((first, first.checked_add(length).ok_or(SearchError::Damaged)?));
        }
        Ok(Self(ranges))
    }
}

impl<'a> Batch<'a> {
    pub(super) const fn new(connection: &'a Connection, words: &'a Words) -> Self {
        Self { connection, words, gathered: BTreeMap::new() }
    }

    /// Returns the key of a session, which is empty if it is new.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be written.
    pub fn session(&mut self, name: &SessionName) -> Result<SessionKey, SearchError> {
        let (sql, name) = ("SELECT id FROM sessions WHERE name = ?", name.as_str().as_bytes());
        let mut known = self.connection.prepare_cached(sql)?;
        if let Some(id) = known.query_row([name], |row| row.get(0)).optional()? {
            return Ok(SessionKey(id));
        }
        let sql = "INSERT INTO sessions(name, session, revision) VALUES (?, zeroblob(16), 0)";
        self.connection.prepare_cached(sql)?.execute([name])?;
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
        self.gathered.retain(|(session, _), _| *session != key);
        let sql = "SELECT DISTINCT log FROM segments WHERE session = ?";
        let logs: rusqlite::Result<Vec<String>> =
            self.connection.prepare_cached(sql)?.query_map([key.0], |row| row.get(0))?.collect();
        for log in logs? {
            self.clear(&(key, log))?;
        }
        self.connection.prepare_cached("DELETE FROM sessions WHERE id = ?")?.execute([key.0])?;
        Ok(())
    }

    /// Removes all entries of a log.
    ///
    /// # Errors
    ///
    /// As for [`session`](Self::session).
    pub fn clear_log(&mut self, key: SessionKey, log: &LogName) -> Result<(), SearchError> {
        let log = (key, log_key(log));
        self.gathered.remove(&log);
        self.clear(&log)
    }

    fn clear(&self, log: &Log) -> Result<(), SearchError> {
        for segment in segments(self.connection, log.0, &log.1)? {
            self.delete(log, &segment)?;
        }
        Ok(())
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
        Seq(first): Seq,
        Seq(last): Seq,
    ) -> Result<(), SearchError> {
        let log = (key, log_key(log));
        if let Some(gathered) = self.gathered.get_mut(&log) {
            gathered.retain(|seq, _| !(first..=last).contains(seq));
        }
        self.remove_stored(&log, first, last)
    }

    /// Indexes an entry, in place of what was indexed of it.
    ///
    /// # Errors
    ///
    /// As for [`session`](Self::session).
    pub fn put(&mut self, key: SessionKey, document: Document<'_>) -> Result<(), SearchError> {
        let Document { log, seq: Seq(seq), at, agent, text } = document;
        let log = (key, log_key(log));
        self.remove_stored(&log, seq, seq)?;
        let gathered = self.gathered.entry(log).or_default();
        if text.is_empty() {
            gathered.remove(&seq);
        } else {
            let agent = agent.map(ToString::to_string).unwrap_or_default();
            gathered.insert(seq, Gathered { at: at.0, agent, text: folded(text) });
        }
        Ok(())
    }

    fn remove_stored(&self, log: &Log, first: u64, last: u64) -> Result<(), SearchError> {
        let sql =
            format!("{SEGMENT} WHERE session = ? AND log = ? AND last_seq >= ? AND first_seq <= ?");
        let mut select = self.connection.prepare_cached(&sql)?;
        let range = params![log.0.0, log.1, signed(first), signed(last)];
        let found: rusqlite::Result<Vec<_>> = select.query_map(range, SegmentRow::read)?.collect();
        for row in found? {
            let mut segment = row.segment()?;
            segment.dead.add(first, last);
            if segment.dead.has_all(segment.first, segment.last) {
                self.delete(log, &segment)?;
                continue;
            }
            let sql = "UPDATE segments SET dead = ? WHERE session = ? AND log = ? AND id = ?";
            let values = params![segment.dead.bytes(), log.0.0, log.1, segment.id];
            self.connection.prepare_cached(sql)?.execute(values)?;
            self.note_untidy(log)?;
        }
        Ok(())
    }

    /// Deletes a segment. Its words leave the file's log with the next pass over what is untidy.
    fn delete(&self, log: &Log, segment: &Segment) -> Result<(), SearchError> {
        SegmentReader::new(self.connection, segment.id).delete()?;
        let sql = "DELETE FROM segments WHERE session = ? AND log = ? AND id = ?";
        self.connection.prepare_cached(sql)?.execute(params![log.0.0, log.1, segment.id])?;
        self.note_untidy(log)
    }

    fn note_untidy(&self, log: &Log) -> Result<(), SearchError> {
        let sql = "INSERT OR IGNORE INTO untidy(session, log) VALUES (?, ?)";
        self.connection.prepare_cached(sql)?.execute(params![log.0.0, log.1])?;
        Ok(())
    }

    /// Writes what was gathered.
    pub(super) fn finish(&mut self) -> Result<(), SearchError> {
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.retain(|_, entries| !entries.is_empty());
        let mut inverted = self.inverted(&gathered)?.into_iter();
        for (log, entries) in &gathered {
            let words = inverted.next().unwrap_or_default();
            self.write(log, entries, &words)?;
            let segments = segments(self.connection, log.0, &log.1)?;
            let from = merged_from(&segments);
            if segments.len() > 1 {
                self.note_untidy(log)?;
            }
            if let Some(some) = segments.get(from..).filter(|some| some.len() > 1) {
                self.merge(log, some)?;
            }
        }
        Ok(())
    }

    /// Returns the words of each log's entries, in order, with their postings.
    fn inverted(
        &self,
        gathered: &BTreeMap<Log, BTreeMap<u64, Gathered>>,
    ) -> Result<Vec<Inverted>, SearchError> {
        // Each document's log, and its number in the log's new segment.
        let numbers: Vec<(usize, u32)> = gathered
            .values()
            .enumerate()
            .flat_map(|(log, entries)| (0..).zip(entries).map(move |(number, _)| (log, number)))
            .collect();
        let texts = gathered.values().flat_map(BTreeMap::values).map(|one| one.text.clone());
        let mut inverted: Vec<Inverted> = Vec::new();
        inverted.resize_with(gathered.len(), Vec::new);
        let mut lengths = vec![0_u32; numbers.len()];
        let mut found: Vec<(Vec<u8>, u32, u32)> = Vec::new();
        for ((document, length), text) in (0..).zip(&mut lengths).zip(texts) {
            self.words.each(&text, |word, place| {
                *length += 1;
                found.push((word.as_bytes().to_vec(), document, place));
            })?;
        }
        found.sort_unstable();
        for of_one in found.chunk_by(|a, b| (&a.0, a.1) == (&b.0, b.1)) {
            let Some((word, document, _)) = of_one.first() else { continue };
            let at = *document as usize;
            let Some((log, number)) = numbers.get(at) else { continue };
            let (class, places) = (
                class_of(lengths.get(at).copied().unwrap_or_default()),
                of_one.iter().map(|(_, _, place)| *place).collect::<Vec<_>>(),
            );
            let Some(words) = inverted.get_mut(*log) else { continue };
            if words.last().is_none_or(|(last, _)| last != word) {
                words.push((word.clone(), Postings::default()));
            }
            if let Some((_, postings)) = words.last_mut() {
                postings.add(*number, class, &places);
            }
        }
        Ok(inverted)
    }

    fn write(
        &self,
        log: &Log,
        entries: &BTreeMap<u64, Gathered>,
        words: &[(Vec<u8>, Postings)],
    ) -> Result<(), SearchError> {
        let id = self.next_segment()?;
        let mut writer = SegmentWriter::new(self.connection, id);
        for (word, postings) in words {
            writer.word(word, postings)?;
        }
        let filed = |(seq, Gathered { at, agent, .. }): (&u64, &Gathered)| Filed {
            seq: *seq,
            at: *at,
            agent: agent.as_str().into(),
        };
        self.add(log, id, writer, &entries.iter().map(filed).collect::<Vec<_>>())
    }

    /// Adds a segment whose words are written, with these documents.
    fn add(
        &self,
        log: &Log,
        id: i64,
        mut writer: SegmentWriter<'_>,
        documents: &[Filed],
    ) -> Result<(), SearchError> {
        let (mut first, mut last, mut newest) = (u64::MAX, 0, i64::MIN);
        for filed in documents {
            (first, last) = (first.min(filed.seq), last.max(filed.seq));
            newest = newest.max(filed.at);
            writer.document(filed)?;
        }
        let words = writer.finish()?;
        let sql = "INSERT INTO segments(session, log, id, first_seq, last_seq, words, newest, dead)
            VALUES (?, ?, ?, ?, ?, ?, ?, zeroblob(0))";
        self.connection.prepare_cached(sql)?.execute(params![
            log.0.0,
            log.1,
            id,
            signed(first),
            signed(last),
            signed(words),
            newest
        ])?;
        Ok(())
    }

    fn next_segment(&self) -> Result<i64, SearchError> {
        let sql = "UPDATE origin SET last_segment = last_segment + 1 RETURNING last_segment";
        Ok(self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }

    /// Merges segments into one, without what was removed.
    fn merge(&self, log: &Log, some: &[Segment]) -> Result<(), SearchError> {
        let (mut documents, mut inputs) = (Vec::new(), Vec::new());
        for Segment { id, dead, .. } in some {
            let reader = SegmentReader::new(self.connection, *id);
            let mut numbers = Vec::new();
            for filed in reader.documents()? {
                let is_live = !dead.has(filed.seq);
                numbers.push(if is_live { u32::try_from(documents.len()).ok() } else { None });
                if is_live {
                    documents.push(filed);
                }
            }
            inputs.push((reader.all(), numbers));
        }
        if !documents.is_empty() {
            let id = self.next_segment()?;
            let mut writer = SegmentWriter::new(self.connection, id);
            loop {
                let mut least: Option<Vec<u8>> = None;
                for (words, _) in &mut inputs {
                    if let Some(word) = words.peek()?
                        && least.as_deref().is_none_or(|least| word < least)
                    {
                        least = Some(word.to_vec());
                    }
                }
                let Some(word) = least else { break };
                let mut postings = Postings::default();
                for (words, numbers) in &mut inputs {
                    let renumbered = |number: u32| numbers.get(number as usize).copied().flatten();
                    words.take(&word, renumbered, &mut postings)?;
                }
                if !postings.occurrences.is_empty() {
                    writer.word(&word, &postings)?;
                }
            }
            self.add(log, id, writer, &documents)?;
        }
        some.iter().try_for_each(|segment| self.delete(log, segment))
    }

    /// Makes one log tidy: removed entries leave it, and its segments are merged. Returns false if all logs are tidy.
    pub(super) fn tidy(&self) -> Result<bool, SearchError> {
        let sql = "SELECT session, log FROM untidy ORDER BY session, log LIMIT 1";
        let log = self
            .connection
            .prepare_cached(sql)?
            .query_row([], |row| Ok((SessionKey(row.get(0)?), row.get::<_, String>(1)?)));
        let Some(log) = log.optional()? else { return Ok(false) };
        let all = segments(self.connection, log.0, &log.1)?;
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let mut words = 0;
            let fits = |segment: &&Segment| {
                words += segment.words;
                words <= SEGMENT_WORDS_MAX
            };
            let (some, after) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            if some.len() > 1 || some.iter().any(|segment| !segment.dead.0.is_empty()) {
                self.merge(&log, some)?;
            }
            rest = after;
        }
        let sql = "DELETE FROM untidy WHERE session = ? AND log = ?";
        self.connection.prepare_cached(sql)?.execute(params![log.0.0, log.1])?;
        Ok(true)
    }
}

/// Returns the first of the segments that are merged with the last one: small ones, and those of its size.
fn merged_from(segments: &[Segment]) -> usize {
    let mut words = 0;
    let mut from = segments.len();
    for (at, segment) in segments.iter().enumerate().rev() {
        let all = words + segment.words;
        let is_merged = at + 1 == segments.len() || all <= SMALL_WORDS || segment.words <= words;
        if !is_merged || all > SEGMENT_WORDS_MAX {
            break;
        }
        (words, from) = (all, at);
    }
    from
}

/// SQLite's integers are signed. No seq or revision is this large.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The columns of a segment.
pub(super) const SEGMENT: &str =
    "SELECT id, first_seq, last_seq, words, newest, dead, log FROM segments";

/// A row with a segment, not yet decoded.
pub(super) struct SegmentRow {
    id: i64,
    seqs: (i64, i64),
    words: i64,
    newest: i64,
    dead: Vec<u8>,
    pub(super) log: String,
}

impl SegmentRow {
    pub(super) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            seqs: (row.get(1)?, row.get(2)?),
            words: row.get(3)?,
            newest: row.get(4)?,
            dead: row.get(5)?,
            log: row.get(6)?,
        })
    }

    pub(super) fn segment(&self) -> Result<Segment, SearchError> {
        Ok(Segment {
            id: self.id,
            first: self.seqs.0.cast_unsigned(),
            last: self.seqs.1.cast_unsigned(),
            words: self.words.cast_unsigned(),
            newest: self.newest,
            dead: Ranges::of(&self.dead)?,
        })
    }
}

/// Returns the segments of a log, in the order in which they were made.
fn segments(
    connection: &Connection,
    session: SessionKey,
    log: &str,
) -> Result<Vec<Segment>, SearchError> {
    let sql = format!("{SEGMENT} WHERE session = ? AND log = ? ORDER BY id");
    let mut select = connection.prepare_cached(&sql)?;
    let rows: rusqlite::Result<Vec<_>> =
        select.query_map(params![session.0, log], SegmentRow::read)?.collect();
    rows?.iter().map(SegmentRow::segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Ranges::default();
        for (first, last) in [(10, 12), (1, 2), (20, 20), (4, 5), (3, 3)] {
            ranges.add(first, last);
        }
        assert_eq!(ranges.0, [(1, 5), (10, 12), (20, 20)]);
        ranges.add(11, 19);
        assert_eq!(ranges.0, [(1, 5), (10, 20)]);
        ranges.add(0, 100);
        assert_eq!(ranges.0, [(0, 100)]);
        assert!(ranges.has(0) && ranges.has(100) && !ranges.has(101));
        assert_eq!(Ranges::of(&ranges.bytes()).unwrap(), ranges);
    }

    #[test]
    fn a_log_of_many_appends_has_few_segments() {
        let mut segments: Vec<Segment> = Vec::new();
        for id in 0..3000 {
            let (first, last, dead) = (0, 0, Ranges::default());
            segments.push(Segment { id, first, last, words: 100, newest: 0, dead });
            let from = merged_from(&segments);
            let words = segments[from..].iter().map(|segment| segment.words).sum();
            segments.truncate(from + 1);
            segments[from].words = words;
        }
        assert!(segments.len() <= 9, "{}", segments.len());
        assert_eq!(segments.iter().map(|segment| segment.words).sum::<u64>(), 300_000);
    }
}
