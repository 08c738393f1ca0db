//! The reader of an archive, line by line.
//!
//! It trusts no line, keeps the board and one line in memory, and stores nothing. It refuses lines out of order,
//! altered lines, and histories that no server could have written.

use std::collections::BTreeMap;

use super::line::{Line, Sealed, read_header, read_line};
use super::{Counts, Header};
use crate::admit::imported::{Foreign, admit_foreign, check_foreign, check_size};
use crate::apply;
use crate::json::Malformed;
use crate::stored::{BaseReader, Unreadable, decode_commit};
use crate::{Board, Change, Code, Digest, Image, Revision, SessionId, Timestamp};

/// The reason for refusing a line of an archive.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The line is not JSON.
    #[error("{}", .0.reason)]
    Malformed(Malformed),
    /// The line is too long.
    #[error("a line exceeds the limit of {max} bytes")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// The first line is not an archive's.
    #[error("the first line of an archive must name its format")]
    NoArchive,
    /// The archive is of a build before the first release.
    #[error("the archive is of a version before the first release, which no later version reads")]
    BeforeRelease,
    /// The archive has an unknown version, perhaps that of a later server.
    #[error(
        "archive version {found} is not supported, only version {known} is; if a newer blackboard wrote it, upgrade this one"
    )]
    Version {
        /// The version in the first line.
        found: u32,
        /// The supported version.
        known: u32,
    },
    /// The line does not belong in an archive.
    #[error("the line does not belong in an archive")]
    NoLine,
    /// The line is out of order.
    #[error("a line is missing or out of order")]
    Order,
    /// The checksum does not match: the line was altered.
    #[error("the checksum is {found:08x} instead of {written:08x}")]
    Checksum {
        /// The checksum in the line.
        written: u32,
        /// The checksum computed.
        found: u32,
    },
    /// An image does not match its digest or length, or is too large.
    #[error("image {sha256} was altered, or is too large")]
    Image {
        /// The digest of the image.
        sha256: Digest,
    },
    /// An image or blob is named by the history but missing, or present but unnamed.
    #[error("image or blob {sha256} is missing, or unused")]
    Images {
        /// The digest of the image.
        sha256: Digest,
    },
    /// A part of the base or a commit is not in the stored form, or is inconsistent.
    #[error("the commit or base cannot be read: {}", blackboard_error_chain::Chain(.0))]
    Unreadable(#[from] Unreadable),
    /// A commit or the base is refused.
    #[error(transparent)]
    Foreign(#[from] Foreign),
    /// The revisions contradict the first line.
    #[error("the archive ends at revision {found} instead of {expected}")]
    Revision {
        /// The revision in the first line.
        expected: Revision,
        /// The revision found.
        found: Revision,
    },
    /// The counts contradict the last line.
    #[error("the archive has {found:?}, but its last line declares {declared:?}")]
    Counts {
        /// The counts in the last line.
        declared: Counts,
        /// The counts found.
        found: Counts,
    },
    /// Reading takes longer than any valid archive of this size needs. Every start of the server would take as long.
    #[error("the archive takes too long to read")]
    TooSlow,
    /// The archive ends before its last line.
    #[error("the archive is truncated")]
    CutOff,
}

impl Fault {
    /// Returns the stable error code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Malformed(_) => Code::InvalidJson,
            Self::TooLong { .. } => Code::CommitTooLarge,
            Self::NoArchive
            | Self::BeforeRelease
            | Self::Version { .. }
            | Self::NoLine
            | Self::Order
            | Self::Checksum { .. }
            | Self::Image { .. }
            | Self::Images { .. }
            | Self::Unreadable(_)
            | Self::Foreign(_)
            | Self::Revision { .. }
            | Self::Counts { .. }
            | Self::TooSlow
            | Self::CutOff => Code::InvalidField,
        }
    }
}

