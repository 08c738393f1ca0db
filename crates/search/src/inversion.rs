//! Inversion: the words of entries under way, and in which entries of a log each of them is.

use std::hash::BuildHasher as _;
use std::ops::Range;
use std::rc::Rc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::error::SearchError;
use super::segment::part::{Filed, class_of};
use super::segment::writer::{Fresh, SegmentWriter};
use super::text::each_text;
use super::words::{Spelled, Words};

/// The length of a word that is its first bytes.
const SHORT_BYTES: usize = 8;

/// A log with this share of a batch's words takes them from those in order; one with fewer sorts its own.
const SORTED_SHARE: usize = 16;

/// How many times the words of a batch a table may have room for that is emptied.
const EMPTIED_TIMES: usize = 16;

/// The words of all entries under way. Its room is used by one batch after the other.
#[derive(Debug, Default)]
pub(super) struct Corpus {
    vocabulary: Vocabulary,
    /// The words of one entry after the other, each with its place.
    occurrences: Vec<(u32, u32)>,
    order: Order,
}

/// Words, each once, by number.
#[derive(Debug, Default)]
struct Vocabulary {
    bytes: Vec<u8>,
    words: Vec<Span>,
    /// The numbers of words of at most [`SHORT_BYTES`], each with these bytes.
    short: HashTable<(u64, u32)>,
    long: HashTable<u32>,
    /// Its keys are drawn at random, since the words are anybody's.
    hasher: DefaultHashBuilder,
}

/// A word among the bytes of all.
#[derive(Debug)]
struct Span {
    /// Its first eight bytes.
    begin: u64,
    at: usize,
    length: usize,
}

/// The entries of a log under way.
#[derive(Debug, Default)]
pub(super) struct Inversion {
    entries: Vec<Entry>,
    last_seq: u64,
}

/// An entry under way.
#[derive(Debug)]
struct Entry {
    filed: Filed,
    /// Its occurrences among those of all.
    occurrences: Range<usize>,
    /// False once it was replaced or removed.
    is_live: bool,
}

/// The order of a vocabulary's words, and room to count them, for all logs of a batch.
#[derive(Debug, Default)]
struct Order {
    /// The words in order.
    sorted: Vec<u32>,
    /// The rank of each word.
    ranks: Vec<u32>,
    /// For each word, the place of its next occurrence in the log; zero between two logs.
    next: Vec<u32>,
    /// The occurrences of a log by words: the document of each, and its place there.
    by_word: Vec<(u32, u32)>,
}

impl Corpus {
    /// Forgets the words, and keeps the room.
    pub(super) fn clear(&mut self) {
        self.vocabulary.clear();
        self.occurrences.clear();
    }

    /// Sorts the words, once all are there.
    pub(super) fn sort(&mut self) {
        self.order.sort(&self.vocabulary);
    }
}

impl Vocabulary {
    /// Returns the number of a word.
    #[inline]
    fn number(&mut self, word: Spelled<'_>) -> u32 {
        if word.length > SHORT_BYTES {
            return self.number_of_long(word.bytes(), word.first);
        }
        let hash = self.hasher.hash_one(word.first);
        match self.short.find(hash, |(first, _)| *first == word.first) {
            Some((_, number)) => *number,
            None => self.add_short(word.bytes(), word.first, hash),
        }
    }

    #[inline(never)]
    fn add_short(&mut self, word: &[u8], first: u64, hash: u64) -> u32 {
        let number = self.add(word, first);
        let Self { short, hasher, .. } = self;
        short.insert_unique(hash, (first, number), |(first, _)| hasher.hash_one(first));
        number
    }

    #[inline(never)]
    fn number_of_long(&mut self, word: &[u8], first: u64) -> u32 {
        let hash = self.hasher.hash_one(word);
        if let Some(number) = self.long.find(hash, |number| self.word(*number) == word) {
            return *number;
        }
        let number = self.add(word, first);
        let Self { bytes, words, long, hasher, .. } = self;
        long.insert_unique(hash, number, |number| {
            words.get(*number as usize).map_or(0, |span| hasher.hash_one(span.of(bytes)))
        });
        number
    }

