//! Texts that readers made of a run of entries, kept beside it so that nobody makes them twice.
//!
//! What they say is their readers' own. Here they are only held, by the members that were chosen for them, and
//! given up again; since a run's entries never change, a text of them never gets wrong.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// The members that a text shows; all of them where none are named.
pub type Keys = Option<Arc<[String]>>;

/// How long a block of text is, unless one entry's is longer: a size that an allocator has blocks of. What is
/// a little longer than such a size takes up to a quarter more memory.
const BLOCK_BYTES: usize = 64 << 10;

/// What was made of the first entries of a run: their texts, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Made {
    blocks: Vec<Block>,
    count: usize,
}

#[derive(Clone, Debug)]
struct Block {
    text: Bytes,
    /// Where the text of each of its entries ends.
    ends: Box<[u32]>,
}

impl Made {
    /// What was made of so many entries by `write`, after what is known of the first of them.
    pub(super) fn after(
        known: Option<&Self>,
        count: usize,
        mut write: impl FnMut(usize, &mut String),
    ) -> Self {
        let mut made = known.cloned().unwrap_or_default();
        // The last block goes on, if it has room.
        let open = made.blocks.pop_if(|last| last.text.len() < BLOCK_BYTES);
        let known = open.as_ref().and_then(|open| str::from_utf8(&open.text).ok());
        let (mut text, mut ends) = (String::with_capacity(BLOCK_BYTES), Vec::new());
        if let (Some(open), Some(known)) = (open.as_ref(), known) {
            text.push_str(known);
            ends.extend_from_slice(&open.ends);
        }
        for index in made.count..count {
            let start = text.len();
            write(index, &mut text);
            if text.len() > BLOCK_BYTES && start > 0 {
                let next = text.split_off(start);
                made.blocks.push(Block::new(&text, &ends));
                (text, ends) = (next, Vec::new());
            }
            // A chunk's text has some MiB at the most, its only item being as long as it may be.
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        if !ends.is_empty() {
            made.blocks.push(Block::new(&text, &ends));
        }
        Self { count, ..made }
    }

    /// Of how many entries it is.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// The texts of these entries, as they lie.
    pub(super) fn of(&self, entries: Range<usize>) -> impl Iterator<Item = Bytes> {
        self.within(entries).map(|(block, own)| block.of(own))
    }

    /// What was made of these entries, as far as it was.
    fn part(&self, entries: Range<usize>) -> Option<Self> {
        let entries = entries.start..entries.end.min(self.count);
        let blocks = self.within(entries.clone()).map(|(block, own)| block.part(own)).collect();
        (!entries.is_empty()).then(|| Self { blocks, count: entries.len() })
    }

    /// The blocks that have some of these entries, each with which of its own.
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

    fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.text.len() + 4 * block.ends.len()).sum()
    }
}

impl Block {
    fn new(text: &str, ends: &[u32]) -> Self {
        Self { text: Bytes::copy_from_slice(text.as_bytes()), ends: ends.into() }
    }

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

    fn end(&self, count: usize) -> usize {
        let end = count.checked_sub(1).map_or(Some(&0), |last| self.ends.get(last));
        end.map_or(self.text.len(), |end| usize::try_from(*end).unwrap_or(usize::MAX))
    }
}

/// The texts that are kept of a run: one that shows all members, and one that shows only some.
#[derive(Debug, Default)]
pub(super) struct Texts(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    all: Option<Arc<Made>>,
    chosen: Option<(Arc<[String]>, Arc<Made>)>,
}

impl Texts {
    /// What was made that shows these members.
    pub(super) fn get(&self, keys: &Keys) -> Option<Arc<Made>> {
        let slots = self.0.lock();
        match (keys, &slots.chosen) {
            (None, _) => slots.all.clone(),
            (Some(keys), Some((own, made))) if own == keys => Some(Arc::clone(made)),
            (Some(_), _) => None,
        }
    }

    /// Keeps what was made, unless somebody kept more meanwhile.
    pub(super) fn keep(&self, keys: &Keys, made: &Arc<Made>) {
        let mut slots = self.0.lock();
        match keys {
            None => {
                if slots.all.as_ref().is_none_or(|own| own.count() < made.count()) {
                    slots.all = Some(Arc::clone(made));
                }
            }
            Some(keys) => {
                let own = slots.chosen.as_ref().filter(|(own, _)| own == keys);
                if own.is_none_or(|(_, own)| own.count() < made.count()) {
                    slots.chosen = Some((Arc::clone(keys), Arc::clone(made)));
                }
            }
        }
    }

    /// Those of a run that has these entries of this one.
    pub(super) fn part(&self, entries: Range<usize>) -> Self {
        let slots = self.0.lock();
        let part = |made: &Arc<Made>| made.part(entries.clone()).map(Arc::new);
        let chosen = slots.chosen.as_ref();
        Self(Mutex::new(Slots {
            all: slots.all.as_ref().and_then(part),
            chosen: chosen.and_then(|(keys, made)| Some((Arc::clone(keys), part(made)?))),
        }))
    }

    /// How many bytes they have.
    pub(super) fn bytes(&self) -> usize {
        let slots = self.0.lock();
        let chosen = slots.chosen.as_ref().map(|(_, made)| made);
        slots.all.iter().chain(chosen).map(|made| made.bytes()).sum()
    }

    /// Gives them up; who has one at hand keeps it.
    pub(super) fn forget(&self) {
        *self.0.lock() = Slots::default();
    }
}
