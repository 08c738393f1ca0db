//! Rules for logs: appends, replacements, removals, and retention by count.

use std::sync::Arc;

use super::Draft;
use crate::command::rejected::Rejected;
use crate::command::{Answer, Edit, Which};
use crate::commit::{Change, LogChange, StateChange};
use crate::log::{Entry, Log, LogName, SeqRange, ranges};
use crate::state::StatePath;
use crate::{AgentName, Board, Item, Json, Revision, Seq, json};

impl Draft<'_> {
    pub(super) fn append(&mut self, log: &LogName, items: &[Item]) -> Result<Answer, Rejected> {
        let first = self.next_seq(log);
        let keeps = self.board.life.as_ref().is_none_or(|life| life.settings.keeps_screenshots());
        if *log == LogName::Screenshots && !keeps {
            return Ok(Answer::Added { first, count: 0, dropped: items.len() });
        }
        self.add(log, items)?;
        Ok(Answer::Added { first, count: items.len(), dropped: 0 })
    }

    /// Appends items and evicts the excess.
    fn add(&mut self, log: &LogName, items: &[Item]) -> Result<(), Rejected> {
        if items.is_empty() {
            return Ok(());
        }
        self.register(log)?;
        let (first, items) = (self.next_seq(log), items.to_vec());
        self.change(Change::Log(log.clone(), LogChange::Appended { first, items }));
        self.evict(log);
        Ok(())
    }

    /// Evicts the oldest entries beyond the log's limit.
    pub(super) fn evict(&mut self, name: &LogName) {
        let max = self.board.life.as_ref().and_then(|life| life.settings.items_max(name));
        let (Some(max), Some(log)) = (max, self.board.log(name)) else { return };
        let Some(last) = log.len().checked_sub(max).and_then(|over| over.checked_sub(1)) else {
            return;
        };
        if let (Some(first), Some(last)) = (log.at(0), log.at(last)) {
            let ranges = vec![SeqRange { first: first.seq, last: last.seq }];
            self.change(Change::Log(name.clone(), LogChange::Removed { ranges }));
        }
    }

    pub(super) fn replace_log(
        &mut self,
        log: &LogName,
        items: &[Item],
    ) -> Result<Answer, Rejected> {
        let first = self.next_seq(log);
        let count = if self.put_items(log, items)? { items.len() } else { 0 };
        Ok(Answer::Added { first, count, dropped: 0 })
    }

    /// Replaces the items and returns true. Returns false if the log already holds exactly these items, so that a
    /// repeated PUT is no new write.
    fn put_items(&mut self, name: &LogName, items: &[Item]) -> Result<bool, Rejected> {
        let log = self.board.log(name);
        let len = log.map_or(0, Log::len);
        let same = |log: &Log| log.iter().map(|entry| &entry.item).eq(items);
        if len == items.len() && log.is_none_or(same) {
            return Ok(false);
        }
        if len > 0 {
            self.change(Change::Log(name.clone(), LogChange::Cleared));
        }
        self.add(name, items)?;
        Ok(true)
    }

    pub(super) fn replace_board(
        &mut self,
        logs: &[Vec<Item>; 4],
        state: Option<&Json>,
    ) -> Result<Answer, Rejected> {
        for (log, items) in LogName::BOARD.iter().zip(logs) {
            self.put_items(log, items)?;
        }
        if let Some(value) = state {
            let edit = Edit::Put { value: value.clone(), ttl: None };
            self.edit_state(&StatePath::root(), &edit)?;
        }
        Ok(Answer::Done)
    }

    pub(super) fn clear_board(&mut self, state: bool) -> Answer {
        let count = self.board.logs.iter().map(Log::len).sum();
        for log in LogName::BOARD {
            if self.board.log(&log).is_some_and(|log| !log.is_empty()) {
                self.change(Change::Log(log, LogChange::Cleared));
            }
        }
        if state && !self.board.state.is_empty() {
            self.change(Change::State(StatePath::root(), StateChange::Removed));
        }
        Answer::Removed { count }
    }

    pub(super) fn remove_entries(
        &mut self,
        name: &LogName,
        which: &Which,
    ) -> Result<Answer, Rejected> {
        let Some(log) = self.board.log(name).filter(|log| !log.is_empty()) else {
            return Ok(Answer::Removed { count: 0 });
        };
        let removed: Vec<Seq> = match which {
            Which::All => {
                let count = log.len();
                self.change(Change::Log(name.clone(), LogChange::Cleared));
                return Ok(Answer::Removed { count });
            }
            Which::AllButNewest(keep) => {
                let oldest = log.iter().take(log.len().saturating_sub(*keep));
                oldest.map(|entry| entry.seq).collect()
            }
            Which::Steps(steps) => {
                let step = |entry: &Entry| entry.item.get("step").and_then(json::Exact::parse);
                let found =
                    log.iter().filter(|e| step(e).is_some_and(|step| steps.contains(&step)));
                found.map(|entry| entry.seq).collect()
            }
        };
        if !removed.is_empty() {
            let ranges = ranges(log, &removed);
            if *name == LogName::Requests {
                self.check_dependants(&ranges)?;
            }
            self.change(Change::Log(name.clone(), LogChange::Removed { ranges }));
        }
        Ok(Answer::Removed { count: removed.len() })
    }

    pub(super) fn put_entry(
        &mut self,
        log: &LogName,
        seq: Seq,
        item: &Item,
        basis: Option<Revision>,
    ) -> Result<Answer, Rejected> {
        let entry = find_entry(&self.board, log, seq)?;
        if basis.is_some_and(|basis| basis != entry.revision) {
            return Err(Rejected::Stale);
        }
        // A patch decides the order of members; otherwise existing members keep their place.
        let item = if basis.is_some() { item.clone() } else { item.in_order_of(&entry.item) };
        if entry.item != item {
            self.change(Change::Log(log.clone(), LogChange::Updated { seq, item }));
        }
        Ok(Answer::Done)
    }

    pub(super) fn delete_entry(&mut self, log: &LogName, seq: Seq) -> Result<Answer, Rejected> {
        find_entry(&self.board, log, seq)?;
        let ranges = vec![SeqRange { first: seq, last: seq }];
        if *log == LogName::Requests {
            self.check_dependants(&ranges)?;
        }
        self.change(Change::Log(log.clone(), LogChange::Removed { ranges }));
        Ok(Answer::Removed { count: 1 })
    }

    /// Acknowledges a message. Only the first time counts.
    pub(super) fn acknowledge(
        &mut self,
        agent: Option<&AgentName>,
        message: Seq,
    ) -> Result<Answer, Rejected> {
        let log = inbox(agent, self.stamp.agent)?;
        if find_entry(&self.board, &log, message)?.acked_at.is_none() {
            self.change(Change::Log(log, LogChange::Acked { seq: message }));
        }
        Ok(Answer::Done)
    }

    fn next_seq(&self, log: &LogName) -> Seq {
        self.board.log(log).map_or(Seq(1), Log::next_seq)
    }
}

/// Returns the messages to an agent, by default to the author.
pub(super) fn inbox(
    agent: Option<&AgentName>,
    author: Option<&AgentName>,
) -> Result<LogName, Rejected> {
    agent.or(author).cloned().map(LogName::Messages).ok_or(Rejected::AgentRequired)
}

pub(super) fn find_entry<'a>(
    board: &'a Board,
    log: &LogName,
    seq: Seq,
) -> Result<&'a Arc<Entry>, Rejected> {
    let entry = board.log(log).and_then(|log| log.get(seq));
    entry.ok_or_else(|| Rejected::NoEntry { log: log.clone(), seq })
}
