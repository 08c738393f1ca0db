//! Items of a list with their costs, newest first.
//!
//! Items beyond the budget are not examined.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::selection::Selected;
use super::texts::Texts;
use crate::yielding::Turns;
use blackboard_board::{Board, Log, LogName, Run, TextKeys, Timestamp};
use blackboard_prompt::Cost;
use blackboard_service::ServiceError;

/// The work to add up a cached item cost, in bytes of text.
const ITEM_BYTES: u64 = 64;

/// Iterates over the removable items of a list, newest first. Items of the same time are ordered by place.
pub(super) struct Newest<'a> {
    texts: &'a Texts<'a>,
    keys: TextKeys,
    keeps: bool,
    log: Log,
    /// The items that are not weighed yet.
    rest: Selected,
    /// The weighed items; the next is at the end.
    weighed: Vec<Item>,
    /// The indexes of the items that are never removed.
    stay: BTreeSet<usize>,
    /// The number of removable items.
    count: usize,
    /// The index of the last item, if it is removed without a comma.
    last: Option<usize>,
    is_ordered: bool,
    turns: Turns,
}

/// A removable item.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub(super) at: Timestamp,
    pub(super) index: usize,
    pub(super) cost: Cost,
}

impl<'a> Newest<'a> {
    pub(super) fn of(
        board: &Arc<Board>,
        log: &Log,
        name: &LogName,
        selected: &Selected,
        texts: &'a Texts<'a>,
    ) -> Self {
        let (keys, keeps) = texts.spec.keys_of(name);
        let stay = match name {
            LogName::Questions => open(board, log),
            LogName::Messages(_) => (0..log.len()).collect(),
            LogName::Requests
            | LogName::Trajectories
            | LogName::Screenshots
            | LogName::Memory(_) => BTreeSet::new(),
        };
        let stay: BTreeSet<usize> = stay.into_iter().filter(|index| selected.has(*index)).collect();
        Self {
            texts,
            keys,
            keeps,
            log: log.clone(),
            rest: selected.clone(),
            weighed: Vec::new(),
            count: selected.len() - stay.len(),
            last: selected.last_index().filter(|_| stay.is_empty()),
            stay,
            is_ordered: log.ascends_in_time(),
            turns: Turns::default(),
        }
    }

    /// Returns the number of removable items.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the indexes of the items that are never removed.
    pub(super) const fn stay(&self) -> &BTreeSet<usize> {
        &self.stay
    }

    /// Returns the cost of the items that are never removed, with the commas between them.
    pub(super) async fn cost_of_stay(&mut self, log: &Log) -> Result<Cost, ServiceError> {
        let mut cost = Cost::default();
        let runs = self.stay.iter().flat_map(|index| log.runs(*index..*index + 1));
        for run in runs.collect::<Vec<_>>() {
            cost += self.costs(&run).await?.into_iter().sum();
        }
        Ok(if self.stay.is_empty() { cost } else { cost - self.comma() })
    }

    /// Returns the next item.
    pub(super) async fn peek(&mut self) -> Result<Option<Item>, ServiceError> {
        while (self.weighed.is_empty() || !self.is_ordered)
            && let Some((first, run)) = self.rest.pop_run(&self.log)
        {
            self.weigh(first, &run).await?;
        }
        if !self.is_ordered {
            self.weighed.sort_by_key(|item| (item.at, item.index));
            self.is_ordered = true;
        }
        Ok(self.weighed.last().copied())
    }

    /// Skips the next item.
    pub(super) fn pass(&mut self) {
        self.weighed.pop();
    }

    async fn weigh(&mut self, first: usize, run: &Run) -> Result<(), ServiceError> {
        let costs = self.costs(run).await?;
        for ((index, entry), cost) in (first..).zip(run.entries()).zip(costs) {
            if !self.stay.contains(&index) {
                // The first item of a list shows no comma, so the last item to be removed saves none.
                let cost = if self.last == Some(index) { cost - self.comma() } else { cost };
                self.weighed.push(Item { at: entry.at, index, cost });
            }
        }
        // Counts also if all costs were cached.
        self.turns.worked(ITEM_BYTES * run.len() as u64).await;
        Ok(())
    }

    async fn costs(&mut self, run: &Run) -> Result<Vec<Cost>, ServiceError> {
        self.texts.items().costs(run, &self.keys, self.keeps, &mut self.turns).await
    }

    fn comma(&self) -> Cost {
        self.texts.cost(self.texts.comma().as_bytes())
    }
}

/// Returns the indexes of the open questions.
fn open(board: &Board, questions: &Log) -> BTreeSet<usize> {
    let index = |seq| questions.get(seq).and_then(|_| questions.count_through(seq).checked_sub(1));
    board.asked().open().iter().filter_map(|seq| index(*seq)).collect()
}
