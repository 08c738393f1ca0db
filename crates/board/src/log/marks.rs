//! Marks of a chunk, in a Bloom filter.
//!
//! A search skips chunks whose marks rule out a match.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::ops::Range;

use super::{Log, distance};

/// The number of bits for each mark, for about one false positive in a hundred chunks.
const BITS_PER_MARK: usize = 10;

/// The number of bits set for a mark.
const HASHES: u32 = 5;

/// The maximum number of marks in a filter. Beyond this number, a chunk matches any mark: the marks of an item with
/// many results could take more memory than its text.
const MARKS_MAX: usize = 4_096;

/// A searchable property of an entry, hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    /// Creates the mark of a value under a name.
    pub fn of(name: &'static str, value: &(impl Hash + ?Sized)) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        value.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Returns the positions of the mark's bits in a filter of `bits` bits.
    fn places(self, bits: u64) -> impl Iterator<Item = u64> {
        let (first, step) = (self.0, (self.0 >> 32) | 1);
        (0..HASHES).map(move |n| first.wrapping_add(u64::from(n).wrapping_mul(step)) % bits)
    }
}

/// The marks of a search. A match has at least one mark of each group.
#[derive(Clone, Debug, Default)]
pub struct Probe(pub Vec<Vec<Mark>>);

/// The marks of a chunk's entries.
#[derive(Debug)]
pub(super) struct Marks {
    /// The filter. `None` if there are too many marks.
    bits: Option<Box<[u64]>>,
}

impl Marks {
    pub(super) fn of(marks: &[Mark]) -> Self {
        if marks.len() > MARKS_MAX {
            return Self { bits: None };
        }
        let mut bits = vec![0_u64; (marks.len() * BITS_PER_MARK).div_ceil(64).max(1)];
        let count = 64 * bits.len() as u64;
        for place in marks.iter().flat_map(|mark| mark.places(count)) {
            if let Some(word) = usize::try_from(place / 64).ok().and_then(|at| bits.get_mut(at)) {
                *word |= 1 << (place % 64);
            }
        }
        Self { bits: Some(bits.into()) }
    }

    /// Returns true if an entry may match.
    pub(super) fn may_have(&self, probe: &Probe) -> bool {
        probe.0.iter().all(|one_of| one_of.iter().any(|mark| self.has(*mark)))
    }

    fn has(&self, mark: Mark) -> bool {
        let Some(bits) = &self.bits else { return true };
        let is_set = |place: u64| {
            let word = usize::try_from(place / 64).ok().and_then(|at| bits.get(at));
            word.is_none_or(|word| word & (1 << (place % 64)) != 0)
        };
        mark.places(64 * bits.len() as u64).all(is_set)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bits.as_ref().map_or(0, |bits| 8 * bits.len())
    }
}

impl Log {
    /// Returns the indexes of the entries in the same chunk or tail, and true if one of them may match.
    #[must_use]
    pub fn neighbours(&self, index: usize, probe: &Probe) -> (Range<usize>, bool) {
        let ordinal = self.begin.saturating_add(index as u64);
        let place = |ordinal: u64| distance(self.begin, ordinal);
        match self.part_of(ordinal).and_then(|part| self.parts.get(part)) {
            Some(part) => (place(part.begin)..place(part.end()), part.chunk.may_have(probe)),
            None => (place(self.tail_begin)..self.len().max(index.saturating_add(1)), true),
        }
    }
}
