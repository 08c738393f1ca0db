//! Changes of a log.
//!
//! The cost of a change depends on its size, not on the size of the log.

use std::sync::Arc;

use super::chunk;
use super::chunk::{CHUNK_BYTES, CHUNK_ENTRIES, Chunk};
use super::parts::Part;
use super::tail::Tail;
use super::texts::Texts;
use super::{Entry, Log, SeqRange, Stamp, Updated, distance};
use crate::values::claim::Work;
use crate::values::task::Task;
use crate::{Cost, Item, Revision, Seq};

impl Log {
    pub(crate) fn append(&mut self, first: Seq, items: &[Item], stamp: Stamp<'_>) {
        // Most entries share their author with the entry before them.
        let last = self.end.checked_sub(1).and_then(|last| self.of_ordinal(last));
        let same =
            last.and_then(|last| last.agent.clone()).filter(|same| Some(same) == stamp.agent);
        let agent = same.or_else(|| stamp.agent.cloned());
        let bytes: u64 = items.iter().map(Item::bytes).sum();
        // Chunks copy the items of a larger write once more.
        let paged = (items.len() > 1 && bytes <= CHUNK_BYTES).then(|| chunk::paged(items.iter()));
        let items = paged.as_deref().unwrap_or(items);
        for ((seq, item), left) in (first.0..).map(Seq).zip(items).zip((1..=items.len()).rev()) {
            self.last_seq = seq;
            let entry = Entry {
                seq,
                revision: stamp.revision,
                at: stamp.at,
                agent: agent.clone(),
                updated: None,
                work: None,
                task: None,
                acked_at: None,
                item: item.clone(),
            };
            self.push_of(Arc::new(entry), left);
        }
        self.changed = stamp.revision;
    }

    pub(crate) fn update(&mut self, seq: Seq, item: &Item, stamp: Stamp<'_>) {
        self.change(seq, stamp, |entry| entry.item = item.clone());
    }

    /// Sets the task of an entry of the same commit, or of a restore. The change is part of that commit, so it leaves
    /// no mark of its own.
    pub(crate) fn plan(&mut self, seq: Seq, task: Task) {
        let Some(entry) = self.get(seq) else { return };
        let entry = Entry { task: Some(Box::new(task)), ..Entry::clone(entry) };
        self.set(self.ordinal(seq), Arc::new(entry));
    }

    /// Sets the task of an entry, whose envelope is otherwise unchanged.
    pub(crate) fn set_task(&mut self, seq: Seq, task: Task, revision: Revision) {
        self.plan(seq, task);
        let Some(entry) = self.get(seq) else { return };
        let entry = Entry { revision, ..Entry::clone(entry) };
        self.set(self.ordinal(seq), Arc::new(entry));
        self.changed = revision;
    }

    /// Records that a message was acknowledged.
    pub(crate) fn acknowledge(&mut self, seq: Seq, stamp: Stamp<'_>) {
        self.change(seq, stamp, |entry| entry.acked_at = Some(stamp.at));
    }

    /// Changes an entry, which gets the stamp.
    pub(crate) fn change(&mut self, seq: Seq, stamp: Stamp<'_>, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.get(seq) else { return };
        let mut entry = Entry::clone(entry);
        entry.revision = stamp.revision;
        entry.updated = Some(Box::new(Updated { at: stamp.at, by: stamp.agent.cloned() }));
        change(&mut entry);
        self.set(self.ordinal(seq), Arc::new(entry));
        self.changed = stamp.revision;
    }

    pub(crate) fn clear(&mut self, revision: Revision) {
        let cost = self.cost.map(|_| Cost::default());
        *self = Self { last_seq: self.last_seq, changed: revision, cost, ..Self::default() };
    }

