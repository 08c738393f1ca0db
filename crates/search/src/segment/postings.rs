//! Postings: the documents of a segment that have a word, and its places in them, as bytes.
//!
//! A list is the number of documents; of each the double of its distance from the one before, and one more if the word is in it
//! several times, then how often; then the places, of each document by their distances. Numbers are of variable length (LEB128).

use crate::error::SearchError;

/// The occurrences of a word in one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occurrence {
    /// The number of the document in its segment.
    pub(crate) document: u32,
    /// The number of places.
    pub(crate) count: u32,
}

/// The occurrences of a word, ascending by document, and their places, document by document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Postings {
    pub(crate) occurrences: Vec<Occurrence>,
    pub(crate) places: Vec<u32>,
}

/// A list that is being written.
#[derive(Default)]
pub(crate) struct List {
    documents: u64,
    first: u32,
    last: u32,
    heads: Vec<u8>,
    places: Vec<u8>,
}

/// The numbers that a segment's documents have in another one.
pub(crate) enum Numbers {
    /// Each that much higher.
    From(u32),
    /// Each its own; those without one are left out.
    Of(Vec<Option<u32>>),
}

/// The bits of a number in each of its bytes.
const BITS: u32 = 7;

/// The bytes of a number of 64 bits.
const NUMBER_BYTES_MAX: u32 = 10;

/// Adds a number to bytes.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, number: u64) {
    // Most are of one byte.
    let [low, ..] = number.to_le_bytes();
    if number >> BITS == 0 { out.push(low) } else { put_long(out, number) }
}

#[inline(never)]
fn put_long(out: &mut Vec<u8>, mut number: u64) {
    let ([low, ..], [high, ..]) = (number.to_le_bytes(), (number >> BITS).to_le_bytes());
    if number >> (2 * BITS) == 0 {
        return out.extend_from_slice(&[low | 0x80, high]);
    }
    while number >> BITS > 0 {
        let [low, ..] = number.to_le_bytes();
        out.push(low | 0x80);
        number >>= BITS;
    }
    let [low, ..] = number.to_le_bytes();
    out.push(low);
}

/// Takes a number from the beginning of bytes.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Result<u64, SearchError> {
    // Most are of one byte, and nearly all others of two.
    let (number, rest) = match *bytes {
        [byte @ 0..0x80, rest @ ..] => (u64::from(*byte), rest),
        [low, high @ 0..0x80, rest @ ..] => {
            (u64::from(low & 0x7F) | u64::from(*high) << BITS, rest)
        }
        long => taken(long).ok_or_else(|| SearchError::Damaged)?,
    };
    *bytes = rest;
    Ok(number)
}

/// Returns a number of any length, and the bytes behind it.
#[inline(never)]
fn taken(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut rest) = (0, bytes);
    for at in 0..NUMBER_BYTES_MAX {
        let (byte, behind) = rest.split_first()?;
        rest = behind;
        number |= u64::from(byte & 0x7F) << (at * BITS);
        if byte & 0x80 == 0 {
            return Some((number, rest));
        }
    }
    None
}

/// Takes a number that fits into 32 bits.
#[inline]
pub(crate) fn take_small(bytes: &mut &[u8]) -> Result<u32, SearchError> {
    u32::try_from(take(bytes)?).map_err(|_| SearchError::Damaged)
}

/// Takes this many bytes.
pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], SearchError> {
    let length = usize::try_from(length).map_err(|_| SearchError::Damaged)?;
    let (taken, rest) = bytes.split_at_checked(length).ok_or_else(|| SearchError::Damaged)?;
    *bytes = rest;
    Ok(taken)
}

