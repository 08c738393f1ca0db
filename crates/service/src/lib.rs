//! The running boards: one writer, published snapshots for readers.
//!
//! Nothing here knows HTTP. A write goes through the writer's queue and is answered when it is durable. A read takes the
//! published board and holds no lock while it renders.

mod archive;
mod claims;
mod deadlines;
mod deps;
mod disk_room;
mod error;
mod handle;
mod heads;
mod history;
mod image_bytes;
mod image_pins;
mod images;
mod inbox;
mod job;
mod list;
mod maintenance;
mod options;
mod search;
mod sessions;
mod start;
mod startup;
mod stats;
mod threads;
mod thumbnails;
mod watch;
mod work_turns;
mod writer;

use std::sync::Arc;

pub use archive::{Cut, Export, Import, Imported};
pub use claims::{NextClaim, Wait};
pub use error::ServiceError;
pub use handle::{SessionHandle, SessionWait, Unreachable};
pub use history::At;
pub use image_bytes::ImageBytes;
pub use inbox::{Delivered, Inbox};
pub use job::{Keep, QUEUE_BYTES_MAX, QUEUE_WRITES_MAX, Receipt, Reply};
pub use list::{Listed, Listing};
pub use maintenance::Maintenance;
pub use maintenance::check::{DamagedImage, Soundness, check, check_counted};
pub use maintenance::salvage::Lost;
pub use options::{Collection, MEMORY_BUDGET_DEFAULT, Options, QaSession, SearchPlace};
pub use search::{Hit, Hits, SEARCHES_AT_ONCE_MAX, SEARCHES_WAITING_MAX, Sought};
pub use sessions::recent_commits::{COMMITS_AT_ONCE_MAX, SharedText};
pub use sessions::session::Published;
pub use startup::damage::{Damage, LoadError};
pub use stats::{Stats, Status};
pub use thumbnails::{
    ShownImage, THUMBNAIL_CACHE_BYTES_MAX, THUMBNAIL_MEMORY_MAX, THUMBNAILS_AT_ONCE_MAX,
    THUMBNAILS_WAITING_MAX,
};
pub use watch::Commits;
pub use watch::matches::{MATCHED_MAX, Matches};
pub use watch::waker::{Channels, Heard, NOTICES_MAX, Notice};
pub use writer::patch::Patch;

use archive::Archives;

use blackboard_board::{Digest, Epoch, Extent, Json, Key, SessionName, Summary, Timestamp, Write};
use blackboard_store::SigningKey;
use claims::queue::Queues;
use deps::Deps;
use heads::HeadChecks;
use history::History;
use images::Images;
pub use images::chunks::ImagePieces;
pub use images::uploads::{UPLOADS_MAX, Upload, Uploaded};
use job::{MOVED_TRIES_MAX, Unwritten, WriteJob};
use search::Searches;
use sessions::Sessions;
use sessions::session::{Session, new_session_id};
use watch::Watches;
use watch::matches::Attentions;
use writer::entrance::Entrance;
use writer::patch_turns::PatchTurns;
use writer::staging::recall;

/// The threads in the order in which they end: the first three send jobs to the writer, the others work for it.
const ENDS: [&str; 10] = [
    "retention",
    "collector",
    "checker",
    "writer",
    "indexer",
    "waker",
    "loader",
    "evictor",
    "compactor",
    "reaper",
];

/// The running boards. Cloning gives another handle to the same ones.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    deps: Deps,
    damage: Vec<Damage>,
    sessions: Sessions,
    writer: Entrance,
    heads: Arc<HeadChecks>,
    history: History,
    images: Images,
    watches: Watches,
    archives: Archives,
    attentions: Attentions,
    queues: Queues,
    patches: PatchTurns,
    searches: Searches,
}

