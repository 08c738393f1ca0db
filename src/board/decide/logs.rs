//! The logs' rules: what is appended, replaced, removed and changed.

use std::sync::Arc;

use crate::board::command::{Answer, Rejected, Which};
use crate::board::commit::Change;
use crate::board::log::{Entry, Log, LogName, SeqRange};
use crate::board::{Board, Item, Revision, Seq, json};

pub(super) fn append(board: &Board, log: &LogName, items: &[Item]) -> (Answer, Vec<Change>) {
    let first = next_seq(board, log);
    let keeps = board.life.as_ref().is_none_or(|life| life.settings.keeps_screenshots());
    if *log == LogName::Screenshots && !keeps {
        return (Answer::Added { first, count: 0, dropped: items.len() }, Vec::new());
    }
    let answer = Answer::Added { first, count: items.len(), dropped: 0 };
    (answer, appended(log, first, items).into_iter().collect())
}

fn appended(log: &LogName, first: Seq, items: &[Item]) -> Option<Change> {
    let items = items.to_vec();
    (!items.is_empty()).then(|| Change::Appended { log: log.clone(), first, items })
}

pub(super) fn replace(board: &Board, log: &LogName, items: &[Item]) -> (Answer, Vec<Change>) {
    let first = next_seq(board, log);
    let changes = replacement(board, log, items);
    if changes.is_empty() {
        return (Answer::Added { first, count: 0, dropped: 0 }, changes);
    }
    (Answer::Added { first, count: items.len(), dropped: 0 }, changes)
}

/// Nothing where the log holds these very items already, so that a repeated PUT is no new write.
fn replacement(board: &Board, name: &LogName, items: &[Item]) -> Vec<Change> {
    let log = board.log(name);
    let len = log.map_or(0, Log::len);
    let same = |log: &Log| log.iter().map(|entry| &entry.item).eq(items);
    if len == items.len() && log.is_none_or(same) {
        return Vec::new();
    }
    let cleared = (len > 0).then(|| Change::Cleared { log: name.clone() });
    cleared.into_iter().chain(appended(name, next_seq(board, name), items)).collect()
}

pub(super) fn replace_board(board: &Board, logs: &[Vec<Item>; 4]) -> Vec<Change> {
    LogName::BOARD
        .iter()
        .zip(logs)
        .flat_map(|(log, items)| replacement(board, log, items))
        .collect()
}

pub(super) fn clear_board(board: &Board) -> (Answer, Vec<Change>) {
    let count = board.logs.iter().map(Log::len).sum();
    let full = LogName::BOARD.into_iter().zip(&board.logs).filter(|(_, log)| !log.is_empty());
    (Answer::Removed { count }, full.map(|(log, _)| Change::Cleared { log }).collect())
}

pub(super) fn remove(board: &Board, name: &LogName, which: &Which) -> (Answer, Vec<Change>) {
    let none = (Answer::Removed { count: 0 }, Vec::new());
    let Some(log) = board.log(name).filter(|log| !log.is_empty()) else { return none };
    let removed: Vec<Seq> = match which {
        Which::All => {
            let change = Change::Cleared { log: name.clone() };
            return (Answer::Removed { count: log.len() }, vec![change]);
        }
        Which::AllButNewest(keep) => {
            let oldest = log.iter().take(log.len().saturating_sub(*keep));
            oldest.map(|entry| entry.seq).collect()
        }
        Which::Steps(steps) => {
            let step = |entry: &Entry| entry.item.get("step").and_then(json::Exact::parse);
            let found = log.iter().filter(|e| step(e).is_some_and(|step| steps.contains(&step)));
            found.map(|entry| entry.seq).collect()
        }
    };
    if removed.is_empty() {
        return none;
    }
    let change = Change::Removed { log: name.clone(), ranges: ranges(log, &removed) };
    (Answer::Removed { count: removed.len() }, vec![change])
}

/// Ascending seqs of a log's entries as ranges without a kept entry between.
fn ranges(log: &Log, seqs: &[Seq]) -> Vec<SeqRange> {
    let mut ranges: Vec<SeqRange> = Vec::new();
    for &seq in seqs {
        match ranges.last_mut() {
            Some(range) if log.count_through(range.last) + 1 == log.count_through(seq) => {
                range.last = seq;
            }
            Some(_) | None => ranges.push(SeqRange { first: seq, last: seq }),
        }
    }
    ranges
}

pub(super) fn put_entry(
    board: &Board,
    log: &LogName,
    seq: Seq,
    item: &Item,
    basis: Option<Revision>,
) -> Result<Vec<Change>, Rejected> {
    let entry = find_entry(board, log, seq)?;
    if basis.is_some_and(|basis| basis != entry.revision) {
        return Err(Rejected::Stale);
    }
    // A patch says itself where members go; else existing ones keep their place.
    let item = if basis.is_some() { item.clone() } else { item.in_order_of(&entry.item) };
    if entry.item == item {
        return Ok(Vec::new());
    }
    Ok(vec![Change::Updated { log: log.clone(), seq, item }])
}

pub(super) fn find_entry<'a>(
    board: &'a Board,
    log: &LogName,
    seq: Seq,
) -> Result<&'a Arc<Entry>, Rejected> {
    let entry = board.log(log).and_then(|log| log.get(seq));
    entry.ok_or_else(|| Rejected::NoEntry { log: log.clone(), seq })
}

fn next_seq(board: &Board, log: &LogName) -> Seq {
    board.log(log).map_or(Seq(1), Log::next_seq)
}
