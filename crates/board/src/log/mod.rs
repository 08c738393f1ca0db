//! Logs: ordered lists of entries, each an item in its envelope. Cloning a log is O(1).
//!
//! Entries lie in immutable chunks and an open tail. A change rebuilds only its own chunk, so all other chunks keep
//! their rendered texts.

mod chunk;
mod edit;
pub(crate) mod filter;
mod marks;
mod parts;
mod rebuild;
mod run;
mod tail;
mod texts;
mod tokenizer;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::values::attempt::{Outcome, PastAttempt};
use super::values::claim::Work;
use super::values::task::Task;
use super::{AgentName, Cost, Item, Json, Priority, Rank, Revision, Seq, Timestamp, size};
pub use chunk::{CHUNK_BYTES, CHUNK_ENTRIES};
pub use marks::{Mark, Probe};
use parts::{Part, Parts};
pub use run::{Run, RunText, RunWeights};
use tail::Tail;
pub use texts::{Keys, TextForm, TextKind};
pub use tokenizer::Tokenizer;

/// The name of a session's log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogName {
    /// Questions to the user, with their answers.
    Questions,
    /// Requests of the user.
    Requests,
    /// Steps taken by agents.
    Trajectories,
    /// Screenshots.
    Screenshots,
    /// The memory of one agent, with the agent's own steps.
    Memory(AgentName),
    /// The messages that others send to one agent.
    Messages(AgentName),
}

impl LogName {
    /// The board's four logs, in display order.
    pub const BOARD: [Self; 4] =
        [Self::Questions, Self::Requests, Self::Trajectories, Self::Screenshots];

    /// Returns true if the log's items are steps.
    #[must_use]
    pub const fn has_steps(&self) -> bool {
        matches!(self, Self::Trajectories | Self::Memory(_))
    }

    /// Returns the agent that the log belongs to, which alone reads and changes it, or `None` for a log of the board.
    #[must_use]
    pub const fn owner(&self) -> Option<&AgentName> {
        match self {
            Self::Memory(agent) | Self::Messages(agent) => Some(agent),
            Self::Questions | Self::Requests | Self::Trajectories | Self::Screenshots => None,
        }
    }

    /// Returns the logs that belong to this agent.
    #[must_use]
    pub fn owned_by(agent: &AgentName) -> [Self; 2] {
        [Self::Memory(agent.clone()), Self::Messages(agent.clone())]
    }

    /// Returns the board's log with this name.
    #[must_use]
    pub fn of_board(name: &str) -> Option<Self> {
        match name {
            "questions" => Some(Self::Questions),
            "requests" => Some(Self::Requests),
            "trajectories" => Some(Self::Trajectories),
            "screenshots" => Some(Self::Screenshots),
            _ => None,
        }
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
            Self::Messages(agent) => write!(f, "the messages to {agent}"),
        }
    }
}

/// The memory of an entry besides its item's text.
const ENTRY_BYTES: usize = size::shared(size_of::<Entry>());

/// One part in so many of a tail's memory is lost between its blocks: the entries of many sessions come in turns, and what
/// grows leaves gaps.
const GAPS: usize = 5;

/// An item in its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The sequence number in the log.
    pub seq: Seq,
    /// The revision of the last change.
    pub revision: Revision,
    /// The time of the append.
    pub at: Timestamp,
    /// The author, if named.
    pub agent: Option<AgentName>,
    /// The time and author of the last change, if the entry was ever changed.
    pub updated: Option<Box<Updated>>,
    /// The work on a request that was claimed or finished.
    pub work: Option<Box<Work>>,
    /// The plan of a request that has one, and how far it is.
    pub task: Option<Box<Task>>,
    /// The time when its owner acknowledged a message.
    pub acked_at: Option<Timestamp>,
    /// The item.
    pub item: Item,
}