/// The part of a line that is to be stored.
#[derive(Debug)]
pub enum Taken<'a> {
    /// Nothing to store.
    Nothing,
    /// An image.
    Image(Digest, Vec<u8>),
    /// The board of the base, after the last part of the base.
    Base(Box<Board>),
    /// A commit's revision and body.
    Commit(Revision, &'a [u8]),
}

/// The reader's position.
#[derive(Debug)]
enum Step {
    Header,
    Images,
    Parts(Box<BaseReader>),
    Commits,
    End,
    /// A line was refused.
    Broken,
}

/// Reads an archive line by line into its board.
#[derive(Debug)]
pub struct ArchiveReader {
    now: Timestamp,
    step: Step,
    header: Header,
    /// True if the archive is partial.
    is_cut: bool,
    images: BTreeMap<Digest, u64>,
    /// Lost images that the history may still name.
    lost: BTreeMap<Digest, u64>,
    board: Board,
    counts: Counts,
}

impl ArchiveReader {
    /// Creates a reader of this session's history; `now` is the local time.
    #[must_use]
    pub fn new(id: SessionId, now: Timestamp) -> Self {
        Self {
            now,
            step: Step::Header,
            header: Header { oldest: Revision::default(), revision: Revision::default() },
            is_cut: false,
            images: BTreeMap::new(),
            lost: BTreeMap::new(),
            board: Board::absent(id, Revision::default()),
            counts: Counts::default(),
        }
    }

    /// Allows the history to name these lost images, given with their lengths.
    #[must_use]
    pub fn lacking(self, lost: BTreeMap<Digest, u64>) -> Self {
        Self { lost, ..self }
    }

