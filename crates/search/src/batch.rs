//! Batch: a change of the index under way.
//!
//! The words of entries are gathered, then written as a new segment for each log. Segments of a size are merged with it, so that a
//! log of n entries has few. What is removed is noted at its segment, and leaves it with the next merge.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, params};

use super::error::SearchError;
use super::inversion::{Corpus, Inversion};
use super::log_key::log_key;
use super::segment::SegmentReader;
use super::segment::merge::merged;
use super::segment::row::{Segment, segments};
use super::segment::writer::Fresh;
use super::words::Words;
use blackboard_board::{AgentName, LogName, Revision, Seq, SessionId, SessionName, Timestamp};

/// The number of words up to which segments become one whenever the log grows: their rows cost more than their words.
const TINY_WORDS: u64 = 256;

/// The number of words below which a segment is small.
const SMALL_WORDS: u64 = 2048;

/// The number of segments of about one size that become one. More would be merged more rarely, and each takes time of a search.
const TIER_SEGMENTS: usize = 4;

/// The number of small segments that become one. A small one costs a search little.
const SMALL_SEGMENTS: usize = 8;

/// The first tier of large segments, and the number of these that become one: their lists are long, and are copied at once.
const LARGE_TIER: u32 = 4;
const LARGE_SEGMENTS: usize = 2;

/// How many times the words of newer segments a segment may have that is merged with them when the log is made tidy.
const TIDY_TIMES: u64 = 8;

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
    /// The JSON values whose strings and numbers are its text.
    pub values: &'a [&'a str],
}

/// A log within the index.
type Log = (SessionKey, String);

/// A change of the index under way.
#[derive(Debug)]
pub struct Batch<'a> {
    connection: &'a Connection,
    words: &'a Words,
    corpus: &'a mut Corpus,
    sessions: HashMap<SessionName, SessionKey>,
    logs: BTreeMap<(SessionKey, LogName), OfLog>,
    /// The last segment's number, once it is known.
    last_segment: Option<i64>,
}

