//! Which entries of a log a prompt shows: neighbours stay together, since what was made of them before is kept
//! together.

use std::ops::Range;

use tokio::task::yield_now;

use crate::board::{Filter, Log, LogName, Run};

/// Some entries of a log: ascending ranges of indexes, none of them empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Picked(Vec<Range<usize>>);

impl Picked {
    /// Those of a log that match.
    pub(super) async fn of(log: &Log, name: &LogName, filter: &Filter) -> Self {
        if filter.is_empty() {
            return Self::default().and(0..log.len());
        }
        let (mut picked, mut index) = (Self::default(), 0);
        for run in log.runs(0..log.len()).collect::<Vec<_>>() {
            for entry in run.entries() {
                if filter.matches(name, entry) {
                    picked = picked.and(index..index + 1);
                }
                index += 1;
            }
            // Others have their turn.
            yield_now().await;
        }
        picked
    }

    /// These and those that come behind them.
    fn and(mut self, more: Range<usize>) -> Self {
        match self.0.last_mut() {
            _ if more.is_empty() => {}
            Some(last) if last.end == more.start => last.end = more.end,
            Some(_) | None => self.0.push(more),
        }
        self
    }

    /// The last so many of them.
    pub(super) fn last(self, count: usize) -> Self {
        let mut passed = self.len().saturating_sub(count);
        let mut last = Self::default();
        for range in self.0 {
            let start = (range.start + passed).min(range.end);
            passed -= start - range.start;
            last = last.and(start..range.end);
        }
        last
    }

    /// Those that are none of these indexes, which ascend.
    pub(super) fn without(self, indexes: &[usize]) -> Self {
        let (mut left, mut gone) = (Self::default(), indexes.iter().copied().peekable());
        for range in self.0 {
            let mut start = range.start;
            while let Some(index) = gone.next_if(|index| *index < range.end) {
                left = left.and(start..index.max(start));
                start = start.max(index + 1);
            }
            left = left.and(start..range.end);
        }
        left
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Range::len).sum()
    }

    /// Their indexes.
    pub(super) fn indexes(&self) -> impl Iterator<Item = usize> {
        self.0.iter().cloned().flatten()
    }

    /// Their runs.
    pub(super) fn runs(&self, log: &Log) -> Vec<Run> {
        self.0.iter().flat_map(|range| log.runs(range.clone())).collect()
    }

    /// The same in blocks of so many, of which only the last one has fewer; it may be empty.
    pub(super) fn in_blocks(self, size: usize) -> Vec<Self> {
        let mut blocks = vec![Self::default()];
        let mut room = size;
        for range in self.0 {
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min(start.saturating_add(room));
                if let Some(block) = blocks.last_mut() {
                    *block = std::mem::take(block).and(start..end);
                }
                room -= end - start;
                start = end;
                if room == 0 {
                    blocks.push(Self::default());
                    room = size;
                }
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(ranges: &[(usize, usize)]) -> Picked {
        let ranges = ranges.iter().map(|(start, end)| *start..*end);
        ranges.fold(Picked::default(), Picked::and)
    }

    #[test]
    fn neighbours_stay_together() {
        assert_eq!(picked(&[(0, 2), (2, 3), (4, 4), (5, 6)]), Picked(vec![0..3, 5..6]));
        assert_eq!(picked(&[]).len(), 0);
    }

    #[test]
    fn the_last_ones_are_a_part_of_them() {
        let all = picked(&[(0, 3), (5, 6), (8, 10)]);
        assert_eq!(all.clone().last(4), picked(&[(2, 3), (5, 6), (8, 10)]));
        assert_eq!(all.clone().last(0), picked(&[]));
        assert_eq!(all.clone().last(100), all);
    }

    #[test]
    fn blocks_are_full_but_the_last() {
        let blocks = picked(&[(0, 3), (5, 6), (8, 10)]).in_blocks(2);
        assert_eq!(
            blocks,
            [picked(&[(0, 2)]), picked(&[(2, 3), (5, 6)]), picked(&[(8, 10)]), picked(&[])]
        );
        assert_eq!(picked(&[(0, 3)]).in_blocks(2), [picked(&[(0, 2)]), picked(&[(2, 3)])]);
        assert_eq!(picked(&[]).in_blocks(2), [picked(&[])]);
    }

    #[test]
    fn some_are_left_out() {
        let all = picked(&[(0, 3), (5, 6), (8, 10)]);
        assert_eq!(all.clone().without(&[0, 1, 5, 9]), picked(&[(2, 3), (8, 9)]));
        assert_eq!(all.clone().without(&[1]), picked(&[(0, 1), (2, 3), (5, 6), (8, 10)]));
        assert_eq!(all.clone().without(&[]), all);
        assert!(all.clone().without(&all.indexes().collect::<Vec<_>>()).indexes().next().is_none());
    }
}
