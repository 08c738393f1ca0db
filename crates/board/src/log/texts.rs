//! Texts rendered from a run of entries, and their weights.
//!
//! They are cached beside the run, by form and selected members, until they are evicted. A run's entries never
//! change, so a text never becomes stale.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::tokenizer::Tokenizer;
use crate::size;

/// The members that a text shows, or all if absent.
pub type Keys = Option<Arc<[String]>>;

/// The forms of cached texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// The contents of JSON string literals, as Python escapes them.
    Literals,
    /// The same with characters instead of escapes.
    Characters,
    /// Markdown.
    Markdown,
    /// Entries in their envelopes, as JSON.
    Envelopes,
}

impl TextForm {
    /// Returns true if the texts show nothing of an entry besides its item.
    const fn is_of_items(self) -> bool {
        match self {
            Self::Literals | Self::Characters | Self::Markdown => true,
            Self::Envelopes => false,
        }
    }
}

/// The kind of a text: its form and members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextKind {
    /// The form.
    pub form: TextForm,
    /// The members.
    pub keys: Keys,
}

/// The maximum length of a block of text, unless a single entry's text is longer. An allocator block has this size; a
/// slightly longer block would waste up to a quarter.
const BLOCK_BYTES: usize = 64 << 10;

/// The rendered texts of the first entries of a run, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Made {
    blocks: Vec<Block>,
    count: usize,
}

#[derive(Clone, Debug)]
struct Block {
    text: Bytes,
    /// The end of each entry's text.
    ends: Box<[u32]>,
}

impl Made {
    /// Renders the entries after the known ones, up to `count` entries in total.
    pub(super) fn after(
        known: Option<&Self>,
        count: usize,
        mut write: impl FnMut(usize, &mut String),
    ) -> Self {
        let mut made = known.cloned().unwrap_or_default();
        let (mut text, mut ends) = made.reopen();
        for index in made.count..count {
            let start = text.len();
            write(index, &mut text);
            if text.len() > BLOCK_BYTES && start > 0 {
                let next = text.split_off(start);
                made.close(&text, &ends);
                (text, ends) = (next, Vec::new());
            }
            // The text of a block has a few MiB at most, if its only item has the maximum size.
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        made.close(&text, &ends);
        made.blocks.shrink_to_fit();
        Self { count, ..made }
    }

    /// Takes out the last blocks to add new text to them, as far as there is room.
    fn reopen(&mut self) -> (String, Vec<u32>) {
        let mut bytes = 0;
        let is_open = |block: &&Block| {
            bytes += block.text.len();
            bytes < BLOCK_BYTES
        };
        let closed = self.blocks.len() - self.blocks.iter().rev().take_while(is_open).count();
        let (mut text, mut ends) = (String::with_capacity(BLOCK_BYTES), Vec::new());
        for block in self.blocks.drain(closed..) {
            let start = u32::try_from(text.len()).unwrap_or(u32::MAX);
            ends.extend(block.ends.iter().map(|end| start.saturating_add(*end)));
            text.push_str(str::from_utf8(&block.text).unwrap_or_default());
        }
        (text, ends)
    }

    /// Adds the text of these entries as a block.
    fn close(&mut self, text: &str, ends: &[u32]) {
        if !ends.is_empty() {
            let text = Bytes::copy_from_slice(text.as_bytes());
            self.blocks.push(Block { text, ends: ends.into() });
        }
    }

    /// Returns the number of entries.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the texts of these entries, one piece for each block.
    pub(super) fn of(&self, entries: Range<usize>) -> impl Iterator<Item = Bytes> {
        self.within(entries).map(|(block, own)| block.of(own))
    }

    /// Returns the cached texts of these entries.
    fn part(&self, entries: Range<usize>) -> Option<Self> {
        let entries = entries.start..entries.end.min(self.count);
        let blocks = self.within(entries.clone()).map(|(block, own)| block.part(own)).collect();
        (!entries.is_empty()).then(|| Self { blocks, count: entries.len() })
    }

    /// Returns the blocks that contain some of these entries, each with the range of entries inside the block.
    fn within(&self, entries: Range<usize>) -> impl Iterator<Item = (&Block, Range<usize>)> {
        let mut before = 0;
        let own = move |block: &'_ Block| {
            let count = block.ends.len();
            let place = |entry: usize| entry.saturating_sub(before).min(count);
            let own = place(entries.start)..place(entries.end);
            before += count;
            own
        };
        let blocks = self.blocks.iter().zip(self.blocks.iter().map(own));
        blocks.filter(|(_, own)| !own.is_empty())
    }

    /// Returns the memory of the texts.
    fn bytes(&self) -> usize {
        let itself = size::shared(size_of::<Self>());
        itself + self.blocks.iter().map(Block::bytes).sum::<usize>()
    }
}

impl Block {
    fn of(&self, entries: Range<usize>) -> Bytes {
        let (start, end) = (self.end(entries.start), self.end(entries.end));
        self.text.slice(start.min(end)..end)
    }

