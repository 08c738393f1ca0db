//! Blocks: words in order with their lists, and rows with a checksum.

use super::postings::{List, put, take, take_bytes};
use crate::error::SearchError;

/// The bytes of a checksum.
const CHECKSUM_BYTES: usize = 4;

/// The size to which a block grows. Two rows fill a page.
pub(super) const BLOCK_BYTES: usize = 1960;

/// The most bytes of the numbers before a word and a list, and of a checksum.
const NUMBERS_BYTES: usize = 32;

/// A block that is being filled.
#[derive(Default)]
pub(super) struct Block {
    first: Vec<u8>,
    last: Vec<u8>,
    data: Vec<u8>,
}

impl Block {
    /// Returns the number of bytes.
    pub(super) const fn size(&self) -> usize {
        self.data.len()
    }

    /// Adds the next word.
    pub(super) fn add(&mut self, word: &[u8], list: &List) {
        if self.data.is_empty() {
            word.clone_into(&mut self.first);
            // Room for all of it at once, and for its checksum.
            self.data.reserve(BLOCK_BYTES.max(word.len() + list.size()) + NUMBERS_BYTES);
        }
        let shared = self.last.iter().zip(word).take_while(|(a, b)| a == b).count();
        put(&mut self.data, shared as u64);
        let (_, rest) = word.split_at(shared);
        put(&mut self.data, rest.len() as u64);
        self.data.extend_from_slice(rest);
        list.write(&mut self.data);
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
    }

    /// Ends the block if it has a word, and begins the next one.
    pub(super) fn end(&mut self, part: i64) -> Option<Row> {
        self.last.clear();
        let (first, data) = (std::mem::take(&mut self.first), std::mem::take(&mut self.data));
        (!data.is_empty()).then_some(Row { first, part, data })
    }
}

/// Takes the next word of a block, of which `word` is the one before, and returns its list.
pub(super) fn next<'a>(rest: &mut &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], SearchError> {
    let shared = take(rest)?;
    let shared = usize::try_from(shared).ok().filter(|shared| *shared <= word.len());
    word.truncate(shared.ok_or_else(|| SearchError::Damaged)?);
    let length = take(rest)?;
    word.extend_from_slice(take_bytes(rest, length)?);
    let length = take(rest)?;
    take_bytes(rest, length)
}

/// Returns the bytes of a row with their checksum.
pub(super) fn sealed(segment: i64, word: &[u8], part: i64, mut data: Vec<u8>) -> Vec<u8> {
    let sum = checksum(segment, word, part, &data);
    data.extend_from_slice(&sum.to_le_bytes());
    data
}

/// Returns the bytes of a row without their checksum.
pub(super) fn opened<'a>(
    segment: i64,
    word: &[u8],
    part: i64,
    row: &'a [u8],
) -> Result<&'a [u8], SearchError> {
    let (data, sum) =
        row.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(|| SearchError::Damaged)?;
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
#[derive(Debug)]
pub(super) struct Row {
    /// The first word.
    pub(super) first: Vec<u8>,
    pub(super) part: i64,
    /// The block, with its checksum once it is stored.
    pub(super) data: Vec<u8>,
}

impl Row {
    pub(super) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { first: row.get(0)?, part: row.get(1)?, data: row.get(2)? })
    }

    /// Goes through the words and their lists, in order, as long as `each` returns true; returns its last answer.
    pub(super) fn words(
        &self,
        segment: i64,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<bool, SearchError>,
    ) -> Result<bool, SearchError> {
        let mut rest = opened(segment, &self.first, self.part, &self.data)?;
        let (mut word, mut goes_on) = (Vec::new(), true);
        while goes_on && !rest.is_empty() {
            let list = next(&mut rest, &mut word)?;
            goes_on = each(&word, list)?;
        }
        Ok(goes_on)
    }
}
