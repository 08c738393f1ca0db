//! Values read from a store: commits, bases, sessions, summaries, blobs, health.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fmt, fs};

use uuid::Uuid;

use blackboard_board::{Digest, Revision, SessionId, Timestamp};

/// A commit's position in the store's order of appends; ascending, never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JournalId(pub u64);

/// One stored commit, unverified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its position in the journal; `None` once compacted.
    pub journal_id: Option<JournalId>,
    /// The session in its row.
    pub session: SessionId,
    /// The revision in its row.
    pub revision: Revision,
    /// The bytes for [`Frame::decode`](blackboard_board::Frame::decode), which detects damage.
    pub frame: &'a [u8],
}

/// An element of a [replay](crate::EmbeddedStore::replay).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// A part of the base with which a session's history begins, unverified.
    Base {
        /// The session in its row.
        session: SessionId,
        /// The revision of the whole base.
        revision: Revision,
        /// The bytes for [`Frame::decode`](blackboard_board::Frame::decode); empty, which no frame is, if the part is
        /// missing.
        frame: &'a [u8],
    },
    /// A commit after the base.
    Commit(Record<'a>),
}

/// A session that has a history of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// The session.
    pub session: SessionId,
    /// The revision of its last commit, or of its base if no commit follows.
    pub head: Revision,
    /// The last compacted revision, the base included; 0 if the whole history is in the journal.
    pub compacted: Revision,
    /// True if the beginning of its history is unreadable; none of the history is read then.
    pub is_damaged: bool,
}

/// A summary of a session's history: a cache that the history can rebuild.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRow {
    /// The session.
    pub session: SessionId,
    /// The summarized revision.
    pub revision: Revision,
    /// One [`Frame`](blackboard_board::Frame) of the session and the revision.
    pub frame: Vec<u8>,
}

/// A session's name as stored beside its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRow {
    /// The session.
    pub session: SessionId,
    /// The name; `None` if damaged.
    pub name: Option<Vec<u8>>,
}

/// A stored token, opaque to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// The token's id.
    pub id: Uuid,
    /// The stored body; `None` if damaged.
    pub body: Option<Vec<u8>>,
}

impl TokenRow {
    /// Returns the checksum of a stored token.
    pub(crate) fn sum(id: Uuid, body: &[u8]) -> i64 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(id.as_bytes());
        sum.update(body);
        sum.finalize().into()
    }
}

/// A logout: the end of a login before its time, or of all logins with a token that began until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogoutRow {
    /// The token of the login.
    pub token: Uuid,
    /// The hash of the login's id; `None` for all logins with the token that began until `made_at`.
    pub login: Option<Digest>,
    /// The time at which the login began.
    pub made_at: Timestamp,
}

/// The limits of a page of history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMax {
    /// The maximum number of commits.
    pub commits: usize,
    /// The maximum number of bytes of frames; the first frame is returned at any length.
    pub bytes: usize,
}

/// A blob of a session; its bytes are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// The session.
    pub session: SessionId,
    /// The expected digest of its bytes.
    pub digest: Digest,
    /// Its length in bytes.
    pub bytes: u64,
    /// The time it was put, by the file system's clock; a link keeps the age of its source.
    pub modified: SystemTime,
}

/// The lengths of the store's files; 0 if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileBytes {
    /// The database, in bytes.
    pub database: u64,
    /// The write-ahead log, in bytes.
    pub log: u64,
}

impl FileBytes {
    pub(crate) fn of(database: &Path) -> Self {
        let length = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        Self { database: length(database), log: length(&database.with_extension("db-wal")) }
    }
}
/// The size of a copy of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Bytes written; linked blobs count 0.
    pub bytes: u64,
    /// The number of blobs.
    pub blobs: u64,
}

/// Returns true once a long operation is no longer wanted.
pub type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

/// The free space of a store's disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    /// The data directory.
    pub directory: PathBuf,
    /// Free bytes, including the reserve, without what the write-ahead log still adds to the database.
    pub free_bytes: u64,
    /// Bytes that only deletions may use.
    pub reserve_bytes: u64,
}

impl FreeSpace {
    /// Returns the bytes that may be written before the reserve is all that is left.
    #[must_use]
    pub fn room_bytes(&self) -> u64 {
        self.free_bytes.saturating_sub(self.reserve_bytes)
    }
}

impl fmt::Display for FreeSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { directory, free_bytes, reserve_bytes } = self;
        write!(
            f,
            "the disk of {} has {free_bytes} bytes left, and {reserve_bytes} stay reserved for deletions",
            directory.display()
        )
    }
}

/// A store's ability to accept writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// All writes are accepted.
    Ready,
    /// Only writes that free space are accepted, judging by the last write or the free space.
    Full,
    /// The database service does not answer: neither reads nor writes.
    Unreachable,
    /// No writes until a restart: an earlier write has an unknown outcome. Reads go on.
    Poisoned,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_no_room_for_writes() {
        let room = |free_bytes, reserve_bytes| {
            FreeSpace { directory: PathBuf::new(), free_bytes, reserve_bytes }.room_bytes()
        };
        assert_eq!([room(10, 4), room(4, 10)], [6, 0]);
    }
}
