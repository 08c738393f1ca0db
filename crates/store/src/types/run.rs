//! Runs of commits to append, and their outcomes.

use super::postgres_failure::PostgresFailure;
use blackboard_board::{Digest, Frame, Revision, Seal, SessionId, Timestamp};

/// Consecutive commits of one session, stored all or none.
#[derive(Clone, Debug)]
pub struct Run {
    /// The session.
    pub session: SessionId,
    /// The head on which the commits are based; the frames have the revisions that follow. An unknown session may
    /// begin after any revision: its name may have had a session before. For the same reason a staged history may
    /// skip revisions.
    pub expected: Revision,
    /// The end with which the session's history begins from then on, in the same transaction.
    pub ends: Option<End>,
    /// One [`Frame`] for each commit, in order.
    pub frames: Vec<Vec<u8>>,
    /// The claim of the session's name, if the run creates, adopts or ends the session.
    pub claim: Option<NameClaim>,
    /// True if the session grows. A run that frees space may use the reserve.
    pub grows: bool,
    /// True if the run makes a [staged](crate::Store::stage) history the session's own, in the same
    /// transaction. `expected` may then be above that history's last revision: revisions of an earlier session under
    /// that name are never reused.
    pub adopts: bool,
    /// Runs of one group are stored all or none; a run without one stands alone. A session in a group has one run in the
    /// batch.
    pub group: Option<u32>,
    /// The session as of the run's head, and the blobs that the run names, for an engine that others write to.
    pub row: Option<Box<SessionRow>>,
}

/// A claim of a name for the session of its run. A name belongs to one session at a time: to its last one, until that
/// is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameClaim {
    /// The name; stored as a second copy too.
    pub name: Vec<u8>,
    /// The session that has the name before the run, and its head: the run's own, a deleted one, or none.
    pub before: Option<(SessionId, Revision)>,
}

/// A session without its board: all that lists, the inbox and the sweep of deadlines need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session's name.
    pub name: Vec<u8>,
    /// False once the session is deleted.
    pub exists: bool,
    /// The time of its last commit.
    pub updated_at: Timestamp,
    /// Its next expiry.
    pub next_due: Option<Timestamp>,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// True if it has open questions.
    pub asks: bool,
    /// True if it has claimable requests.
    pub requests: bool,
    /// True if its costs have passed its budget.
    pub is_over_budget: bool,
    /// True if a setting limits its history.
    pub is_limited: bool,
    /// The bytes of the images that its history names.
    pub image_bytes: u64,
    /// True if it has blobs besides images.
    pub has_blobs: bool,
    /// Its summary, a frame of the session and the run's head.
    pub summary: Vec<u8>,
    /// The blobs that the run's commits name.
    pub blobs: Vec<Digest>,
    /// The last commit of the session that the name has before the run, as far as it is known. If the engine has another
    /// one at that revision, the run is a conflict.
    pub before: Option<Seal>,
}

/// The base of a deleted session. All commits up to it are forgotten, including those between the head and it, which
/// need not be written; the run's frames follow it. Nothing more can be put for the session.
#[derive(Clone, Debug)]
pub struct End {
    /// The revision before the deletion.
    pub revision: Revision,
    /// Its parts, each a frame of the session and that revision.
    pub parts: Vec<Vec<u8>>,
}

impl Run {
    /// The revision that the frames follow.
    pub fn after(&self) -> Revision {
        self.ends.as_ref().map_or(self.expected, |end| end.revision)
    }

    /// Returns the session's head once this run is stored.
    #[must_use]
    pub fn head(&self) -> Revision {
        // The end of a deleted session may come without a frame.
        self.frames.iter().fold(self.after(), |head, _| head.next()).max(self.expected)
    }

    /// Returns what the frames add to the bytes of the session's history.
    #[must_use]
    pub fn history_bytes(&self) -> u64 {
        let bytes: usize = self.frames.iter().map(|frame| Frame::bytes(frame)).sum();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the total length of the frames.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        let bytes: usize = self.frames.iter().map(Vec::len).sum();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// The outcome of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The run is durable.
    Appended,
    /// The run was based on another head, or its name belongs to another session; nothing was stored. Also an adoption
    /// of a history that is not staged, or a base that was not put.
    Conflict {
        /// The session's head, 0 for an unknown session.
        head: Revision,
    },
    /// The disk has no room; nothing was stored, and the next batch is tried again.
    Full,
    /// Another program held the database's lock for too long; nothing was stored, and the next batch is tried again.
    Busy,
    /// The log's backlog for the checkpoint is at its limit; nothing was stored, and the next batch is tried again.
    Overloaded,
    /// The run needs a page that SQLite cannot read; nothing of it was stored, but other runs are.
    Malformed,
    /// The run is stored in full or not at all; a restart determines which.
    Unknown,
    /// The database service did not carry out the run's statement; nothing of the run was stored.
    Failed(PostgresFailure),
    /// The database service cannot be reached; nothing was stored.
    Unreachable,
    /// The run is stored in full or not at all; the database service cannot be asked which. Later batches are tried.
    InDoubt,
    /// A blob that the run names was deleted meanwhile; nothing was stored.
    BlobsMissing,
    /// The store takes no writes, after a failure or its close; nothing was tried.
    Refused,
}
