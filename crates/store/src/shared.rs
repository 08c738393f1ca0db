//! The part of an engine that several servers write to at the same time.

use super::{LogoutRow, Outcome, Run, Store, StoreError, SummaryRow, TextStore};
use blackboard_board::{Epoch, Revision, Seal, SessionId, Timestamp};

/// The session that a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The session; a deleted one has its name until it is forgotten.
    pub session: SessionId,
    /// Its last revision.
    pub revision: Revision,
    /// The revision of its base in force, if any.
    pub base: Option<Revision>,
    /// The bytes of its commits after the base.
    pub history_bytes: u64,
    /// The commit that it has at the revision that was asked about, if that is retained.
    pub asked: Option<Seal>,
}

/// News of other servers' commits. Some never come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The sessions of these names have new commits.
    Changed(Vec<Vec<u8>>),
    /// Any session may have new commits: hints were lost.
    Lost,
}

/// The sessions in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// Existing sessions.
    All,
    /// Sessions with open questions.
    Asking,
    /// Sessions with claimable requests.
    Requesting,
    /// Sessions whose costs have passed their budget.
    OverBudget,
}

/// A query for rows of sessions, in the order of names.
#[derive(Clone, Copy, Debug)]
pub struct RowQuery<'a> {
    /// The sessions to choose from.
    pub among: Among,
    /// The name from which on; those after it, unless it is included.
    pub from: &'a [u8],
    /// True if `from` itself is included.
    pub includes_from: bool,
    /// The prefix of the names.
    pub prefix: &'a [u8],
    /// Labels that each of them has, with their values.
    pub labels: &'a [(String, String)],
    /// The maximum number of rows.
    pub limit: usize,
}

/// An engine to which other servers append too, so that a run may meet commits that this server has not seen.
pub trait SharedStore: Store {
    /// Returns the session of each name, in order, as of a moment after the call began, with its commit at the revision
    /// beside the name. One query answers for all, and reads the epoch too.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn heads(&self, asked: &[(Vec<u8>, Revision)]) -> Result<Vec<Option<Head>>, StoreError>;

    /// Draws a new epoch for all servers, unless another one than `known` holds already.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn draw_epoch(&self, known: Epoch) -> Result<(), StoreError>;

    /// Returns the names of at most `max` sessions whose [next expiry](super::SessionRow::next_due) has come, the earliest
    /// first.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn due(&self, now: Timestamp, max: usize) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Returns the names of at most `max` sessions whose history a setting limits, in order, those after a name.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn limited(&self, after: &[u8], max: usize) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Returns the names of at most `max` sessions that may have blobs to collect, put before a time, in order, those after
    /// a name.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn collectable(
        &self,
        before: Timestamp,
        after: &[u8],
        max: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Returns at most about `max` histories that nobody needs any more: of sessions deleted before a time, of those whose
    /// name has had another session for a while, and those that were staged and abandoned.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn over(&self, deleted_before: Timestamp, max: usize) -> Result<Vec<SessionId>, StoreError>;

    /// Deletes what interrupted uploads and bases left more than a day ago.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn sweep(&self) -> Result<(), StoreError>;

    /// Returns true if this server is the leader: the one that expires what no client touches. There is at most one at
    /// a time; one that lost the lead without noticing does no harm, since all that it does is append by revision.
    fn lead(&self) -> bool;

    /// Appends the batch that `decide` makes, while no other server appends to the sessions of these names, nor
    /// claims the names. `decide` is called once, unless the engine cannot be reached.
    fn exclusively(&self, names: &[Vec<u8>], decide: &mut dyn FnMut() -> Vec<Run>) -> Vec<Outcome>;

    /// Returns the names and [summaries](super::SessionRow::summary) of sessions, in the order of names.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn rows(&self, sought: &RowQuery<'_>) -> Result<Vec<(Vec<u8>, SummaryRow)>, StoreError>;

    /// Returns the number of existing sessions.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn count(&self) -> Result<usize, StoreError>;

    /// Returns the texts by which entries are found.
    fn texts(&self) -> &dyn TextStore;

    /// Calls `hear` at each hint from now on, on a thread that must not block. Only the first caller hears.
    fn on_hint(&self, hear: Box<dyn Fn(Hint) + Send + Sync>);
}

/// The logouts that all servers of a store follow.
pub trait LogoutStore {
    /// Stores a logout for a day. Beyond `max` of a token, those whose logins began first become the end of all logins with
    /// the token that began until then.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn log_out(&self, logout: &LogoutRow, max: usize) -> Result<(), StoreError>;

    /// Returns the logouts stored after a change, each with the number of its change, in order; all of them if the engine
    /// has lost changes.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn logouts(&self, after: i64) -> Result<Vec<(i64, LogoutRow)>, StoreError>;
}
