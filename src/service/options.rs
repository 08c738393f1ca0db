//! How the running boards are kept, besides what each write may do.

use std::path::PathBuf;
use std::time::Duration;

use crate::board::SessionName;

/// How much memory the sessions may take, unless it is said otherwise: what one session may have at most by
/// default fits, and a small machine has it.
pub const MEMORY_BUDGET_DEFAULT: u64 = 1 << 30;

/// How a [`Service`](super::Service) runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// A session that gathers the questions which people answered in all others.
    pub qa_session: Option<QaSession>,
    /// How many bytes of memory the sessions may take; beyond, the boards that were used longest ago leave it.
    pub memory_budget: u64,
    /// Where thumbnails are kept, if anywhere. It is the service's own, and may be thrown away.
    pub thumbnails: Option<PathBuf>,
    /// When images go that nothing of what is kept names.
    pub collection: Collection,
    /// Whether the store takes no writes: then nothing ends by time, and no image goes.
    pub reads_only: bool,
    /// Whether damaged sessions without a name are forgotten, and no reason not to start.
    pub salvages: bool,
}

/// Where answered questions are gathered.
#[derive(Clone, Debug)]
pub struct QaSession {
    /// The session's name.
    pub name: SessionName,
    /// How many of its last ones a new session begins with; all of them where it is absent.
    pub last: Option<usize>,
}

/// When images go that nothing of what is kept names.
#[derive(Clone, Copy, Debug)]
pub struct Collection {
    /// How old an image is at least.
    pub age: Duration,
    /// How long after its history was cut a session is looked at.
    pub rest: Duration,
    /// How long a session is left alone after that.
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
            collection: Collection::default(),
            reads_only: false,
            salvages: false,
        }
    }
}
