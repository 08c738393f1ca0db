//! Writer of a segment: its words in order, each with its documents or lists, then the segment in memory, then its rows.

use rusqlite::{Connection, params};

use super::block::{BLOCK_BYTES, Block, Row, sealed};
use super::part::{DOCUMENTS_IN_PART, Filed, Part};
use super::part_id;
use super::postings::{List, Numbers};
use crate::error::SearchError;

/// The most bytes of a document in a list besides its places, of which each has two if the text is not very long.
const HEAD_BYTES: usize = 8;

/// A segment that is being written.
#[derive(Default)]
pub(crate) struct SegmentWriter {
    blocks: Vec<Row>,
    block: Block,
    /// The list of the word, and true if the word has others before it.
    list: List,
    is_often: bool,
    /// The number of words of all documents.
    words: u64,
}

/// A segment in memory.
pub(crate) struct Fresh {
    pub(super) blocks: Vec<Row>,
    pub(crate) documents: Vec<Filed>,
    pub(crate) words: u64,
    /// The rows of the segments of which it is made: its own are written in their place.
    pub(super) rows: Vec<i64>,
}

impl SegmentWriter {
    /// Begins the next word.
    pub(crate) fn begin(&mut self) {
        self.list.clear();
        self.is_often = false;
    }

    /// Adds a document of the word.
    pub(crate) fn add(
        &mut self,
        word: &[u8],
        document: u32,
        places: impl ExactSizeIterator<Item = u32>,
    ) {
        self.fit(word, HEAD_BYTES + 2 * places.len());
        self.words += places.len() as u64;
        self.list.add(document, places);
    }

    /// Adds a list of the word of another segment.
    pub(super) fn join(
        &mut self,
        word: &[u8],
        list: &[u8],
        numbers: &Numbers,
    ) -> Result<(), SearchError> {
        self.fit(word, list.len());
        self.words += self.list.join(list, numbers)?;
        Ok(())
    }

    /// Ends the list if so many more bytes would make it longer than a block.
    fn fit(&mut self, word: &[u8], more: usize) {
        if !self.list.is_empty() && self.list.size() + more > BLOCK_BYTES {
            if !self.is_often {
                self.end_block();
                self.is_often = true;
            }
            self.end_list(word);
        }
    }

    /// Makes a block of the list alone.
    fn end_list(&mut self, word: &[u8]) {
        self.block.add(word, &self.list);
        self.blocks.extend(self.block.end(1 + i64::from(self.list.first())));
        self.list.clear();
    }

    /// Ends the word.
    pub(crate) fn end(&mut self, word: &[u8]) {
        if self.list.is_empty() {
            return;
        }
        if self.is_often {
            return self.end_list(word);
        }
        let filled = self.block.size();
        if filled > 0 && filled + word.len() + self.list.size() > BLOCK_BYTES {
            self.end_block();
        }
        self.block.add(word, &self.list);
    }

    fn end_block(&mut self) {
        self.blocks.extend(self.block.end(0));
    }

    /// Ends the segment with its documents.
    pub(crate) fn finish(mut self, documents: Vec<Filed>) -> Fresh {
        self.end_block();
        Fresh { blocks: self.blocks, documents, words: self.words, rows: Vec::new() }
    }
}

impl Fresh {
    /// Writes the rows of the segment.
    pub(crate) fn store(self, connection: &Connection, segment: i64) -> Result<(), SearchError> {
        let sql = "INSERT INTO blocks(segment, word, part, data) VALUES (?, ?, ?, ?)";
        let mut insert = connection.prepare_cached(sql)?;
        let sql = "UPDATE blocks SET segment = ?, word = ?, part = ?, data = ? WHERE id = ?";
        let mut replace = connection.prepare_cached(sql)?;
        let mut rows = self.rows.into_iter();
        for Row { first, part, data } in self.blocks {
            let data = sealed(segment, &first, part, data);
            match rows.next() {
                Some(row) => replace.execute(params![segment, first, part, data, row])?,
                None => insert.execute(params![segment, first, part, data])?,
            };
        }
        let sql = "INSERT INTO documents(id, data) VALUES (?, ?)";
        let mut insert = connection.prepare_cached(sql)?;
        for (number, documents) in (0..).zip(self.documents.chunks(DOCUMENTS_IN_PART as usize)) {
            let mut part = Part::default();
            documents.iter().for_each(|filed| part.add(filed));
            let data = sealed(segment, &[], i64::from(number), part.bytes());
            insert.execute(params![part_id(segment, number), data])?;
        }
        Ok(())
    }
}
