//! Options of the running service: memory, thumbnails, garbage collection, read-only mode.

use std::path::PathBuf;
use std::time::Duration;

use blackboard_board::SessionName;

/// The default memory budget in bytes: enough for one session at its default limits, on a small machine.
pub const MEMORY_BUDGET_DEFAULT: u64 = 1 << 30;

/// Options of a [`Service`](super::Service).
#[derive(Clone, Debug)]
pub struct Options {
    /// The session that gathers the answered questions of all others, if any.
    pub qa_session: Option<QaSession>,
    /// The memory budget in bytes, beyond which the least recently used boards are evicted.
    pub memory_budget: u64,
    /// Directory of the thumbnail cache, if any; it may be deleted.
    pub thumbnails: Option<PathBuf>,
    /// The place of the search index, if any.
    pub search: Option<SearchPlace>,
    /// Times of garbage collection of images and blobs.
    pub collection: Collection,
    /// True if the store is only read: nothing expires, and no image is removed.
    pub reads_only: bool,
    /// True if damaged sessions without a name are deleted; otherwise they refuse the start.
    pub salvages: bool,
}

/// The session that collects answered questions.
#[derive(Clone, Debug)]
pub struct QaSession {
    /// The session's name.
    pub name: SessionName,
    /// The number of its last questions that a new session begins with; all if absent.
    pub last: Option<usize>,
}

/// Times of garbage collection of images and blobs.
#[derive(Clone, Copy, Debug)]
pub struct Collection {
    /// Minimum age of what is collected.
    pub age: Duration,
    /// Pause between a truncation and the collection.
    pub rest: Duration,
    /// Minimum time between two collections of a session.
    pub every: Duration,
}

impl Default for Collection {
    fn default() -> Self {
        Self {
            age: Duration::from_secs(60 * 60),
            rest: Duration::from_secs(5),
            every: Duration::from_secs(10 * 60),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            qa_session: None,
            memory_budget: MEMORY_BUDGET_DEFAULT,
            thumbnails: None,
            search: None,
            collection: Collection::default(),
            reads_only: false,
            salvages: false,
        }
    }
}

/// The place of the search index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchPlace {
    /// A file, which may be deleted.
    File(PathBuf),
    /// The store, which other servers write to.
    Store,
}
