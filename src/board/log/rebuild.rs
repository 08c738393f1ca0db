//! Changes in the middle of a log that make it longer or shorter. The chunks that are not concerned stay.

use std::ops::Range;
use std::sync::Arc;

use super::chunk::{self, CHUNK_BYTES, CHUNK_ENTRIES, Chunk};
use super::{Entry, Log, Part};
use crate::board::Seq;

/// What becomes of neighbours, all that there are before the seq, which is that of the next entry; nothing where
/// they stay as they are.
type Edited = Option<Vec<Arc<Entry>>>;

impl Log {
    /// Makes anew what `edit` changes among the entries from one seq through another.
    pub(super) fn rebuild(
        &mut self,
        first: Seq,
        last: Seq,
        mut edit: impl FnMut(&[Arc<Entry>], Option<Seq>) -> Edited,
    ) {
        let tail = self.tail_entries();
        let tail_first = tail.first().map(|entry| entry.seq);
        // What comes before the first chunk is added to it.
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
        self.join(start.saturating_sub(1)..index);
        let dead = self.tail_places().start;
        let end = self.number(start.saturating_sub(1));
        self.tail_begin = end - dead as u64;
        self.end = end + tail.len() as u64;
        if let Some(new) = edited {
            self.rebuild_tail(&tail, &new);
        }
    }

    /// How many parts begin with an entry up to and including this seq.
    fn parts_through(&self, seq: Seq) -> usize {
        let found = self.parts.binary_search_by(|part| part.chunk.first().cmp(&Some(seq)));
        found.map_or_else(|after| after, |index| index + 1)
    }

    /// Puts what `edit` makes of a part's entries in its place. Gives the index of the next part.
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
            // They are numbered when all are there.
            self.parts.insert(index, Part { begin: self.begin, chunk: Arc::new(chunk) });
            index += 1;
        }
        index
    }

    /// Puts these entries in the place of those of the tail.
    fn rebuild_tail(&mut self, old: &[Arc<Entry>], new: &[Arc<Entry>]) {
        if new.len() <= CHUNK_ENTRIES && chunk::bytes(new) <= CHUNK_BYTES {
            self.weigh(old, new);
            self.replace_tail(new, same(old, new));
            return;
        }
        self.weigh(old, &[]);
        self.replace_tail(&[], 0);
        for entry in new {
            self.push(Arc::clone(entry));
        }
    }

    /// Counts the bytes of what comes for those of what goes.
    fn weigh(&mut self, old: &[Arc<Entry>], new: &[Arc<Entry>]) {
        let bytes = |entries: &[Arc<Entry>]| entries.iter().map(|entry| entry.bytes()).sum::<u64>();
        self.bytes = self.bytes + bytes(new) - bytes(old);
    }

    /// Makes one of neighbouring parts of these where they fit into one: many removals must not leave many
    /// small chunks.
    fn join(&mut self, indexes: Range<usize>) {
        let Range { start: mut index, mut end } = indexes;
        while index < end {
            let pair = self.parts.get(index).zip(self.parts.get(index + 1));
            let whole = pair.filter(|(part, _)| part.begin >= self.begin);
            match whole.and_then(|(part, next)| part.chunk.joined(&next.chunk)) {
                Some(chunk) => {
                    self.parts.remove(index + 1);
                    let part = Part { begin: self.begin, chunk: Arc::new(chunk) };
                    self.parts.set(index, part);
                    end = end.saturating_sub(1);
                }
                None => index += 1,
            }
        }
    }

    /// Gives the parts from this index on the ordinals that follow from those before. Gives the ordinal after
    /// the last one.
    fn number(&mut self, from: usize) -> u64 {
        let before = from.checked_sub(1).and_then(|before| self.parts.get(before));
        let first = self.parts.get(from).map_or(self.begin, |part| part.begin.min(self.begin));
        let mut begin = before.map_or(first, Part::end);
        for index in from..self.parts.len() {
            let Some(part) = self.parts.get(index) else { break };
            let (is_right, chunk) = (part.begin == begin, Arc::clone(&part.chunk));
            let end = begin + chunk.len() as u64;
            if !is_right {
                self.parts.set(index, Part { begin, chunk });
            }
            begin = end;
        }
        begin.max(self.begin)
    }
}

/// How many of the first entries are the same.
fn same(old: &[Arc<Entry>], new: &[Arc<Entry>]) -> usize {
    old.iter().zip(new).take_while(|(old, new)| Arc::ptr_eq(old, new)).count()
}
