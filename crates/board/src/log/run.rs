//! Runs: neighbouring entries of a log, with the texts rendered from them.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::chunk::Chunk;
use super::marks::Probe;
use super::tail::Tail;
use super::texts::{Made, TextKind, Texts};
use super::tokenizer::Tokenizer;
use super::{Entry, Log, distance};

/// Neighbouring entries in one chunk or tail of a log. Changes elsewhere in the log usually leave the run intact.
#[derive(Clone, Debug)]
pub struct Run {
    of: Of,
    /// The indexes in the chunk or tail. Entries outside are removed, or not requested.
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

    /// Returns true if the run has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns true if an entry may match.
    #[must_use]
    pub fn may_have(&self, probe: &Probe) -> bool {
        match &self.of {
            Of::Chunk(chunk) => chunk.may_have(probe),
            Of::Tail(_) => true,
        }
    }

    /// Returns the bytes of the entries' items.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries().map(|entry| entry.item.bytes()).sum()
    }

    /// Iterates over the entries, in order.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.range.clone().filter_map(|index| self.entry(index))
    }

    /// Returns true if texts of this kind are cached for all entries.
    #[must_use]
    pub fn has_text(&self, kind: &TextKind) -> bool {
        self.texts().get(kind).is_some_and(|made| made.count() >= self.range.end)
    }

    /// Renders the entries with `write`, in order. Cached texts of this kind are reused, so `write` must be
    /// deterministic.
    #[must_use]
    pub fn text(&self, kind: &TextKind, mut write: impl FnMut(&Entry, &mut String)) -> RunText {
        let known = self.texts().get(kind);
        let made = match known {
            Some(made) if made.count() >= self.range.end => made,
            known => {
                let made = Made::after(known.as_deref(), self.range.end, |index, text| {
                    if let Some(entry) = self.entry(index) {
                        write(entry, text);
                    }
                });
                // Two readers may render the same text at once. This costs less than holding a lock meanwhile.
                let made = Arc::new(made);
                self.texts().keep(kind, &made);
                made
            }
        };
        RunText { made, range: self.range.clone() }
    }

    /// Weighs the text of each entry, in order. Cached weights of this kind and family are reused, so `weigh` must be
    /// deterministic.
    #[must_use]
    pub fn weights(
        &self,
        kind: &TextKind,
        tokenizer: Tokenizer,
        text: &RunText,
        mut weigh: impl FnMut(&[u8]) -> u64,
    ) -> RunWeights {
        let known = self.texts().weights(kind, tokenizer);
        let weights = match known {
            Some(weights) if weights.len() >= self.range.end => weights,
            known => {
                let mut weights = known.as_deref().unwrap_or_default().to_vec();
                for index in weights.len()..self.range.end {
                    let each = text.made.of(index..index + 1);
                    let weight: u64 = each.map(|text| weigh(&text)).sum();
                    weights.push(u32::try_from(weight).unwrap_or(u32::MAX));
                }
                let weights = weights.into();
                self.texts().keep_weights(kind, tokenizer, &weights);
                weights
            }
        };
        RunWeights { weights, range: self.range.clone() }
    }

    /// Returns true if weights of this kind and family are cached for all entries.
    #[must_use]
    pub fn has_weights(&self, kind: &TextKind, tokenizer: Tokenizer) -> bool {
        let weights = self.texts().weights(kind, tokenizer);
        weights.is_some_and(|weights| weights.len() >= self.range.end)
    }

    /// Returns the bytes of the items that [`Self::weights`] would weigh: all up to the run's end that are not weighed yet,
    /// those before the run too.
    #[must_use]
    pub fn unweighed_bytes(&self, kind: &TextKind, tokenizer: Tokenizer) -> u64 {
        let known = self.texts().weights(kind, tokenizer).map_or(0, |weights| weights.len());
        let entries = (known..self.range.end).filter_map(|index| self.entry(index));
        entries.map(|entry| entry.item.bytes()).sum()
    }

    /// Returns the memory address of the chunk or tail, with the range.
    fn place(&self) -> (usize, Range<usize>) {
        let address = match &self.of {
            Of::Chunk(chunk) => Arc::as_ptr(chunk).addr(),
            Of::Tail(tail) => Arc::as_ptr(tail).addr(),
        };
        (address, self.range.clone())
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

impl Log {
    /// Returns the last of the runs of the entries at these indexes, without a look at the others.
    #[must_use]
    pub fn last_run(&self, indexes: Range<usize>) -> Option<Run> {
        let end = indexes.end.min(self.len());
        let last = end.checked_sub(1).filter(|last| indexes.start <= *last)?;
        let ordinal = |index: usize| self.begin.saturating_add(index as u64);
        let ordinals = ordinal(indexes.start)..ordinal(end);
        if let Some(part) = self.part_of(ordinal(last)).and_then(|index| self.parts.get(index)) {
            return Some(Run::of_chunk(&part.chunk, part.places(&ordinals)));
        }
        let place = |ordinal| distance(self.tail_begin, ordinal);
        let places = place(ordinals.start)..place(ordinals.end);
        self.tail.as_ref().map(|tail| Run::of_tail(tail, places)).filter(|run| !run.is_empty())
    }

    /// Returns the runs of each log that the other does not share. The logs differ only in these runs.
    #[must_use]
    pub fn apart(&self, other: &Self) -> (Vec<Run>, Vec<Run>) {
        let runs = |log: &Self| log.runs(0..log.len()).collect::<Vec<_>>();
        let (mut own, mut others) = (runs(self), runs(other));
        let places = |runs: &[Run]| runs.iter().map(Run::place).collect::<HashSet<_>>();
        let (in_own, in_others) = (places(&own), places(&others));
        own.retain(|run| !in_others.contains(&run.place()));
        others.retain(|run| !in_own.contains(&run.place()));
        (own, others)
    }
}

/// The text of a run's entries.
#[derive(Clone, Debug)]
pub struct RunText {
    made: Arc<Made>,
    range: Range<usize>,
}

impl RunText {
    /// Returns the whole text, in blocks.
    pub fn whole(&self) -> impl Iterator<Item = Bytes> {
        self.made.of(self.range.clone())
    }

    /// Returns the text of each entry.
    pub fn each(&self) -> impl Iterator<Item = Bytes> {
        self.range.clone().flat_map(|index| self.made.of(index..index + 1))
    }
}

/// The weights of a run's texts.
#[derive(Clone, Debug)]
pub struct RunWeights {
    weights: Arc<[u32]>,
    range: Range<usize>,
}

impl RunWeights {
    /// Returns the weight of each entry's text.
    pub fn each(&self) -> impl DoubleEndedIterator<Item = u64> {
        let own = self.weights.get(self.range.clone()).unwrap_or_default();
        own.iter().map(|weight| u64::from(*weight))
    }
}
