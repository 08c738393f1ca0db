//! Inversion: the words of entries under way, and in which entries of a log each of them is.

use std::hash::BuildHasher as _;
use std::rc::Rc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::error::SearchError;
use super::segment::part::{Filed, class_of};
use super::segment::writer::{Fresh, SegmentWriter};
use super::text::each_text;
use super::words::{Spelled, Words};

/// The length of a word that is its first bytes.
const SHORT_BYTES: usize = 8;

/// The words of all entries under way, each once, by number.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
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

    /// Sorts the words.
    pub(super) fn order(&self) -> Order {
        let mut sorted: Vec<(u64, u32)> =
            self.words.iter().zip(0..).map(|(span, number)| (span.begin, number)).collect();
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
        self.words.get(number as usize).map_or(&[], |span| span.of(&self.bytes))
    }
}

impl Span {
    fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.at..self.at + self.length).unwrap_or_default()
    }
}

impl Order {
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
        vocabulary: &mut Vocabulary,
    ) -> Result<(), SearchError> {
        if seq <= self.last_seq {
            self.remove(seq, seq);
        }
        let Self { entries, occurrences, .. } = self;
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
        let (mut writer, mut begin) = (SegmentWriter::default(), 0);
        for number in numbers {
            let end = order.next.get_mut(number as usize).map_or(0, std::mem::take) as usize;
            let word = vocabulary.word(number);
            writer.begin();
            let of_word: &[(u32, u32)] = by_word.get(begin..end).unwrap_or_default();
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
            let (words, mut vocabulary, mut inversion) = (Words::new().unwrap(), Vocabulary::default(), Inversion::default());
            let borrowed: Vec<&str> = values.iter().map(String::as_str).collect();
            inversion.put(1, 5, "", &borrowed, &words, &mut vocabulary).unwrap();
            let (mut text, mut expected, mut found) = (String::new(), String::new(), String::new());
            values.iter().for_each(|value| text_of(value, &mut text));
            for word in words.of(&text).unwrap() {
                writeln!(expected, "{} {}", word.text, word.place - 1).unwrap();
            }
            for (number, place) in &inversion.occurrences {
                writeln!(found, "{} {place}", str::from_utf8(vocabulary.word(*number)).unwrap()).unwrap();
            }
            prop_assert_eq!(found, expected, "{}", text);
        }
    }
}