    /// Reads the next line, without its end.
    ///
    /// # Errors
    ///
    /// [`Fault`]. After an error, every line is refused.
    pub fn take<'a>(&mut self, line: &'a [u8]) -> Result<Taken<'a>, Fault> {
        let taken = self.take_line(line);
        if taken.is_err() {
            self.step = Step::Broken;
        }
        taken
    }

    /// Returns the board at the end of the archive.
    ///
    /// # Errors
    ///
    /// [`Fault::CutOff`] if the last line is missing.
    pub fn finish(self) -> Result<Board, Fault> {
        if matches!(self.step, Step::End) { Ok(self.board) } else { Err(Fault::CutOff) }
    }

    fn take_line<'a>(&mut self, line: &'a [u8]) -> Result<Taken<'a>, Fault> {
        if matches!(self.step, Step::Header) {
            return self.begin(line).map(|()| Taken::Nothing);
        }
        match read_line(line)? {
            Line::Image(sha256, bytes) => self.image(sha256, bytes),
            Line::Part(part) => self.part(&part),
            Line::Commit(commit) => self.commit(&commit),
            Line::End(counts, head) => self.end(counts, head).map(|()| Taken::Nothing),
        }
    }

    fn begin(&mut self, line: &[u8]) -> Result<(), Fault> {
        (self.header, self.is_cut) = read_header(line)?;
        let Header { oldest, revision } = self.header;
        if oldest > revision {
            return Err(Fault::Revision { expected: revision, found: oldest });
        }
        self.board = Board::absent(self.board.id(), oldest);
        self.step = Step::Images;
        Ok(())
    }

    fn image(&mut self, sha256: Digest, bytes: Vec<u8>) -> Result<Taken<'static>, Fault> {
        let follows = self.images.last_key_value().is_none_or(|(last, _)| *last < sha256);
        if !matches!(self.step, Step::Images) || !follows {
            return Err(Fault::Order);
        }
        self.images.insert(sha256, bytes.len() as u64);
        self.counts.images += 1;
        Ok(Taken::Image(sha256, bytes))
    }

    fn part(&mut self, part: &Sealed<'_>) -> Result<Taken<'static>, Fault> {
        if matches!(self.step, Step::Images) {
            self.step = Step::Parts(Box::new(BaseReader::of_foreign(self.board.id())));
        }
        part.check(self.header.oldest)?;
        let Step::Parts(base) = &mut self.step else { return Err(Fault::Order) };
        base.take(part.bytes)?;
        self.counts.parts += 1;
        if !base.is_complete() {
            return Ok(Taken::Nothing);
        }
        let Step::Parts(base) = std::mem::replace(&mut self.step, Step::Commits) else {
            return Err(Fault::Order);
        };
        let board = base.finish()?;
        let (expected, found) = (self.header.oldest, board.revision());
        if expected != found {
            return Err(Fault::Revision { expected, found });
        }
        check_foreign(&board, self.now)?;
        // Any other image of the board is forgotten by a later commit, or reported missing at the end.
        self.check_images(board.named_images())?;
        self.check_blobs(&board, board.named_blobs())?;
        self.board = board.clone();
        Ok(Taken::Base(Box::new(board)))
    }

    fn commit<'a>(&mut self, sealed: &Sealed<'a>) -> Result<Taken<'a>, Fault> {
        if matches!(self.step, Step::Images) {
            self.step = Step::Commits;
        }
        let commit = decode_commit(sealed.bytes)?;
        sealed.check(commit.revision)?;
        if !matches!(self.step, Step::Commits) || commit.revision > self.header.revision {
            return Err(Fault::Order);
        }
        admit_foreign(&self.board, &commit, self.now)?;
        self.check_images(commit.changes.iter().flat_map(Change::images))?;
        self.check_blobs(&self.board, commit.changes.iter().flat_map(Change::blobs))?;
        apply(&mut self.board, &commit);
        check_size(&self.board)?;
        self.counts.commits += 1;
        Ok(Taken::Commit(commit.revision, sealed.bytes))
    }

    fn end(&mut self, declared: Counts, head: Option<Revision>) -> Result<(), Fault> {
        let tells_of_more = head.is_some_and(|head| head > self.header.revision);
        if !matches!(self.step, Step::Images | Step::Commits) || self.is_cut != tells_of_more {
            return Err(Fault::Order);
        }
        let found = self.counts;
        if declared != found {
            return Err(Fault::Counts { declared, found });
        }
        let (expected, found) = (self.header.revision, self.board.revision());
        if expected != found {
            return Err(Fault::Revision { expected, found });
        }
        if self.board.life().is_none() {
            return Err(Foreign::Over.into());
        }
        let missing = |(sha256, bytes): &(&Digest, &u64)| !self.has(sha256, **bytes);
        if let Some((sha256, _)) = self.board.images().find(missing) {
            return Err(Fault::Images { sha256: *sha256 });
        }
        // The board must know every image of the archive: an unnamed image, or a named one that was forgotten, is
        // refused.
        let unnamed = self.images.keys().find(|sha256| !self.board.has_image(sha256));
        if let Some(sha256) = unnamed {
            return Err(Fault::Images { sha256: *sha256 });
        }
        self.step = Step::End;
        Ok(())
    }

    /// Returns true if an image of this length is present, or known to be lost.
    fn has(&self, sha256: &Digest, bytes: u64) -> bool {
        [&self.images, &self.lost].iter().any(|images| images.get(sha256) == Some(&bytes))
    }

    /// Checks that all images named by the history are present or known to be lost.
    fn check_images<'a>(&self, named: impl Iterator<Item = &'a Image>) -> Result<(), Fault> {
        let mut missing = named.filter(|image| !self.has(&image.sha256, image.bytes));
        missing.next().map_or(Ok(()), |image| Err(Fault::Images { sha256: image.sha256 }))
    }

    /// Checks that all of the board's blobs that the history names are present or known to be lost.
    fn check_blobs(
        &self,
        board: &Board,
        named: impl IntoIterator<Item = Digest>,
    ) -> Result<(), Fault> {
        let is_missing =
            |sha256: &Digest| board.blob(sha256).is_some_and(|(_, bytes)| !self.has(sha256, bytes));
        let missing = named.into_iter().find(is_missing);
        missing.map_or(Ok(()), |sha256| Err(Fault::Images { sha256 }))
    }
}
