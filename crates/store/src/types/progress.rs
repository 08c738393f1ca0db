//! Progress of long work: its counters, which the thread at work moves and another one reads.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// A stage of long work, and the unit in which it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Preparation, of which nothing is counted.
    #[default]
    Begun,
    /// Bytes of the database are copied.
    Database,
    /// Commits are replayed.
    Commits,
    /// Pages and indexes are compared, of which nothing is counted.
    Pages,
    /// Images are read.
    Images,
    /// Sessions' images are linked or copied, counted by session.
    SessionImages,
}

/// How far work has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The present stage.
    pub stage: Stage,
    /// The units of it that are done.
    pub done: u64,
    /// Its expected number of units; 0 if unknown.
    pub total: u64,
}

/// The counters of a piece of work.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Reached>);

impl Progress {
    /// Begins a stage of so many units; 0 if unknown.
    pub fn begin(&self, stage: Stage, total: u64) {
        *self.0.lock() = Reached { stage, done: 0, total };
    }

    /// Counts units of the present stage.
    pub fn advance(&self, units: u64) {
        let mut reached = self.0.lock();
        reached.done = reached.done.saturating_add(units);
    }

    /// Returns how far the work has come.
    #[must_use]
    pub fn reached(&self) -> Reached {
        *self.0.lock()
    }
}
