//! Runs of commits to append, and their outcomes.

use crate::board::{Revision, SessionId};

/// One session's consecutive commits, to be stored together or not at all.
#[derive(Clone, Debug)]
pub struct Run {
    /// Whose commits they are.
    pub session: SessionId,
    /// The head that they were decided against; the frames are of the revisions that follow it. A
    /// session that the store does not know yet may begin after any revision: its name may have had
    /// another one before. For the same reason a staged history may leave out revisions.
    pub expected: Revision,
    /// With which end the session's history begins from then on, in the same transaction.
    pub ends: Option<End>,
    /// One [`Frame`](crate::board::Frame) for each commit, in order.
    pub frames: Vec<Vec<u8>>,
    /// The session's name, where the run makes the session or gives it one: it is kept a second time.
    pub name: Option<Vec<u8>>,
    /// Whether the session is larger afterwards. A run that frees space may use the reserve.
    pub grows: bool,
    /// Whether it makes a [staged](crate::store::Store::stage) history the session's own, in the same transaction.
    /// `expected` may then be above that history's last revision too: the session's name may have had
    /// another session, whose revisions are not used again.
    pub adopts: bool,
}

/// The base of a session that is deleted. All commits up to it are forgotten, also those between the head and
/// it, which need not be written at all; the run's frames follow it. Nothing is put for the session any more.
#[derive(Clone, Debug)]
pub struct End {
    /// The revision before the deletion.
    pub revision: Revision,
    /// Its parts, each a frame of the session and that revision.
    pub parts: Vec<Vec<u8>>,
}

impl Run {
    /// What its frames follow.
    pub(crate) fn after(&self) -> Revision {
        self.ends.as_ref().map_or(self.expected, |end| end.revision)
    }

    /// The session's head once this run is stored.
    #[must_use]
    pub fn head(&self) -> Revision {
        // A session that was deleted before gets its end without a frame.
        self.frames.iter().fold(self.after(), |head, _| head.next()).max(self.expected)
    }

    /// How long its frames are together.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        let bytes: usize = self.frames.iter().map(Vec::len).sum();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// What became of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable.
    Appended,
    /// It was decided against another head than the session's; nothing of it was stored. Also what no
    /// history is ready for: an adoption where nothing is staged, a base that was not put.
    Conflict {
        /// The session's head, 0 where there is no such session.
        head: Revision,
    },
    /// There is no room for it; nothing of it was stored, and the next batch is tried again.
    Full,
    /// Another program kept the database locked for too long; nothing of it was stored, and the next batch is
    /// tried again.
    Busy,
    /// So much waits to be moved from the log into the database that it may not grow; nothing of it was stored, and
    /// the next batch is tried again.
    Overloaded,
    /// It would change a page that SQLite cannot read; nothing of it was stored, and others are.
    Malformed,
    /// After a restart it is wholly there or wholly not; until then nobody can say.
    Unknown,
    /// The store takes no writes, after a failure or its end; nothing of it was tried.
    Refused,
}
