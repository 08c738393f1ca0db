//! Values read from a store: commits, bases, sessions, summaries, blobs, health.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use uuid::Uuid;

use crate::board::{Digest, Revision, SessionId};

/// A commit's place in the order in which the store took them all: it grows, and is never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JournalId(pub u64);

/// One stored commit, as it lies there: nothing has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its place in the journal; none once it is compacted.
    pub journal_id: Option<JournalId>,
    /// The session that its row names.
    pub session: SessionId,
    /// The revision that its row names.
    pub revision: Revision,
    /// What [`Frame::decode`](crate::board::Frame::decode) reads, and finds damaged or whole.
    pub frame: &'a [u8],
}

/// What a [replay](crate::store::Store::replay) visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// A part of the base with which a session's history begins, as it lies there.
    Base {
        /// The session that its row names.
        session: SessionId,
        /// The revision of the whole base.
        revision: Revision,
        /// What [`Frame::decode`](crate::board::Frame::decode) reads; without bytes, which no frame is,
        /// where the part is missing.
        frame: &'a [u8],
    },
    /// A commit that follows.
    Commit(Record<'a>),
}

/// A session that has a history of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Which one.
    pub session: SessionId,
    /// The revision of its last commit, or of its base where none follows.
    pub head: Revision,
    /// Up to where its history is compacted, its base included; 0 where all of it is in the journal.
    pub compacted: Revision,
    /// Whether its history begins with an [`End`](crate::store::End).
    pub ended: bool,
    /// Whether nothing tells where its history begins: then nothing of that is read.
    pub is_damaged: bool,
}

/// What is known of a session without its history. It is a cache: what it says, the history says too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRow {
    /// Whose it is.
    pub session: SessionId,
    /// The revision that it tells of.
    pub revision: Revision,
    /// One [`Frame`](crate::board::Frame) of the session and the revision.
    pub frame: Vec<u8>,
}

/// A session's name as it is kept beside its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRow {
    /// Whose it is.
    pub session: SessionId,
    /// What was told; `None` where it is damaged.
    pub name: Option<Vec<u8>>,
}

/// A token that the store keeps: what it means is not the store's affair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Which one.
    pub id: Uuid,
    /// What was put; `None` where it is damaged.
    pub body: Option<Vec<u8>>,
}

/// How much of a history is read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMax {
    /// So many commits.
    pub commits: usize,
    /// So many bytes of frames; the first frame is given however long it is.
    pub bytes: usize,
}

/// One blob that a session keeps; its bytes were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// Whose it is.
    pub session: SessionId,
    /// What its bytes should hash to.
    pub digest: Digest,
    /// How many bytes it has.
    pub bytes: u64,
    /// When it was put, by the clock of the file system; a link is as old as what it was made of.
    pub modified: SystemTime,
}

/// How long the store's files are; 0 where that cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBytes {
    /// The database's.
    pub database: u64,
    /// That of its write-ahead log.
    pub log: u64,
}

impl FileBytes {
    pub(crate) fn of(database: &Path) -> Self {
        let length = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        Self { database: length(database), log: length(&database.with_extension("db-wal")) }
    }
}
/// What a copy of a store took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// How many bytes were written; linked blobs have none.
    pub bytes: u64,
    /// How many blobs it has.
    pub blobs: u64,
}

/// Tells whether something that takes long is not wanted any more.
pub type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

/// Whether the store takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Ready,
    /// Only what frees space, as far as the last write or the free space tell.
    Full,
    /// None, until a restart: a write failed in a way that leaves its outcome unknown. Reads go on.
    Poisoned,
}