    pub(crate) fn remove(&mut self, ranges: &[SeqRange], revision: Revision) {
        self.changed = revision;
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return };
        if ranges.len() == 1 && self.ordinal(first.first) == self.begin {
            return self.remove_oldest(self.count_through(last.last));
        }
        let is_removed = |entry: &Arc<Entry>| {
            let range = ranges.get(ranges.partition_point(|range| range.last < entry.seq));
            range.is_some_and(|range| range.contains(entry.seq))
        };
        self.rebuild(first.first, last.last, |entries, _| {
            let any = entries.iter().any(is_removed);
            any.then(|| entries.iter().filter(|entry| !is_removed(entry)).cloned().collect())
        });
    }

    /// Removes entries and inserts others by seq, replacing any entries with the same seqs.
    pub(crate) fn put_back(
        &mut self,
        removed: &[SeqRange],
        entries: &[Arc<Entry>],
        revision: Revision,
    ) {
        self.remove(removed, revision);
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return };
        let mut back = entries.iter().peekable();
        self.rebuild(first.seq, last.seq, |own, until| {
            let is_here = |entry: &&Arc<Entry>| until.is_none_or(|until| entry.seq < until);
            back.peek().filter(|entry| is_here(entry))?;
            let mut merged = Vec::with_capacity(own.len() + 1);
            for own in own {
                merged.extend(std::iter::from_fn(|| back.next_if(|entry| entry.seq < own.seq)));
                merged.push(back.next_if(|entry| entry.seq == own.seq).unwrap_or(own));
            }
            merged.extend(std::iter::from_fn(|| back.next_if(is_here)));
            Some(merged.into_iter().cloned().collect())
        });
    }

    /// Ends all claims on the log's entries, including expired ones. Returns those that are cancelled by it.
    pub(crate) fn end_claims(&mut self, stamp: Stamp<'_>) -> Vec<Seq> {
        let is_open = |entry: &Entry| entry.work.as_deref().is_some_and(Work::is_open);
        let open: Vec<_> = self.iter().filter(|entry| is_open(entry)).cloned().collect();
        let mut cancelled = Vec::new();
        for entry in open {
            let free = Entry { revision: stamp.revision, ..entry.freed(stamp.at) };
            if free.work.is_some() {
                cancelled.push(entry.seq);
            }
            self.set(self.ordinal(entry.seq), Arc::new(free));
            self.changed = stamp.revision;
        }
        cancelled
    }

    /// Creates the log of a base: its counters, without entries.
    pub(crate) fn restore(last_seq: Seq, changed: Revision) -> Self {
        Self { last_seq, changed, ..Self::default() }
    }

    /// Restores the next entry. Returns `false` if its seq is out of order.
    pub(crate) fn restore_entry(&mut self, entry: Entry) -> bool {
        let before = self.end.checked_sub(1).and_then(|last| self.of_ordinal(last));
        let before = before.map_or(Seq(0), |entry| entry.seq);
        if entry.seq <= before || entry.seq > self.last_seq {
            return false;
        }
        self.push(Arc::new(entry));
        true
    }

    pub(super) fn push(&mut self, entry: Arc<Entry>) {
        self.push_of(entry, 1);
    }

    /// Appends the first of so many entries that follow.
    fn push_of(&mut self, entry: Arc<Entry>, following: usize) {
        let bytes = entry.item.bytes();
        let count = self.tail_places().len();
        if count >= CHUNK_ENTRIES || (count > 0 && self.tail_bytes + bytes > CHUNK_BYTES) {
            self.seal();
        }
        self.bytes += entry.bytes();
        self.cost = self.cost.map(|sum| sum + entry.item.cost());
        self.tail_bytes += bytes;
        let place = distance(self.tail_begin, self.end);
        let put = match &self.tail {
            Some(tail) => tail.put(place, entry),
            None => Err(entry),
        };
        if let Err(entry) = put {
            let tail = self.own_tail(following);
            let place = distance(self.tail_begin, self.end);
            let put = tail.put(place, entry);
            debug_assert!(put.is_ok(), "a new tail has room");
            self.tail = Some(Arc::new(tail));
        }
        self.end += 1;
    }

    /// Creates a tail with only this log's entries, and room for so many more.
    fn own_tail(&mut self, more: usize) -> Tail {
        let places = self.tail_places();
        self.tail_begin = self.tail_begin.max(self.begin);
        let more = more.min(CHUNK_ENTRIES - places.len().min(CHUNK_ENTRIES));
        match &self.tail {
            Some(tail) => {
                let entries = || tail.entries(places.clone()).cloned();
                let is_paged = |entry: &Arc<Entry>| entry.item.is_in_page();
                // Each entry is packed once: what follows the last page.
                let paged = places.len() - entries().rev().take_while(|one| !is_paged(one)).count();
                let packed = chunk::packed(entries().skip(paged).collect());
                let entries = entries().take(paged).chain(packed);
                Tail::of(entries, more, tail.texts().part(places.clone()))
            }
            None => Tail::of(std::iter::empty(), more, Texts::default()),
        }
    }

    /// Seals the tail into a chunk.
    fn seal(&mut self) {
        let places = self.tail_places();
        if let Some(tail) = self.tail.take() {
            let entries = tail.entries(places.clone()).cloned().collect();
            let chunk = Arc::new(Chunk::new(entries, tail.texts().part(places)));
            self.parts.push_back(Part { begin: self.tail_begin.max(self.begin), chunk });
        }
        (self.tail_begin, self.tail_bytes) = (self.end, 0);
    }

    /// Replaces the entry with the same seq.
    fn set(&mut self, ordinal: u64, entry: Arc<Entry>) {
        let Some(old) = self.of_ordinal(ordinal) else { return };
        let same = old.item == entry.item;
        let bytes = self.bytes - old.bytes() + entry.bytes();
        let counted = self.cost.filter(|_| !same);
        let cost = counted.map(|sum| sum - old.item.cost() + entry.item.cost());
        (self.bytes, self.cost) = (bytes, cost.or(self.cost));
        if let Some(index) = self.part_of(ordinal) {
            let Some(part) = self.parts.get(index).cloned() else { return };
            let chunks = part.chunk.with(distance(part.begin, ordinal), entry);
            self.parts.remove(index);
            let (mut begin, mut index) = (part.begin, index);
            for chunk in chunks {
                let part = Part { begin, chunk: Arc::new(chunk) };
                begin = part.end();
                // A piece may consist only of entries that were removed from the front.
                if begin > self.begin {
                    self.parts.insert(index, part);
                    index += 1;
                }
            }
            return;
        }
        let mut entries = self.tail_entries();
        let place = distance(self.tail_begin.max(self.begin), ordinal);
        if let Some(slot) = entries.get_mut(place) {
            *slot = entry;
        }
        let places = self.tail_places();
        let texts = self
            .tail
            .as_ref()
            .map(|tail| tail.texts().changed(places.clone(), places.start + place, same));
        self.replace_tail(&entries, texts.unwrap_or_default());
    }

    pub(super) fn tail_entries(&self) -> Vec<Arc<Entry>> {
        let tail = self.tail.iter();
        tail.flat_map(|tail| tail.entries(self.tail_places())).cloned().collect()
    }

    /// Replaces the tail. The texts are those of the first entries.
    pub(super) fn replace_tail(&mut self, entries: &[Arc<Entry>], texts: Texts) {
        self.tail_begin = self.tail_begin.max(self.begin);
        self.tail_bytes = chunk::bytes(entries);
        self.end = self.tail_begin + entries.len() as u64;
        let tail = || Arc::new(Tail::of(entries.iter().cloned(), 1, texts));
        self.tail = (!entries.is_empty()).then(tail);
    }

    fn remove_oldest(&mut self, count: usize) {
        let begin = self.begin + count as u64;
        let removed = || self.iter().take(count);
        let bytes: u64 = removed().map(|entry| entry.bytes()).sum();
        let cost = || removed().map(|entry| entry.item.cost()).sum();
        (self.bytes, self.cost) = (self.bytes - bytes, self.cost.map(|sum| sum - cost()));
        let of_tail = distance(self.tail_begin.max(self.begin), begin);
        let removed = self.tail.iter().flat_map(|tail| tail.entries(self.tail_places()));
        self.tail_bytes -= chunk::bytes(removed.take(of_tail));
        self.begin = begin;
        while self.parts.front().is_some_and(|part| part.end() <= begin) {
            self.parts.pop_front();
        }
        if self.tail_places().is_empty() {
            (self.tail, self.tail_begin) = (None, self.end);
        }
    }
}
