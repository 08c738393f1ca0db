//! Segments: immutable parts of the index, each with documents of one log of one session.
//!
//! A segment's rows lie side by side, so that reading it touches no other session's rows. Blocks hold words in order, each
//! with its postings; a word with many documents has blocks of its own. Parts hold the places of documents. Every row
//! ends with a checksum over its key and bytes.
//!
//! Rows are kept by their numbers, with an index of words beside them: a table by words would have whole rows in its inner
//! pages, and a search go through twice as many.

pub(super) mod part;
pub(super) mod postings;

use std::collections::VecDeque;

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::SearchError;
use part::{DOCUMENTS_IN_PART, Filed, Part, PartRows};
use postings::{Occurrence, Postings, put, take, take_bytes};

/// The size to which a block grows. Two rows fill a page.
const BLOCK_BYTES: usize = 1960;

/// The parts of a segment have numbers of this many bits.
const PART_BITS: u32 = 20;

/// The bytes of a checksum.
const CHECKSUM_BYTES: usize = 4;

/// The tables of segments' rows.
pub(super) const TABLES: &str = "
    CREATE TABLE blocks(
        id INTEGER PRIMARY KEY, segment INTEGER NOT NULL, word BLOB NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE UNIQUE INDEX block_words ON blocks(segment, word, part);
    CREATE TABLE documents(id INTEGER PRIMARY KEY, data BLOB NOT NULL);";

/// A segment that is being written: first its words in order, then its documents.
pub(super) struct SegmentWriter<'a> {
    connection: &'a Connection,
    segment: i64,
    block: Block,
    part: Part,
    documents: u32,
    /// The number of words of all documents.
    pub(super) words: u64,
}

/// A block that is being filled.
#[derive(Default)]
struct Block {
    first: Vec<u8>,
    last: Vec<u8>,
    data: Vec<u8>,
}

impl<'a> SegmentWriter<'a> {
    pub(super) fn new(connection: &'a Connection, segment: i64) -> Self {
        let (block, part) = (Block::default(), Part::default());
        Self { connection, segment, block, part, documents: 0, words: 0 }
    }

    /// Adds the next word.
    pub(super) fn word(&mut self, word: &[u8], postings: &Postings) -> Result<(), SearchError> {
        self.words += postings.places.len() as u64;
        let mut lists = Vec::new();
        postings.encode(BLOCK_BYTES, |first, list| lists.push((first, list.to_vec())));
        if let [(_, list)] = lists.as_slice() {
            if !self.block.data.is_empty()
                && self.block.data.len() + word.len() + list.len() > BLOCK_BYTES
            {
                self.end_block()?;
            }
            self.block.add(word, list);
            return Ok(());
        }
        self.end_block()?;
        for (first, list) in &lists {
            let mut block = Block::default();
            block.add(word, list);
            self.write_block(&block, 1 + i64::from(*first))?;
        }
        Ok(())
    }

    /// Adds the next document.
    pub(super) fn document(&mut self, filed: &Filed) -> Result<(), SearchError> {
        self.part.add(filed);
        self.documents += 1;
        if self.documents.is_multiple_of(DOCUMENTS_IN_PART) { self.end_part() } else { Ok(()) }
    }

    /// Ends the segment, and returns the number of its words.
    pub(super) fn finish(mut self) -> Result<u64, SearchError> {
        self.end_block()?;
        if !self.documents.is_multiple_of(DOCUMENTS_IN_PART) {
            self.end_part()?;
        }
        Ok(self.words)
    }

    fn end_block(&mut self) -> Result<(), SearchError> {
        let block = std::mem::take(&mut self.block);
        if block.data.is_empty() { Ok(()) } else { self.write_block(&block, 0) }
    }

