//! Garbage collection of images and blobs that no retained history references.
//!
//! They are forgotten by a commit; the files are removed once it is durable. A session's kept history is its base
//! and the commits after it. An image named by neither is in no readable board, and nothing can restore it.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Images;
use super::gc_schedule::GcSchedule;
use crate::deps::Deps;
use crate::error::ServiceError;
use crate::image_pins::ImagePins;
use crate::job::{Job, JobQueue, WriteJob};
use crate::sessions::Sessions;
use crate::sessions::directory::Directory;
use crate::sessions::loader::Loader;
use crate::sessions::replay::{REPLAY_PAGE, beginning, framed};
use crate::sessions::session::{Pin, Session, Shown};
use crate::threads::signal::Signal;
use blackboard_board::{
    Board, Command, Digest, IMAGES_FORGOTTEN_MAX, Rejected, Revision, SessionCommand, SessionId,
    Terms, Version, Write,
};
use blackboard_clock::Clock;
use blackboard_store::{Store, StoreError, StoredBlob};

/// The pause between two looks at the schedule.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// The rest after a collection, as a multiple of its time, so that others have most of the time.
const REST_TIMES: u32 = 2;

/// The number of tries to commit between other writers' commits, before it is put off.
const TRIES_MAX: usize = 16;

/// The garbage collection's thread.
pub(crate) struct Gc {
    schedule: Arc<GcSchedule>,
    clock: Clock,
    pins: Arc<ImagePins>,
    directory: Arc<Directory>,
    store: Arc<dyn Store>,
    loader: Loader,
    jobs: JobQueue,
    stopping: CancellationToken,
}

/// The files of a session's images, by age.
#[derive(Default)]
struct Files {
    old: BTreeSet<Digest>,
    /// Young files, with the time until each is old.
    young: HashMap<Digest, Duration>,
}

/// Whether an upload counts as naming its blob.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Uploads {
    /// They do: the commits are later than the collection's begin.
    AreNames,
    AreNoNames,
}

impl Gc {
    pub(crate) fn of(deps: &Deps, sessions: &Sessions, jobs: &JobQueue, images: &Images) -> Self {
        Self {
            schedule: Arc::clone(&images.schedule),
            clock: deps.clock.clone(),
            pins: Arc::clone(&images.pins),
            directory: Arc::clone(&sessions.directory),
            store: Arc::clone(&deps.store),
            loader: sessions.loader.clone(),
            jobs: jobs.clone(),
            stopping: deps.stopping.clone(),
        }
    }

    pub(crate) fn start(self, deps: &Deps) -> io::Result<()> {
        deps.threads.start("collector", Arc::default(), move |signal| self.run(signal))
    }

    fn run(&self, signal: &Signal) {
        if let Err(error) = self.ask_for_all() {
            tracing::warn!(%error, "the stored images could not be listed");
        }
        let mut rest = Duration::ZERO;
        while signal.rest(rest) {
            let begun = Instant::now();
            rest = if self.look() { begun.elapsed() * REST_TIMES } else { ASK_EVERY };
        }
    }