impl Entry {
    /// Returns the size of the entry: the bytes of its item, its result or reason, and its task.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let of_task = self.task.as_deref().map_or(0, Task::bytes);
        self.item.bytes() + self.work.as_deref().map_or(0, Work::bytes) + of_task
    }

    /// Returns the texts of the item, of the work on a request, and of its past attempts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let work = self.work.as_deref().into_iter().flat_map(Work::texts);
        let reasons = self.task.as_deref().into_iter().flat_map(Task::reasons);
        std::iter::once(self.item.text()).chain(work.chain(reasons).map(Json::text))
    }

    /// Estimates the memory of an entry in a tail.
    fn resident_bytes(&self) -> usize {
        let rare = self.updated.as_ref().map_or(0, |_| size::block(size_of::<Updated>()));
        let work = self.work.as_deref().map_or(0, |work| {
            size::block(size_of::<Work>()) + usize::try_from(work.bytes()).unwrap_or(usize::MAX)
        });
        let task = self.task.as_deref().map_or(0, |task| {
            let texts = usize::try_from(task.bytes()).unwrap_or(usize::MAX);
            let attempts = size_of_val(&*task.past_attempts);
            size::block(size_of::<Task>()).saturating_add(attempts).saturating_add(texts)
        });
        let own = ENTRY_BYTES.saturating_add(self.item.resident_bytes()).saturating_add(rare);
        own.saturating_add(work).saturating_add(task)
    }

    /// Returns true for a request that waits for a worker: it is neither claimed, in review, ended, blocked nor early. A
    /// cap may hold it back.
    #[must_use]
    pub fn is_claimable(&self) -> bool {
        let is_free = matches!(self.work.as_deref(), None | Some(Work::Lapsed { .. }));
        is_free && self.task.as_deref().is_none_or(Task::is_ready)
    }

    /// Returns the request's place in the order of claims.
    #[must_use]
    pub fn rank(&self) -> Rank {
        let priority = self.task.as_deref().map_or(Priority::DEFAULT, |task| task.plan.priority);
        Rank::new(priority, self.seq)
    }

    /// Returns the entry without its claim, which counts as released at this time. If it was cancelled, it ends.
    pub(crate) fn freed(&self, at: Timestamp) -> Self {
        let mut entry = self.clone();
        if self.work.as_deref().is_some_and(Work::is_open) {
            entry.work = None;
        }
        if let Some(claim) = self.work.as_deref().and_then(Work::claim) {
            let task = entry.task.get_or_insert_default();
            let attempt = claim.attempt(at, Outcome::Released, None);
            task.past_attempts = PastAttempt::added(&task.past_attempts, attempt);
            entry.work = task.cancel.take().map(|cancel| Box::new(Work::Cancelled(*cancel)));
        }
        entry
    }
}

/// The last change of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The time of the change.
    pub at: Timestamp,
    /// The author, if named.
    pub by: Option<AgentName>,
}

/// The facts of a commit in an envelope: revision, time and author.
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
///
/// Internally, each entry has an ordinal: its index plus the number of entries ever removed from the front. So
/// removing the oldest entries changes no chunk.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The ordinal of the first entry.
    begin: u64,
    /// The ordinal after the last entry.
    end: u64,
    /// The chunks in order. The first chunk may contain removed entries with ordinals below `begin`.
    parts: Parts,
    /// The newest entries, if not all are in chunks.
    tail: Option<Arc<Tail>>,
    /// The ordinal of the tail's first place.
    tail_begin: u64,
    /// The bytes of the items in the tail.
    tail_bytes: u64,
    last_seq: Seq,
    changed: Revision,
    bytes: u64,
    /// The sum of the items' costs; `None` in a log that counts none.
    cost: Option<Cost>,
}

/// Returns `to - from`, or 0 if `to` is less.
fn distance(from: u64, to: u64) -> usize {
    usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX)
}

impl Log {
    /// Makes an empty log sum the costs of its items, as a memory does. Finding a cost takes longer than an append.
    pub(crate) fn with_costs(self) -> Self {
        Self { cost: Some(Cost::default()), ..self }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        distance(self.begin, self.end)
    }

