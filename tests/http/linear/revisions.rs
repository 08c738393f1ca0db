//! Linearizability by revisions: answers name revisions, which fix the order of writes.
//!
//! That leaves nothing to search: a history is sorted, looked at for what is older than it may be, and
//! played through the model. A refusal is held to its revision as a read is: there its condition was false.
//! The outcome of every call has to be known.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::time::Duration;

use super::history::{Board, Call, Tag};

/// What is wrong, and with which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nobody knows what came of it.
    Unknown { call: usize },
    /// Two writes name one commit.
    Twice { call: usize, other: usize },
    /// The commit before this one is nobody's.
    Gap { call: usize },
    /// It shows a revision that no write had made.
    Beyond { call: usize },
    /// An answer that came before it began was of a later revision, or, for a write, of the same.
    Stale { call: usize, known: u64 },
    /// The board of its revision does not give this answer.
    Misfit { call: usize },
    /// The tag was another version's.
    TagAgain { call: usize },
}

impl Fault {
    /// The calls that it is about.
    pub(crate) fn calls(self) -> Vec<usize> {
        match self {
            Self::Twice { call, other } => vec![other, call],
            Self::Unknown { call }
            | Self::Gap { call }
            | Self::Beyond { call }
            | Self::Stale { call, .. }
            | Self::Misfit { call }
            | Self::TagAgain { call } => vec![call],
        }
    }
}

/// Checks a session's history from `base` on, the revision of a board without any number.
pub(crate) fn check(keys: usize, base: u64, calls: &[Call]) -> Result<(), Fault> {
    if let Some(call) = calls.iter().position(|call| call.ended.is_none()) {
        return Err(Fault::Unknown { call });
    }
    let order = in_order(calls);
    check_commits(base, calls, &order)?;
    check_time(calls)?;
    replay(keys, calls, &order)
}

/// By revision, each commit before what shows it.
fn in_order(calls: &[Call]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|&call| (calls[call].revision, !calls[call].outcome.committed(), call));
    order
}

/// Each revision after `base` is one write's.
fn check_commits(base: u64, calls: &[Call], order: &[usize]) -> Result<(), Fault> {
    let (mut head, mut last) = (base, None);
    for &call in order {
        let revision = calls[call].revision;
        if !calls[call].outcome.committed() {
            if revision > head {
                return Err(Fault::Beyond { call });
            }
            continue;
        }
        match last {
            Some(other) if revision == head => return Err(Fault::Twice { call, other }),
            _ if revision != head + 1 => return Err(Fault::Gap { call }),
            _ => (head, last) = (revision, Some(call)),
        }
    }
    Ok(())
}

/// Nobody is shown less than what was known when he asked, and a write comes after it.
fn check_time(calls: &[Call]) -> Result<(), Fault> {
    let mut by_beginning: Vec<usize> = (0..calls.len()).collect();
    by_beginning.sort_by_key(|&call| calls[call].began);
    let mut under_way: BinaryHeap<Reverse<(Duration, u64)>> = BinaryHeap::new();
    let mut known = 0;
    for call in by_beginning {
        let Call { outcome, revision, began, ended, .. } = &calls[call];
        while let Some(Reverse((ended, told))) = under_way.peek()
            && ended < began
        {
            known = known.max(*told);
            under_way.pop();
        }
        if *revision < known || (outcome.committed() && *revision == known) {
            return Err(Fault::Stale { call, known });
        }
        under_way.extend(ended.map(|ended| Reverse((ended, *revision))));
    }
    Ok(())
}

/// Plays the writes, and has each answer fit the board of its revision.
fn replay(keys: usize, calls: &[Call], order: &[usize]) -> Result<(), Fault> {
    let mut board = Board::empty(keys);
    let mut tags: HashSet<(usize, Tag)> = HashSet::new();
    for &call in order {
        let Call { op, outcome, .. } = &calls[call];
        let tag = |board: &Board, key| board.cell(key).and_then(|cell| cell.tag.clone());
        let old = op.key().and_then(|key| tag(&board, key));
        board = board.step(op, outcome).ok_or(Fault::Misfit { call })?;
        if let Some(key) = op.key()
            && let Some(new) = tag(&board, key)
            && (outcome.committed() || old.is_none())
            && !tags.insert((key, new))
        {
            return Err(Fault::TagAgain { call });
        }
    }
    Ok(())
}
