//! Jobs of the writer: their contents, their answers and the queue's entrance.

use tokio::sync::oneshot;

use super::error::ServiceError;
use super::image_pins::ImagePin;
use super::sessions::session::Pin;
use super::{Keep, Reply};
use crate::board::{Key, Prepared, Revision, SessionId, SessionName, Write};
use crate::fairness::{Client, Place, Queue, Refused};
use crate::metrics::Counted;

/// A job for the writer.
pub(crate) enum Job {
    /// Carries out a write.
    Write(Box<WriteJob>),
    /// Truncates a session's history.
    Rebase(Rebase),
}

/// A write on its way to the writer.
pub(crate) struct WriteJob {
    pub(crate) order: Order,
    /// How much of the queue's room it takes.
    pub(crate) weight: u64,
    pub(crate) reply: oneshot::Sender<Answered>,
    /// Its share of the queue, given back when it is answered.
    pub(crate) room: Room,
    /// The sessions that it touches, so that their boards are in memory when the writer comes to it.
    pub(crate) pins: Pins,
}

/// The writer's answer to a write.
pub(crate) enum Answered {
    /// It was decided.
    Decided(Result<Reply, WriterError>),
    /// A board that it touches is not in memory, or its values were made for another one. It comes back undecided,
    /// to be queued again once that is there, or they are made again.
    Cold(Box<Order>, Room),
}

/// A write's share of the queue's bytes, and its place among those that wait.
pub(crate) type Room = (Place, Counted);

/// At most: the session itself, the one that keeps its answer, the one that gathers questions.
pub(crate) type Pins = [Option<Pin>; 3];

/// A write, with what its caller did for it already.
pub(crate) struct Order {
    pub(crate) write: Write,
    /// Its large values, made for the board that it is to meet.
    pub(crate) prepared: Prepared,
    /// The session under which its images were stored, where it has some.
    pub(crate) images_in: Option<ImagesIn>,
    /// Pins them there until the write is decided and published.
    pub(crate) hold: Option<ImagePin>,
    /// Makes of its receipt what is kept with its key.
    pub(crate) keep: Option<Keep>,
    /// The bytes of the commits of the staged history that it adopts.
    pub(crate) staged_bytes: u64,
    /// The session in its path that keeps its answer, and its key, where it writes another one.
    pub(crate) keeps_in: Option<(SessionName, Key)>,
}

/// The session under which a write's images lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImagesIn {
    /// The one that the name belonged to then. Once it is deleted they are gone.
    Present(SessionId),
    /// A new session that only this write may create.
    New(SessionId),
}

impl ImagesIn {
    pub(crate) const fn session(self) -> SessionId {
        match self {
            Self::Present(session) | Self::New(session) => session,
        }
    }
}

/// Puts a stored base in force as the beginning of a session's history.
pub(crate) struct Rebase {
    pub(crate) name: SessionName,
    pub(crate) session: SessionId,
    pub(crate) base: Revision,
    /// The bytes of the commits up to it.
    pub(crate) dropped_bytes: u64,
    pub(crate) reply: oneshot::Sender<Result<(), ServiceError>>,
}

/// Errors of the writer.
#[derive(Debug)]
pub(crate) enum WriterError {
    /// The write's images do not lie under the session that this name belongs to now: that one is
    /// another than it was, or they were not stored at all. They are to be stored there first.
    Moved,
    /// Anything that goes to the caller.
    Service(ServiceError),
}

impl WriterError {
    /// Its code for the log: its text may quote a client's data.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::Service(error) => error.code().as_str(),
        }
    }
}

impl From<ServiceError> for WriterError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl Order {
    /// A write for which nothing was done.
    pub(crate) fn of(write: Write) -> Self {
        Self {
            write,
            prepared: Prepared::default(),
            images_in: None,
            hold: None,
            keep: None,
            staged_bytes: 0,
            keeps_in: None,
        }
    }
}

/// Puts a job of this task's client into the writer's queue.
pub(crate) fn send(jobs: &Queue<Job>, job: Job) -> Result<(), ServiceError> {
    jobs.push(Client::current(), job).map_err(|refused| match refused {
        Refused::Full(_) => ServiceError::Overloaded,
        Refused::Closed(_) => ServiceError::Stopping,
    })
}
