//! Selections of a log's entries, and the walk over one.

use std::ops::Range;
use std::sync::Arc;

use crate::board::{Board, Entry, Filter, Log, LogName, Probe, Seq};

/// Which way a page goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// From the oldest.
    #[default]
    Ascending,
    /// From the newest.
    Descending,
}

/// Which entries of a log are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Only entries after this seq.
    pub after: Option<Seq>,
    /// Only entries before this seq.
    pub before: Option<Seq>,
    /// Which way to go.
    pub order: Order,
    /// The filter.
    pub filter: Filter,
}

impl Selection {
    /// A walk over the entries between its bounds, in its order, whether they match or not. Of entries that lie
    /// together and of which none matches, only the last is given.
    #[must_use]
    pub fn walk(&self, board: &Arc<Board>, log: &LogName) -> Walk {
        let range = board.log(log).map_or(0..0, |log| self.indexes(log));
        let probe = self.filter.probe(log);
        let (board, log, order) = (Arc::clone(board), log.clone(), self.order);
        Walk { board, log, range, order, probe, looked: 0..0 }
    }

    fn indexes(&self, log: &Log) -> Range<usize> {
        let start = self.after.map_or(0, |after| log.count_through(after));
        let end = match self.before {
            Some(Seq(0)) => 0,
            Some(Seq(before)) => log.count_through(Seq(before - 1)),
            None => log.len(),
        };
        start..end.max(start)
    }
}

/// A walk over a log's entries that owns the board it walks on, so that it can go on later.
#[derive(Clone, Debug)]
pub struct Walk {
    board: Arc<Board>,
    log: LogName,
    range: Range<usize>,
    order: Order,
    probe: Probe,
    /// The indexes of which is known whether something may match.
    looked: Range<usize>,
}

impl Walk {
    /// The board that it walks on.
    #[must_use]
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// The log that it walks along.
    #[must_use]
    pub fn log(&self) -> &LogName {
        &self.log
    }

    /// Goes on to the last of the next entries that lie together, if none of them matches.
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

    /// Whether the walk is over.
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