    fn part(&self, entries: Range<usize>) -> Self {
        let start = u32::try_from(self.end(entries.start)).unwrap_or(u32::MAX);
        let ends = self.ends.get(entries.clone()).unwrap_or_default();
        let ends = ends.iter().map(|end| end.saturating_sub(start)).collect();
        Self { text: self.of(entries), ends }
    }

    /// Returns the memory of the block, with its place among the blocks.
    fn bytes(&self) -> usize {
        let ends = size_of_val::<[u32]>(&self.ends);
        size_of::<Self>() + size::block(self.text.len()) + size::block(ends)
    }

    fn end(&self, count: usize) -> usize {
        let end = count.checked_sub(1).map_or(Some(&0), |last| self.ends.get(last));
        end.map_or(self.text.len(), |end| usize::try_from(*end).unwrap_or(usize::MAX))
    }
}

/// The cached texts of a run. Each form has one text with all members, and one with selected members.
#[derive(Debug, Default)]
pub(super) struct Texts(Mutex<Vec<Slot>>);

#[derive(Debug)]
struct Slot {
    kind: TextKind,
    made: Arc<Made>,
    /// The weights of the first entries' texts, by family of tokenizers.
    weights: [Option<Arc<[u32]>>; 4],
}

impl Texts {
    /// Returns the cached text of this kind.
    pub(super) fn get(&self, kind: &TextKind) -> Option<Arc<Made>> {
        self.0.lock().iter().find(|slot| slot.kind == *kind).map(|slot| Arc::clone(&slot.made))
    }

    /// Caches a text, unless a longer one was cached in the meantime.
    pub(super) fn keep(&self, kind: &TextKind, made: &Arc<Made>) {
        let mut slots = self.0.lock();
        match slots.iter_mut().find(|slot| slot.kind == *kind) {
            Some(slot) if slot.made.count() >= made.count() => {}
            Some(slot) => slot.made = Arc::clone(made),
            None => {
                let is_other = |slot: &Slot| {
                    slot.kind.form == kind.form && slot.kind.keys.is_some() && kind.keys.is_some()
                };
                slots.retain(|slot| !is_other(slot));
                let (kind, made) = (kind.clone(), Arc::clone(made));
                // Most runs have one text.
                slots.reserve_exact(1);
                slots.push(Slot { kind, made, weights: Default::default() });
            }
        }
    }

    /// Returns the cached weights of the first entries.
    pub(super) fn weights(&self, kind: &TextKind, tokenizer: Tokenizer) -> Option<Arc<[u32]>> {
        let slots = self.0.lock();
        let slot = slots.iter().find(|slot| slot.kind == *kind)?;
        tokenizer.of_each(slot.weights.each_ref()).clone()
    }

    /// Caches weights of cached texts, unless more were cached in the meantime.
    pub(super) fn keep_weights(&self, kind: &TextKind, tokenizer: Tokenizer, weights: &Arc<[u32]>) {
        let mut slots = self.0.lock();
        let Some(slot) = slots.iter_mut().find(|slot| slot.kind == *kind) else { return };
        let own = tokenizer.of_each(slot.weights.each_mut());
        if own.as_ref().is_none_or(|own| own.len() < weights.len()) {
            *own = Some(Arc::clone(weights));
        }
    }

    /// Returns the texts of a part of this run.
    pub(super) fn part(&self, entries: Range<usize>) -> Self {
        let slots = self.0.lock();
        Self(Mutex::new(slots.iter().filter_map(|slot| slot.part(entries.clone())).collect()))
    }

    /// Returns the texts of a part of this run in which one entry was replaced, with the same item or another.
    pub(super) fn changed(&self, entries: Range<usize>, index: usize, same_item: bool) -> Self {
        let slots = self.0.lock();
        let end = |slot: &Slot| match slot.kind.form {
            form if same_item && form.is_of_items() => entries.end,
            _ => index,
        };
        let parts = slots.iter().filter_map(|slot| slot.part(entries.start..end(slot)));
        Self(Mutex::new(parts.collect()))
    }

    /// Returns the memory of the cached texts and weights.
    pub(super) fn bytes(&self) -> usize {
        self.0.lock().iter().map(Slot::bytes).sum()
    }

    /// Evicts the texts. A reader that holds a text keeps it.
    pub(super) fn forget(&self) {
        *self.0.lock() = Vec::new();
    }
}

impl Slot {
    fn part(&self, entries: Range<usize>) -> Option<Self> {
        let weights = |own: &Option<Arc<[u32]>>| {
            let own = own.as_deref()?;
            own.get(entries.start..entries.end.min(own.len())).map(Arc::from)
        };
        let made = Arc::new(self.made.part(entries.clone())?);
        let weights = self.weights.each_ref().map(weights);
        Some(Self { kind: self.kind.clone(), made, weights })
    }

    fn bytes(&self) -> usize {
        let weights = self.weights.iter().flatten();
        let weights = weights.map(|weights| size::shared(size_of_val::<[u32]>(weights)));
        size_of::<Self>() + self.made.bytes() + weights.sum::<usize>()
    }
}