impl Postings {
    /// Adds a document with the places of the word in it.
    pub(crate) fn add(&mut self, document: u32, places: &[u32]) {
        let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
        self.occurrences.push(Occurrence { document, count });
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

    /// Adds the documents of a list, and their places if these are wanted.
    pub(crate) fn decode(&mut self, mut bytes: &[u8], places: bool) -> Result<(), SearchError> {
        let first = self.occurrences.len();
        let number = number_of(&mut bytes)?;
        self.occurrences.reserve(number);
        let mut document = 0;
        for _ in 0..number {
            let count;
            (document, count) = head(&mut bytes, document)?;
            self.occurrences.push(Occurrence { document, count });
        }
        if !places {
            return Ok(());
        }
        for Occurrence { count, .. } in self.occurrences.iter().skip(first) {
            let mut place = 0_u32;
            for _ in 0..*count {
                place = place
                    .checked_add(take_small(&mut bytes)?)
                    .ok_or_else(|| SearchError::Damaged)?;
                self.places.push(place);
            }
        }
        Ok(())
    }
}

/// Takes the number of a list's documents.
fn number_of(bytes: &mut &[u8]) -> Result<usize, SearchError> {
    let number = usize::try_from(take(bytes)?).map_err(|_| SearchError::Damaged)?;
    // Each document has two bytes or more.
    if number > bytes.len() { Err(SearchError::Damaged) } else { Ok(number) }
}

/// Takes the number of the document after another one, and the number of its places.
#[inline]
fn head(bytes: &mut &[u8], before: u32) -> Result<(u32, u32), SearchError> {
    let head = take(bytes)?;
    let distance = u32::try_from(head >> 1).map_err(|_| SearchError::Damaged)?;
    let document = before.checked_add(distance).ok_or_else(|| SearchError::Damaged)?;
    let count = if head & 1 == 0 { 1 } else { take_small(bytes)? };
    Ok((document, count))
}

/// Goes past the heads of so many documents. Returns how far the last document is, and the number of their places.
fn skip_heads(bytes: &mut &[u8], number: usize) -> Result<(u32, u64), SearchError> {
    let (mut rest, mut distance, mut count) = (*bytes, 0_u64, 0_u64);
    for _ in 0..number {
        let head = take(&mut rest)?;
        distance = distance.saturating_add(head >> 1);
        count += if head & 1 == 0 { 1 } else { u64::from(take_small(&mut rest)?) };
    }
    *bytes = rest;
    Ok((u32::try_from(distance).map_err(|_| SearchError::Damaged)?, count))
}

impl List {
    pub(crate) fn clear(&mut self) {
        (self.documents, self.first, self.last) = (0, 0, 0);
        self.heads.clear();
        self.places.clear();
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// Returns the first document.
    pub(crate) const fn first(&self) -> u32 {
        self.first
    }

    /// Returns the number of bytes besides the number of documents.
    pub(crate) const fn size(&self) -> usize {
        self.heads.len() + self.places.len()
    }

    /// Adds a document with the places of the word in it.
    pub(crate) fn add(&mut self, document: u32, places: impl ExactSizeIterator<Item = u32>) {
        self.head(document, u32::try_from(places.len()).unwrap_or(u32::MAX));
        let mut before = 0;
        for place in places {
            put(&mut self.places, u64::from(place - before));
            before = place;
        }
    }

    fn head(&mut self, document: u32, count: u32) {
        if self.documents == 0 {
            self.first = document;
        }
        let distance = u64::from(document - self.last);
        self.documents += 1;
        self.last = document;
        put(&mut self.heads, distance << 1 | u64::from(count != 1));
        if count != 1 {
            put(&mut self.heads, u64::from(count));
        }
    }

    /// Adds the documents of a list of another segment, all behind those that it has. Returns the number of their places.
    #[inline]
    pub(crate) fn join(&mut self, bytes: &[u8], numbers: &Numbers) -> Result<u64, SearchError> {
        match numbers {
            Numbers::From(offset) => self.join_all(bytes, *offset),
            Numbers::Of(numbers) => self.join_some(bytes, numbers),
        }
    }

    /// Only the first document's distance is another one: the rest is copied.
    fn join_all(&mut self, mut bytes: &[u8], offset: u32) -> Result<u64, SearchError> {
        let number = number_of(&mut bytes)?;
        if number == 0 {
            return Ok(0);
        }
        let (first, first_count) = head(&mut bytes, offset)?;
        // The bytes of a damaged segment may pass for others.
        if first < self.last {
            return Err(SearchError::Damaged);
        }
        self.head(first, first_count);
        let mut rest = bytes;
        let (distance, count) = skip_heads(&mut rest, number - 1)?;
        let (heads, places) = bytes.split_at(bytes.len() - rest.len());
        self.heads.extend_from_slice(heads);
        self.places.extend_from_slice(places);
        self.documents += number as u64 - 1;
        self.last = first.checked_add(distance).ok_or_else(|| SearchError::Damaged)?;
        Ok(u64::from(first_count) + count)
    }

    fn join_some(&mut self, bytes: &[u8], numbers: &[Option<u32>]) -> Result<u64, SearchError> {
        let (mut postings, mut count) = (Postings::default(), 0);
        postings.decode(bytes, true)?;
        for (Occurrence { document, .. }, places) in postings.documents() {
            let number = numbers.get(document as usize).copied().flatten();
            if let Some(number) = number {
                if number < self.last {
                    return Err(SearchError::Damaged);
                }
                self.add(number, places.iter().copied());
                count += places.len() as u64;
            }
        }
        Ok(count)
    }

    /// Adds the list with its length to bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut length = self.size() + 1;
        let mut documents = self.documents;
        while documents >= 1 << BITS {
            length += 1;
            documents >>= BITS;
        }
        put(out, length as u64);
        put(out, self.documents);
        out.extend_from_slice(&self.heads);
        out.extend_from_slice(&self.places);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the bytes of a list.
    fn encoded(postings: &Postings) -> Vec<u8> {
        let mut list = List::default();
        postings
            .documents()
            .for_each(|(one, places)| list.add(one.document, places.iter().copied()));
        bytes_of(&list)
    }

    fn bytes_of(list: &List) -> Vec<u8> {
        let mut out = Vec::new();
        list.write(&mut out);
        let mut bytes = out.as_slice();
        assert_eq!(take(&mut bytes).unwrap(), bytes.len() as u64);
        bytes.to_vec()
    }

    #[test]
    fn bytes_that_break_off_are_damage() {
        let mut postings = Postings::default();
        postings.add(3, &[0, 7, 300]);
        postings.add(1000, &(0..20).collect::<Vec<_>>());
        let bytes = encoded(&postings);
        for end in 0..bytes.len() {
            let cut = Postings::default().decode(&bytes[..end], true);
            assert!(matches!(cut, Err(SearchError::Damaged)), "{end}");
        }
        let endless = [0xFF; 12];
        assert!(Postings::default().decode(&endless, true).is_err());
        assert!(List::default().join(&endless, &Numbers::From(0)).is_err());
    }

    fn postings() -> impl Strategy<Value = Postings> {
        let places = prop::collection::vec(0..400_u32, 1..20);
        prop::collection::vec((1..5000_u32, places), 1..160).prop_map(|documents| {
            let (mut postings, mut at) = (Postings::default(), 0);
            for (distance, mut places) in documents {
                at += distance;
                places.sort_unstable();
                postings.add(at, &places);
            }
            postings
        })
    }

    proptest! {
        #[test]
        fn lists_are_read_as_they_were_written(written in postings()) {
            let (bytes, mut read, mut short) = (encoded(&written), Postings::default(), Postings::default());
            read.decode(&bytes, true).unwrap();
            short.decode(&bytes, false).unwrap();
            prop_assert_eq!(&short.occurrences, &written.occurrences);
            prop_assert_eq!(read, written);
        }

        #[test]
        fn lists_are_joined_with_new_numbers(
            parts in prop::collection::vec((postings(), any::<bool>(), any::<u64>()), 1..5),
        ) {
            let (mut list, mut expected, mut next, mut count) = (List::default(), Postings::default(), 0, 0);
            for (part, is_whole, kept) in parts {
                let last = part.occurrences.last().unwrap().document;
                let mut of_one: Vec<Option<u32>> = Vec::new();
                let mut end = next;
                for number in 0..=last {
                    let is_kept = is_whole || kept >> (number % 64) & 1 == 1;
                    of_one.push(is_kept.then_some(end));
                    end += u32::from(is_kept);
                }
                for (one, places) in part.documents() {
                    if let Some(number) = of_one[one.document as usize] {
                        expected.add(number, places);
                    }
                }
                let numbers = if is_whole { Numbers::From(next) } else { Numbers::Of(of_one) };
                count += list.join(&encoded(&part), &numbers).unwrap();
                next = end;
            }
            let mut joined = Postings::default();
            joined.decode(&bytes_of(&list), true).unwrap();
            prop_assert_eq!(count, expected.places.len() as u64);
            prop_assert_eq!(joined, expected);
        }
    }
}
