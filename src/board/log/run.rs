//! Neighbouring entries of a log, and the texts that a reader makes of them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::Entry;
use super::chunk::Chunk;
use super::tail::Tail;
use super::texts::{Keys, Made, Texts};

/// Neighbouring entries of a log, which stay together as long as the log's other entries change.
#[derive(Clone, Debug)]
pub struct Run {
    of: Of,
    /// Which of the entries there; those before are gone from the log, or not asked for.
    range: Range<usize>,
}

#[derive(Clone, Debug)]
enum Of {
    Chunk(Arc<Chunk>),
    Tail(Arc<Tail>),
}

impl Run {
    pub(super) fn of_chunk(chunk: &Arc<Chunk>, range: Range<usize>) -> Self {
        Self { of: Of::Chunk(Arc::clone(chunk)), range }
    }

    pub(super) fn of_tail(tail: &Arc<Tail>, range: Range<usize>) -> Self {
        Self { of: Of::Tail(Arc::clone(tail)), range }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Its entries in their order.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.range.clone().filter_map(|index| self.entry(index))
    }

    /// Whether there is a text of all its entries that shows these members.
    #[must_use]
    pub fn has_text(&self, keys: &Keys) -> bool {
        self.texts().get(keys).is_some_and(|made| made.count() >= self.range.end)
    }

    /// What `write` makes of its entries, one after the other. What was made before that shows these members
    /// is not made again: `write` must always write the same of one entry.
    #[must_use]
    pub fn text(&self, keys: &Keys, mut write: impl FnMut(&Entry, &mut String)) -> RunText {
        let known = self.texts().get(keys);
        let made = match known {
            Some(made) if made.count() >= self.range.end => made,
            known => {
                let made = Made::after(known.as_deref(), self.range.end, |index, text| {
                    if let Some(entry) = self.entry(index) {
                        write(entry, text);
                    }
                });
                // Two may make it at once, which costs less than to wait while holding a lock.
                let made = Arc::new(made);
                self.texts().keep(keys, &made);
                made
            }
        };
        RunText { made, range: self.range.clone() }
    }

    fn entry(&self, index: usize) -> Option<&Arc<Entry>> {
        match &self.of {
            Of::Chunk(chunk) => chunk.entries().get(index),
            Of::Tail(tail) => tail.get(index),
        }
    }

    fn texts(&self) -> &Texts {
        match &self.of {
            Of::Chunk(chunk) => chunk.texts(),
            Of::Tail(tail) => tail.texts(),
        }
    }
}

/// The text of a run's entries.
#[derive(Clone, Debug)]
pub struct RunText {
    made: Arc<Made>,
    range: Range<usize>,
}

impl RunText {
    /// All of it, in as many pieces as it lies in.
    pub fn whole(&self) -> impl Iterator<Item = Bytes> {
        self.made.of(self.range.clone())
    }

    /// That of each entry.
    pub fn each(&self) -> impl Iterator<Item = Bytes> {
        self.range.clone().flat_map(|index| self.made.of(index..index + 1))
    }
}
