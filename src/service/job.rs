//! Jobs of the writer and their queue, bounded by number and bytes.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::error::ServiceError;
use super::image_pins::ImagePin;
use super::sessions::session::Pin;
use super::{Keep, Reply};
use crate::board::{Key, Prepared, Revision, SessionId, SessionName, Write};
use crate::fairness::{Client, Limiter, Place, Queue, Refused, Share};
use crate::metrics::{Counted, WRITES_WAITING};

/// The number of writes of one client that may wait for the writer.
pub const QUEUE_WRITES_MAX: usize = 8192;

/// The bytes of one client's items that may wait for the writer.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;

/// The writer's queue. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct JobQueue {
    pub(crate) jobs: Arc<Queue<Job>>,
    room: Limiter,
}

/// A job for the writer.
pub(crate) enum Job {
    /// Carries out a write.
    Write(Box<WriteJob>),
    /// Truncates a session's history.
    Rebase(Rebase),
}

/// A write with all that was prepared for it. An undecided one comes back whole.
pub(crate) struct WriteJob {
    pub(crate) write: Write,
    /// The large values, made for the board that the write is expected to meet.
    pub(crate) prepared: Prepared,
    /// The place of its images, pinned there until the write is published.
    pub(crate) images: Option<(ImagesIn, ImagePin)>,
    /// Makes the answer that is stored with the write's key.
    pub(crate) keep: Option<Keep>,
    /// Of an adoption, the bytes of the staged history's commits.
    pub(crate) staged_bytes: u64,
    /// Of a fork, the source session, which stores the answer too, and the key.
    pub(crate) fork_key: Option<(SessionName, Key)>,
    /// Pins of the sessions that the write touches, so that their boards stay in memory.
    pub(crate) pins: Pins,
    /// The share of the queue, released with the answer. The writer's own writes have none.
    pub(crate) room: Option<Room>,
    pub(crate) reply: Option<oneshot::Sender<Result<Reply, Unwritten>>>,
}

/// Pins of at most: the session itself, a fork's source, the Q&A session.
pub(crate) type Pins = [Option<Pin>; 3];

/// A write's share of the queue's bytes, and its place in the count of waiting writes.
pub(crate) struct Room {
    pub(crate) bytes: u64,
    _place: Place,
    _counted: Counted,
}

/// Reasons why a write was not carried out.
pub(crate) enum Unwritten {
    Failed(ServiceError),
    /// A board is not in memory, or the large values were made for another one.
    Cold(Box<WriteJob>),
    /// The images do not lie under the session that the name belongs to now, and must be stored there first.
    Moved(Box<WriteJob>),
}

/// The session under which a write's images lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImagesIn {
    /// The session that the name belonged to. The images are deleted with it.
    Present(SessionId),
    /// A new session that only this write may create.
    New(SessionId),
}

/// Puts a stored base in force as the beginning of a session's history.
pub(crate) struct Rebase {
    pub(crate) name: SessionName,
    pub(crate) session: SessionId,
    pub(crate) base: Revision,
    /// The bytes of the commits up to the base.
    pub(crate) dropped_bytes: u64,
    pub(crate) reply: oneshot::Sender<Result<(), ServiceError>>,
}

impl WriteJob {
    /// A write for which nothing is prepared.
    pub(crate) fn of(write: Write) -> Self {
        Self {
            write,
            prepared: Prepared::default(),
            images: None,
            keep: None,
            staged_bytes: 0,
            fork_key: None,
            pins: Pins::default(),
            room: None,
            reply: None,
        }
    }

    pub(crate) fn session(&self) -> &SessionName {
        &self.write.terms.session
    }

    pub(crate) fn images_in(&self) -> Option<ImagesIn> {
        self.images.as_ref().map(|(images_in, _)| *images_in)
    }
}

impl ImagesIn {
    pub(crate) const fn session(self) -> SessionId {
        match self {
            Self::Present(session) | Self::New(session) => session,
        }
    }
}

impl From<ServiceError> for Unwritten {
    fn from(error: ServiceError) -> Self {
        Self::Failed(error)
    }
}

impl From<Unwritten> for ServiceError {
    fn from(unwritten: Unwritten) -> Self {
        match unwritten {
            Unwritten::Failed(error) => error,
            Unwritten::Cold(_) => Self::Overloaded,
            // Only a write with images is moved, and its caller stores them again.
            Unwritten::Moved(_) => Self::Fault,
        }
    }
}

impl Default for JobQueue {
    fn default() -> Self {
        let room = Limiter::new(QUEUE_BYTES_MAX as u64, 0, Share::LeavesRest);
        Self { jobs: Arc::new(Queue::new(QUEUE_WRITES_MAX)), room }
    }
}

impl JobQueue {
    /// Puts a job of this task's client into the queue.
    pub(crate) fn send(&self, job: Job) -> Result<(), ServiceError> {
        self.jobs.push(Client::current(), job).map_err(|refused| match refused {
            Refused::Full(_) => ServiceError::Overloaded,
            Refused::Closed(_) => ServiceError::Stopping,
        })
    }

    /// Takes the room for a write of so many bytes.
    pub(crate) fn room(&self, bytes: u64) -> Result<Room, ServiceError> {
        let place = self.room.now(bytes).ok_or(ServiceError::Overloaded)?;
        Ok(Room { bytes, _place: place, _counted: WRITES_WAITING.count() })
    }

    /// Returns the bytes of the writes that wait.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.room.used()
    }
}
