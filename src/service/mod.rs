//! The running boards: one writer, and published snapshots that anybody may read.
//!
//! Nothing here knows HTTP. A write goes through the writer's queue and is answered when it is
//! durable; a read takes the published board and holds no lock while it renders.

mod archive;
mod clock;
mod deadlines;
mod directory;
mod elsewhere;
mod error;
mod fork;
mod image_pieces;
mod images;
mod inbox;
mod job;
mod keeper;
mod load;
mod past;
mod patch;
mod qa;
mod queue;
mod rebase;
mod recent;
mod session;
mod staging;
mod waker;
mod watch;
mod writer;

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{SyncSender, sync_channel};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use archive::{Export, Import, Imported};
pub use clock::Clock;
pub use error::ServiceError;
pub use inbox::Asking;
pub use load::{Damage, LoadError, Soundness, check};
pub use past::At;
pub use patch::Patch;
pub use qa::QaSession;
pub use queue::{QUEUE_BYTES_MAX, QUEUE_WRITES_MAX};
pub use session::Published;
pub use waker::{NOTICES_MAX, Notice};
pub use watch::{COMMITS_AT_ONCE_MAX, Commits, Watch};

use crate::board::{
    Answer, Board, Command, Epoch, Json, LogName, Policy, SessionName, Terms, Write,
};
use crate::store::{Health, Store};
use archive::Archives;
use directory::Directory;
pub use image_pieces::ImagePieces;
pub use images::ImageBytes;
use job::{Job, Order, WriterError};
use keeper::{Keeper, Keeping};
use past::Past;
use session::new_session_id;
use staging::recall;
use waker::{Bells, Waker};
use writer::Writer;

/// How often a write whose session was deleted and made again meanwhile is tried.
const MOVED_TRIES_MAX: usize = 8;

/// The running boards. Cloning gives another handle to the same ones.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    directory: Arc<Directory>,
    store: Arc<dyn Store>,
    jobs: Mutex<Option<SyncSender<Job>>>,
    clock: Clock,
    room: Arc<Semaphore>,
    writer: Mutex<Option<thread::JoinHandle<()>>>,
    waker: Mutex<Option<thread::JoinHandle<()>>>,
    damage: Vec<Damage>,
    stopping: CancellationToken,
    bells: Arc<Bells>,
    /// The bytes of recent commits at hand, of all sessions.
    recent_bytes: Arc<AtomicUsize>,
    past: Past,
    /// A base is made one at a time.
    bases: Arc<Semaphore>,
    archives: Archives,
    keeping: Mutex<Option<Keeping>>,
}

/// What a write came to. It is durable, and visible to every later read.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The board as this write left it.
    pub board: Arc<Board>,
    /// What it did.
    pub answer: Answer,
    /// Whether the thing written existed before.
    pub existed: bool,
    /// Whether there was anything to commit.
    pub committed: bool,
    /// The bytes of the session's history after it; of a keyed write, whose answer is part of its
    /// commit, before it.
    pub history_bytes: u64,
}

/// What a keyed write comes to.
#[derive(Debug)]
pub enum Reply {
    /// It was carried out.
    Now(Receipt),
    /// It was carried out before, and answered so.
    Before(Json),
}

/// Makes of a receipt the answer that is kept with the write's key; `None` is a fault. The receipt does
/// not have the bytes of the write's own commit yet.
pub type Keep = Arc<dyn Fn(&Receipt) -> Option<Json> + Send + Sync>;

impl Service {
    /// Loads every session from the store, takes note of what came to its end by time since, and
    /// starts the writer.
    ///
    /// # Errors
    ///
    /// [`LoadError`] where the store cannot be read, or a damaged row does not tell whose it is.
    pub fn start(store: Arc<dyn Store>, policy: Policy, clock: Clock) -> Result<Self, LoadError> {
        Self::start_gathering(store, policy, clock, None)
    }

