//! Segments: immutable parts of the index, each with documents of one log of one session.
//!
//! A new segment's rows lie side by side. A merged one is written into the rows of the segments that it is made of, so that
//! a merge need neither free pages nor take new ones. Blocks hold words in order, each with its postings; a word with many
//! documents has blocks of its own. Parts hold the places of documents. Every row ends with a checksum over its key and bytes.
//!
//! Rows are kept by their numbers, with an index of words beside them: a table by words would have whole rows in its inner
//! pages, and a search go through twice as many.

mod block;
pub(super) mod merge;
pub(super) mod part;
pub(super) mod postings;
pub(super) mod ranges;
pub(super) mod row;
pub(super) mod writer;

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::SearchError;
use block::{Row, opened};
use part::{DOCUMENTS_IN_PART, Filed, PartRows};
use postings::Postings;

/// The parts of a segment have numbers of this many bits.
const PART_BITS: u32 = 20;

/// Returns the number of the row with a part.
fn part_id(segment: i64, part: u32) -> i64 {
    segment << PART_BITS | i64::from(part)
}

/// The tables of segments' rows.
pub(super) const TABLES: &str = "
    CREATE TABLE blocks(
        id INTEGER PRIMARY KEY, segment INTEGER NOT NULL, word BLOB NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE UNIQUE INDEX block_words ON blocks(segment, word, part);
    CREATE TABLE documents(id INTEGER PRIMARY KEY, data BLOB NOT NULL);";

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
            // All parts but the last one are full.
            if !all.len().is_multiple_of(DOCUMENTS_IN_PART as usize) {
                break;
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

    use super::writer::SegmentWriter;
    use super::*;

    const SEGMENT: i64 = 7;

    /// Makes a segment of these documents, all of which have the word.
    fn segment(connection: &Connection, postings: &Postings) {
        connection.execute_batch(TABLES).unwrap();
        let mut writer = SegmentWriter::default();
        for (word, number) in [("a", 1), ("often", usize::MAX)] {
            writer.begin();
            for (one, places) in postings.documents().take(number) {
                writer.add(word.as_bytes(), one.document, places.iter().copied());
            }
            writer.end(word.as_bytes());
        }
        writer.finish(Vec::new()).store(connection, SEGMENT).unwrap();
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
                postings.add(at, &[1]);
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
