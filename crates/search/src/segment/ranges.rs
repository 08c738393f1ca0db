//! Ranges: seqs of removed entries.

use super::postings::{put, take};
use crate::error::SearchError;

/// Ranges of seqs, ascending, none next to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, seq: u64) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < seq);
        self.0.get(at).is_some_and(|(first, _)| *first <= seq)
    }

    pub(crate) fn has_all(&self, first: u64, last: u64) -> bool {
        self.0.iter().any(|range| range.0 <= first && last <= range.1)
    }

    pub(crate) fn add(&mut self, first: u64, last: u64) {
        // Those that overlap the new one or lie next to it become one with it.
        let from = self.0.partition_point(|range| range.1.saturating_add(1) < first);
        let to = self.0.partition_point(|range| range.0 <= last.saturating_add(1));
        let joined = self.0.get(from..to.max(from)).unwrap_or_default();
        let first = joined.first().map_or(first, |range| range.0.min(first));
        let last = joined.last().map_or(last, |range| range.1.max(last));
        self.0.splice(from..to.max(from), [(first, last)]);
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (first, last) in &self.0 {
            put(&mut out, *first);
            put(&mut out, last - first);
        }
        out
    }

    pub(crate) fn of(mut bytes: &[u8]) -> Result<Self, SearchError> {
        let mut ranges = Vec::new();
        while !bytes.is_empty() {
            let (first, length) = (take(&mut bytes)?, take(&mut bytes)?);
            ranges.push((first, first.checked_add(length).ok_or(SearchError::Damaged)?));
        }
        Ok(Self(ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Ranges::default();
        for (first, last) in [(10, 12), (1, 2), (20, 20), (4, 5), (3, 3)] {
            ranges.add(first, last);
        }
        assert_eq!(ranges.0, [(1, 5), (10, 12), (20, 20)]);
        ranges.add(11, 19);
        assert_eq!(ranges.0, [(1, 5), (10, 20)]);
        ranges.add(0, 100);
        assert_eq!(ranges.0, [(0, 100)]);
        assert!(ranges.has(0) && ranges.has(100) && !ranges.has(101));
        assert_eq!(Ranges::of(&ranges.bytes()).unwrap(), ranges);
    }
}
