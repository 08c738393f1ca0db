//! Jobs of the writer and their queue, bounded by number and bytes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::error::ServiceError;
use super::image_pins::ImagePin;
use super::sessions::known::Known;
use super::sessions::session::Pin;
use blackboard_board::{
    Answer, Board, Epoch, Json, Key, Prepared, Revision, SessionId, SessionName, Write,
};
use blackboard_fairness::{Client, Left, Place, Queue, Refused, Share, SharedPlaces};
use blackboard_metrics::{Counted, WRITES_WAITING};
use blackboard_store::Head;

/// The number of writes of one client that may wait for the writer.
pub const QUEUE_WRITES_MAX: usize = 8192;

/// The bytes of one client's items that may wait for the writer.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;

/// The time of an append for each byte: a state of 6 MB in one text took 30 ms besides its decision.
const APPEND_A_BYTE: Duration = Duration::from_nanos(5);

/// The size from which a write joins no batch with other clients' writes, which would wait for its append, about 1.3
/// ms.
const LARGE_BYTES: u64 = 256 << 10;

/// The number of tries of a write whose session is replaced meanwhile.
pub(crate) const MOVED_TRIES_MAX: usize = 8;

/// The writer's queue. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct JobQueue {
    pub(crate) jobs: Arc<Queue<Job>>,
    room: SharedPlaces,
}

/// A job for the writer.
pub(crate) enum Job {
    /// Carries out a write.
    Write(Box<WriteJob>),
    /// Truncates a session's history.
    Rebase(Rebase),
    /// Takes in the commits of other servers.
    CatchUp(Vec<Behind>),
}

/// The answer to a check of a session's head.
pub(crate) type Checked = oneshot::Sender<Result<(), ServiceError>>;

/// A session that other servers wrote to.
pub(crate) struct Behind {
    pub(crate) name: SessionName,
    /// Its head in the store, if the store knows the name.
    pub(crate) head: Option<Head>,
    /// What was known of it before the store was asked.
    pub(crate) known: Known,
    /// The checks that found it.
    pub(crate) waiting: Vec<Checked>,
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
    /// The epoch in which it was prepared; the writer's own writes have none. In a later one its condition may hold for
    /// other commits than those that the client saw.
    pub(crate) epoch: Option<Epoch>,
    /// Its place among the writes of its batch.
    pub(crate) place: usize,
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

/// Result of a write: durable, and visible to every later read.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The board as this write left it.
    pub board: Arc<Board>,
    /// The board's answer.
    pub answer: Answer,
    /// True if the written thing existed before.
    pub existed: bool,
    /// True if there was anything to commit.
    pub committed: bool,
    /// The bytes of the session's history after it; of a keyed write, whose answer is part of its
    /// commit, before it.
    pub history_bytes: u64,
}

/// Result of a write that may have an idempotency key.
#[derive(Debug)]
pub enum Reply {
    /// The write was carried out now.
    Now(Receipt),
    /// The write was carried out before, with this answer.
    Before(Json),
}

/// Makes the answer that is stored with the write's key; `None` is a fault. The receipt does not count the write's
/// own commit yet.
pub type Keep = Arc<dyn Fn(&Receipt) -> Option<Json> + Send + Sync>;

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
    /// The losses of a shared store before the base was made of a published board.
    pub(crate) losses: Option<u64>,
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
            epoch: None,
            place: 0,
            staged_bytes: 0,
            fork_key: None,
            pins: Pins::default(),
            room: None,
            reply: None,
        }
    }

    pub(crate) fn session(&self) -> &SessionName {
        &self.write.session
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
        let room = SharedPlaces::new(QUEUE_BYTES_MAX as u64, 0, Share::LeavesRest);
        Self { jobs: Arc::new(Queue::new(QUEUE_WRITES_MAX)), room }
    }
}

impl JobQueue {
    /// Puts a job of this task's client into the queue.
    pub(crate) fn send(&self, job: Job) -> Result<(), ServiceError> {
        self.jobs.push(Client::current(), job).map_err(|unsent| refused(&unsent))
    }

    /// Puts a job of this task's client into the queue for a writer whose step the sender takes.
    pub(crate) fn send_quietly(&self, job: Job) -> Result<(), ServiceError> {
        self.jobs.push_quietly(Client::current(), job).map_err(|unsent| refused(&unsent))
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

fn refused(unsent: &Refused<Job>) -> ServiceError {
    match unsent {
        Refused::Full(_) => ServiceError::Overloaded,
        Refused::Closed(_) => ServiceError::Stopping,
    }
}

/// The writer's end of the queue. When dropped, by a panic too, it fails all waiting writes.
pub(crate) struct JobReceiver(pub(crate) Arc<Queue<Job>>);

impl JobReceiver {
    /// Returns the next job, without waiting for one.
    pub(crate) fn next(&self) -> Result<(Client, Job), Left> {
        self.0.try_pop()
    }

    /// Returns true if no job waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next write for a batch with writes of these clients, if one waits and may join.
    pub(crate) fn join(&self, clients: &[Client]) -> Option<(Client, Box<WriteJob>)> {
        let (client, job) = self.0.try_pop().ok()?;
        let may_join = |job: &WriteJob| {
            job.room.as_ref().is_none_or(|room| room.bytes < LARGE_BYTES)
                || clients.iter().all(|other| *other == client)
        };
        match job {
            Job::Write(job) if may_join(&job) => return Some((client, job)),
            other @ (Job::Write(_) | Job::Rebase(_) | Job::CatchUp(_)) => {
                self.0.put_back(client, other);
            }
        }
        None
    }

    /// Puts back a write for the next batch.
    pub(crate) fn put_back(&self, client: Client, job: Box<WriteJob>) {
        self.0.put_back(client, Job::Write(job));
    }

    /// Counts a job's time on the thread, and the expected time of its append.
    pub(crate) fn charge(&self, client: Client, took: Duration, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.0.charge(client, took + APPEND_A_BYTE * bytes);
    }
}

impl Drop for JobReceiver {
    fn drop(&mut self) {
        self.0.close();
        while self.0.try_pop().is_ok() {}
    }
}