    fn write_block(&self, block: &Block, part: i64) -> Result<(), SearchError> {
        let data = sealed(self.segment, &block.first, part, &block.data);
        let sql = "INSERT INTO blocks(segment, word, part, data) VALUES (?, ?, ?, ?)";
        let values = params![self.segment, block.first, part, data];
        self.connection.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    fn end_part(&mut self) -> Result<(), SearchError> {
        let part = (self.documents - 1) / DOCUMENTS_IN_PART;
        let data = std::mem::take(&mut self.part).bytes();
        let data = sealed(self.segment, &[], i64::from(part), &data);
        let sql = "INSERT INTO documents(id, data) VALUES (?, ?)";
        self.connection.prepare_cached(sql)?.execute(params![part_id(self.segment, part), data])?;
        Ok(())
    }
}

/// Returns the number of the row with a part.
fn part_id(segment: i64, part: u32) -> i64 {
    segment << PART_BITS | i64::from(part)
}

impl Block {
    fn add(&mut self, word: &[u8], list: &[u8]) {
        let shared = self.last.iter().zip(word).take_while(|(a, b)| a == b).count();
        if self.data.is_empty() {
            word.clone_into(&mut self.first);
        }
        put(&mut self.data, shared as u64);
        let (_, rest) = word.split_at(shared);
        put(&mut self.data, rest.len() as u64);
        self.data.extend_from_slice(rest);
        put(&mut self.data, list.len() as u64);
        self.data.extend_from_slice(list);
        word.clone_into(&mut self.last);
    }
}

/// Returns the bytes of a row with their checksum.
fn sealed(segment: i64, word: &[u8], part: i64, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + CHECKSUM_BYTES);
    out.extend_from_slice(data);
    out.extend_from_slice(&checksum(segment, word, part, data).to_le_bytes());
    out
}

/// Returns the bytes of a row without their checksum.
fn opened<'a>(
    segment: i64,
    word: &[u8],
    part: i64,
    row: &'a [u8],
) -> Result<&'a [u8], SearchError> {
    let (data, sum) = row.split_last_chunk::<CHECKSUM_BYTES>().ok_or(SearchError::Damaged)?;
    let is_sound = checksum(segment, word, part, data) == u32::from_le_bytes(*sum);
    if is_sound { Ok(data) } else { Err(SearchError::Damaged) }
}

fn checksum(segment: i64, word: &[u8], part: i64, data: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for bytes in [&segment.to_le_bytes(), word, &part.to_le_bytes(), data] {
        hasher.update(bytes);
    }
    hasher.finalize()
}

/// A row with a block.
struct Row {
    first: Vec<u8>,
    part: i64,
    data: Vec<u8>,
}

impl Row {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { first: row.get(0)?, part: row.get(1)?, data: row.get(2)? })
    }

    /// Goes through the words and their lists, in order, as long as `each` returns true; returns its last answer.
    fn words(
        &self,
        segment: i64,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<bool, SearchError>,
    ) -> Result<bool, SearchError> {
        let mut rest = opened(segment, &self.first, self.part, &self.data)?;
        let (mut word, mut goes_on) = (Vec::new(), true);
        while goes_on && !rest.is_empty() {
            let shared = take(&mut rest)?;
            let shared = usize::try_from(shared).ok().filter(|shared| *shared <= word.len());
            word.truncate(shared.ok_or(SearchError::Damaged)?);
            let length = take(&mut rest)?;
            word.extend_from_slice(take_bytes(&mut rest, length)?);
            let length = take(&mut rest)?;
            goes_on = each(&word, take_bytes(&mut rest, length)?)?;
        }
        Ok(goes_on)
    }
}

/// The words of a segment, in order, read a block at a time.
pub(super) struct AllWords<'a> {
    connection: &'a Connection,
    segment: i64,
    after: Option<(Vec<u8>, i64)>,
    words: VecDeque<(Vec<u8>, Postings)>,
}

impl AllWords<'_> {
    /// Returns the next word.
    pub(super) fn peek(&mut self) -> Result<Option<&[u8]>, SearchError> {
        if self.words.is_empty() {
            self.read()?;
        }
        Ok(self.words.front().map(|(word, _)| word.as_slice()))
    }

    /// Adds the postings of the word to `postings` if it is the next one. Numbers of documents go through `renumbered`;
    /// those without a new one are left out.
    pub(super) fn take(
        &mut self,
        word: &[u8],
        renumbered: impl Fn(u32) -> Option<u32>,
        postings: &mut Postings,
    ) -> Result<(), SearchError> {
        while self.peek()? == Some(word) {
            let Some((_, found)) = self.words.pop_front() else { break };
            for (Occurrence { document, class, .. }, places) in found.documents() {
                if let Some(document) = renumbered(document) {
                    postings.add(document, class, places);
                }
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), SearchError> {
        let sql =
            "SELECT word, part, data FROM blocks WHERE segment = ?1 AND (word, part) > (?2, ?3)
            ORDER BY word, part LIMIT 1";
        let (word, part) = self.after.clone().unwrap_or_else(|| (Vec::new(), -1));
        let mut select = self.connection.prepare_cached(sql)?;
        let row = select.query_row(params![self.segment, word, part], Row::read).optional()?;
        let Some(row) = row else { return Ok(()) };
        row.words(self.segment, |word, list| {
            let mut postings = Postings::default();
            postings.decode(list, true)?;
            self.words.push_back((word.to_vec(), postings));
            Ok(true)
        })?;
        self.after = Some((row.first, row.part));
        Ok(())
    }
}

/// Where a segment has a word.
pub(super) enum Listed {
    Nowhere,
    /// In a block with other words.
    Once(Postings),
    /// In blocks of its own.
    Often,
}

/// A segment that is read.
pub(super) struct SegmentReader<'a> {
    connection: &'a Connection,
    segment: i64,
    /// The part that was read last.
    part: Option<(u32, PartRows)>,
}