    fn add(&mut self, word: &[u8], begin: u64) -> u32 {
        // A batch has less than 2³² bytes.
        let number = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.words.push(Span { begin, at: self.bytes.len(), length: word.len() });
        self.bytes.extend_from_slice(word);
        number
    }

    fn clear(&mut self) {
        // To empty a large table takes longer than to fill a small one.
        let most = EMPTIED_TIMES * self.words.len();
        if self.short.capacity() > most {
            self.short = HashTable::new();
        }
        if self.long.capacity() > most {
            self.long = HashTable::new();
        }
        self.short.clear();
        self.long.clear();
        self.words.clear();
        self.bytes.clear();
    }

    fn word(&self, number: u32) -> &[u8] {
        self.words.get(number as usize).map_or(&[], |span| span.of(&self.bytes))
    }
}

impl Span {
    fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.at..self.at + self.length).unwrap_or_default()
    }
}

impl Order {
    fn sort(&mut self, vocabulary: &Vocabulary) {
        let begins = vocabulary.words.iter().map(|span| span.begin);
        let mut sorted: Vec<(u64, u32)> = begins.zip(0..).collect();
        // Few begin alike: numbers alone are compared the fastest.
        sorted.sort_unstable_by_key(|(begin, _)| *begin);
        for alike in sorted.chunk_by_mut(|(a, _), (b, _)| a == b).filter(|alike| alike.len() > 1) {
            alike.sort_unstable_by_key(|(_, number)| vocabulary.word(*number));
        }
        self.sorted.clear();
        self.sorted.extend(sorted.into_iter().map(|(_, number)| number));
        self.ranks.resize(self.sorted.len(), 0);
        self.next.resize(self.sorted.len(), 0);
        for (rank, number) in (0..).zip(&self.sorted) {
            if let Some(at) = self.ranks.get_mut(*number as usize) {
                *at = rank;
            }
        }
    }

    fn rank(&self, number: u32) -> u32 {
        self.ranks.get(number as usize).copied().unwrap_or(u32::MAX)
    }
}

impl Inversion {
    /// Adds an entry with the texts of JSON values, in place of what is known of it. One without words is left out.
    pub(super) fn put(
        &mut self,
        seq: u64,
        at: i64,
        agent: &str,
        values: &[&str],
        words: &Words,
        corpus: &mut Corpus,
    ) -> Result<(), SearchError> {
        if seq <= self.last_seq {
            self.remove(seq, seq);
        }
        let Corpus { vocabulary, occurrences, .. } = corpus;
        let begin = occurrences.len();
        let mut length = 0;
        words.each(
            |texts| {
                let mut add = |text: &str| texts.add(text);
                values.iter().try_for_each(|value| each_text(value, &mut length, &mut add))
            },
            |word, place| occurrences.push((vocabulary.number(word), place)),
        )?;
        let end = occurrences.len();
        if begin == end {
            return Ok(());
        }
        let length = u32::try_from(end - begin).unwrap_or(u32::MAX);
        let last = self.entries.last().map(|entry| &entry.filed.agent);
        let agent = last.filter(|last| ***last == *agent).map_or_else(|| agent.into(), Rc::clone);
        let filed = Filed { seq, at, agent, class: class_of(length) };
        self.entries.push(Entry { filed, occurrences: begin..end, is_live: true });
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
    pub(super) fn finish(self, corpus: &mut Corpus) -> Option<Fresh> {
        let Corpus { vocabulary, occurrences, order } = corpus;
        let (mut documents, mut live) = (Vec::new(), Vec::new());
        for Entry { filed, occurrences: of_one, is_live } in self.entries {
            if is_live {
                documents.push(filed);
                live.push(occurrences.get(of_one).unwrap_or_default());
            }
        }
        if documents.is_empty() {
            return None;
        }
        let numbers = order.invert(&live);
        let (mut writer, mut begin) = (SegmentWriter::default(), 0);
        for number in numbers {
            let end = order.next.get_mut(number as usize).map_or(0, std::mem::take) as usize;
            let word = vocabulary.word(number);
            writer.begin();
            let of_word: &[(u32, u32)] = order.by_word.get(begin..end).unwrap_or_default();
            for of_one in of_word.chunk_by(|a, b| a.0 == b.0) {
                let Some((document, _)) = of_one.first() else { continue };
                writer.add(word, *document, of_one.iter().map(|(_, place)| *place));
            }
            writer.end(word);
            begin = end;
        }
        Some(writer.finish(documents))
    }
}

impl Order {
    /// Puts the occurrences in a log's documents by words. Returns the words in order; `next` is where those of each end.
    fn invert(&mut self, live: &[&[(u32, u32)]]) -> Vec<u32> {
        let numbers = self.count(live);
        let all = live.iter().map(|of_one| of_one.len()).sum();
        let Self { next, by_word, .. } = self;
        if by_word.len() < all {
            by_word.resize(all, (0, 0));
        }
        for (document, of_one) in (0..).zip(live) {
            for (number, place) in *of_one {
                let Some(next) = next.get_mut(*number as usize) else { continue };
                if let Some(to) = by_word.get_mut(*next as usize) {
                    *to = (document, *place);
                }
                *next += 1;
            }
        }
        numbers
    }

