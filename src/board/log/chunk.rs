//! Chunks: immutable runs of a log's entries, with their items' texts in one page.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Entry;
use super::filter::push_marks;
use super::marks::{Marks, Probe};
use super::texts::Texts;
use crate::board::values::item::Page;
use crate::board::{AgentName, Timestamp};

/// The bytes of item text in a chunk, unless one item is longer. Slightly below a block size of the allocator.
pub const CHUNK_BYTES: u64 = (64 << 10) - 64;

/// The most entries of a chunk.
pub const CHUNK_ENTRIES: usize = 256;

/// The size to which a chunk may grow by changes before it is split.
const CHANGED_BYTES_MAX: u64 = 2 * CHUNK_BYTES;

/// The number of known authors searched for an entry's.
const SHARED_NAMES_MAX: usize = 8;

/// Neighbouring entries, at least one.
#[derive(Debug)]
pub(super) struct Chunk {
    entries: Box<[Arc<Entry>]>,
    bytes: u64,
    /// When its first and its last entry were appended, where none was before the one before it.
    times: Option<(Timestamp, Timestamp)>,
    texts: Texts,
    /// The marks of its entries, built on the first search.
    marks: Mutex<Option<Arc<Marks>>>,
}

impl Chunk {
    /// A chunk of these entries, with the texts that are known of them.
    pub(super) fn new(entries: Vec<Arc<Entry>>, texts: Texts) -> Self {
        let (bytes, times) = (bytes(&entries), times(&entries));
        Self { bytes, times, entries: packed(entries).into(), texts, marks: Mutex::default() }
    }

    /// Splits entries into chunks. The texts belong to the first entries.
    pub(super) fn divide(entries: Vec<Arc<Entry>>, texts: Texts) -> impl Iterator<Item = Self> {
        let (mut rest, mut texts) = (entries, Some(texts));
        std::iter::from_fn(move || {
            let mut sum = 0;
            let fits = |entry: &&Arc<Entry>| {
                sum += entry.item.bytes();
                sum <= CHUNK_BYTES
            };
            let count = rest.iter().take(CHUNK_ENTRIES).take_while(fits).count().max(1);
            let after = rest.split_off(count.min(rest.len()));
            let own = std::mem::replace(&mut rest, after);
            let texts = texts.take().map(|texts| texts.part(0..own.len())).unwrap_or_default();
            (!own.is_empty()).then(|| Self::new(own, texts))
        })
    }

    /// This chunk with another entry in the place of one: more than one where it got too large.
    pub(super) fn with(&self, index: usize, entry: Arc<Entry>) -> Vec<Self> {
        let same = self.entries.get(index).is_some_and(|old| old.item == entry.item);
        let texts = self.texts.part(0..if same { self.entries.len() } else { index });
        let mut entries = self.entries.to_vec();
        if let Some(slot) = entries.get_mut(index) {
            *slot = entry;
        }
        let bytes = bytes(&entries);
        let loose = entries.iter().filter(|entry| !entry.item.is_in_page()).count();
        if bytes > CHANGED_BYTES_MAX {
            return Self::divide(entries, texts).collect();
        }
        // A page has the texts of those that were changed too, so it is written anew when many were.
        if 2 * loose > entries.len() {
            return vec![Self::new(entries, texts)];
        }
        let (times, marks) = (times(&entries), Mutex::default());
        vec![Self { bytes, times, entries: entries.into(), texts, marks }]
    }

    /// Both in one, if that is not too large.
    pub(super) fn joined(&self, next: &Self) -> Option<Self> {
        let fits =
            self.len() + next.len() <= CHUNK_ENTRIES && self.bytes + next.bytes <= CHUNK_BYTES;
        let entries = || self.entries.iter().chain(&next.entries).cloned().collect();
        fits.then(|| Self::new(entries(), self.texts.part(0..self.len())))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The seq of the first entry.
    pub(super) fn first(&self) -> Option<super::Seq> {
        self.entries.first().map(|entry| entry.seq)
    }

    /// When its first and its last entry were appended, if they ascend in time.
    pub(super) const fn times(&self) -> Option<(Timestamp, Timestamp)> {
        self.times
    }

    /// Whether one of its entries may match.
    pub(super) fn may_have(&self, probe: &Probe) -> bool {
        let known = self.marks.lock().clone();
        let marks = known.unwrap_or_else(|| {
            let mut marks = Vec::new();
            self.entries.iter().for_each(|entry| push_marks(entry, &mut marks));
            let marks = Arc::new(Marks::of(&marks));
            *self.marks.lock() = Some(Arc::clone(&marks));
            marks
        });
        marks.may_have(probe)
    }

    /// The bytes of cached texts and marks.
    pub(super) fn kept_bytes(&self) -> usize {
        self.texts.bytes() + self.marks.lock().as_ref().map_or(0, |marks| marks.bytes())
    }

    /// Evicts cached texts and marks.
    pub(super) fn forget_kept(&self) {
        self.texts.forget();
        *self.marks.lock() = None;
    }

    pub(super) fn texts(&self) -> &Texts {
        &self.texts
    }
}

/// The bytes of these entries' items.
pub(super) fn bytes<'a>(entries: impl IntoIterator<Item = &'a Arc<Entry>>) -> u64 {
    entries.into_iter().map(|entry| entry.item.bytes()).sum()
}

/// When the first and the last of these were appended, if they ascend in time.
fn times(entries: &[Arc<Entry>]) -> Option<(Timestamp, Timestamp)> {
    let times = entries.first().map(|entry| entry.at).zip(entries.last().map(|entry| entry.at));
    times.filter(|_| entries.is_sorted_by_key(|entry| entry.at))
}

/// Packs the entries' texts into one page, which takes less memory than a block each.
fn packed(entries: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
    if entries.len() < 2 {
        return entries;
    }
    let bytes = usize::try_from(bytes(&entries)).unwrap_or_default();
    let page = Arc::new(Page::of(entries.iter().map(|entry| entry.item.text()), bytes));
    let (mut at, mut names) = (0, Vec::new());
    let pack = |entry: Arc<Entry>| {
        let Some(item) = entry.item.in_page(&page, at) else { return entry };
        at += item.text().len();
        let agent = entry.agent.as_ref().map(|agent| shared(agent, &mut names));
        Arc::new(Entry { item, agent, ..Entry::clone(&entry) })
    };
    entries.into_iter().map(pack).collect()
}

/// A name that is equal and may be in use already: most entries have few authors.
fn shared(name: &AgentName, known: &mut Vec<AgentName>) -> AgentName {
    if let Some(known) = known.iter().find(|known| *known == name) {
        return known.clone();
    }
    if known.len() < SHARED_NAMES_MAX {
        known.push(name.clone());
    }
    name.clone()
}
