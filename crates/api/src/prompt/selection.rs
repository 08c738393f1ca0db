//! Selection of entries for a prompt.
//!
//! Neighbours stay together, so that the cached texts of runs are reused.

use std::ops::Range;

use crate::yielding::Turns;
use blackboard_board::{Filter, Log, LogName, Run};

/// Selected entries of a log: ascending ranges of indexes, none empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selected(Vec<Range<usize>>);

impl Selected {
    /// Selects the entries of a log that match.
    pub(super) async fn of(log: &Log, name: &LogName, filter: &Filter) -> Self {
        if filter.is_empty() {
            return Self::default().and(0..log.len());
        }
        let (mut selected, mut index, probe) = (Self::default(), 0, filter.probe(name));
        let mut turns = Turns::default();
        for run in log.runs(0..log.len()).collect::<Vec<_>>() {
            turns.worked(run.bytes()).await;
            if !run.may_have(&probe) {
                index += run.len();
                continue;
            }
            for entry in run.entries() {
                if filter.matches(name, entry) {
                    selected = selected.and(index..index + 1);
                }
                index += 1;
            }
        }
        selected
    }

    /// Adds a later range.
    fn and(mut self, more: Range<usize>) -> Self {
        match self.0.last_mut() {
            _ if more.is_empty() => {}
            Some(last) if last.end == more.start => last.end = more.end,
            Some(_) | None => self.0.push(more),
        }
        self
    }

    /// Returns the last `count` entries.
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

    /// Selects ascending indexes.
    pub(super) fn these(indexes: impl IntoIterator<Item = usize>) -> Self {
        indexes.into_iter().fold(Self::default(), |selected, index| selected.and(index..index + 1))
    }

    /// Returns true if this index is selected.
    pub(super) fn has(&self, index: usize) -> bool {
        let range = self.0.partition_point(|range| range.end <= index);
        self.0.get(range).is_some_and(|range| range.contains(&index))
    }

    /// Returns the index of the last entry.
    pub(super) fn last_index(&self) -> Option<usize> {
        self.0.last().map(|range| range.end - 1)
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Range::len).sum()
    }

    /// Returns the runs of the entries.
    pub(super) fn runs(&self, log: &Log) -> Vec<Run> {
        self.0.iter().flat_map(|range| log.runs(range.clone())).collect()
    }

    /// Removes the last run of the entries, and returns it with the index of its first entry. Earlier runs are not looked
    /// up.
    pub(super) fn pop_run(&mut self, log: &Log) -> Option<(usize, Run)> {
        loop {
            let last = self.0.last_mut()?;
            let Some(run) = log.last_run(last.clone()) else {
                self.0.pop();
                continue;
            };
            last.end = last.end.saturating_sub(run.len());
            return Some((last.end, run));
        }
    }

    /// Splits the entries into blocks of `size`. Only the last block is smaller, and may be empty.
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

    fn selected(ranges: &[(usize, usize)]) -> Selected {
        let ranges = ranges.iter().map(|(start, end)| *start..*end);
        ranges.fold(Selected::default(), Selected::and)
    }

    #[test]
    fn neighbours_stay_together() {
        assert_eq!(selected(&[(0, 2), (2, 3), (4, 4), (5, 6)]), Selected(vec![0..3, 5..6]));
        assert_eq!(selected(&[]).len(), 0);
    }

    #[test]
    fn the_last_ones_are_a_part_of_them() {
        let all = selected(&[(0, 3), (5, 6), (8, 10)]);
        assert_eq!(all.clone().last(4), selected(&[(2, 3), (5, 6), (8, 10)]));
        assert_eq!(all.clone().last(0), selected(&[]));
        assert_eq!(all.clone().last(100), all);
    }

    #[test]
    fn blocks_are_full_but_the_last() {
        let blocks = selected(&[(0, 3), (5, 6), (8, 10)]).in_blocks(2);
        assert_eq!(
            blocks,
            [selected(&[(0, 2)]), selected(&[(2, 3), (5, 6)]), selected(&[(8, 10)]), selected(&[])]
        );
        assert_eq!(selected(&[(0, 3)]).in_blocks(2), [selected(&[(0, 2)]), selected(&[(2, 3)])]);
        assert_eq!(selected(&[]).in_blocks(2), [selected(&[])]);
    }

    #[test]
    fn indexes_make_ranges() {
        let some = selected(&[(2, 3), (5, 7)]);
        assert_eq!(Selected::these([2, 5, 6]), some);
        assert_eq!((0..9).filter(|index| some.has(*index)).collect::<Vec<_>>(), [2, 5, 6]);
        assert_eq!((some.last_index(), selected(&[]).last_index()), (Some(6), None));
    }
}
