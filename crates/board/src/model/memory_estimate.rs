//! Estimates of the memory that a board takes.
//!
//! They are cheap enough to choose which boards to evict.

use super::board::Life;
use crate::{Board, Log, Seq, size};

/// The memory of an empty board. Its settings, its labels and its state are shared.
const BOARD_BYTES: usize = size::shared(size_of::<Board>());

/// The memory of the state's members, for each byte of its text.
const STATE_FACTOR: usize = 8;

/// The memory of an agent besides its profile, of a memory besides its log, and of a key besides its answer.
const RECORD_BYTES: usize = 256;

/// The memory of an image's digest and size.
const IMAGE_BYTES: usize = 64;

/// The memory of a blob's digest and media type, besides its size.
const BLOB_BYTES: usize = 128;

impl Board {
    /// Estimates the memory of the board in bytes, without rendered texts. Boards of one session share most of their
    /// memory.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let logs: usize = self.all_logs().map(Log::resident_bytes).sum();
        let state = if self.state.is_empty() { 0 } else { bytes(self.state.bytes()) };
        let state = state.saturating_mul(STATE_FACTOR);
        let life = self.life.as_ref().map_or(0, Life::resident_bytes);
        let profiles = self.agents.values().map(|agent| bytes(agent.profile.item().bytes()));
        let (unacked, readers) = self.unacked.sizes();
        let (answered, askers) = self.asked.answered_sizes();
        let numbers = [self.asked.open().len(), unacked, answered];
        let numbers = numbers.map(|count| size::tree(count, size_of::<(Seq, Seq)>()));
        let sets = numbers.into_iter().fold(self.tasks.resident_bytes(), usize::saturating_add);
        let owned = self.memories.len() + self.messages.len() + readers + askers;
        let records = RECORD_BYTES * (self.agents.len() + owned + self.keys.len());
        let images = IMAGE_BYTES * self.images.len() + BLOB_BYTES * self.blobs.len();
        [BOARD_BYTES, life, logs, state, sets, bytes(self.keys.bytes()), records, images]
            .into_iter()
            .chain(profiles)
            .fold(0, usize::saturating_add)
    }

    /// Returns the bytes of the rendered texts cached beside the entries.
    #[must_use]
    pub fn rendered_bytes(&self) -> usize {
        self.all_logs().map(Log::kept_text_bytes).sum()
    }

    /// Evicts the rendered texts, also from other boards that share them. A text that is being sent is freed
    /// afterwards.
    pub fn forget_rendered(&self) {
        self.all_logs().for_each(Log::forget_texts);
    }
}