impl<'a> SegmentReader<'a> {
    pub(super) const fn new(connection: &'a Connection, segment: i64) -> Self {
        Self { connection, segment, part: None }
    }

    /// Returns the postings of a word, with places if these are wanted.
    pub(super) fn postings(&self, word: &[u8], places: bool) -> Result<Postings, SearchError> {
        Ok(match self.find(word, places)? {
            Listed::Nowhere => Postings::default(),
            Listed::Once(postings) => postings,
            Listed::Often => self.lists(word, places)?,
        })
    }

    /// Looks a word up. Its places are read if these are wanted.
    pub(super) fn find(&self, word: &[u8], places: bool) -> Result<Listed, SearchError> {
        let Some(row) = self.last_block_to(word)? else { return Ok(Listed::Nowhere) };
        if row.part > 0 {
            return Ok(if row.first == word { Listed::Often } else { Listed::Nowhere });
        }
        let mut found = Listed::Nowhere;
        row.words(self.segment, |at, list| {
            if at == word {
                let mut postings = Postings::default();
                postings.decode(list, places)?;
                found = Listed::Once(postings);
            }
            Ok(at < word)
        })?;
        Ok(found)
    }

    /// Returns the postings in all lists of a word that has several.
    pub(super) fn lists(&self, word: &[u8], places: bool) -> Result<Postings, SearchError> {
        let mut found = Postings::default();
        let sql =
            "SELECT word, part, data FROM blocks WHERE segment = ? AND word = ? ORDER BY part";
        let mut select = self.connection.prepare_cached(sql)?;
        for row in select.query_map(params![self.segment, word], Row::read)? {
            row?.words(self.segment, |_, list| found.decode(list, places).map(|()| true))?;
        }
        Ok(found)
    }

    /// Returns the postings, without places, in those lists of a word in which these documents would be. They ascend.
    pub(super) fn lists_with(
        &self,
        word: &[u8],
        documents: impl Iterator<Item = u32>,
    ) -> Result<Postings, SearchError> {
        let (mut found, mut read) = (Postings::default(), 0);
        let sql = "SELECT word, part, data FROM blocks
            WHERE segment = ? AND word = ? AND part <= ? ORDER BY part DESC LIMIT 1";
        let mut select = self.connection.prepare_cached(sql)?;
        for document in documents {
            if found.occurrences.last().is_some_and(|last| last.document >= document) {
                continue;
            }
            let key = params![self.segment, word, 1 + i64::from(document)];
            let row = select.query_row(key, Row::read).optional()?;
            // A document between two lists leads to one that was read.
            if let Some(row) = row.filter(|row| row.part != read) {
                read = row.part;
                row.words(self.segment, |_, list| found.decode(list, false).map(|()| true))?;
            }
        }
        Ok(found)
    }

    /// Returns the postings of all words that begin with a prefix, those of each document together.
    pub(super) fn prefixed(&self, prefix: &[u8], places: bool) -> Result<Postings, SearchError> {
        let mut found = Vec::new();
        let first = self.last_block_to(prefix)?.map_or_else(|| prefix.to_vec(), |row| row.first);
        let sql = "SELECT word, part, data FROM blocks WHERE segment = ? AND word >= ? ORDER BY word, part";
        let mut select = self.connection.prepare_cached(sql)?;
        for row in select.query_map(params![self.segment, first], Row::read)? {
            let goes_on = row?.words(self.segment, |at, list| {
                if at.starts_with(prefix) {
                    let mut postings = Postings::default();
                    postings.decode(list, places)?;
                    found.push(postings);
                }
                Ok(at < prefix || at.starts_with(prefix))
            })?;
            if !goes_on {
                break;
            }
        }
        Ok(Postings::joined(&found))
    }

