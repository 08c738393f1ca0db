//! Points in a history: name one, return to one, begin another session at one.

use std::sync::Arc;

use super::{NotWritten, WriteCall};
use crate::intake::input::inputs;
use crate::intake::query::Of;
use crate::intake::targets::Point;
use crate::refusal::{Refusal, no_session, refused};
use blackboard_board::{
    Board, CheckpointCommand, CheckpointName, Command, Condition, Json, Rejected, Revision,
    SessionName, Terms, permits,
};
use blackboard_service::{At, Imported, Keep, Published, Reply, ServiceError, SessionHandle};

inputs! {
    /// A name for the session's current revision.
    Naming as "NewCheckpointBody" {
        /// A name with at least one character that is not a digit
        name "name": Of<CheckpointName> as needed,
    }

    /// The name of a fork, and the point to fork.
    Forking as "NewForkBody" {
        /// The new session's name
        to "to": Of<SessionName> as needed,
        /// A revision or the name of a checkpoint
        at "at": Point,
    }

    /// The point to restore a session to.
    Restoring as "NewRestoreBody" {
        /// A revision or the name of a checkpoint
        at "at": Point as needed,
    }
}

impl Naming {
    /// Returns the command that gives the present revision this name.
    pub fn command(&self) -> Command {
        Command::Checkpoint(self.name.clone(), CheckpointCommand::Put)
    }
}

/// Returns what is published of a session, and its board at a point, or now if no point is given.
async fn board_at(
    session: &SessionHandle,
    at: Option<&At>,
) -> Result<(Published, Arc<Board>), Refusal> {
    let published = session.published().await?;
    let published = published.ok_or_else(|| no_session(session.name()))?;
    let board = match at {
        Some(at) => session.board_at(&published, at).await?,
        None => Arc::clone(&published.board),
    };
    if board.life().is_none() {
        // Before the first commit there is no board to fork or restore.
        let revision = board.revision();
        return Err(refused(&Rejected::NoRevision { revision }, None));
    }
    Ok((published, board))
}

/// What a write that needs a past board finds.
pub enum Past {
    /// The first answer to the same call. The board may be forgotten by now.
    Repeated(Json),
    /// The past board.
    Board {
        /// The board of then.
        then: Arc<Board>,
        /// The session's revision.
        now: Revision,
    },
}

impl WriteCall {
    async fn past(&self, of: &SessionHandle, at: Option<&At>) -> Result<Past, NotWritten> {
        if let Some(kept) = self.repeated().await? {
            return Ok(Past::Repeated(kept));
        }
        let (now, then) = board_at(of, at).await.map_err(NotWritten::Refused)?;
        Ok(Past::Board { then, now: now.board.revision() })
    }

    /// Returns the board that the session is restored to.
    pub async fn to_restore(&self, at: &At) -> Result<Past, NotWritten> {
        self.session.caller().restores()?;
        self.past(&self.session, Some(at)).await
    }

    /// Restores the session to the board that [`to_restore`](Self::to_restore) has found.
    pub async fn restore(&self, then: Arc<Board>, keep: Option<Keep>) -> Result<Reply, NotWritten> {
        self.session.caller().restores()?;
        self.still_may()?;
        Ok(self.session.restore(self.terms.clone(), then, keep).await?)
    }

    /// Returns the board of another session that this one is created from.
    pub async fn to_fork(
        &self,
        source: &SessionHandle,
        at: Option<&At>,
    ) -> Result<Past, NotWritten> {
        self.past(source, at).await
    }

    /// Creates the session from another session's board, with what the caller may see of it.
    pub async fn fork(
        &self,
        board: Arc<Board>,
        fork_of: SessionName,
        keep: Option<Keep>,
    ) -> Result<Reply, NotWritten> {
        self.still_may()?;
        let board = match self.session.caller().limited_to() {
            Some(own) => Arc::new(board.remembering_only(own)),
            None => board,
        };
        Ok(self.session.fork(self.terms.clone(), board, fork_of, keep).await?)
    }

    /// Gives an imported history the session's name.
    pub async fn adopt(&self, imported: Imported, keep: Option<Keep>) -> Result<Reply, NotWritten> {
        self.still_may()?;
        Ok(self.session.adopt_import(self.terms.clone(), imported, keep).await?)
    }

    /// Deletes the session's history before now. The purge itself commits nothing. A key is recorded with a commit, so that a
    /// repeat does not delete newer history.
    pub async fn purge(&self, keep: Option<Keep>) -> Result<Reply, NotWritten> {
        let board = match self.past(&self.session, None).await? {
            Past::Repeated(kept) => return Ok(Reply::Before(kept)),
            Past::Board { then, .. } => then,
        };
        permits(&board, self.session.name(), &self.terms).map_err(|rejected| {
            ServiceError::Rejected { rejected, revision: Some(board.revision()) }
        })?;
        // Reading the board may have taken a while, and a purge can't be undone.
        self.still_may()?;
        self.session.purge(self.terms.author.as_ref()).await?;
        // The terms were checked already; writes made meanwhile no longer matter.
        let terms = Terms { condition: Condition::default(), fence: None, ..self.terms.clone() };
        let nothing = Command::Transact(Box::default());
        Ok(self.session.write(terms, nothing, Vec::new(), keep).await?)
    }
}