/// What is under way in a log.
#[derive(Debug)]
struct OfLog {
    key: Log,
    /// The segments that are stored. What was removed from them is not.
    segments: Vec<Segment>,
    inversion: Inversion,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        words: &'a Words,
        corpus: &'a mut Corpus,
    ) -> Self {
        corpus.clear();
        let (sessions, logs) = (HashMap::new(), BTreeMap::new());
        Self { connection, words, corpus, sessions, logs, last_segment: None }
    }

    /// Returns the key of a session, which is empty if it is new.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if the file cannot be written.
    pub fn session(&mut self, name: &SessionName) -> Result<SessionKey, SearchError> {
        if let Some(key) = self.sessions.get(name) {
            return Ok(*key);
        }
        let (sql, text) = ("SELECT id FROM sessions WHERE name = ?", name.as_str().as_bytes());
        let mut known = self.connection.prepare_cached(sql)?;
        let known = known.query_row([text], |row| row.get(0)).optional()?;
        let key = SessionKey(match known {
            Some(id) => id,
            None => {
                let sql =
                    "INSERT INTO sessions(name, session, revision) VALUES (?, zeroblob(16), 0)";
                self.connection.prepare_cached(sql)?.execute([text])?;
                self.connection.last_insert_rowid()
            }
        });
        self.sessions.insert(name.clone(), key);
        Ok(key)
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
        self.sessions.remove(name);
        self.logs.retain(|(session, _), _| *session != key);
        let sql = "SELECT DISTINCT log FROM segments WHERE session = ?";
        let logs: rusqlite::Result<Vec<String>> =
            self.connection.prepare_cached(sql)?.query_map([key.0], |row| row.get(0))?.collect();
        for log in logs? {
            let log = (key, log);
            for segment in segments(self.connection, log.0.0, &log.1)? {
                self.delete(&log, &segment)?;
            }
            self.note_untidy(&log)?;
        }
        self.connection.prepare_cached("DELETE FROM sessions WHERE id = ?")?.execute([key.0])?;
        Ok(())
    }

    /// Returns what is under way in a log.
    fn log(&mut self, key: SessionKey, log: &LogName) -> Result<&mut OfLog, SearchError> {
        match self.logs.entry((key, log.clone())) {
            Entry::Occupied(under_way) => Ok(under_way.into_mut()),
            Entry::Vacant(place) => {
                let (log, inversion) = ((key, log_key(log)), Inversion::default());
                let segments = segments(self.connection, key.0, &log.1)?;
                Ok(place.insert(OfLog { key: log, segments, inversion }))
            }
        }
    }

    /// Removes all entries of a log.
    ///
    /// # Errors
    ///
    /// As for [`session`](Self::session).
    pub fn clear_log(&mut self, key: SessionKey, log: &LogName) -> Result<(), SearchError> {
        self.remove(key, log, Seq(0), Seq(u64::MAX))
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
        let log = self.log(key, log)?;
        log.inversion.remove(first, last);
        log.remove_stored(first, last);
        Ok(())
    }

    /// Indexes an entry, in place of what was indexed of it.
    ///
    /// # Errors
    ///
    /// As for [`session`](Self::session).
    pub fn put(&mut self, key: SessionKey, document: Document<'_>) -> Result<(), SearchError> {
        let Document { log, seq: Seq(seq), at, agent, values } = document;
        self.log(key, log)?;
        let Self { words, corpus, logs, .. } = self;
        let Some(log) = logs.get_mut(&(key, log.clone())) else { return Ok(()) };
        log.remove_stored(seq, seq);
        let agent = agent.map_or("", AgentName::as_str);
        log.inversion.put(seq, at.0, agent, values, words, corpus)
    }

    /// Deletes a segment. Its words leave the file's log with the next pass over what is untidy, which the caller notes.
    fn delete(&self, log: &Log, segment: &Segment) -> Result<(), SearchError> {
        SegmentReader::new(self.connection, segment.id).delete()?;
        let sql = "DELETE FROM segments WHERE session = ? AND log = ? AND id = ?";
        self.connection.prepare_cached(sql)?.execute(params![log.0.0, log.1, segment.id])?;
        Ok(())
    }

    fn note_untidy(&self, log: &Log) -> Result<(), SearchError> {
        let sql = "INSERT OR IGNORE INTO untidy(session, log) VALUES (?, ?)";
        self.connection.prepare_cached(sql)?.execute(params![log.0.0, log.1])?;
        Ok(())
    }

    /// Writes what is under way.
    pub(super) fn finish(&mut self) -> Result<(), SearchError> {
        self.corpus.sort();
        for log in std::mem::take(&mut self.logs).into_values() {
            let fresh = log.inversion.finish(self.corpus);
            self.write(&log.key, log.segments, fresh)?;
        }
        if let Some(last) = self.last_segment {
            let sql = "UPDATE origin SET last_segment = ?";
            self.connection.prepare_cached(sql)?.execute([last])?;
        }
        Ok(())
    }

    /// Writes what was removed from a log, and its new entries.
    fn write(
        &mut self,
        log: &Log,
        mut segments: Vec<Segment>,
        fresh: Option<Fresh>,
    ) -> Result<(), SearchError> {
        let stored = segments.len();
        for gone in segments.extract_if(.., |segment| segment.is_dead()) {
            self.delete(log, &gone)?;
        }
        let (mut is_untidy, mut merged_from) = (segments.len() < stored, segments.len());
        if let Some(fresh) = fresh {
            is_untidy |= !segments.is_empty();
            let words = segments.iter().map(|segment| segment.words).chain([fresh.words]);
            merged_from = from(&words.collect::<Vec<_>>());
            let some = segments.get(merged_from..).unwrap_or_default();
            if some.is_empty() {
                self.add(log, fresh)?;
            } else {
                self.merge(log, some, Some(fresh))?;
            }
        }
        for segment in segments.iter().take(merged_from).filter(|segment| segment.is_changed) {
            let sql = "UPDATE segments SET dead = ? WHERE session = ? AND log = ? AND id = ?";
            let values = params![segment.dead.bytes(), log.0.0, log.1, segment.id];
            self.connection.prepare_cached(sql)?.execute(values)?;
            is_untidy = true;
        }
        if is_untidy { self.note_untidy(log) } else { Ok(()) }
    }

    /// Stores a segment of a log.
    fn add(&mut self, log: &Log, fresh: Fresh) -> Result<(), SearchError> {
        let (mut first, mut last, mut newest) = (u64::MAX, 0, i64::MIN);
        for filed in &fresh.documents {
            (first, last) = (first.min(filed.seq), last.max(filed.seq));
            newest = newest.max(filed.at);
        }
        let (id, words) = (self.next_segment()?, signed(fresh.words));
        fresh.store(self.connection, id)?;
        let sql = "INSERT INTO segments(session, log, id, first_seq, last_seq, words, newest, dead)
            VALUES (?, ?, ?, ?, ?, ?, ?, zeroblob(0))";
        self.connection.prepare_cached(sql)?.execute(params![
            log.0.0,
            log.1,
            id,
            signed(first),
            signed(last),
            words,
            newest
        ])?;
        Ok(())
    }

    fn next_segment(&mut self) -> Result<i64, SearchError> {
        let last = match self.last_segment {
            Some(last) => last,
            None => {
                let sql = "SELECT last_segment FROM origin";
                self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?
            }
        };
        Ok(*self.last_segment.insert(last + 1))
    }

    /// Puts segments together, without what was removed, and behind them one in memory.
    fn merge(
        &mut self,
        log: &Log,
        some: &[Segment],
        fresh: Option<Fresh>,
    ) -> Result<(), SearchError> {
        let merged = merged(self.connection, some, fresh)?;
        if !merged.documents.is_empty() {
            self.add(log, merged)?;
        }
        some.iter().try_for_each(|segment| self.delete(log, segment))
    }

    /// Makes one log tidy: removed entries leave it, and its segments are merged. Returns false if all logs are tidy.
    pub(super) fn tidy(&mut self) -> Result<bool, SearchError> {
        let sql = "SELECT session, log FROM untidy ORDER BY session, log LIMIT 1";
        let log = self
            .connection
            .prepare_cached(sql)?
            .query_row([], |row| Ok((SessionKey(row.get(0)?), row.get::<_, String>(1)?)));
        let Some(log) = log.optional()? else { return Ok(false) };
        let all = segments(self.connection, log.0.0, &log.1)?;
        let words: Vec<u64> = all.iter().map(|segment| segment.words).collect();
        for group in groups(&words) {
            let some = all.get(group).unwrap_or_default();
            if some.len() > 1 || some.iter().any(|segment| !segment.dead.is_empty()) {
                self.merge(&log, some, None)?;
            }
        }
        let sql = "DELETE FROM untidy WHERE session = ? AND log = ?";
        self.connection.prepare_cached(sql)?.execute(params![log.0.0, log.1])?;
        self.finish()?;
        Ok(true)
    }
}