    /// Returns the words of a log in order, and notes where the occurrences of each begin.
    fn count(&mut self, live: &[&[(u32, u32)]]) -> Vec<u32> {
        let mut numbers = Vec::new();
        for of_one in live {
            for (number, _) in *of_one {
                let Some(count) = self.next.get_mut(*number as usize) else { continue };
                if *count == 0 {
                    numbers.push(*number);
                }
                *count += 1;
            }
        }
        if numbers.len() > self.sorted.len() / SORTED_SHARE {
            let is_there = |number: &u32| self.next.get(*number as usize).is_some_and(|n| *n > 0);
            numbers.clear();
            numbers.extend(self.sorted.iter().copied().filter(is_there));
        } else {
            numbers.sort_unstable_by_key(|number| self.rank(*number));
        }
        let mut begin = 0;
        for number in &numbers {
            if let Some(next) = self.next.get_mut(*number as usize) {
                begin += std::mem::replace(next, begin);
            }
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;
    use crate::text::text_of;

    fn json() -> impl Strategy<Value = String> {
        let text = "([ -~]{0,9}|\\PC{0,6}|[\u{1}-\u{1F}é日가을الÉ“€я\u{300}\u{200C}]{0,6}){0,3}"
            .prop_map(|text: String| {
                let mut out = String::new();
                exact_json::quote(&text, &mut out);
                out
            });
        let leaf = prop_oneof![
            text.clone(),
            any::<i16>().prop_map(|n| n.to_string()),
            Just("true".to_owned()),
            Just("1.5e-3".to_owned())
        ];
        leaf.prop_recursive(3, 12, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|all| format!("[{}]", all.join(" , "))),
                prop::collection::vec((text.clone(), inner), 0..4).prop_map(|all| {
                    let all: Vec<_> =
                        all.iter().map(|(name, value)| format!("{name} :{value}")).collect();
                    format!("{{{}}}", all.join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_words_of_json_are_those_of_its_text(values in prop::collection::vec(json(), 1..3)) {
            let (words, mut corpus, mut inversion) = (Words::new().unwrap(), Corpus::default(), Inversion::default());
            let borrowed: Vec<&str> = values.iter().map(String::as_str).collect();
            inversion.put(1, 5, "", &borrowed, &words, &mut corpus).unwrap();
            let (mut text, mut expected, mut found) = (String::new(), String::new(), String::new());
            values.iter().for_each(|value| text_of(value, &mut text));
            for word in words.of(&text).unwrap() {
                writeln!(expected, "{} {}", word.text, word.place - 1).unwrap();
            }
            for (number, place) in &corpus.occurrences {
                writeln!(found, "{} {place}", str::from_utf8(corpus.vocabulary.word(*number)).unwrap()).unwrap();
            }
            prop_assert_eq!(found, expected, "{}", text);
        }
    }
}
