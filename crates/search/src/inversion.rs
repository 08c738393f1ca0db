//! Inversion: the words of entries under way, and in which entries of a log each of them is.

use std::hash::BuildHasher as _;
use std::rc::Rc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::error::SearchError;
use super::fold::folded;
use super::segment::merge::beginning;
use super::segment::part::{Filed, class_of};
use super::segment::writer::{Fresh, SegmentWriter};
use super::words::Words;

/// The words of all entries under way, each once, by number.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    bytes: Vec<u8>,
    /// The end of each word.
    ends: Vec<usize>,
    numbers: HashTable<u32>,
    /// Its keys are drawn at random, since the words are anybody's.
    hasher: DefaultHashBuilder,
}

/// The entries of a log under way.
#[derive(Debug, Default)]
pub(super) struct Inversion {
    entries: Vec<Entry>,
    /// The words of the entries, each with its place.
    occurrences: Vec<(u32, u32)>,
    last_seq: u64,
}

/// An entry under way.
#[derive(Debug)]
struct Entry {
    filed: Filed,
    /// The end of its occurrences.
    end: usize,
    /// False once it was replaced or removed.
    is_live: bool,
}

/// The order of a vocabulary's words, and room to count them, for all logs of a batch.
#[derive(Debug)]
pub(super) struct Order {
    /// The rank of each word.
    ranks: Vec<u32>,
    /// For each word, the place of its next occurrence in the log.
    next: Vec<u32>,
}

impl Vocabulary {
    /// Returns the number of a word.
    fn number(&mut self, word: &[u8]) -> u32 {
        let Self { bytes, ends, numbers, hasher } = self;
        let hash = hasher.hash_one(word);
        if let Some(number) = numbers.find(hash, |number| nth(bytes, ends, *number) == word) {
            return *number;
        }
        // A batch has less than 2³² bytes.
        let number = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(word);
        ends.push(bytes.len());
        numbers.insert_unique(hash, number, |number| hasher.hash_one(nth(bytes, ends, *number)));
        number
    }

    /// Sorts the words.
    pub(super) fn order(&self) -> Order {
        let numbers = 0..u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let mut sorted: Vec<(u64, u32)> =
            numbers.map(|number| (beginning(self.word(number)), number)).collect();
        sorted.sort_unstable_by(|(a, one), (b, other)| {
            a.cmp(b).then_with(|| self.word(*one).cmp(self.word(*other)))
        });
        let mut ranks = vec![0; sorted.len()];
        for (rank, (_, number)) in (0..).zip(&sorted) {
            if let Some(at) = ranks.get_mut(*number as usize) {
                *at = rank;
            }
        }
        Order { next: vec![0; ranks.len()], ranks }
    }

    fn word(&self, number: u32) -> &[u8] {
        nth(&self.bytes, &self.ends, number)
    }
}

/// Returns a word by its number.
fn nth<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let at = number as usize;
    let begin = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    ends.get(at).and_then(|end| bytes.get(begin..*end)).unwrap_or_default()
}

impl Order {
    fn rank(&self, number: u32) -> u32 {
        self.ranks.get(number as usize).copied().unwrap_or(u32::MAX)
    }
}

impl Inversion {
    /// Adds an entry in place of what is known of it. One without words is left out.
    pub(super) fn put(
        &mut self,
        seq: u64,
        at: i64,
        agent: &str,
        text: &str,
        words: &Words,
        vocabulary: &mut Vocabulary,
    ) -> Result<(), SearchError> {
        if seq <= self.last_seq {
            self.remove(seq, seq);
        }
        let Self { entries, occurrences, .. } = self;
        let begin = occurrences.len();
        let each =
            |word: &str, place| occurrences.push((vocabulary.number(word.as_bytes()), place));
        // Of ASCII, folding changes control characters alone, which separate words too.
        if text.is_ascii() { words.each(text, each) } else { words.each(&folded(text), each) }?;
        let end = occurrences.len();
        if begin == end {
            return Ok(());
        }
        let length = u32::try_from(end - begin).unwrap_or(u32::MAX);
        let last = entries.last().map(|entry| &entry.filed.agent);
        let agent = last.filter(|last| ***last == *agent).map_or_else(|| agent.into(), Rc::clone);
        let filed = Filed { seq, at, agent, class: class_of(length) };
        entries.push(Entry { filed, end, is_live: true });
        self.last_seq = self.last_seq.max(seq);
        Ok(())
    }

    /// Removes the entries from `first` to `last`.
    pub(super) fn remove(&mut self, first: u64, last: u64) {
        let range = first..=last;
        self.entries
            .iter_mut()
            .filter(|entry| range.contains(&entry.filed.seq))
            .for_each(|entry| entry.is_live = false);
    }

    /// Makes a segment of the entries; `None` if there are none.
    pub(super) fn finish(self, vocabulary: &Vocabulary, order: &mut Order) -> Option<Fresh> {
        let (mut documents, mut begin, mut live) = (Vec::new(), 0, Vec::new());
        for Entry { filed, end, is_live } in self.entries {
            let of_one = self.occurrences.get(begin..end).unwrap_or_default();
            begin = end;
            if is_live {
                documents.push(filed);
                live.push(of_one);
            }
        }
        if documents.is_empty() {
            return None;
        }
        let numbers = order.count(&live);
        let mut by_word = vec![(0, 0); live.iter().map(|of_one| of_one.len()).sum()];
        for (document, of_one) in (0..).zip(&live) {
            for (number, place) in *of_one {
                let Some(next) = order.next.get_mut(*number as usize) else { continue };
                if let Some(to) = by_word.get_mut(*next as usize) {
                    *to = (document, *place);
                }
                *next += 1;
            }
        }
        let (mut writer, mut places, mut begin) = (SegmentWriter::default(), Vec::new(), 0);
        for number in numbers {
            let end = order.next.get_mut(number as usize).map_or(0, std::mem::take) as usize;
            let word = vocabulary.word(number);
            writer.begin();
            let of_word: &[(u32, u32)] = by_word.get(begin..end).unwrap_or_default();
            for of_one in of_word.chunk_by(|a, b| a.0 == b.0) {
                let Some((document, _)) = of_one.first() else { continue };
                places.clear();
                places.extend(of_one.iter().map(|(_, place)| *place));
                writer.add(word, *document, &places);
            }
            writer.end(word);
            begin = end;
        }
        Some(writer.finish(documents))
    }
}

impl Order {
    /// Returns the words of a log in order, and notes where the occurrences of each begin.
    fn count(&mut self, live: &[&[(u32, u32)]]) -> Vec<u32> {
        let mut numbers = Vec::new();
        for (number, _) in live.iter().copied().flatten() {
            if let Some(count) = self.next.get_mut(*number as usize) {
                if *count == 0 {
                    numbers.push(*number);
                }
                *count += 1;
            }
        }
        numbers.sort_unstable_by_key(|number| self.rank(*number));
        let mut begin = 0;
        for number in &numbers {
            if let Some(next) = self.next.get_mut(*number as usize) {
                begin += std::mem::replace(next, begin);
            }
        }
        numbers
    }
}
