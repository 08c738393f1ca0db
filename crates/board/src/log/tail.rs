//! The open tail of a log, shared by successive boards.
//!
//! Each board reads only up to its own end. A place is written once. A log whose next place was taken by a discarded
//! board or another branch gets its own tail.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::Entry;
use super::texts::Texts;
use crate::size;

/// The minimum number of places in a tail.
const PLACES_MIN: usize = 4;

#[derive(Debug)]
pub(super) struct Tail {
    places: Box<[OnceLock<Arc<Entry>>]>,
    texts: Texts,
}

impl Tail {
    /// Creates a tail that begins with these entries and has room for at least so many more.
    pub(super) fn of(entries: impl Iterator<Item = Arc<Entry>>, more: usize, texts: Texts) -> Self {
        let mut places: Vec<OnceLock<_>> = entries.map(OnceLock::from).collect();
        let grown = (places.len() + 1).next_power_of_two().max(PLACES_MIN);
        places.resize_with(grown.max(places.len() + more), OnceLock::new);
        Self { places: places.into(), texts }
    }

    /// Fills a place. Returns the entry if the place is taken or missing.
    pub(super) fn put(&self, place: usize, entry: Arc<Entry>) -> Result<(), Arc<Entry>> {
        match self.places.get(place) {
            Some(free) => free.set(entry),
            None => Err(entry),
        }
    }

    pub(super) fn get(&self, place: usize) -> Option<&Arc<Entry>> {
        self.places.get(place)?.get()
    }

    /// Returns the entries in these places.
    pub(super) fn entries(
        &self,
        places: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        let places = self.places.get(places).unwrap_or_default();
        places.iter().filter_map(OnceLock::get)
    }

    /// Returns the first of these places whose entry is not `is_before`, or the end of the range.
    pub(super) fn partition(
        &self,
        places: Range<usize>,
        is_before: impl Fn(&Entry) -> bool,
    ) -> usize {
        let start = places.start;
        let entries = self.places.get(places).unwrap_or_default();
        start + entries.partition_point(|place| place.get().is_some_and(|entry| is_before(entry)))
    }

    /// Returns the memory of the tail besides its entries.
    pub(super) fn itself_bytes(&self) -> usize {
        size::shared(size_of::<Self>()) + size::block(size_of_val(&*self.places))
    }

    pub(super) fn texts(&self) -> &Texts {
        &self.texts
    }
}