impl Service {
    /// Returns the store's epoch, a part of every entity tag.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.inner.deps.store.epoch()
    }

    /// Returns the time of the server's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.deps.clock.now()
    }

    /// Returns the key that the store keeps, with which URLs are signed.
    #[must_use]
    pub fn signing_key(&self) -> &SigningKey {
        self.inner.deps.store.signing_key()
    }

    /// Returns the published board of a session; `None` if there is no such session. An evicted board is loaded
    /// first.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`], or the reason why the board cannot be loaded now.
    pub(crate) async fn published(
        &self,
        name: &SessionName,
    ) -> Result<Option<Published>, ServiceError> {
        let Some(session) = self.existing(name)? else { return Ok(None) };
        let published = self.inner.sessions.loader.published(&session).await?;
        Ok(Some(published).filter(|published| published.board.life().is_some()))
    }

    /// Returns the extent of a session's history; `None` if there is no such session. No board is loaded.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`].
    pub(crate) fn extent(&self, name: &SessionName) -> Result<Option<Extent>, ServiceError> {
        Ok(self.existing(name)?.map(|session| session.extent()))
    }

    /// Returns the summary of a session; `None` if there is no such session. No board is loaded.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`].
    pub(crate) fn summary(&self, name: &SessionName) -> Result<Option<Arc<Summary>>, ServiceError> {
        Ok(self.existing(name)?.map(|session| session.summary()))
    }

    fn existing(&self, name: &SessionName) -> Result<Option<Arc<Session>>, ServiceError> {
        let Some(session) = self.inner.sessions.directory.get(name) else { return Ok(None) };
        if session.is_damaged() {
            return Err(ServiceError::Damaged);
        }
        let exists = session.exists();
        Ok(exists.then_some(session))
    }

    /// Carries out a write with the images that its items name. For a keyed write, `keep` makes the answer to a
    /// repeat.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]; nothing was changed, unless the error says that the outcome is unknown.
    pub(crate) fn write(
        &self,
        write: Write,
        images: Vec<ImageBytes>,
        keep: Option<Keep>,
    ) -> impl Future<Output = Result<Reply, ServiceError>> + Send {
        // Boxed before the future begins, which would have room for the write in each of its parts.
        self.write_job(Box::new(WriteJob { keep, ..WriteJob::of(write) }), images)
    }

    async fn write_job(
        &self,
        job: Box<WriteJob>,
        images: Vec<ImageBytes>,
    ) -> Result<Reply, ServiceError> {
        let key = job.write.terms.key.as_ref();
        let is_keyed = key.is_some();
        if is_keyed && let Some(answer) = Box::pin(self.recall(job.session(), key)).await? {
            return Ok(Reply::Before(answer));
        }
        let written = self.write_with_images(job, images).await;
        written.map_err(|error| error.in_doubt(is_keyed))
    }

    async fn write_with_images(
        &self,
        mut job: Box<WriteJob>,
        images: Vec<ImageBytes>,
    ) -> Result<Reply, ServiceError> {
        // Images that the session drops are not stored, unless the writer finds that it retains them now.
        let mut stores = !images.is_empty() && !self.drops(&job.write)?;
        let digests: Vec<Digest> = images.iter().map(|image| image.sha256).collect();
        // Without images, the usual case, this allocates nothing.
        let images = if images.is_empty() { Arc::default() } else { Arc::from(images) };
        for _ in 0..MOVED_TRIES_MAX {
            if stores {
                job.images = Box::pin(self.keep_images(job.session(), &images)).await?;
                if job.images.is_none() {
                    continue;
                }
            }
            stores = !images.is_empty();
            let stored = job.images_in().map(|images_in| (job.session().clone(), images_in));
            let written = self.enqueue(job).await;
            if let Some((name, images_in)) = stored {
                self.discard_rejected(&name, images_in, &digests, &written);
            }
            match written {
                Err(Unwritten::Moved(back)) => job = back,
                written => return Ok(written?),
            }
        }
        Err(ServiceError::Overloaded)
    }

    /// Returns the first answer to this write, if it is a repeat. The writer checks again.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] if the key belongs to another write.
    pub(crate) async fn recall(
        &self,
        name: &SessionName,
        key: Option<&Key>,
    ) -> Result<Option<Json>, ServiceError> {
        let Some(key) = key else { return Ok(None) };
        let Some(session) = self.inner.sessions.directory.get(name) else { return Ok(None) };
        let published = match self.inner.sessions.loader.published(&session).await {
            // The keys of a damaged session are lost; the writer refuses all but its deletion or replacement.
            Err(ServiceError::Damaged) => return Ok(None),
            published => published?,
        };
        recall(&published.board, key, self.inner.deps.clock.read().due())
    }

    /// Takes no more writes, finishes the waiting ones, and closes the store. Call it from a blocking thread.
    pub fn stop(&self) {
        self.inner.deps.stopping.cancel();
        if !self.inner.deps.threads.stop(&ENDS) {
            return;
        }
        if self.failed().is_cancelled() {
            // The panic may have left a transaction half done, so the next start is as after a crash.
            return;
        }
        if let Err(error) = self.inner.deps.store.close() {
            tracing::error!(%error, "the store did not close cleanly");
        }
    }
}

#[cfg(test)]
mod tests;