    /// Returns true if the log has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// Returns the last seq assigned, even if its entry is deleted.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// Returns the revision of the last change, or 0 if the log never changed.
    #[must_use]
    pub fn changed(&self) -> Revision {
        self.changed
    }

    /// Returns the bytes of text in items and results, without images.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the sum of the items' costs, which only a memory counts.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost.unwrap_or_default()
    }

    /// Returns the entry with this seq.
    #[must_use]
    pub fn get(&self, seq: Seq) -> Option<&Arc<Entry>> {
        self.of_ordinal(self.ordinal(seq)).filter(|entry| entry.seq == seq)
    }

    /// Returns the entry at this index, counted from the oldest.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<&Arc<Entry>> {
        self.of_ordinal(self.begin.saturating_add(index as u64))
    }

    /// Counts the entries up to and including this seq.
    #[must_use]
    pub fn count_through(&self, seq: Seq) -> usize {
        distance(self.begin, self.ordinal(Seq(seq.0.saturating_add(1))))
    }

    /// Iterates over the entries in a range of seqs, oldest first.
    pub(crate) fn range(&self, range: SeqRange) -> impl Iterator<Item = &Arc<Entry>> {
        let first = self.count_through(Seq(range.first.0.saturating_sub(1)));
        let entries = (first..).map_while(|place| self.at(place));
        entries.take_while(move |entry| entry.seq <= range.last)
    }

    /// Iterates over all entries, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        let ordinals = self.begin..self.end;
        let of_chunk = move |part: &'_ Part| part.places(&ordinals);
        let chunks = self
            .parts
            .iter()
            .flat_map(move |part| part.chunk.entries().get(of_chunk(part)).unwrap_or_default());
        let tail = self.tail.iter();
        chunks.chain(tail.flat_map(|tail| tail.entries(self.tail_places())))
    }

    /// Returns the entries at these indexes as runs. Each run caches the texts rendered from it.
    pub fn runs(&self, indexes: Range<usize>) -> impl Iterator<Item = Run> {
        let ordinal = |index: usize| self.begin.saturating_add(index as u64).min(self.end);
        let ordinals = ordinal(indexes.start)..ordinal(indexes.end);
        // An ordinal beyond the chunks is in the tail, which follows them.
        let first = self.part_of(ordinals.start).unwrap_or(self.parts.len());
        let parts = (first..self.parts.len()).map_while(|index| self.parts.get(index));
        let end = ordinals.end;
        let tail = self.tail.as_ref().map(|tail| {
            let place = |ordinal| distance(self.tail_begin, ordinal);
            Run::of_tail(tail, place(ordinals.start)..place(ordinals.end))
        });
        let chunks = parts
            .take_while(move |part| part.begin < end)
            .map(move |part| Run::of_chunk(&part.chunk, part.places(&ordinals)));
        chunks.chain(tail).filter(|run| !run.is_empty())
    }

    /// Returns true if the times of append never decrease. Checks each chunk in constant time.
    #[must_use]
    pub fn ascends_in_time(&self) -> bool {
        let mut last = Timestamp(i64::MIN);
        let mut follows = |first: Timestamp, end: Timestamp| {
            std::mem::replace(&mut last, end) <= first && first <= end
        };
        let chunks = self
            .parts
            .iter()
            .all(|part| part.chunk.times().is_some_and(|(first, end)| follows(first, end)));
        let mut tail = self.tail.iter().flat_map(|tail| tail.entries(self.tail_places()));
        chunks && tail.all(|entry| follows(entry.at, entry.at))
    }

    /// Returns the seq of the next entry.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        Seq(self.last_seq.0 + 1)
    }

    /// Returns the bytes of the cached texts and marks.
    #[must_use]
    pub fn kept_text_bytes(&self) -> usize {
        let chunks = self.parts.iter().map(|part| part.chunk.kept_bytes());
        chunks.chain(self.tail.iter().map(|tail| tail.texts().bytes())).sum()
    }

    /// Evicts cached texts and marks, also from other boards that share them.
    pub fn forget_texts(&self) {
        self.parts.iter().for_each(|part| part.chunk.forget_kept());
        self.tail.iter().for_each(|tail| tail.texts().forget());
    }

    /// Estimates the memory of the log besides the texts rendered from it. Visits the tail's entries only.
    pub(super) fn resident_bytes(&self) -> usize {
        let Some(tail) = &self.tail else { return self.chunks_bytes() };
        let entries: usize =
            tail.entries(self.tail_places()).map(|entry| entry.resident_bytes()).sum();
        let tail = tail.itself_bytes() + entries;
        self.chunks_bytes() + tail + tail / GAPS
    }

    /// Estimates the memory of the chunks, which share pages.
    fn chunks_bytes(&self) -> usize {
        let entries = self.parts.len().min(1) * (self.len() - self.tail_places().len());
        let texts = usize::try_from(self.bytes.saturating_sub(self.tail_bytes));
        let texts = texts.unwrap_or(usize::MAX);
        let entries = entries.saturating_mul(ENTRY_BYTES + size_of::<Arc<Entry>>());
        let chunks = self.parts.len().saturating_mul(chunk::ITSELF_BYTES);
        entries.saturating_add(size::filled(texts)).saturating_add(chunks)
    }

    /// Returns the entry with this ordinal.
    fn of_ordinal(&self, ordinal: u64) -> Option<&Arc<Entry>> {
        if !(self.begin..self.end).contains(&ordinal) {
            return None;
        }
        match self.part_of(ordinal).and_then(|index| self.parts.get(index)) {
            Some(part) => part.chunk.entries().get(distance(part.begin, ordinal)),
            None => self.tail.as_ref()?.get(distance(self.tail_begin, ordinal)),
        }
    }

    /// Returns the index of the part with this ordinal, or `None` if no part has this ordinal.
    fn part_of(&self, ordinal: u64) -> Option<usize> {
        let found = self.parts.binary_search_by(|part| part.begin.cmp(&ordinal));
        let index = found.or_else(|after| after.checked_sub(1).ok_or(())).ok()?;
        self.parts.get(index).filter(|part| ordinal < part.end()).map(|_| index)
    }

    /// Returns the ordinal of the first entry with at least this seq, or the end.
    fn ordinal(&self, seq: Seq) -> u64 {
        if let Some(tail) = &self.tail
            && let places = self.tail_places()
            && tail.get(places.start).is_some_and(|first| first.seq <= seq)
        {
            let place = tail.partition(places, |entry| entry.seq < seq);
            return self.tail_begin + place as u64;
        }
        let found = self.parts.binary_search_by(|part| part.chunk.first().cmp(&Some(seq)));
        let index = found.unwrap_or_else(|after| after.saturating_sub(1));
        let Some(part) = self.parts.get(index) else { return self.begin };
        let place = part.chunk.entries().partition_point(|entry| entry.seq < seq);
        self.begin.max(part.begin + place as u64)
    }

    /// Returns the tail's places that hold this log's entries.
    fn tail_places(&self) -> Range<usize> {
        distance(self.tail_begin, self.begin)..distance(self.tail_begin, self.end)
    }
}

/// Compares entries only, not their division into chunks.
impl PartialEq for Log {
    fn eq(&self, other: &Self) -> bool {
        (self.len(), self.last_seq, self.changed, self.bytes)
            == (other.len(), other.last_seq, other.changed, other.bytes)
            && self.iter().eq(other.iter())
    }
}

/// All seqs from `first` through `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(Seq, Seq)", into = "(Seq, Seq)")]
pub struct SeqRange {
    /// The first seq.
    pub first: Seq,
    /// The last seq, included.
    pub last: Seq,
}

/// Groups ascending seqs into ranges that contain no other entries of the log.
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
    /// Returns true if the range contains this seq.
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

#[cfg(test)]
mod tests;