    /// Returns the last block that begins with the word or one before it.
    fn last_block_to(&self, word: &[u8]) -> Result<Option<Row>, SearchError> {
        let mut select = self.connection.prepare_cached(
            "SELECT word, part, data FROM blocks WHERE segment = ? AND word <= ?
             ORDER BY word DESC, part DESC LIMIT 1",
        )?;
        Ok(select.query_row(params![self.segment, word], Row::read).optional()?)
    }

    /// Returns all words with their postings, in order.
    pub(super) const fn all(&self) -> AllWords<'a> {
        AllWords {
            connection: self.connection,
            segment: self.segment,
            after: None,
            words: VecDeque::new(),
        }
    }

    /// Returns the place of a document. To ask for them in order costs the least.
    pub(super) fn document(&mut self, document: u32) -> Result<Filed, SearchError> {
        let (part, number) = (document / DOCUMENTS_IN_PART, document % DOCUMENTS_IN_PART);
        let read = match self.part.take() {
            Some((read, rows)) if read == part => rows,
            _ => self.part(part)?.ok_or(SearchError::Damaged)?,
        };
        let (_, rows) = self.part.insert((part, read));
        rows.get(number as usize)
    }

    /// Returns the places of all documents, in order.
    pub(super) fn documents(&self) -> Result<Vec<Filed>, SearchError> {
        let mut all = Vec::new();
        for part in 0.. {
            let Some(mut part) = self.part(part)? else { break };
            while let Some(filed) = part.read()? {
                all.push(filed);
            }
        }
        Ok(all)
    }

    fn part(&self, part: u32) -> Result<Option<PartRows>, SearchError> {
        let sql = "SELECT data FROM documents WHERE id = ?";
        let mut select = self.connection.prepare_cached(sql)?;
        let id = part_id(self.segment, part);
        let row: Option<Vec<u8>> = select.query_row([id], |row| row.get(0)).optional()?;
        let Some(row) = row else { return Ok(None) };
        PartRows::of(opened(self.segment, &[], i64::from(part), &row)?).map(Some)
    }

    /// Deletes the segment's rows.
    pub(super) fn delete(self) -> Result<(), SearchError> {
        let sql = "DELETE FROM blocks WHERE segment = ?";
        self.connection.prepare_cached(sql)?.execute([self.segment])?;
        let sql = "DELETE FROM documents WHERE id >= ? AND id < ?";
        let parts = [part_id(self.segment, 0), part_id(self.segment + 1, 0)];
        self.connection.prepare_cached(sql)?.execute(parts)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEGMENT: i64 = 7;

    /// Makes a segment of these documents, all of which have the word.
    fn segment(connection: &Connection, postings: &Postings) {
        connection.execute_batch(TABLES).unwrap();
        let mut writer = SegmentWriter::new(connection, SEGMENT);
        for (word, postings) in [("a", &Postings::default()), ("often", postings)] {
            writer.word(word.as_bytes(), postings).unwrap();
        }
        writer.finish().unwrap();
    }

    proptest! {
        #[test]
        fn lists_with_documents_have_all_of_them(
            distances in prop::collection::vec(1..4000_u32, 1500..4000),
            sought in prop::collection::vec(0..4_000_000_u32, 0..40),
            every in 1..900_usize,
        ) {
            let (mut postings, mut at) = (Postings::default(), 0);
            for distance in distances {
                at += distance;
                postings.add(at, 5, &[1]);
            }
            let connection = Connection::open_in_memory().unwrap();
            segment(&connection, &postings);
            let reader = SegmentReader::new(&connection, SEGMENT);
            prop_assert!(matches!(reader.find(b"often", false).unwrap(), Listed::Often));
            prop_assert_eq!(&reader.lists(b"often", true).unwrap(), &postings);

            let there = postings.occurrences.iter().map(|one| one.document);
            let mut sought: Vec<u32> = there.clone().step_by(every).chain(sought).collect();
            sought.sort_unstable();
            let found = reader.lists_with(b"often", sought.iter().copied()).unwrap().occurrences;
            prop_assert!(found.is_sorted_by(|a, b| a.document < b.document));
            let is_found =
                |document: &u32| found.binary_search_by_key(document, |one| one.document).is_ok();
            let there: Vec<u32> = there.collect();
            for document in &sought {
                prop_assert_eq!(is_found(document), there.binary_search(document).is_ok());
            }
        }
    }
}