impl OfLog {
    /// Notes that stored entries were removed.
    fn remove_stored(&mut self, first: u64, last: u64) {
        for segment in &mut self.segments {
            if segment.last >= first && segment.first <= last {
                segment.dead.add(first, last);
                segment.is_changed = true;
            }
        }
    }
}

/// Returns the first of the segments, of so many words, that are merged with the last one: whenever a tier has enough of
/// them, they become one, as far as it may grow.
fn from(words: &[u64]) -> usize {
    let (mut from, mut all) = (words.len().saturating_sub(1), words.last().copied().unwrap_or(0));
    while let Some(more) = from.checked_sub(1).and_then(|before| words.get(before))
        && all + more <= TINY_WORDS
    {
        all += more;
        from -= 1;
    }
    loop {
        let tier = tier(all);
        let before = words.get(..from).unwrap_or_default();
        let same = before.iter().rev().take_while(|words| self::tier(**words) <= tier).count();
        if same + 1 < enough(tier) {
            return from;
        }
        let fits = |words: &&u64| {
            let is_room = all + **words <= SEGMENT_WORDS_MAX;
            all += if is_room { **words } else { 0 };
            is_room
        };
        let merged = before.iter().rev().take(same).take_while(fits).count();
        if merged == 0 {
            return from;
        }
        from -= merged;
    }
}

