//! Parts: the places and lengths of a segment's documents, some in each row.

use std::f64::consts::SQRT_2;
use std::rc::Rc;

use super::postings::{put, take, take_bytes, take_small};
use crate::error::SearchError;

/// The number of documents in one part.
pub(crate) const DOCUMENTS_IN_PART: u32 = 128;

/// The place of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filed {
    /// The seq of the entry in its log.
    pub(crate) seq: u64,
    /// The time of its append.
    pub(crate) at: i64,
    /// Its author; empty if not named.
    pub(crate) agent: Rc<str>,
    /// The class of its length.
    pub(crate) class: u8,
}

/// The highest class of lengths.
const CLASS_MAX: u8 = 31;

/// Returns the class of a document with this number of words. Two classes are a factor of two.
pub(crate) fn class_of(words: u32) -> u8 {
    let words = u64::from(words.max(1));
    let log = words.ilog2();
    let is_upper = words * words >= 1 << (2 * log + 1);
    u8::try_from(2 * log + u32::from(is_upper)).unwrap_or(CLASS_MAX).min(CLASS_MAX)
}

/// Returns the least number of words of a class.
pub(crate) fn length_of(class: u8) -> f64 {
    let whole = f64::from(1_u32 << (class.min(CLASS_MAX) / 2));
    if class.is_multiple_of(2) { whole } else { whole * SQRT_2 }
}

/// The places of some documents: their seqs and times, each by its distance from the one before, their authors by numbers,
/// and the classes of their lengths.
#[derive(Default)]
pub(crate) struct Part {
    agents: Vec<Rc<str>>,
    rows: Vec<u8>,
    seq: u64,
    at: i64,
}

impl Part {
    pub(crate) fn add(&mut self, filed: &Filed) {
        let known = self.agents.iter().position(|agent| *agent == filed.agent);
        let agent = known.unwrap_or(self.agents.len());
        if known.is_none() {
            self.agents.push(Rc::clone(&filed.agent));
        }
        // They may go down, and come back by the same sum.
        put(&mut self.rows, filed.seq.wrapping_sub(self.seq));
        put(&mut self.rows, zigzag(filed.at.wrapping_sub(self.at)));
        put(&mut self.rows, agent as u64);
        self.rows.push(filed.class);
        (self.seq, self.at) = (filed.seq, filed.at);
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.agents.len() as u64);
        for agent in &self.agents {
            put(&mut out, agent.len() as u64);
            out.extend_from_slice(agent.as_bytes());
        }
        out.extend_from_slice(&self.rows);
        out
    }
}

/// The places of the documents of a part, read one after the other, up to the one that is asked for.
pub(crate) struct PartRows {
    agents: Vec<Rc<str>>,
    rows: Vec<u8>,
    next: NextRow,
}

/// The document of a part that is read next.
#[derive(Clone, Copy, Default)]
struct NextRow {
    /// Its number in the part.
    number: usize,
    /// The bytes of those before it.
    from: usize,
    /// The seq and the time of the one before it.
    before: (u64, i64),
}

impl PartRows {
    pub(crate) fn of(mut bytes: &[u8]) -> Result<Self, SearchError> {
        let mut agents: Vec<Rc<str>> = Vec::new();
        for _ in 0..take(&mut bytes)? {
            let length = take(&mut bytes)?;
            let agent = std::str::from_utf8(take_bytes(&mut bytes, length)?);
            agents.push(agent.map_err(|_| SearchError::Damaged)?.into());
        }
        Ok(Self { agents, rows: bytes.to_vec(), next: NextRow::default() })
    }

    /// Returns the next document.
    pub(crate) fn read(&mut self) -> Result<Option<Filed>, SearchError> {
        let NextRow { number, from, before: (seq, at) } = self.next;
        let mut rest = self.rows.get(from..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let seq = seq.wrapping_add(take(&mut rest)?);
        let at = at.wrapping_add(unzigzag(take(&mut rest)?));
        let agent = self.agents.get(take_small(&mut rest)? as usize);
        let agent = Rc::clone(agent.ok_or_else(|| SearchError::Damaged)?);
        let (class, rest) = rest.split_first().ok_or_else(|| SearchError::Damaged)?;
        let from = self.rows.len() - rest.len();
        self.next = NextRow { number: number + 1, from, before: (seq, at) };
        Ok(Some(Filed { seq, at, agent, class: *class }))
    }

    /// Returns a document by its number in the part. To ask for them in order costs the least.
    pub(crate) fn get(&mut self, number: usize) -> Result<Filed, SearchError> {
        if number < self.next.number {
            self.next = NextRow::default();
        }
        loop {
            let filed = self.read()?.ok_or_else(|| SearchError::Damaged)?;
            if self.next.number > number {
                return Ok(filed);
            }
        }
    }
}

/// Returns a number without its sign: 0, -1, 1, -2 and so on become 0, 1, 2, 3.
const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_classes_are_a_factor_of_two() {
        let classes = [0, 1, 2, 3, 4, 6, 100, 1000, u32::MAX].map(class_of);
        assert_eq!(classes, [0, 0, 2, 3, 4, 5, 13, 19, 31]);
        for words in 1..3000 {
            let (class, words) = (class_of(words), f64::from(words));
            assert!(length_of(class) <= words + 1e-9 && words < length_of(class + 1) + 1e-9);
        }
    }

    proptest! {
        #[test]
        fn parts_are_read_as_they_were_written(
            rows in prop::collection::vec((any::<u64>(), any::<i64>(), "[a-c]{0,2}", any::<u8>()), 0..60),
        ) {
            let filed: Vec<Filed> = rows
                .into_iter()
                .map(|(seq, at, agent, class)| Filed { seq, at, agent: agent.into(), class })
                .collect();
            let mut part = Part::default();
            filed.iter().for_each(|one| part.add(one));
            let mut read = PartRows::of(&part.bytes()).unwrap();
            for number in (0..filed.len()).rev().chain(0..filed.len()) {
                prop_assert_eq!(&read.get(number).unwrap(), &filed[number]);
            }
            prop_assert!(read.get(filed.len()).is_err());
        }
    }
}
