//! Sessions: the directory, boards in memory, loading and eviction.

pub(crate) mod by_id;
pub(crate) mod directory;
pub(super) mod known;
pub(crate) mod labels;
pub(crate) mod loader;
pub(crate) mod memory_budget;
pub(crate) mod past_boards;
pub(crate) mod recent_commits;
pub(crate) mod replay;
pub(crate) mod session;
pub(crate) mod snapshots;
mod subscribers;
pub(crate) mod tombstones;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::deps::Deps;
use directory::Directory;
use loader::Loader;
use memory_budget::{Evictor, MemoryBudget};
use past_boards::PastBoards;

/// All sessions, and their boards in memory.
pub(super) struct Sessions {
    pub(super) directory: Arc<Directory>,
    pub(super) memory: Arc<MemoryBudget>,
    pub(super) loader: Loader,
    pub(super) past_boards: Arc<PastBoards>,
    /// The bytes of recent commits in memory, of all sessions.
    pub(super) recent_bytes: Arc<AtomicUsize>,
}

impl Sessions {
    /// An empty directory with a memory budget in bytes.
    pub(super) fn new(deps: &Deps, memory_budget: u64) -> Self {
        let directory = Arc::new(Directory::new());
        let memory = Arc::new(MemoryBudget::new(memory_budget));
        let loader =
            Loader::new(Arc::clone(&deps.store), Arc::clone(&memory), Arc::clone(&directory));
        let past_boards = Arc::new(PastBoards::new(Arc::clone(&memory)));
        Self { directory, memory, loader, past_boards, recent_bytes: Arc::default() }
    }

    /// Starts the threads that evict boards and those that load them.
    pub(super) fn start(&self, deps: &Deps) -> io::Result<()> {
        let evictor = Evictor {
            memory: Arc::clone(&self.memory),
            past_boards: Arc::clone(&self.past_boards),
            directory: Arc::clone(&self.directory),
            store: Arc::clone(&deps.store),
        };
        evictor.start(deps)?;
        self.loader.start(deps)
    }
}
