//! Postings: the documents of a segment that have a word, and its places in them, as bytes.
//!
//! A list is the number of documents; of each its distance from the one before and a byte with the class of its length and
//! the number of places; then the places, of each document by their distances. Numbers are of variable length (LEB128).

use std::f64::consts::SQRT_2;

use crate::error::SearchError;

/// The occurrences of a word in one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occurrence {
    /// The number of the document in its segment.
    pub(crate) document: u32,
    /// The class of the document's length.
    pub(crate) class: u8,
    /// The number of places.
    pub(crate) count: u32,
}

/// The occurrences of a word, ascending by document, and their places, document by document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Postings {
    pub(crate) occurrences: Vec<Occurrence>,
    pub(crate) places: Vec<u32>,
}

/// The number of places that fits into the byte with the class. A greater one follows it.
const COUNT_MAX: u32 = 7;

/// The highest class of lengths.
const CLASS_MAX: u8 = 31;

/// The bits of a number in each of its bytes.
const BITS: u32 = 7;

/// The most bytes of a list besides its documents: their number, and what the first one's distance, which is from zero, has
/// more.
const HEAD_BYTES_MAX: usize = 9;

/// The bytes of a number of 64 bits.
const NUMBER_BYTES_MAX: u32 = 10;

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

/// Adds a number to bytes.
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= BITS;
        if number == 0 {
            out.push(low & 0x7F);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Returns the number of bytes that [`put`] adds.
const fn bytes_of(number: u64) -> usize {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(BITS) as usize
}

/// Returns the number of bytes of a document in a list.
fn bytes_of_one(occurrence: Occurrence, before: u32, places: &[u32]) -> usize {
    let Occurrence { document, count, .. } = occurrence;
    let count = if count < COUNT_MAX { 0 } else { bytes_of(u64::from(count)) };
    let mut last = 0;
    let places = places.iter().map(|place| {
        let distance = place - last;
        last = *place;
        bytes_of(u64::from(distance))
    });
    bytes_of(u64::from(document - before)) + 1 + count + places.sum::<usize>()
}

/// Takes a number from the beginning of bytes.
pub(crate) fn take(bytes: &mut &[u8]) -> Result<u64, SearchError> {
    // Most are of one byte.
    if let Some((byte, rest)) = bytes.split_first()
        && *byte < 0x80
    {
        *bytes = rest;
        return Ok(u64::from(*byte));
    }
    let mut number = 0;
    for at in 0..NUMBER_BYTES_MAX {
        let (byte, rest) = bytes.split_first().ok_or(SearchError::Damaged)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << (at * BITS);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(SearchError::Damaged)
}

/// Takes a number that fits into 32 bits.
pub(crate) fn take_small(bytes: &mut &[u8]) -> Result<u32, SearchError> {
    u32::try_from(take(bytes)?).map_err(|_| SearchError::Damaged)
}

/// Takes this many bytes.
pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], SearchError> {
    let length = usize::try_from(length).map_err(|_| SearchError::Damaged)?;
    let (taken, rest) = bytes.split_at_checked(length).ok_or(SearchError::Damaged)?;
    *bytes = rest;
    Ok(taken)
}

impl Postings {
    /// Adds a document with the places of the word in it.
    pub(crate) fn add(&mut self, document: u32, class: u8, places: &[u32]) {
        let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
        self.occurrences.push(Occurrence { document, class, count });
        self.places.extend_from_slice(places);
    }

    /// Returns each document with its places.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (Occurrence, &[u32])> {
        let mut rest = self.places.as_slice();
        self.occurrences.iter().map(move |occurrence| {
            let count = usize::try_from(occurrence.count).unwrap_or(usize::MAX).min(rest.len());
            let (places, after) = rest.split_at(count);
            rest = after;
            (*occurrence, places)
        })
    }

    /// Joins lists of several words: each document once, with the places of all.
    pub(crate) fn joined(lists: &[Self]) -> Self {
        let mut all: Vec<_> = lists.iter().flat_map(Self::documents).collect();
        all.sort_by_key(|(occurrence, _)| occurrence.document);
        let mut joined = Self::default();
        for of_one in all.chunk_by(|(a, _), (b, _)| a.document == b.document) {
            let Some(((first, _), rest)) = of_one.split_first() else { continue };
            let mut occurrence = *first;
            occurrence.count += rest.iter().map(|(next, _)| next.count).sum::<u32>();
            joined.occurrences.push(occurrence);
            let mut places: Vec<u32> =
                of_one.iter().flat_map(|(_, places)| *places).copied().collect();
            places.sort_unstable();
            joined.places.append(&mut places);
        }
        joined
    }

    /// Makes bytes of the list, in lists of at most `bytes_max` bytes or of one document. Each is given with its first
    /// document.
    pub(crate) fn encode(&self, bytes_max: usize, mut each: impl FnMut(u32, &[u8])) {
        let (mut list, mut size, mut before) = (Self::default(), HEAD_BYTES_MAX, 0);
        let mut end = |list: &Self| {
            let first = list.occurrences.first().map_or(0, |first| first.document);
            each(first, &list.encoded());
        };
        for (occurrence, places) in self.documents() {
            let more = bytes_of_one(occurrence, before, places);
            if size + more > bytes_max && !list.occurrences.is_empty() {
                end(&list);
                (list, size) = (Self::default(), HEAD_BYTES_MAX);
            }
            size += more;
            before = occurrence.document;
            list.add(occurrence.document, occurrence.class, places);
        }
        end(&list);
    }

    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + 3 * self.occurrences.len() + self.places.len());
        put(&mut out, self.occurrences.len() as u64);
        let mut before = 0;
        for Occurrence { document, class, count } in &self.occurrences {
            put(&mut out, u64::from(document - before));
            before = *document;
            let low = u8::try_from(*count.min(&COUNT_MAX)).unwrap_or_default();
            out.push(class << 3 | low);
            if *count >= COUNT_MAX {
                put(&mut out, u64::from(*count));
            }
        }
        for (_, places) in self.documents() {
            let mut before = 0;
            for place in places {
                put(&mut out, u64::from(place - before));
                before = *place;
            }
        }
        out
    }

    /// Adds the documents of a list, and their places if these are wanted.
    pub(crate) fn decode(&mut self, mut bytes: &[u8], places: bool) -> Result<(), SearchError> {
        let number = usize::try_from(take(&mut bytes)?).map_err(|_| SearchError::Damaged)?;
        // Each document has two bytes or more.
        if number > bytes.len() {
            return Err(SearchError::Damaged);
        }
        let (first, mut document) = (self.occurrences.len(), 0_u32);
        self.occurrences.reserve(number);
        for _ in 0..number {
            let distance = take_small(&mut bytes)?;
            document = document.checked_add(distance).ok_or(SearchError::Damaged)?;
            let (byte, rest) = bytes.split_first().ok_or(SearchError::Damaged)?;
            bytes = rest;
            let low = u32::from(byte & 0x7);
            let count = if low == COUNT_MAX { take_small(&mut bytes)? } else { low };
            self.occurrences.push(Occurrence { document, class: byte >> 3, count });
        }
        if !places {
            return Ok(());
        }
        for Occurrence { count, .. } in self.occurrences.iter().skip(first) {
            let mut place = 0_u32;
            for _ in 0..*count {
                place = place.checked_add(take_small(&mut bytes)?).ok_or(SearchError::Damaged)?;
                self.places.push(place);
            }
        }
        Ok(())
    }
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

    #[test]
    fn bytes_that_break_off_are_damage() {
        let mut postings = Postings::default();
        postings.add(3, 5, &[0, 7, 300]);
        postings.add(1000, 31, &(0..20).collect::<Vec<_>>());
        let bytes = postings.encoded();
        for end in 0..bytes.len() {
            let cut = Postings::default().decode(&bytes[..end], true);
            assert!(matches!(cut, Err(SearchError::Damaged)), "{end}");
        }
        let endless = [0xFF; 12];
        assert!(Postings::default().decode(&endless, true).is_err());
    }

    proptest! {
        #[test]
        fn lists_are_read_as_they_were_written(
            documents in prop::collection::vec((1..5000_u32, 0..32_u8, prop::collection::vec(0..400_u32, 1..20)), 1..60),
            bytes_max in 1..400_usize,
        ) {
            let (mut written, mut at) = (Postings::default(), 0);
            for (distance, class, mut places) in documents {
                at += distance;
                places.sort_unstable();
                written.add(at, class, &places);
            }
            let (mut all, mut short) = (Postings::default(), Postings::default());
            written.encode(bytes_max, |first, list| {
                let before = all.occurrences.len();
                all.decode(list, true).unwrap();
                short.decode(list, false).unwrap();
                assert_eq!(first, all.occurrences[before].document);
                assert!(list.len() <= bytes_max || all.occurrences.len() == before + 1);
            });
            prop_assert_eq!(&short.occurrences, &written.occurrences);
            prop_assert_eq!(all, written);
        }
    }
}
