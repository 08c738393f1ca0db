//! The elements of an array.
//!
//! They are a plain vector until an edit in the middle of a long one would move too many.

use super::tree::Tree;

/// From this length on, an edit before the end turns the vector into a tree of chunks.
const FLAT_MAX: usize = 1_024;

/// The elements of a parsed array.
#[derive(Clone, Debug)]
pub enum Elements<'a> {
    /// A plain vector.
    Flat(Vec<Tree<'a>>),
    /// A tree of chunks, which inserts and removes anywhere in logarithmic time. Short arrays would waste a chunk.
    Chunked(imbl::Vector<Tree<'a>>),
}

impl<'a> Elements<'a> {
    /// Returns the number of elements.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        match self {
            Self::Flat(all) => all.len(),
            Self::Chunked(all) => all.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&Tree<'a>> {
        match self {
            Self::Flat(all) => all.get(index),
            Self::Chunked(all) => all.get(index),
        }
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Tree<'a>> {
        match self {
            Self::Flat(all) => all.get_mut(index),
            Self::Chunked(all) => all.get_mut(index),
        }
    }

    /// Returns the elements in order.
    pub fn iter(&self) -> impl Iterator<Item = &Tree<'a>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    pub(super) fn push(&mut self, element: Tree<'a>) {
        match self {
            Self::Flat(all) => all.push(element),
            Self::Chunked(all) => all.push_back(element),
        }
    }

    /// Inserts before `index`, or at the end if `index` is the length. Returns the element if the index is too large.
    pub(super) fn insert(&mut self, index: usize, element: Tree<'a>) -> Result<(), Tree<'a>> {
        if index > self.len() {
            return Err(element);
        }
        self.prepare(index);
        match self {
            Self::Flat(all) => all.insert(index, element),
            Self::Chunked(all) => all.insert(index, element),
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<Tree<'a>> {
        if index >= self.len() {
            return None;
        }
        self.prepare(index + 1);
        Some(match self {
            Self::Flat(all) => all.remove(index),
            Self::Chunked(all) => all.remove(index),
        })
    }

    /// Prepares for an edit that moves all elements from here on.
    fn prepare(&mut self, moved_from: usize) {
        if let Self::Flat(all) = self
            && all.len() >= FLAT_MAX
            && moved_from < all.len()
        {
            *self = Self::Chunked(std::mem::take(all).into());
        }
    }
}
