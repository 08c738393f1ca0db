//! One session within a batch: its board as the commands so far leave it, and their frames.

use std::sync::Arc;

use uuid::Uuid;

use super::Receipt;
use super::error::ServiceError;
use super::images::ImagesIn;
use super::session::{Published, Session};
use super::writer::{Job, WriterError};
use crate::board::{
    Board, COMMIT_BYTES_MAX, Change, Commit, Frame, Moment, Rejected, Revision, SessionId, apply,
    decide, stored,
};
use crate::store::Run;

/// A session's part of a batch.
pub(super) struct Staging {
    session: Option<Arc<Session>>,
    head: Revision,
    board: Arc<Board>,
    history_bytes: u64,
    frames: Vec<Vec<u8>>,
    grows: bool,
    closed: bool,
}

/// What a command comes to, once its batch is durable.
pub(super) enum Verdict {
    /// It stands.
    Done {
        receipt: Receipt,
        /// The bytes of its commit; none where it changed nothing.
        bytes: usize,
    },
    /// It does not.
    Failed(WriterError),
}

impl Verdict {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Done { bytes, .. } => *bytes,
            Self::Failed(_) => 0,
        }
    }

    pub(super) fn writes(&self) -> bool {
        self.bytes() > 0
    }

    pub(super) fn into_answer(self) -> Result<Receipt, WriterError> {
        match self {
            Self::Done { receipt, .. } => Ok(receipt),
            Self::Failed(error) => Err(error),
        }
    }
}

impl Staging {
    /// Begins with what is published; a name without a session has an empty board.
    pub(super) fn of(session: Option<Arc<Session>>) -> Self {
        let published = session.as_ref().map_or_else(
            || {
                let board = Board::absent(SessionId(Uuid::nil()), Revision::default());
                Published { board: Arc::new(board), history_bytes: 0 }
            },
            |session| session.published(),
        );
        Self {
            session,
            head: published.board.revision(),
            board: published.board,
            history_bytes: published.history_bytes,
            frames: Vec::new(),
            grows: false,
            closed: false,
        }
    }

    /// Whether the session was deleted here, so that nothing more can be staged.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn board(&self) -> &Arc<Board> {
        &self.board
    }

    pub(super) fn history_bytes(&self) -> u64 {
        self.history_bytes
    }

    /// What is to be appended, if there are any.
    pub(super) fn take_run(&mut self) -> Option<Run> {
        let frames = std::mem::take(&mut self.frames);
        let session = self.board.id();
        let expected = self.head;
        let grows = self.grows;
        (!frames.is_empty()).then_some(Run { session, expected, frames, grows })
    }

    /// Decides a command, and stages its commit.
    pub(super) fn stage(&mut self, job: &Job, moment: Moment<'_>) -> Verdict {
        if self.session.as_ref().is_some_and(|session| session.is_damaged()) {
            return Verdict::Failed(WriterError::Service(ServiceError::Damaged));
        }
        let board = match self.board_for(job) {
            Ok(board) => board,
            Err(error) => return Verdict::Failed(error),
        };
        let decision = match decide(&board, &job.write, moment) {
            Ok(decision) => decision,
            Err(rejected) => {
                let revision =
                    (!matches!(rejected, Rejected::NoSession { .. })).then(|| board.revision());
                let error = ServiceError::Rejected { rejected, revision };
                return Verdict::Failed(WriterError::Service(error));
            }
        };
        // Images were left out for a session that drops them, and now it does not: they come first.
        if job.images_in.is_none() && decision.commit.as_ref().is_some_and(Commit::names_images) {
            return Verdict::Failed(WriterError::Moved);
        }
        let bytes = match decision.commit.map_or(Ok(0), |commit| self.add(board, &commit)) {
            Ok(bytes) => bytes,
            Err(error) => return Verdict::Failed(WriterError::Service(error)),
        };
        let receipt = Receipt {
            board: Arc::clone(&self.board),
            answer: decision.answer,
            existed: decision.existed,
            committed: bytes > 0,
            history_bytes: self.history_bytes,
        };
        Verdict::Done { receipt, bytes }
    }

    /// The board that a command meets. A name without a session gets a new identity: the one under
    /// which the command's images lie already, unless that session was deleted with them since.
    fn board_for(&self, job: &Job) -> Result<Arc<Board>, WriterError> {
        if self.board.life().is_some() {
            return match job.images_in {
                Some(home) if home.session() != self.board.id() => Err(WriterError::Moved),
                Some(_) | None => Ok(Arc::clone(&self.board)),
            };
        }
        let id = match job.images_in {
            Some(ImagesIn::Present(_)) => return Err(WriterError::Moved),
            Some(ImagesIn::New(id)) => id,
            None => super::new_session_id(),
        };
        Ok(Arc::new(Board::absent(id, self.board.revision())))
    }

    /// Applying comes before appending: what cannot be applied is never stored.
    fn add(&mut self, board: Arc<Board>, commit: &Commit) -> Result<usize, ServiceError> {
        let too_large = |bytes| ServiceError::CommitTooLarge { bytes, max: COMMIT_BYTES_MAX };
        let body = stored::encode_commit(commit).map_err(|error| {
            tracing::error!(%error, "a commit could not be encoded");
            ServiceError::Fault
        })?;
        let frame =
            Frame::encode(board.id(), commit.revision, &body).map_err(|_| too_large(body.len()))?;
        let bytes = frame.len();
        let mut next = Arc::unwrap_or_clone(board);
        apply(&mut next, commit);
        self.board = Arc::new(next);
        self.history_bytes += bytes as u64;
        self.grows |= commit.changes.iter().any(|change| !change.items().is_empty());
        self.closed = commit.changes.iter().any(|change| matches!(change, Change::Deleted));
        self.frames.push(frame);
        Ok(bytes)
    }
}