/// Returns groups of segments of so many words, each to be made one: a segment joins newer ones unless it has many more words
/// than all of these, since a large log that grows a little is not written anew for that.
fn groups(words: &[u64]) -> Vec<Range<usize>> {
    let (mut groups, mut end) = (Vec::new(), words.len());
    while end > 0 {
        let (mut from, mut all) = (end, 0);
        while let Some(more) = from.checked_sub(1).and_then(|before| words.get(before))
            && (from == end
                || all + more <= SEGMENT_WORDS_MAX && *more <= (TIDY_TIMES * all).max(SMALL_WORDS))
        {
            all += more;
            from -= 1;
        }
        groups.push(from..end);
        end = from;
    }
    groups.reverse();
    groups
}

/// Returns the number of segments of a tier that become one.
const fn enough(tier: u32) -> usize {
    match tier {
        0 => SMALL_SEGMENTS,
        1..LARGE_TIER => TIER_SEGMENTS,
        LARGE_TIER.. => LARGE_SEGMENTS,
    }
}

/// Returns the tier of a segment of so many words.
const fn tier(words: u64) -> u32 {
    let small = words / SMALL_WORDS;
    if small == 0 { 0 } else { 1 + small.ilog(TIER_SEGMENTS as u64) }
}

/// SQLite's integers are signed. No seq or revision is this large.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_many_appends_has_few_segments() {
        for of_one in [100, 4000, 40_000] {
            let (mut segments, mut written, mut most) = (Vec::new(), 0, 0);
            for _ in 0..3000 {
                segments.push(of_one);
                let from = from(&segments);
                let words: u64 = segments.drain(from..).sum();
                written += words;
                segments.push(words);
                most = most.max(segments.len());
            }
            let all = 3000 * of_one;
            assert_eq!(segments.iter().sum::<u64>(), all);
            // Those that are merged no more are whole.
            let whole = usize::try_from(all / (SEGMENT_WORDS_MAX / 2)).unwrap();
            assert!(most <= 20 + whole, "{most} segments of {of_one} words");
            assert!(written <= 8 * all, "{of_one} words, {written} of {all}");
        }
    }

    #[test]
    fn a_large_log_that_grows_a_little_is_not_written_anew() {
        let ends = |words: &[u64]| groups(words).iter().map(|of| of.end).collect::<Vec<_>>();
        assert_eq!(ends(&[]), [0_usize; 0]);
        assert_eq!(ends(&[100, 100, 100]), [3]);
        assert_eq!(ends(&[2000, 1]), [2]);
        assert_eq!(ends(&[900_000, 100_000, 90_000, 1000, 130]), [1, 3, 5]);
        assert_eq!(ends(&[900_000, 100_000, 9000]), [1, 2, 3]);
        assert_eq!(ends(&[400_000, 400_000, 400_000, 400_000]), [2, 4]);
        // However a log has grown, few are left.
        let mut segments: Vec<u64> = Vec::new();
        for n in 0..4000_u64 {
            segments.push(100 + n * 7919 % 4000);
            segments = groups(&segments).into_iter().map(|of| segments[of].iter().sum()).collect();
            assert!(segments.len() < 20, "{segments:?}");
        }
    }
}
