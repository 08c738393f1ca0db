//! The chunks of a log with their positions: one word while there are none, as in most logs.

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, LazyLock};

use imbl::Vector;

use super::chunk::Chunk;
use super::distance;

/// No parts.
static NONE: LazyLock<Vector<Part>> = LazyLock::new(Vector::new);

/// A chunk and its position in the log.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The ordinal of the chunk's first entry.
    pub(super) begin: u64,
    pub(super) chunk: Arc<Chunk>,
}

impl Part {
    /// Returns the ordinal after the chunk's last entry.
    pub(super) fn end(&self) -> u64 {
        self.begin + self.chunk.len() as u64
    }

    /// Returns the indexes in the chunk of the entries with these ordinals.
    pub(super) fn places(&self, ordinals: &Range<u64>) -> Range<usize> {
        let place = |ordinal: u64| distance(self.begin, ordinal).min(self.chunk.len());
        place(ordinals.start)..place(ordinals.end)
    }
}

/// A vector that takes eight times as much in each log if it stands there itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts(Option<Arc<Vector<Part>>>);

impl Deref for Parts {
    type Target = Vector<Part>;

    fn deref(&self) -> &Vector<Part> {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Parts {
    fn deref_mut(&mut self) -> &mut Vector<Part> {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}
