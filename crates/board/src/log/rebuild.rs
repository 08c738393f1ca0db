//! Insertions and removals in the middle of a log.
//!
//! Chunks outside the changed range stay.

use std::ops::Range;
use std::sync::Arc;

use super::chunk;
use super::chunk::{CHUNK_BYTES, CHUNK_ENTRIES, Chunk};
use super::parts::Part;
use super::texts::Texts;
use super::{Entry, Log};
use crate::{Cost, Seq};

/// The new entries of a run, or `None` if the run stays.
type Edited = Option<Vec<Arc<Entry>>>;

impl Log {
    /// Rebuilds the parts that `edit` changes between two seqs.
    pub(super) fn rebuild(
        &mut self,
        first: Seq,
        last: Seq,
        mut edit: impl FnMut(&[Arc<Entry>], Option<Seq>) -> Edited,
    ) {
        let tail = self.tail_entries();
        let tail_first = tail.first().map(|entry| entry.seq);
        // Entries before the first chunk are added to this chunk.
        let start = self.parts_through(first).saturating_sub(1);
        let concerned = self.parts_through(last).max(1).min(self.parts.len()) - start;
        let mut index = start;
        for _ in 0..concerned {
            let next = self.parts.get(index + 1).and_then(|part| part.chunk.first());
            index = self.rebuild_part(index, |own| edit(own, next.or(tail_first)));
        }
        let edited = match tail_first {
            Some(tail_first) if last < tail_first && !self.parts.is_empty() => None,
            None if concerned > 0 => None,
            Some(_) | None => edit(&tail, None),
        };
        let from = start.saturating_sub(1);
        let to = self.join(from..index);
        let dead = self.tail_places().start;
        let end = self.number(from..to);
        self.tail_begin = end - dead as u64;
        self.end = end + tail.len() as u64;
        if let Some(new) = edited {
            self.rebuild_tail(&tail, &new);
        }
    }

    /// Counts the parts that begin at or before this seq.
    fn parts_through(&self, seq: Seq) -> usize {
        let found = self.parts.binary_search_by(|part| part.chunk.first().cmp(&Some(seq)));
        found.map_or_else(|after| after, |index| index + 1)
    }

    /// Replaces a part's entries by the result of `edit`. Returns the index of the next part.
    fn rebuild_part(
        &mut self,
        mut index: usize,
        edit: impl FnOnce(&[Arc<Entry>]) -> Edited,
    ) -> usize {
        let Some(part) = self.parts.get(index).cloned() else { return index };
        let live = part.places(&(self.begin..self.end));
        let own = part.chunk.entries().get(live.clone()).unwrap_or_default();
        let Some(new) = edit(own) else { return index + 1 };
        self.weigh(own, &new);
        let texts = part.chunk.texts().part(live.start..live.start + same(own, &new));
        self.parts.remove(index);
        for chunk in Chunk::divide(new, texts) {
            // The final ordinals are assigned once all chunks are in place.
            self.parts.insert(index, Part { begin: self.begin, chunk: Arc::new(chunk) });
            index += 1;
        }
        index
    }

    /// Replaces the entries of the tail.
    fn rebuild_tail(&mut self, old: &[Arc<Entry>], new: &[Arc<Entry>]) {
        if new.len() <= CHUNK_ENTRIES && chunk::bytes(new) <= CHUNK_BYTES {
            self.weigh(old, new);
            let from = self.tail_places().start;
            let known = from..from + same(old, new);
            let texts = self.tail.as_ref().map(|tail| tail.texts().part(known));
            self.replace_tail(new, texts.unwrap_or_default());
            return;
        }
        self.weigh(old, &[]);
        self.replace_tail(&[], Texts::default());
        for entry in new {
            self.push(Arc::clone(entry));
        }
    }

    /// Updates the bytes and costs for replaced entries.
    fn weigh(&mut self, old: &[Arc<Entry>], new: &[Arc<Entry>]) {
        let bytes = |entries: &[Arc<Entry>]| entries.iter().map(|entry| entry.bytes()).sum::<u64>();
        self.bytes = self.bytes + bytes(new) - bytes(old);
        let cost =
            |entries: &[Arc<Entry>]| entries.iter().map(|entry| entry.item.cost()).sum::<Cost>();
        self.cost = self.cost.map(|sum| sum + cost(new) - cost(old));
    }

    /// Joins neighbouring parts that fit into one chunk, so that removals leave no small chunks. Returns the index
    /// after the last joined part.
    fn join(&mut self, indexes: Range<usize>) -> usize {
        let Range { start: mut index, mut end } = indexes;
        while index < end {
            let pair = self.parts.get(index).zip(self.parts.get(index + 1));
            let whole = pair.filter(|(part, _)| part.begin >= self.begin);
            match whole.and_then(|(part, next)| part.chunk.joined(&next.chunk)) {
                Some(chunk) => {
                    self.parts.remove(index + 1);
                    let part = Part { begin: self.begin, chunk: Arc::new(chunk) };
                    self.parts.set(index, part);
                    // The next may be the first part behind those.
                    end = end.saturating_sub(1).max(index + 1);
                }
                None => index += 1,
            }
        }
        end
    }

    /// Renumbers these parts, and the parts behind them if theirs changed. Returns the ordinal after the last part.
    fn number(&mut self, indexes: Range<usize>) -> u64 {
        let Range { start: from, end: to } = indexes;
        if self.parts.is_empty() {
            return self.begin;
        }
        let before = from.checked_sub(1).and_then(|before| self.parts.get(before));
        let first = self.parts.get(from).map_or(self.begin, |part| part.begin.min(self.begin));
        let mut begin = before.map_or(first, Part::end);
        let concerned = match self.parts.get(to) {
            Some(next) => {
                let count = |part: &Part| part.chunk.len() as u64;
                let own = (from..to).filter_map(|index| self.parts.get(index)).map(count);
                if next.begin == begin + own.sum::<u64>() { to } else { self.parts.len() }
            }
            None => self.parts.len(),
        };
        let behind = self.parts.split_off(concerned);
        let from = from.min(self.parts.len());
        let mut concerned = self.parts.split_off(from);
        for part in concerned.iter_mut() {
            part.begin = begin;
            begin = part.end();
        }
        self.parts.append(concerned);
        self.parts.append(behind);
        self.parts.back().map_or(self.begin, Part::end).max(self.begin)
    }
}

/// Counts the leading entries that are the same in both.
fn same(old: &[Arc<Entry>], new: &[Arc<Entry>]) -> usize {
    old.iter().zip(new).take_while(|(old, new)| Arc::ptr_eq(old, new)).count()
}
