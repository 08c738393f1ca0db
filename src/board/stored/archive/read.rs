//! The reader of an archive, line by line, which trusts none of it.
//!
//! It keeps the board and one line in memory and stores nothing. It refuses lines out of order, changed lines, and
//! histories that no server could have written.

use std::collections::BTreeMap;

use super::line::{Line, Sealed, read_header, read_line};
use super::{Counts, Header};
use crate::board::admit::imported::{Foreign, admit_foreign, check_foreign, check_size};
use crate::board::apply;
use crate::board::json::Malformed;
use crate::board::stored::{BaseReader, Unreadable, decode_commit};
use crate::board::{Board, Change, Code, Digest, Image, Revision, SessionId, Timestamp};

/// The reason why a line of an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The line is not JSON.
    #[error("{}", .0.reason)]
    Malformed(Malformed),
    /// It is longer than a line may be.
    #[error("a line exceeds the limit of {max} bytes")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// The first line is not that of an archive.
    #[error("the first line of an archive must name its format")]
    NoArchive,
    /// A later server wrote it.
    #[error(
        "archive version {found} is not supported, only versions up to {known} are; if a newer blackboard wrote it, \
         upgrade this one"
    )]
    Version {
        /// The version it names.
        found: u32,
        /// The latest supported one.
        known: u32,
    },
    /// The line does not belong in an archive.
    #[error("the line does not belong in an archive")]
    NoLine,
    /// The line is out of order.
    #[error("a line is missing or out of order")]
    Order,
    /// Its bytes are not those that were written.
    #[error("the checksum is {found:08x} instead of {written:08x}")]
    Checksum {
        /// The checksum in the line.
        written: u32,
        /// The checksum of its bytes.
        found: u32,
    },
    /// An image is not what its digest says, or larger than one may be.
    #[error("image {sha256} was altered, or is too large")]
    Image {
        /// Which image.
        sha256: Digest,
    },
    /// An image is named by nothing in the archive, or is named and not there.
    #[error("image {sha256} is missing, or unused")]
    Images {
        /// Which image.
        sha256: Digest,
    },
    /// A part of the base, or a commit, is not in the stored form, or not sound.
    #[error("the commit or base cannot be read: {}", crate::error_chain::Chain(.0))]
    Unreadable(#[from] Unreadable),
    /// A commit or the base is refused.
    #[error(transparent)]
    Foreign(#[from] Foreign),
    /// The revisions are not those that the first line tells of.
    #[error("the archive ends at revision {found} instead of {expected}")]
    Revision {
        /// The revision that the first line names.
        expected: Revision,
        /// The one found.
        found: Revision,
    },
    /// There are others than the last line counts.
    #[error("the archive has {found:?}, but its last line declares {declared:?}")]
    Counts {
        /// The counts on its last line.
        declared: Counts,
        /// The counts found.
        found: Counts,
    },
    /// It takes longer to read than an archive of its size ever does; so would every start of the server.
    #[error("the archive takes too long to read")]
    TooSlow,
    /// It ends before its last line.
    #[error("the archive is truncated")]
    CutOff,
}

impl Fault {
    /// Its stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Malformed(_) => Code::InvalidJson,
            Self::TooLong { .. } => Code::CommitTooLarge,
            Self::NoArchive
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

/// A line of an archive, read: what is to be stored.
#[derive(Debug)]
pub enum Taken<'a> {
    /// Nothing to store.
    Nothing,
    /// An image.
    Image(Digest, Vec<u8>),
    /// The last part of the base: the board that it makes.
    Base(Box<Board>),
    /// A commit, with its body.
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
    /// Whether it ends before its session did.
    is_cut: bool,
    images: BTreeMap<Digest, u64>,
    /// Images that the history may name although they are missing.
    lost: BTreeMap<Digest, u64>,
    board: Board,
    counts: Counts,
}

impl ArchiveReader {
    /// Reads an archive as the history of this session, `now` being the time here.
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

    /// Lets the history name these images, with their lengths, though they are lost.
    #[must_use]
    pub fn lacking(self, lost: BTreeMap<Digest, u64>) -> Self {
        Self { lost, ..self }
    }

    /// Reads the next line, without its end.
    ///
    /// # Errors
    ///
    /// [`Fault`]; then none is taken any more.
    pub fn take<'a>(&mut self, line: &'a [u8]) -> Result<Taken<'a>, Fault> {
        let taken = self.take_line(line);
        if taken.is_err() {
            self.step = Step::Broken;
        }
        taken
    }

    /// The board at the end of the archive.
    ///
    /// # Errors
    ///
    /// [`Fault::CutOff`].
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
        // Those that it has besides are forgotten by a later commit, or missed at the end.
        self.check_images(board.named_images())?;
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
        // What was named before is here and has to be known still, so none of it was forgotten.
        let unnamed = self.images.keys().find(|sha256| !self.board.has_image(sha256));
        if let Some(sha256) = unnamed {
            return Err(Fault::Images { sha256: *sha256 });
        }
        self.step = Step::End;
        Ok(())
    }

    /// Whether an image of this length is here, or known to be lost.
    fn has(&self, sha256: &Digest, bytes: u64) -> bool {
        [&self.images, &self.lost].iter().any(|images| images.get(sha256) == Some(&bytes))
    }

    /// Checks that all images named by the history are present.
    fn check_images<'a>(&self, named: impl Iterator<Item = &'a Image>) -> Result<(), Fault> {
        let mut missing = named.filter(|image| !self.has(&image.sha256, image.bytes));
        missing.next().map_or(Ok(()), |image| Err(Fault::Images { sha256: image.sha256 }))
    }
}
