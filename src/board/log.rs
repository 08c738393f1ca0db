//! A log: an ordered list of entries, each an item in its envelope. Cloning one is O(1).

use std::fmt;
use std::sync::Arc;

use imbl::Vector;
use serde::{Deserialize, Serialize};

use super::claim::Work;
use super::{AgentName, Item, Revision, Seq, Timestamp};

/// Which of a session's logs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogName {
    /// What was asked of the user, with the answers.
    Questions,
    /// What the user wants.
    Requests,
    /// What was done, step by step.
    Trajectories,
    /// What was seen.
    Screenshots,
    /// What one agent remembers of its own steps.
    Memory(AgentName),
}

impl LogName {
    /// The four logs of the board itself, in the order in which it is shown.
    pub const BOARD: [Self; 4] =
        [Self::Questions, Self::Requests, Self::Trajectories, Self::Screenshots];

    /// The log of the board that has this name.
    #[must_use]
    pub fn of_board(name: &str) -> Option<Self> {
        Self::BOARD.into_iter().find(|log| log.to_string() == name)
    }
}

impl fmt::Display for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Questions => f.write_str("questions"),
            Self::Requests => f.write_str("requests"),
            Self::Trajectories => f.write_str("trajectories"),
            Self::Screenshots => f.write_str("screenshots"),
            Self::Memory(agent) => write!(f, "the memory of {agent}"),
        }
    }
}

/// An item in its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the log.
    pub seq: Seq,
    /// The revision of its last change.
    pub revision: Revision,
    /// When it was appended.
    pub at: Timestamp,
    /// Who appended it.
    pub agent: Option<AgentName>,
    /// When and by whom it was last changed, if it ever was.
    pub updated: Option<Updated>,
    /// What has become of it, where it is a request that somebody claimed or finished.
    pub work: Option<Box<Work>>,
    /// What it holds.
    pub item: Item,
}

impl Entry {
    /// The bytes that it counts for: its item's text, and that of its result.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.item.bytes() + self.work.as_deref().map_or(0, Work::bytes)
    }
}

/// The last change of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// When.
    pub at: Timestamp,
    /// By whom, where one was named.
    pub by: Option<AgentName>,
}

/// Who wrote when, and in which commit: what an envelope takes from it.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// The commit's revision.
    pub revision: Revision,
    /// The commit's time.
    pub at: Timestamp,
    /// The commit's author.
    pub agent: Option<&'a AgentName>,
}

/// An ordered list of entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    entries: Vector<Arc<Entry>>,
    last_seq: Seq,
    changed: Revision,
    bytes: u64,
}

impl Log {
    /// How many entries it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The seq given last, kept even when its entry is gone.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// The revision of its last change; 0 where there was none.
    #[must_use]
    pub fn changed(&self) -> Revision {
        self.changed
    }

    /// The bytes of its items' text, images not counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The entry with this seq.
    #[must_use]
    pub fn get(&self, seq: Seq) -> Option<&Arc<Entry>> {
        let index = self.entries.binary_search_by(|entry| entry.seq.cmp(&seq)).ok()?;
        self.entries.get(index)
    }

