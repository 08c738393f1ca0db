//! Segments: immutable parts of the index, each with documents of one log of one session.
//!
//! A segment's rows lie side by side, so that reading it touches no other session's rows. Blocks hold words in order, each
//! with its postings; a word with many documents has blocks of its own. Parts hold the places of documents. Every row
//! ends with a checksum over its key and bytes.

use std::collections::VecDeque;

use rusqlite::{Connection, OptionalExtension, params};

use super::error::SearchError;
use super::postings::{Occurrence, Postings, put, take, take_bytes, take_small};

/// The size to which a block grows. A larger row of such a table would need pages of its own.
const BLOCK_BYTES: usize = 900;

/// The number of documents in one part.
const DOCUMENTS_IN_PART: u32 = 64;

/// The bytes of a checksum.
const CHECKSUM_BYTES: usize = 4;

/// The tables of segments' rows.
pub(super) const TABLES: &str = "
    CREATE TABLE blocks(
        segment INTEGER NOT NULL, word BLOB NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (segment, word, part)) WITHOUT ROWID;
    CREATE TABLE documents(
        segment INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (segment, part)) WITHOUT ROWID;";

/// The place of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filed {
    /// The seq of the entry in its log.
    pub(super) seq: u64,
    /// The time of its append.
    pub(super) at: i64,
    /// Its author; empty if not named.
    pub(super) agent: String,
}

/// A segment that is being written: first its words in order, then its documents.
pub(super) struct SegmentWriter<'a> {
    connection: &'a Connection,
    segment: i64,
    block: Block,
    part: Vec<u8>,
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
        let (block, part) = (Block::default(), Vec::new());
        Self { connection, segment, block, part, documents: 0, words: 0 }
    }

    /// Adds the next word.
    pub(super) fn word(&mut self, word: &[u8], postings: &Postings) -> Result<(), SearchError> {
        self.words += postings.places.len() as u64;
        let mut lists = Vec::new();
        postings.encode(BLOCK_BYTES, |list| lists.push(list.to_vec()));
        if let [list] = lists.as_slice() {
            if !self.block.data.is_empty()
                && self.block.data.len() + word.len() + list.len() > BLOCK_BYTES
            {
                self.end_block()?;
            }
            self.block.add(word, list);
            return Ok(());
        }
        self.end_block()?;
        for (part, list) in (0_i64..).zip(&lists) {
            let mut block = Block::default();
            block.add(word, list);
            self.write_block(&block, part)?;
        }
        Ok(())
    }

    /// Adds the next document.
    pub(super) fn document(&mut self, filed: &Filed) -> Result<(), SearchError> {
        put(&mut self.part, filed.seq);
        put(&mut self.part, filed.at.cast_unsigned());
        put(&mut self.part, filed.agent.len() as u64);
        self.part.extend_from_slice(filed.agent.as_bytes());
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
        let part = i64::from((self.documents - 1) / DOCUMENTS_IN_PART);
        let data = sealed(self.segment, &[], part, &std::mem::take(&mut self.part));
        let sql = "INSERT INTO documents(segment, part, data) VALUES (?, ?, ?)";
        self.connection.prepare_cached(sql)?.execute(params![self.segment, part, data])?;
        Ok(())
    }
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

/// A segment that is read.
pub(super) struct SegmentReader<'a> {
    connection: &'a Connection,
    segment: i64,
    /// The documents of the part that was read last.
    part: Option<(u32, Vec<Filed>)>,
}

impl<'a> SegmentReader<'a> {
    pub(super) const fn new(connection: &'a Connection, segment: i64) -> Self {
        Self { connection, segment, part: None }
    }

    /// Returns the postings of a word, with places if these are wanted.
    pub(super) fn postings(&self, word: &[u8], places: bool) -> Result<Postings, SearchError> {
        let mut found = Postings::default();
        let Some(row) = self.last_block_to(word)? else { return Ok(found) };
        let is_alone = row.part > 0;
        if is_alone && row.first != word {
            return Ok(found);
        }
        if !is_alone {
            row.words(self.segment, |at, list| {
                if at == word {
                    found.decode(list, places)?;
                }
                Ok(at < word)
            })?;
            return Ok(found);
        }
        let sql =
            "SELECT word, part, data FROM blocks WHERE segment = ? AND word = ? ORDER BY part";
        let mut select = self.connection.prepare_cached(sql)?;
        for row in select.query_map(params![self.segment, word], Row::read)? {
            row?.words(self.segment, |_, list| found.decode(list, places).map(|()| true))?;
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

    /// Returns the place of a document.
    pub(super) fn document(&mut self, document: u32) -> Result<&Filed, SearchError> {
        let (part, at) = (document / DOCUMENTS_IN_PART, document % DOCUMENTS_IN_PART);
        if self.part.as_ref().is_none_or(|(read, _)| *read != part) {
            self.part = Some((part, self.part(part)?.ok_or(SearchError::Damaged)?));
        }
        let filed = self.part.as_ref().and_then(|(_, filed)| filed.get(at as usize));
        filed.ok_or(SearchError::Damaged)
    }

    /// Returns the places of all documents, in order.
    pub(super) fn documents(&self) -> Result<Vec<Filed>, SearchError> {
        let mut all = Vec::new();
        for part in 0.. {
            let Some(mut filed) = self.part(part)? else { break };
            all.append(&mut filed);
        }
        Ok(all)
    }

    fn part(&self, part: u32) -> Result<Option<Vec<Filed>>, SearchError> {
        let sql = "SELECT data FROM documents WHERE segment = ? AND part = ?";
        let mut select = self.connection.prepare_cached(sql)?;
        let row: Option<Vec<u8>> =
            select.query_row(params![self.segment, part], |row| row.get(0)).optional()?;
        let Some(row) = row else { return Ok(None) };
        let mut rest = opened(self.segment, &[], i64::from(part), &row)?;
        let mut filed = Vec::new();
        while !rest.is_empty() {
            let (seq, at) = (take(&mut rest)?, take(&mut rest)?.cast_signed());
            let length = u64::from(take_small(&mut rest)?);
            let agent = std::str::from_utf8(take_bytes(&mut rest, length)?);
            let agent = agent.map_err(|_| SearchError::Damaged)?.to_owned();
            filed.push(Filed { seq, at, agent });
        }
        Ok(Some(filed))
    }

    /// Deletes the segment's rows.
    pub(super) fn delete(self) -> Result<(), SearchError> {
        for sql in
            ["DELETE FROM blocks WHERE segment = ?", "DELETE FROM documents WHERE segment = ?"]
        {
            self.connection.prepare_cached(sql)?.execute([self.segment])?;
        }
        Ok(())
    }
}
