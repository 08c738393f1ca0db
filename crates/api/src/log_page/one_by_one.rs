//! Entries of a page one by one, each with its cost: for readers that stop when they have enough.

use std::collections::VecDeque;
use std::sync::Arc;

use super::kept::weighed;
use super::{LogPieces, LogQuery};
use crate::view::entry::write_envelope;
use crate::yielding::Turns;
use blackboard_board::{Board, Entry, Log, LogName, Order, Run, Seq};
use blackboard_prompt::{Cost, Estimator};
use blackboard_service::{ServiceError, SessionHandle};

/// An entry in its envelope.
pub struct EntryText {
    /// The entry's number in its log.
    pub seq: Seq,
    /// The envelope as JSON.
    pub json: String,
    /// The cost of its tokens.
    pub cost: Cost,
}

/// The entries of a page, in the requested order.
pub struct OneByOne {
    estimator: Estimator,
    /// The number of entries in the log.
    count: usize,
    from: From,
}

enum From {
    /// A page whose entries show nothing besides themselves.
    Runs(Runs),
    Pieces(Box<LogPieces>),
}

/// The rest of a page's runs.
struct Runs {
    order: Order,
    runs: VecDeque<Run>,
    /// The entries of the run that was begun.
    begun: VecDeque<Begun>,
    /// True if entries are left after the page.
    more: bool,
    turns: Turns,
}

enum Begun {
    Written(EntryText),
    Entry(Arc<Entry>),
}

impl LogQuery {
    /// Returns the entries of the page one by one. Costs are those of the estimator.
    pub async fn one_by_one(
        self,
        session: SessionHandle,
        board: Arc<Board>,
        name: LogName,
        estimator: Estimator,
    ) -> OneByOne {
        let count = board.log(&name).map_or(0, Log::len);
        let plain = board.log(&name).filter(|_| self.is_plain(&name)).map(|log| self.runs(log));
        let from = match plain {
            Some(runs) => From::Runs(runs),
            None => From::Pieces(Box::new(self.pieces(session, board, name).await)),
        };
        OneByOne { estimator, count, from }
    }

    fn runs(&self, log: &Log) -> Runs {
        let (range, order) = (self.indexes(log), self.selection.order);
        let all = self.selection.indexes(log);
        let more = match order {
            Order::Ascending => range.end < all.end,
            Order::Descending => range.start > all.start,
        };
        let mut runs: VecDeque<Run> = log.runs(range).collect();
        in_order(order, &mut runs);
        Runs { order, runs, begun: VecDeque::new(), more, turns: Turns::default() }
    }
}

fn in_order<T>(order: Order, all: &mut VecDeque<T>) {
    if order == Order::Descending {
        all.make_contiguous().reverse();
    }
}

impl OneByOne {
    /// Returns the number of entries in the log.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns true if entries are left to examine, on the page or after it.
    pub fn has_more(&mut self) -> bool {
        match &mut self.from {
            From::Runs(Runs { runs, begun, more, .. }) => {
                *more || !runs.is_empty() || !begun.is_empty()
            }
            From::Pieces(pieces) => pieces.has_more(),
        }
    }

    /// Returns the last entry examined of a page that a filter leaves empty, if entries are left.
    pub fn reached(&mut self) -> Option<Seq> {
        match &mut self.from {
            From::Pieces(pieces) => pieces.has_more().then_some(pieces.next),
            From::Runs(_) => None,
        }
    }

    /// Returns the next entry.
    pub async fn next(&mut self) -> Result<Option<EntryText>, ServiceError> {
        match &mut self.from {
            From::Runs(runs) => runs.next(self.estimator).await,
            From::Pieces(pieces) => {
                let Some(entry) = pieces.next_matching().await else { return Ok(None) };
                let mut json = String::new();
                if !pieces.view.write_whole(&pieces.board, &entry, &mut json) {
                    let LogPieces { view, session, board, .. } = &**pieces;
                    view.write_entry(session, board, &entry, &mut json).await?;
                }
                Ok(Some(EntryText::new(entry.seq, json, self.estimator)))
            }
        }
    }
}

impl Runs {
    async fn next(&mut self, estimator: Estimator) -> Result<Option<EntryText>, ServiceError> {
        while self.begun.is_empty()
            && let Some(run) = self.runs.pop_front()
        {
            self.begun = match weighed(&run, estimator, &mut self.turns).await? {
                Some(entries) => entries.into_iter().map(Begun::Written).collect(),
                None => run.entries().cloned().map(Begun::Entry).collect(),
            };
            in_order(self.order, &mut self.begun);
        }
        Ok(match self.begun.pop_front() {
            Some(Begun::Written(entry)) => Some(entry),
            Some(Begun::Entry(entry)) => {
                self.turns.examined(&entry).await;
                let mut json = String::new();
                write_envelope(&entry, &mut json);
                Some(EntryText::new(entry.seq, json, estimator))
            }
            None => None,
        })
    }
}

impl EntryText {
    fn new(seq: Seq, json: String, estimator: Estimator) -> Self {
        let cost = estimator.text(&json);
        Self { seq, json, cost }
    }
}