    /// The same, with a session that gathers the questions which people answered in all others.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub fn start_gathering(
        store: Arc<dyn Store>,
        policy: Policy,
        clock: Clock,
        qa_session: Option<QaSession>,
    ) -> Result<Self, LoadError> {
        let directory = Arc::new(Directory::new());
        let load::Found { damage, deadlines, limited } =
            load::load(&*store, &directory, clock.now())?;
        let limited = Arc::new(Mutex::new(limited));
        let (jobs, queue) = sync_channel(QUEUE_WRITES_MAX);
        let bells = Arc::new(Bells::new());
        let recent_bytes = Arc::new(AtomicUsize::new(0));
        let bases = Arc::new(Semaphore::new(1));
        let (wake_ups, waker) = Waker::start(Arc::clone(&bells))?;
        let mut writer = Writer {
            jobs: queue,
            directory: Arc::clone(&directory),
            store: Arc::clone(&store),
            policy,
            clock: clock.clone(),
            deadlines,
            bells: Arc::clone(&bells),
            wake_ups,
            recent_bytes: Arc::clone(&recent_bytes),
            limited: Arc::clone(&limited),
            qa_session,
            sweep_after: None,
        };
        // What came to its end while the server was down: before anybody can ask.
        writer.sweep_all();
        let writer = thread::Builder::new().name("writer".to_owned()).spawn(|| writer.run())?;
        let keeper = Keeper {
            limited,
            directory: Arc::clone(&directory),
            store: Arc::clone(&store),
            clock: clock.clone(),
            jobs: jobs.clone(),
            bases: Arc::clone(&bases),
            rests: HashMap::new(),
        };
        let inner = Inner {
            directory,
            store,
            jobs: Mutex::new(Some(jobs)),
            clock,
            room: Arc::new(Semaphore::new(QUEUE_BYTES_MAX)),
            writer: Mutex::new(Some(writer)),
            waker: Mutex::new(Some(waker)),
            damage,
            stopping: CancellationToken::new(),
            bells,
            recent_bytes,
            past: Past::new(),
            bases,
            archives: Archives::new(),
            keeping: Mutex::new(Some(keeper.start()?)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What the store's entity tags contain.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.inner.store.epoch()
    }

    /// Whether the store takes writes.
    #[must_use]
    pub fn health(&self) -> Health {
        let writer = self.inner.writer.lock();
        if writer.as_ref().is_some_and(thread::JoinHandle::is_finished) {
            return Health::Poisoned;
        }
        self.inner.store.health()
    }

    /// The sessions whose stored history could not be read; they are not served.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.inner.damage
    }

    /// How many sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.directory.len()
    }

    /// Whether there is no session.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is published of a session; `None` where there is none of this name.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`].
    pub fn published(&self, name: &SessionName) -> Result<Option<Published>, ServiceError> {
        let Some(session) = self.inner.directory.get(name) else { return Ok(None) };
        if session.is_damaged() {
            return Err(ServiceError::Damaged);
        }
        Ok(Some(session.published()).filter(|published| published.board.life().is_some()))
    }

    /// At most `limit` sessions after a name, in the order of names: of those whose name begins with
    /// `prefix` and that `matches` lets through.
    #[must_use]
    pub fn list(
        &self,
        after: Option<SessionName>,
        prefix: &str,
        limit: usize,
        matches: impl Fn(&Board) -> bool,
    ) -> Vec<(SessionName, Published)> {
        const NAMES_AT_ONCE: usize = 1024;
        let (mut found, mut after) = (Vec::new(), after);
        while found.len() < limit {
            let names = self.inner.directory.names(after.as_ref(), prefix, NAMES_AT_ONCE);
            let Some(last) = names.last() else { break };
            after = Some(last.clone());
            for name in names {
                if let Ok(Some(published)) = self.published(&name)
                    && matches(&published.board)
                {
                    found.push((name, published));
                }
            }
        }
        found.truncate(limit);
        found
    }

    /// Carries out a write; the images that its items name come with it. Where it has a key, `keep`
    /// makes the answer that a repeat gets.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]; unless it says that the outcome is unknown, nothing was changed.
    pub async fn write(
        &self,
        write: Write,
        images: Vec<ImageBytes>,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        if let Some(answer) = self.recall(&write.terms)? {
            return Ok(Reply::Before(answer));
        }
        let images: Arc<[ImageBytes]> = images.into();
        let mut dropped = self.drops(&write)?;
        for _ in 0..MOVED_TRIES_MAX {
            // What the session drops is not stored either, unless the writer finds that it keeps it now.
            let first = std::mem::take(&mut dropped);
            let kept = if first {
                Ok(None)
            } else {
                self.keep_images(&write.terms.session, &images).await
            };
            let written = match kept {
                Ok(images_in) => {
                    let (write, keep) = (write.clone(), keep.clone());
                    self.enqueue(Order { images_in, keep, ..Order::of(write) }).await?
                }
                Err(error) => Err(error),
            };
            match written {
                Err(WriterError::Moved) => {}
                Err(WriterError::Service(error)) => return Err(error),
                Ok(reply) => return Ok(reply),
            }
        }
        Err(ServiceError::Overloaded)
    }

    /// What this write was answered, if it was carried out before. The writer looks again.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] where its key was that of another one.
    pub fn recall(&self, terms: &Terms) -> Result<Option<Json>, ServiceError> {
        let Some(key) = &terms.key else { return Ok(None) };
        let Some(session) = self.inner.directory.get(&terms.session) else { return Ok(None) };
        if session.is_damaged() {
            return Err(ServiceError::Damaged);
        }
        recall(&session.published().board, key, self.inner.clock.now())
    }

    /// Whether the session is set to drop what this write brings.
    fn drops(&self, write: &Write) -> Result<bool, ServiceError> {
        if !matches!(&write.command, Command::Append { log: LogName::Screenshots, .. }) {
            return Ok(false);
        }
        let published = self.published(&write.terms.session)?;
        let life = published.as_ref().and_then(|published| published.board.life());
        Ok(life.is_some_and(|life| !life.settings.keeps_screenshots()))
    }

    /// Takes no more writes, finishes those that wait, and closes the store. To be called from a
    /// thread that may block.
    pub fn stop(&self) {
        self.inner.stopping.cancel();
        // It has a way to the writer, which ends when nobody has.
        if let Some(keeping) = self.inner.keeping.lock().take() {
            keeping.stop();
        }
        drop(self.inner.jobs.lock().take());
        // The waker ends once the writer has.
        for (name, thread) in [("writer", &self.inner.writer), ("waker", &self.inner.waker)] {
            let thread = thread.lock().take();
            if thread.is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("the {name} ended by a panic");
            }
        }
        if let Err(error) = self.inner.store.close() {
            tracing::error!(%error, "the store did not close cleanly");
        }
    }
}

#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod downtime_tests;
#[cfg(test)]
mod expiry_tests;
#[cfg(test)]
mod race_tests;
#[cfg(test)]
mod repeat_tests;
#[cfg(test)]
mod service_tests;