    /// Schedules each session that may have images to collect since before the start: its history was truncated, it
    /// has blobs, or its files exceed its count.
    fn ask_for_all(&self) -> Result<(), StoreError> {
        let mut bytes: HashMap<SessionId, u64> = HashMap::new();
        self.store.blobs(&mut |blob| {
            *bytes.entry(blob.session).or_default() += blob.bytes;
            if self.stopping.is_cancelled() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        for (id, bytes) in bytes {
            let Some(session) = self.directory.identities().running(id) else { continue };
            let summary = session.summary();
            let may_have = self.store.base(id)?.is_some() || summary.blobs > 0;
            if may_have || summary.image_bytes < bytes {
                self.schedule.ask(session.name(), Duration::ZERO);
            }
        }
        Ok(())
    }

    /// Collects the images of one session, if one is due.
    fn look(&self) -> bool {
        let Some(name) = self.schedule.next() else { return false };
        let Some(session) = self.directory.get(&name) else { return true };
        match self.collect(&session) {
            Ok(None) => {}
            Ok(Some(again)) => self.schedule.ask(&name, again),
            Err(ServiceError::Stopping) => {}
            Err(error) => {
                tracing::warn!(session = %name, %error, "unused images could not be collected");
                self.schedule.ask(&name, self.schedule.collection().every);
            }
        }
        true
    }

    /// Collects a session's unneeded images. Returns the time to the next collection, if some are left.
    fn collect(&self, session: &Arc<Session>) -> Result<Option<Duration>, ServiceError> {
        if session.is_damaged() || !session.exists() {
            return Ok(None);
        }
        // After a jump of the clock all files may look old.
        if self.clock.read().is_held {
            return Ok(Some(self.schedule.collection().every));
        }
        let id = session.extent().session;
        let files = self.files(id)?;
        // The board is loaded only if something can be collected now.
        if files.old.is_empty() {
            return Ok(files.next());
        }
        let pin = Pin::new(session);
        let board = self.loader.published_here(session)?.board;
        if board.id() != id {
            return Ok(files.next());
        }
        // A blob that was uploaded again before this board is young by now.
        let files = self.files(id)?;
        let mut unnamed = self.unnamed_by(&board)?;
        let is_left = unnamed.iter().any(|sha256| files.young.contains_key(sha256));
        unnamed.retain(|sha256| !files.young.contains_key(sha256));
        self.without_retained(&mut unnamed, &board)?;
        let is_done = self.forget(&pin, board.version(), unnamed)?;
        let left = self.remove_files(session, id, &files)?;
        drop(pin);
        if !is_done {
            return Ok(Some(self.schedule.collection().every));
        }
        Ok(if is_left || left { files.next() } else { None })
    }

    fn files(&self, session: SessionId) -> Result<Files, StoreError> {
        let (now, age) = (SystemTime::now(), self.schedule.collection().age);
        let mut files = Files::default();
        self.store.blobs_of(session, &mut |blob: StoredBlob| {
            // A file dated in the future counts as new.
            let left = age.saturating_sub(now.duration_since(blob.modified).unwrap_or_default());
            if left.is_zero() {
                files.old.insert(blob.digest);
            } else {
                files.young.insert(blob.digest, left);
            }
            ControlFlow::Continue(())
        })?;
        Ok(files)
    }

    /// Returns the images and blobs of a board that its entries and its state do not name.
    fn unnamed_by(&self, board: &Board) -> Result<BTreeSet<Digest>, StoreError> {
        // A history without a base still has the commit of each image, though perhaps none that names a blob.
        let mut unnamed: BTreeSet<Digest> = match self.store.base(board.id())? {
            Some(_) => board.images().map(|(sha256, _)| *sha256).collect(),
            None => board.blobs().keys().copied().collect(),
        };
        without_named(&mut unnamed, board);
        Ok(unnamed)
    }

    /// Takes out what a board's retained history names.
    fn without_retained(
        &self,
        unnamed: &mut BTreeSet<Digest>,
        board: &Board,
    ) -> Result<(), ServiceError> {
        let (id, revision) = (board.id(), board.revision());
        if unnamed.is_empty() || board.oldest() == revision {
            return Ok(());
        }
        let base = beginning(&*self.store, id, board.oldest())?;
        without_named(unnamed, &base);
        self.pass(unnamed, id, (base.revision(), revision), Uploads::AreNoNames)?;
        Ok(())
    }

    /// Takes out the images and the blobs that commits after a revision name, at least those up to another one; up to
    /// where it looked.
    fn pass(
        &self,
        unnamed: &mut BTreeSet<Digest>,
        session: SessionId,
        (after, up_to): (Revision, Revision),
        uploads: Uploads,
    ) -> Result<Revision, ServiceError> {
        let mut seen = after;
        while seen < up_to && !unnamed.is_empty() {
            if self.stopping.is_cancelled() {
                return Err(ServiceError::Stopping);
            }
            let page = framed(&*self.store, session, seen, REPLAY_PAGE)?;
            let Some((last, _)) = page.last() else { return Err(ServiceError::Damaged) };
            seen = last.revision;
            for change in page.iter().flat_map(|(commit, _)| &commit.changes) {
                without(unnamed, change.images().map(|image| image.sha256));
                without(unnamed, change.blobs());
                if uploads == Uploads::AreNames {
                    without(unnamed, change.uploaded().into_iter());
                }
            }
        }
        Ok(seen)
    }

    /// Commits that images are forgotten, all of what is kept up to `seen` having been looked at; whether all that
    /// may go is.
    fn forget(
        &self,
        pin: &Pin,
        mut seen: Version,
        mut images: BTreeSet<Digest>,
    ) -> Result<bool, ServiceError> {
        let session = pin.session();
        for _ in 0..TRIES_MAX {
            let head = session.extent();
            if head.session != seen.session || images.is_empty() {
                return Ok(true);
            }
            let range = (seen.changed, head.revision);
            seen.changed = self.pass(&mut images, seen.session, range, Uploads::AreNames)?;
            let some: BTreeSet<Digest> =
                images.iter().take(IMAGES_FORGOTTEN_MAX).copied().collect();
            if some.is_empty() {
                return Ok(true);
            }
            match self.write(
                session,
                Command::Session(SessionCommand::ForgetImages { seen, images: some.clone() }),
            ) {
                Ok(()) => images.retain(|sha256| !some.contains(sha256)),
                Err(ServiceError::Rejected { rejected: Rejected::Stale, .. }) => {}
                Err(ServiceError::Rejected { .. }) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(images.is_empty())
    }

    /// Sends a command to the writer and waits until it is durable.
    fn write(&self, session: &Arc<Session>, command: Command) -> Result<(), ServiceError> {
        let (reply, answer) = oneshot::channel();
        let job = WriteJob {
            pins: [Some(Pin::new(session)), None, None],
            room: Some(self.jobs.room(1)?),
            reply: Some(reply),
            ..WriteJob::of(Write {
                session: session.name().clone(),
                terms: Terms::default(),
                command,
            })
        };
        self.jobs.send(Job::Write(Box::new(job)))?;
        answer.blocking_recv().map_err(|_| ServiceError::Stopping)?.map(drop).map_err(Into::into)
    }

    /// Removes the old files that the board does not name; returns true if young ones are left.
    fn remove_files(
        &self,
        session: &Arc<Session>,
        id: SessionId,
        files: &Files,
    ) -> Result<bool, ServiceError> {
        let mut removed = 0_u64;
        for sha256 in &files.old {
            if self.stopping.is_cancelled() {
                return Err(ServiceError::Stopping);
            }
            if !is_known(session, id, sha256) {
                let is_free = || self.is_free(session, id, *sha256);
                removed += u64::from(self.store.remove_blob(id, *sha256, &is_free)?);
            }
        }
        if removed > 0 {
            tracing::debug!(session = %session.name(), removed, "collected images");
        }
        Ok(files.young.keys().any(|sha256| !is_known(session, id, sha256)))
    }

    /// Returns true if no pin and no board needs an image. A write that pinned it earlier is published by now.
    fn is_free(&self, session: &Session, id: SessionId, sha256: Digest) -> bool {
        !self.pins.contains(id, sha256) && !is_known(session, id, &sha256)
    }
}

impl Files {
    /// Returns the time until the next young file is old.
    fn next(&self) -> Option<Duration> {
        self.young.values().min().copied()
    }
}

/// Returns true if the published board has this image. An evicted board, or another session's, counts as having it.
pub(crate) fn is_known(session: &Session, id: SessionId, sha256: &Digest) -> bool {
    match session.shown() {
        Shown::Hot(published) if published.board.id() == id => published.board.has_image(sha256),
        Shown::Hot(_) | Shown::Cold(_) => true,
    }
}

/// Takes out the images and blobs that a board names.
fn without_named(unnamed: &mut BTreeSet<Digest>, board: &Board) {
    without(unnamed, board.named_images().map(|image| image.sha256));
    if !unnamed.is_empty() && !board.blobs().is_empty() {
        without(unnamed, board.named_blobs().into_iter());
    }
}

fn without(images: &mut BTreeSet<Digest>, named: impl Iterator<Item = Digest>) {
    named.for_each(|sha256| _ = images.remove(&sha256));
}

#[cfg(test)]
mod tests;
