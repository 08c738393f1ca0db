//! Merge of segments: their words in order, the lists of each word put together as bytes.

use std::collections::VecDeque;
use std::ops::Range;

use rusqlite::{Connection, params};

use super::SegmentReader;
use super::block::{Row, next, opened};
use super::part::Filed;
use super::postings::Numbers;
use super::row::Segment;
use super::writer::{Fresh, SegmentWriter};
use crate::error::SearchError;

/// The number of blocks of a segment that are read at once.
const BLOCKS_READ: u32 = 16;

/// A segment that is merged.
struct Input<'a> {
    connection: &'a Connection,
    /// Its number if it is stored.
    stored: Option<i64>,
    numbers: Numbers,
    blocks: VecDeque<Row>,
    /// The numbers of the rows that were read.
    rows: Vec<i64>,
    /// The last block that was read, if there may be more.
    after: Option<(Vec<u8>, i64)>,
    /// The block with the word, and how far it was read.
    block: Row,
    at: usize,
    word: Vec<u8>,
    /// The first bytes of the word, which decide most comparisons.
    begin: u64,
    list: Range<usize>,
    is_over: bool,
}

/// Merges segments of a log, in their order, and one in memory behind them, without what was removed.
pub(crate) fn merged(
    connection: &Connection,
    segments: &[Segment],
    fresh: Option<Fresh>,
) -> Result<Fresh, SearchError> {
    let (mut documents, mut inputs) = (Vec::new(), Vec::new());
    for segment in segments {
        let of_one = SegmentReader::new(connection, segment.id).documents()?;
        let numbers = numbers(segment, of_one, &mut documents)?;
        inputs.push(Input::new(connection, Some(segment.id), numbers, VecDeque::new())?);
    }
    if let Some(mut fresh) = fresh {
        let numbers = Numbers::From(next_number(&documents)?);
        documents.append(&mut fresh.documents);
        inputs.push(Input::new(connection, None, numbers, fresh.blocks.into())?);
    }
    let (mut writer, mut word) = (SegmentWriter::default(), Vec::new());
    while let Some(least) = least(&inputs) {
        least.word.clone_into(&mut word);
        let begin = least.begin;
        writer.begin();
        for input in &mut inputs {
            while !input.is_over && input.begin == begin && input.word == word {
                let list = input.block.data.get(input.list.clone()).unwrap_or_default();
                writer.join(&word, list, &input.numbers)?;
                input.advance()?;
            }
        }
        writer.end(&word);
    }
    let mut merged = writer.finish(documents);
    merged.rows = inputs.into_iter().flat_map(|input| input.rows).collect();
    merged.rows.sort_unstable();
    Ok(merged)
}

fn next_number(documents: &[Filed]) -> Result<u32, SearchError> {
    u32::try_from(documents.len()).map_err(|_| SearchError::Damaged)
}

/// Adds a segment's documents, and returns their numbers.
fn numbers(
    segment: &Segment,
    of_one: Vec<Filed>,
    documents: &mut Vec<Filed>,
) -> Result<Numbers, SearchError> {
    let first = next_number(documents)?;
    if segment.dead.is_empty() {
        documents.extend(of_one);
        return Ok(Numbers::From(first));
    }
    let mut numbers = Vec::with_capacity(of_one.len());
    for filed in of_one {
        let is_live = !segment.dead.has(filed.seq);
        numbers.push(if is_live { Some(next_number(documents)?) } else { None });
        if is_live {
            documents.push(filed);
        }
    }
    Ok(Numbers::Of(numbers))
}

/// Returns the input with the first word.
fn least<'i, 'a>(inputs: &'i [Input<'a>]) -> Option<&'i Input<'a>> {
    let rest = inputs.iter().filter(|input| !input.is_over);
    rest.min_by(|a, b| a.begin.cmp(&b.begin).then_with(|| a.word.cmp(&b.word)))
}

/// Returns the first bytes of a word as a number that has the order of words.
pub(crate) fn beginning(word: &[u8]) -> u64 {
    if let Some(bytes) = word.first_chunk() {
        return u64::from_be_bytes(*bytes);
    }
    // The last bytes may overlap the first ones.
    let behind = 8 * (8_usize.saturating_sub(word.len()));
    if let (Some(first), Some(last)) = (word.first_chunk(), word.last_chunk()) {
        return u64::from(u32::from_be_bytes(*first)) << 32
            | u64::from(u32::from_be_bytes(*last)) << behind;
    }
    let byte = |at| u64::from(word.get(at).copied().unwrap_or_default());
    byte(0) << 56 | byte(1) << 48 | byte(2) << 40
}

impl<'a> Input<'a> {
    fn new(
        connection: &'a Connection,
        stored: Option<i64>,
        numbers: Numbers,
        blocks: VecDeque<Row>,
    ) -> Result<Self, SearchError> {
        let block = Row { first: Vec::new(), part: 0, data: Vec::new() };
        let mut input = Self {
            connection,
            stored,
            numbers,
            blocks,
            rows: Vec::new(),
            after: stored.map(|_| (Vec::new(), -1)),
            block,
            at: 0,
            word: Vec::new(),
            begin: 0,
            list: 0..0,
            is_over: false,
        };
        input.advance()?;
        Ok(input)
    }

    /// Goes on to the next word, or the next list of the word.
    fn advance(&mut self) -> Result<(), SearchError> {
        while self.at >= self.block.data.len() {
            if !self.next_block()? {
                self.is_over = true;
                return Ok(());
            }
        }
        let all = self.block.data.as_slice();
        let mut rest = all.get(self.at..).unwrap_or_default();
        let length = next(&mut rest, &mut self.word)?.len();
        self.at = all.len() - rest.len();
        self.list = self.at - length..self.at;
        self.begin = beginning(&self.word);
        Ok(())
    }

    /// Goes on to the next block. Returns false if there is none.
    fn next_block(&mut self) -> Result<bool, SearchError> {
        if self.blocks.is_empty()
            && let (Some(segment), Some((word, part))) = (self.stored, self.after.take())
        {
            self.read(segment, &word, part)?;
        }
        let Some(mut block) = self.blocks.pop_front() else { return Ok(false) };
        if let Some(segment) = self.stored {
            let length = opened(segment, &block.first, block.part, &block.data)?.len();
            block.data.truncate(length);
        }
        (self.block, self.at) = (block, 0);
        self.word.clear();
        Ok(true)
    }

    /// Reads the blocks after one of a word.
    fn read(&mut self, segment: i64, word: &[u8], part: i64) -> Result<(), SearchError> {
        let sql = "SELECT word, part, data, id FROM blocks
            WHERE segment = ?1 AND (word, part) > (?2, ?3) ORDER BY word, part LIMIT ?4";
        let mut select = self.connection.prepare_cached(sql)?;
        let mut rows = select.query(params![segment, word, part, BLOCKS_READ])?;
        while let Some(row) = rows.next()? {
            self.blocks.push_back(Row::read(row)?);
            self.rows.push(row.get(3)?);
        }
        let last = self.blocks.back().filter(|_| self.blocks.len() == BLOCKS_READ as usize);
        self.after = last.map(|last| (last.first.clone(), last.part));
        Ok(())
    }
}
