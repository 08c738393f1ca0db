//! Reading of session histories, with reports of the damage found.
//!
//! Startup and `blackboard check` share it: every frame is decoded, every commit admitted, then applied. A session
//! with an unreadable history is marked as damaged as a whole.

use std::io;
use std::sync::Arc;

use blackboard_board::apply;
use blackboard_board::stored::BaseReader;
use blackboard_board::{
    Board, Change, Commit, Frame, FrameError, Misfit, Revision, SessionId, SessionName, Summary,
    admit, stored,
};
use blackboard_store::{JournalId, Record, StoreError};

/// A row of the store that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}, session {session}, revision {revision}: {cause}", place(*journal_id, cause))]
pub struct Damage {
    /// The row of the journal; compacted commits, bases, summaries and snapshots have none.
    pub journal_id: Option<JournalId>,
    /// The row's session.
    pub session: SessionId,
    /// The session's name, if an earlier row has it.
    pub name: Option<SessionName>,
    /// The revision that the row should have.
    pub revision: Revision,
    /// The fault.
    pub cause: DamageCause,
}

impl Damage {
    /// Returns true if the history itself is damaged, and not only a snapshot or summary made from it.
    #[must_use]
    pub fn is_of_history(&self) -> bool {
        !matches!(self.cause, DamageCause::Summary | DamageCause::Snapshot | DamageCause::Name)
    }
}

fn place(journal_id: Option<JournalId>, cause: &DamageCause) -> String {
    match (journal_id, cause) {
        (Some(id), _) => format!("journal row {}", id.0),
        (None, DamageCause::Summary) => "a summary".to_owned(),
        (None, DamageCause::Snapshot) => "a snapshot".to_owned(),
        (
            None,
            DamageCause::Frame(_)
            | DamageCause::Body(_)
            | DamageCause::Misfit(_)
            | DamageCause::Lost { .. }
            | DamageCause::Stray { .. }
            | DamageCause::Before,
        ) => "compacted commits or a base".to_owned(),
        (None, DamageCause::Name) => "a name".to_owned(),
        (None, DamageCause::Beginning) => "the row of a history".to_owned(),
    }
}

/// The fault of a damaged row.
#[derive(Debug, thiserror::Error)]
pub enum DamageCause {
    /// The frame's checksum or header does not match.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The body is not in the stored format.
    #[error(transparent)]
    Body(#[from] stored::Unreadable),
    /// The commit does not follow the one before it.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The earlier history cannot be read; the log has the place.
    #[error("the earlier history cannot be read; see the log")]
    Before,
    /// The last commits are lost: a summary has a later revision.
    #[error("the history ends at revision {found}, but a summary has a later one")]
    Lost {
        /// The last readable revision.
        found: Revision,
    },
    /// Some rows have another id, which no session has.
    #[error("its rows have the damaged session id {identity}")]
    Stray {
        /// The damaged id.
        identity: SessionId,
    },
    /// The row with the beginning of the history is damaged.
    #[error("the beginning of the history is unknown")]
    Beginning,
    /// A summary differs from the history.
    #[error("the stored summary differs from the history")]
    Summary,
    /// The second copy of the name cannot be read; the next start deletes it.
    #[error("the second copy of the name is damaged; the next start deletes it")]
    Name,
    /// A snapshot differs from the board of its revision.
    #[error("the stored snapshot differs from the board of its revision")]
    Snapshot,
}

/// Reasons why the sessions cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store does not answer.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// A damaged row belongs to a session of unknown name.
    #[error(
        "the store is damaged, and the damage hides which session it belongs to; nothing was changed. \
         Restore a backup, or run 'blackboard salvage --to DIR' to copy what can be read to a new store"
    )]
    Nameless(#[source] Damage),
    /// The writer's thread could not be started.
    #[error("the writer's thread could not be started")]
    Thread(#[from] io::Error),
}

/// A session while it is being read.
pub(crate) struct Loading {
    pub(crate) board: Board,
    /// The base, until its last part was read.
    pub(crate) base: Option<BaseReader>,
    pub(crate) name: Option<SessionName>,
    history_bytes: u64,
    /// The history's bytes when the last snapshot was stored.
    pub(crate) snapshot_bytes: u64,
    pub(crate) damaged: bool,
    /// Facts known of a damaged session before it was read.
    pub(crate) known: Option<Arc<Summary>>,
}

impl Loading {
    /// A session before its first commit, which follows `after`.
    pub(crate) fn new(session: SessionId, after: Revision) -> Self {
        Self::of(Board::absent(session, after), None, 0)
    }

    /// A session that was read so far.
    pub(crate) fn of(board: Board, name: Option<SessionName>, history_bytes: u64) -> Self {
        let (snapshot_bytes, damaged, known) = (0, false, None);
        Self { board, base: None, name, history_bytes, snapshot_bytes, damaged, known }
    }

    pub(crate) fn damage(
        &mut self,
        journal_id: Option<JournalId>,
        revision: Revision,
        cause: DamageCause,
    ) -> Damage {
        self.damaged = true;
        Damage { journal_id, session: self.board.id(), name: self.name.clone(), revision, cause }
    }

    pub(crate) fn take_part(
        &mut self,
        session: SessionId,
        revision: Revision,
        frame: &[u8],
    ) -> Result<(), DamageCause> {
        let part = Frame::decode(session, revision, frame)?;
        if let Some(base) = &mut self.base {
            base.take(&part)?;
        }
        Ok(())
    }

    pub(crate) fn end_base(&mut self) -> Result<(), DamageCause> {
        let Some(base) = self.base.take() else { return Ok(()) };
        self.board = base.finish()?;
        self.name = self.board.life().map(|life| life.name.clone());
        Ok(())
    }

    pub(crate) fn follow(&mut self, record: &Record<'_>) -> Result<(), DamageCause> {
        self.end_base()?;
        let body = Frame::decode(record.session, record.revision, record.frame)?;
        let commit = stored::decode_commit(&body)?;
        admit(&self.board, &commit)?;
        self.learn_name(&commit);
        apply(&mut self.board, &commit);
        self.history_bytes += Frame::bytes(record.frame) as u64;
        Ok(())
    }

    pub(crate) fn learn_name(&mut self, commit: &Commit) {
        let named = commit.changes.iter().find_map(Change::session_name);
        if let Some(name) = named {
            self.name = Some(name.clone());
        }
    }

    /// Its summary, once it has a name.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let name = self.name.as_ref()?;
        Some(Summary::of(&self.board, name, self.history_bytes(), self.snapshot_bytes).detached())
    }

    /// Returns the bytes of the history; 0 for a deleted session, which retains none.
    pub(crate) fn history_bytes(&self) -> u64 {
        if self.board.life().is_some() { self.history_bytes } else { 0 }
    }
}
