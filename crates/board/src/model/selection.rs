//! Selections of a log's entries, and walks over them.

use std::ops::Range;
use std::sync::Arc;

use crate::{Board, Entry, Filter, Log, LogName, Probe, Seq};

/// The direction of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// From the oldest entry.
    #[default]
    Ascending,
    /// From the newest entry.
    Descending,
}

/// The requested entries of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Only entries after this seq.
    pub after: Option<Seq>,
    /// Only entries before this seq.
    pub before: Option<Seq>,
    /// The direction.
    pub order: Order,
    /// The filter.
    pub filter: Filter,
}

impl Selection {
    /// Walks over the entries between the bounds, in order, whether they match or not. Of neighbouring entries
    /// without a match, the walk yields only the last.
    #[must_use]
    pub fn walk(&self, board: &Arc<Board>, log: &LogName) -> Walk {
        let range = board.log(log).map_or(0..0, |log| self.indexes(log));
        let probe = self.filter.probe(log);
        let (board, log, order) = (Arc::clone(board), log.clone(), self.order);
        Walk { board, log, range, order, probe, looked: 0..0 }
    }

    /// Returns the indexes of the entries between the bounds.
    #[must_use]
    pub fn indexes(&self, log: &Log) -> Range<usize> {
        let start = self.after.map_or(0, |after| log.count_through(after));
        let end = match self.before {
            Some(Seq(0)) => 0,
            Some(Seq(before)) => log.count_through(Seq(before - 1)),
            None => log.len(),
        };
        start..end.max(start)
    }
}

/// A walk over a log's entries. It owns the board, so that it can continue later.
#[derive(Clone, Debug)]
pub struct Walk {
    board: Arc<Board>,
    log: LogName,
    range: Range<usize>,
    order: Order,
    probe: Probe,
    /// The range of indexes already probed for a match.
    looked: Range<usize>,
}

impl Walk {
    /// Returns the board.
    #[must_use]
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Returns the log.
    #[must_use]
    pub fn log(&self) -> &LogName {
        &self.log
    }

    /// Skips to the last entry of the next group of neighbours, if none of them can match.
    fn pass_over(&mut self) -> Option<()> {
        let next = match self.order {
            Order::Ascending => self.range.start,
            Order::Descending => self.range.end.checked_sub(1)?,
        };
        if self.probe.0.is_empty() || self.range.is_empty() || self.looked.contains(&next) {
            return None;
        }
        let (together, may_match) = self.board.log(&self.log)?.neighbours(next, &self.probe);
        if !may_match {
            match self.order {
                Order::Ascending => {
                    self.range.start = next.max(together.end.min(self.range.end).checked_sub(1)?);
                }
                Order::Descending => self.range.end = together.start.max(self.range.start) + 1,
            }
        }
        self.looked = together;
        Some(())
    }

    /// Returns true if the walk has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.range.is_empty()
    }
}

impl Iterator for Walk {
    type Item = Arc<Entry>;

    fn next(&mut self) -> Option<Arc<Entry>> {
        self.pass_over();
        let index = match self.order {
            Order::Ascending => self.range.next()?,
            Order::Descending => self.range.next_back()?,
        };
        self.board.log(&self.log)?.at(index).cloned()
    }
}
