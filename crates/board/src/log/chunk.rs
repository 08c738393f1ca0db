//! Chunks: immutable runs of a log's entries, with their items' texts in one page.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Entry;
use super::filter::push_marks;
use super::marks::{Marks, Probe};
use super::parts::Part;
use super::texts::Texts;
use crate::values::item::PAGE_BYTES;
use crate::{AgentName, Item, Timestamp, size};

/// The maximum bytes of item text in a chunk, unless a single item is longer. Slightly below an allocator block size.
pub const CHUNK_BYTES: u64 = (64 << 10) - 64;

/// The maximum number of entries in a chunk.
pub const CHUNK_ENTRIES: usize = 256;

/// The maximum bytes of item text in a chunk after changes. A larger chunk is split.
const CHANGED_BYTES_MAX: u64 = 2 * CHUNK_BYTES;

/// The maximum number of authors in a chunk whose names are shared.
const SHARED_NAMES_MAX: usize = 8;

/// The memory of a chunk besides its entries: itself, its page and its place among the parts.
pub(super) const ITSELF_BYTES: usize =
    size::shared(size_of::<Chunk>()) + PAGE_BYTES + size_of::<Part>();

/// Neighbouring entries, at least one.
#[derive(Debug)]
pub(super) struct Chunk {
    entries: Box<[Arc<Entry>]>,
    bytes: u64,
    /// The times of the first and last append, if the entries ascend in time.
    times: Option<(Timestamp, Timestamp)>,
    texts: Texts,
    /// The marks of the entries, built on the first search.
    marks: Mutex<Option<Arc<Marks>>>,
}

impl Chunk {
    /// Creates a chunk of these entries, with the texts already rendered from them.
    pub(super) fn new(entries: Vec<Arc<Entry>>, texts: Texts) -> Self {
        let (bytes, times) = (bytes(&entries), times(&entries));
        Self { bytes, times, entries: packed(entries).into(), texts, marks: Mutex::default() }
    }

    /// Splits entries into chunks. The texts are those of the first entries.
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

    /// Returns the chunk with one entry replaced, split into several if it became too large.
    pub(super) fn with(&self, index: usize, entry: Arc<Entry>) -> Vec<Self> {
        let same = self.entries.get(index).is_some_and(|old| old.item == entry.item);
        let texts = self.texts.changed(0..self.entries.len(), index, same);
        let mut entries = self.entries.to_vec();
        if let Some(slot) = entries.get_mut(index) {
            *slot = entry;
        }
        let bytes = bytes(&entries);
        let is_loose = |item: &Item| !item.is_in_page() && item.image().is_none();
        let loose = entries.iter().filter(|entry| is_loose(&entry.item)).count();
        if bytes > CHANGED_BYTES_MAX {
            return Self::divide(entries, texts).collect();
        }
        // A page still holds the texts of replaced entries, so it is rewritten once most entries have left it.
        if 2 * loose > entries.len() {
            return vec![Self::new(entries, texts)];
        }
        let (times, marks) = (times(&entries), Mutex::default());
        vec![Self { bytes, times, entries: entries.into(), texts, marks }]
    }

    /// Joins both chunks, unless the result would be too large.
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

    /// Returns the seq of the first entry.
    pub(super) fn first(&self) -> Option<super::Seq> {
        self.entries.first().map(|entry| entry.seq)
    }

    /// Returns the times of the first and last append, if the entries ascend in time.
    pub(super) const fn times(&self) -> Option<(Timestamp, Timestamp)> {
        self.times
    }

    /// Returns true if an entry may match.
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

    /// Returns the bytes of cached texts and marks.
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

/// Returns the bytes of these entries' items.
pub(super) fn bytes<'a>(entries: impl IntoIterator<Item = &'a Arc<Entry>>) -> u64 {
    entries.into_iter().map(|entry| entry.item.bytes()).sum()
}

/// Returns the times of the first and last append, if the entries ascend in time.
fn times(entries: &[Arc<Entry>]) -> Option<(Timestamp, Timestamp)> {
    let times = entries.first().map(|entry| entry.at).zip(entries.last().map(|entry| entry.at));
    times.filter(|_| entries.is_sorted_by_key(|entry| entry.at))
}

/// Packs the entries' texts into pages, which take less memory than separate allocations.
pub(super) fn packed(entries: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
    if entries.len() < 2 {
        return entries;
    }
    let items = paged(entries.iter().map(|entry| &entry.item));
    let mut names = Vec::new();
    let pack = |(entry, item): (&Arc<Entry>, Item)| {
        let agent = entry.agent.as_ref().map(|agent| shared(agent, &mut names));
        Arc::new(Entry { item, agent, ..Entry::clone(entry) })
    };
    entries.iter().zip(items).map(pack).collect()
}

/// Copies items so that several share a page.
pub(super) fn paged<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<Item> {
    let items: Vec<_> = items.collect();
    let mut end = 0_u32;
    let add = |item: &&Item| {
        end = end.saturating_add(u32::try_from(item.text().len()).unwrap_or(u32::MAX));
        end
    };
    let ends: Vec<_> = items.iter().map(add).collect();
    let mut paged = Vec::with_capacity(items.len());
    for piece in size::pieces(&ends) {
        match items.get(piece).unwrap_or_default() {
            [one] if !one.is_in_page() => paged.push(Item::clone(one)),
            some => paged.extend(Item::on_one_page(some)),
        }
    }
    paged
}

/// Returns an equal name, shared with an earlier entry if possible. Most entries have few authors.
fn shared(name: &AgentName, known: &mut Vec<AgentName>) -> AgentName {
    if let Some(known) = known.iter().find(|known| *known == name) {
        return known.clone();
    }
    if known.len() < SHARED_NAMES_MAX {
        known.push(name.clone());
    }
    name.clone()
}