    /// The entry at this index, counted from the oldest.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<&Arc<Entry>> {
        self.entries.get(index)
    }

    /// How many entries have a seq up to and including this one.
    #[must_use]
    pub fn count_through(&self, seq: Seq) -> usize {
        match self.entries.binary_search_by(|entry| entry.seq.cmp(&seq)) {
            Ok(index) => index + 1,
            Err(index) => index,
        }
    }

    /// All entries, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.entries.iter()
    }

    /// The seq that the next entry gets.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        Seq(self.last_seq.0 + 1)
    }

    pub(super) fn append(&mut self, first: Seq, items: &[Item], stamp: Stamp<'_>) {
        for (seq, item) in (first.0..).map(Seq).zip(items) {
            self.bytes += item.bytes();
            self.last_seq = seq;
            self.entries.push_back(Arc::new(Entry {
                seq,
                revision: stamp.revision,
                at: stamp.at,
                agent: stamp.agent.cloned(),
                updated: None,
                work: None,
                item: item.clone(),
            }));
        }
        self.changed = stamp.revision;
    }

    pub(super) fn update(&mut self, seq: Seq, item: &Item, stamp: Stamp<'_>) {
        self.change(seq, stamp, |entry| entry.item = item.clone());
    }

    /// Notes what has become of a request.
    pub(super) fn mark(&mut self, seq: Seq, work: Option<Work>, stamp: Stamp<'_>) {
        self.change(seq, stamp, |entry| entry.work = work.map(Box::new));
    }

    fn change(&mut self, seq: Seq, stamp: Stamp<'_>, change: impl FnOnce(&mut Entry)) {
        let Ok(index) = self.entries.binary_search_by(|entry| entry.seq.cmp(&seq)) else { return };
        let Some(slot) = self.entries.get_mut(index) else { return };
        let mut entry = Entry::clone(slot);
        entry.revision = stamp.revision;
        entry.updated = Some(Updated { at: stamp.at, by: stamp.agent.cloned() });
        change(&mut entry);
        self.bytes = self.bytes - slot.bytes() + entry.bytes();
        *slot = Arc::new(entry);
        self.changed = stamp.revision;
    }

    pub(super) fn clear(&mut self, revision: Revision) {
        self.entries = Vector::new();
        self.bytes = 0;
        self.changed = revision;
    }

    pub(super) fn remove(&mut self, ranges: &[SeqRange], revision: Revision) {
        for range in ranges {
            let start = self.count_through(Seq(range.first.0.saturating_sub(1)));
            let end = self.count_through(range.last).max(start);
            let mut rest = self.entries.split_off(start);
            let kept = rest.split_off(end - start);
            self.bytes -= rest.iter().map(|entry| entry.bytes()).sum::<u64>();
            self.entries.append(kept);
        }
        self.changed = revision;
    }

    /// Removes some entries and puts others in their places, or in the places of those that have their seqs.
    pub(super) fn put_back(
        &mut self,
        removed: &[SeqRange],
        entries: &[Arc<Entry>],
        revision: Revision,
    ) {
        self.remove(removed, revision);
        let mut merged = Vec::with_capacity(self.len() + entries.len());
        let mut back = entries.iter().peekable();
        for own in &self.entries {
            merged.extend(std::iter::from_fn(|| back.next_if(|entry| entry.seq < own.seq)));
            merged.push(back.next_if(|entry| entry.seq == own.seq).unwrap_or(own));
        }
        merged.extend(back);
        self.bytes = merged.iter().map(|entry| entry.bytes()).sum();
        self.entries = merged.into_iter().cloned().collect();
    }

    /// Ends all claims on its entries, those that ran out too.
    pub(super) fn end_claims(&mut self, revision: Revision) {
        for slot in self.entries.iter_mut() {
            if slot.work.as_deref().is_some_and(Work::is_open) {
                *slot = Arc::new(Entry { revision, work: None, ..Entry::clone(slot) });
                self.changed = revision;
            }
        }
    }

    /// A log as a base begins it: what was counted, and no entries yet.
    pub(super) fn restore(last_seq: Seq, changed: Revision) -> Self {
        Self { last_seq, changed, ..Self::default() }
    }

    /// Takes back the next entry; `false` where its seq is none that can follow.
    pub(super) fn restore_entry(&mut self, entry: Entry) -> bool {
        let before = self.entries.last().map_or(Seq(0), |entry| entry.seq);
        if entry.seq <= before || entry.seq > self.last_seq {
            return false;
        }
        self.bytes += entry.bytes();
        self.entries.push_back(Arc::new(entry));
        true
    }
}

/// All seqs from `first` through `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Seq, Seq)", into = "(Seq, Seq)")]
pub struct SeqRange {
    /// The first one.
    pub first: Seq,
    /// The last one, included.
    pub last: Seq,
}

/// Ascending seqs of a log's entries as ranges without a kept entry between.
pub(super) fn ranges(log: &Log, seqs: &[Seq]) -> Vec<SeqRange> {
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

impl SeqRange {
    /// Whether this seq is in it.
    #[must_use]
    pub fn contains(&self, seq: Seq) -> bool {
        (self.first..=self.last).contains(&seq)
    }
}

impl From<(Seq, Seq)> for SeqRange {
    fn from((first, last): (Seq, Seq)) -> Self {
        Self { first, last }
    }
}

impl From<SeqRange> for (Seq, Seq) {
    fn from(range: SeqRange) -> Self {
        (range.first, range.last)
    }
}
