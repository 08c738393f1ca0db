//! The staged board and frames of a session within a batch.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::verdict::Verdict;
use crate::Receipt;
use crate::error::ServiceError;
use crate::history::deletion::end_before;
use crate::job::{ImagesIn, WriteJob};
use crate::sessions::by_id::summary_row;
use crate::sessions::known::Known;
use crate::sessions::loader::{AtHand, Loader};
use crate::sessions::recent_commits::Weighed;
use crate::sessions::replay::go_on;
use crate::sessions::session::{Published, Session};
use blackboard_board::apply;
use blackboard_board::{
    Board, COMMIT_BYTES_MAX, Change, Command, Commit, Decision, Digest, Epoch, Extent, Frame, Json,
    Kept, Key, KeyReused, Moment, Nonce, Prepared, Rejected, Revision, Seal, SessionCommand,
    SessionId, SessionName, Summary, Timestamp, decide, decide_prepared, decide_unread, expire,
    stored,
};
use blackboard_store::{End, NameClaim, Run, SessionRow};

/// A session's part of a batch.
pub(crate) struct Staging {
    /// True if the board is not in memory, so that nothing can be decided.
    is_cold: bool,
    /// The id of a damaged session, which can only be deleted or replaced.
    damaged: Option<SessionId>,
    /// The id of the damaged session that was replaced.
    replaced: Option<SessionId>,
    head: Revision,
    board: Arc<Board>,
    /// The board before the batch.
    former: Arc<Board>,
    history_bytes: u64,
    frames: Vec<Vec<u8>>,
    /// The commits of the frames.
    commits: Vec<Weighed>,
    grows: bool,
    /// True if a staged history becomes the session's.
    adopts: bool,
    closed: bool,
    /// The base that remains of a deleted session.
    end: Option<End>,
    /// The last commit, if the board was read from the store and the commits before it are not at hand.
    loaded: Option<Option<Arc<Commit>>>,
    /// The commit at `head`, and the last one.
    before: Option<Seal>,
    last: Option<Seal>,
    /// True if the store has lost what was published before.
    is_after_loss: bool,
    /// True if a staged commit only removes.
    shrinks: bool,
    /// True if writes that add are refused.
    is_cramped: bool,
}

impl Staging {
    /// Begins with the published board; a name without a session has an empty one.
    pub(crate) fn of(session: Option<&Arc<Session>>, loader: &Loader) -> Self {
        let (mut is_cold, mut damaged) = (false, None);
        let published = match session.map(|session| (session, loader.at_hand(session))) {
            Some((_, AtHand::Board(published))) => published,
            Some((_, AtHand::Cold(_))) => {
                is_cold = true;
                Published::nothing()
            }
            Some((session, AtHand::Damaged)) => {
                let Extent { session, revision, .. } = session.extent();
                damaged = Some(session);
                let board = Arc::new(Board::absent(Published::nothing().board.id(), revision));
                Published { board, history_bytes: 0 }
            }
            None => Published::nothing(),
        };
        let board = published.board;
        let known = session
            .map(|session| session.known())
            .filter(|known| (known.session, known.revision) == (board.id(), board.revision()));
        let before = known.and_then(|known| known.seal);
        Self {
            is_cold,
            damaged,
            replaced: None,
            head: board.revision(),
            former: Arc::clone(&board),
            board,
            history_bytes: published.history_bytes,
            frames: Vec::new(),
            commits: Vec::new(),
            grows: false,
            adopts: false,
            closed: false,
            end: None,
            loaded: None,
            before,
            last: before,
            is_after_loss: false,
            shrinks: false,
            is_cramped: false,
        }
    }

    /// Takes in a commit of another server, which is stored.
    pub(crate) fn take_in(
        &mut self,
        commit: Commit,
        bytes: usize,
        seal: Option<Seal>,
    ) -> Result<(), ServiceError> {
        let mut board = Board::clone(&self.board);
        go_on(&mut board, &commit)?;
        self.closed = commit.ends_session();
        self.board = Arc::new(board);
        self.history_bytes += bytes as u64;
        self.commits.push((Arc::new(commit), bytes));
        self.last = seal;
        Ok(())
    }

    /// Replaces the board by one that was read from the store, with its last commit, perhaps after a loss.
    pub(crate) fn replaced_by(
        self,
        board: Board,
        history_bytes: u64,
        last: Option<(Commit, Option<Seal>)>,
        is_after_loss: bool,
    ) -> Self {
        let closed = board.life().is_none();
        let seal = last.as_ref().and_then(|(_, seal)| *seal);
        let loaded = Some(last.map(|(commit, _)| Arc::new(commit)));
        let board = Arc::new(board);
        Self { board, history_bytes, closed, loaded, last: seal, is_after_loss, ..self }
    }

    /// Returns what is known of the session once this is published, and whether it follows a loss.
    pub(crate) fn known(&self, epoch: Epoch) -> (Known, bool) {
        (Known::of(&self.board, self.last, epoch), self.is_after_loss)
    }

    /// Takes out the last commit of a board that was read from the store, if it was.
    pub(crate) fn take_loaded(&mut self) -> Option<Option<Arc<Commit>>> {
        self.loaded.take()
    }

    /// Begins a second try that refuses writes that add, since the disk has no room for all.
    pub(crate) fn cramped(session: Option<&Arc<Session>>, loader: &Loader) -> Self {
        Self { is_cramped: true, ..Self::of(session, loader) }
    }

    /// Returns true if a part of the staged commits needs less room than all.
    pub(crate) fn may_shrink(&self) -> bool {
        self.grows && self.shrinks
    }

    /// Returns true if the session was deleted in this batch, so that nothing more can be staged.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns true if the board is not in memory, so that nothing can be decided.
    pub(crate) fn is_cold(&self) -> bool {
        self.is_cold
    }

    /// Returns true if nothing was staged.
    pub(crate) fn is_idle(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Returns the deleted session that the name had before this one.
    pub(crate) fn succeeds(&self) -> Option<SessionId> {
        let (former, id) = (&self.former, self.board.id());
        let is_new = former.id() != id && former.life().is_none() && self.replaced.is_none();
        (is_new && former.revision() > Revision::default()).then(|| former.id())
    }

    /// Takes out the board before the batch.
    pub(crate) fn take_former(&mut self) -> Arc<Board> {
        std::mem::replace(&mut self.former, Arc::clone(&self.board))
    }

    pub(crate) fn history_bytes(&self) -> u64 {
        self.history_bytes
    }

    /// Takes out the staged commits.
    pub(crate) fn take_commits(&mut self) -> Vec<Weighed> {
        std::mem::take(&mut self.commits)
    }

    /// Takes out the run to append, if there is one.
    pub(crate) fn take_run(&mut self) -> Option<Run> {
        let (mut frames, ends) = (std::mem::take(&mut self.frames), self.end.take());
        if ends.is_some() {
            // The deletion removes the commits before it, so they need not be stored.
            frames.drain(..frames.len().saturating_sub(1));
            self.grows = false;
        }
        let session = self.board.id();
        let Self { head: expected, grows, adopts, .. } = *self;
        let claim = self.claim();
        let run =
            Run { session, expected, ends, frames, claim, grows, adopts, group: None, row: None };
        (!run.frames.is_empty()).then_some(run)
    }

    /// Returns the session as of its staged head, for an engine whose lists are queries.
    pub(crate) fn row(&self, name: &SessionName) -> Option<SessionRow> {
        let board = &self.board;
        let summary = Summary::of(board, name, self.history_bytes, 0);
        let framed = summary_row(&summary)?.frame;
        let labels = board.life().into_iter().flat_map(|life| life.labels.iter());
        let exists = board.life().is_some();
        Some(SessionRow {
            name: name.as_str().as_bytes().to_vec(),
            exists,
            updated_at: board.updated_at(),
            next_due: board.next_due(),
            labels: labels.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            asks: exists && !board.asked().open().is_empty(),
            requests: exists && board.tasks().can_be_claimed(),
            is_over_budget: board.budget_passed().is_some(),
            is_limited: board.life().is_some_and(|life| life.settings.history.is_some()),
            image_bytes: board.image_bytes(),
            has_blobs: !board.blobs().is_empty(),
            summary: framed,
            blobs: self.blobs(),
            before: self.before,
        })
    }

    /// Returns the blobs of the board that the staged commits name.
    fn blobs(&self) -> Vec<Digest> {
        let changes = self.commits.iter().flat_map(|(commit, _)| &commit.changes);
        let named = changes.flat_map(|change| {
            let images = change.images().map(|image| image.sha256);
            images.chain(change.blobs()).chain(change.uploaded())
        });
        let board = &self.board;
        let held =
            named.filter(|sha256| board.has_image(sha256) || board.blobs().contains_key(sha256));
        let distinct: BTreeSet<Digest> = held.collect();
        distinct.into_iter().collect()
    }

    /// Returns the claim of the session's name, if the staged commits create, adopt or end the session.
    fn claim(&self) -> Option<NameClaim> {
        let changes = self.commits.iter().flat_map(|(commit, _)| &commit.changes);
        let ended = || self.former.life().filter(|_| self.closed).map(|life| &life.name);
        let name = changes.filter_map(Change::session_name).next_back().or_else(ended)?;
        let (former, revision) = (self.former.id(), self.former.revision());
        let former = (revision > Revision::default()).then_some(former);
        let before = self.replaced.or(former).map(|session| (session, revision));
        Some(NameClaim { name: name.as_str().as_bytes().to_vec(), before })
    }

    /// Stages due expiries in at most `commits_max` commits. Before a command all are staged, so that it meets no
    /// expired value.
    pub(crate) fn expire(
        &mut self,
        due: Timestamp,
        nonce: impl Fn() -> Nonce,
        commits_max: usize,
    ) -> Result<(), ServiceError> {
        for _ in 0..commits_max {
            let is_due = self.board.next_due().is_some_and(|next| next <= due);
            if !is_due || self.is_cold || self.is_damaged() {
                break;
            }
            let Some(commit) = expire(&self.board, due, nonce()) else { break };
            let mut next = Board::clone(&self.board);
            apply(&mut next, &commit);
            let frame = framed(next.id(), &commit, &Prepared::default())?;
            self.add(Arc::new(next), commit, frame);
        }
        Ok(())
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.is_some()
    }

    /// Returns the damaged session that was replaced.
    pub(crate) fn replaced(&self) -> Option<SessionId> {
        self.replaced
    }

    /// Decides a command and stages its commit. Keys expire by `due` and not by the commit's time, which may be ahead
    /// of the clock.
    pub(crate) fn stage(&mut self, job: &WriteJob, moment: Moment<'_>, due: Timestamp) -> Verdict {
        self.carry_out(job, moment, due).unwrap_or_else(Verdict::Failed)
    }

    fn carry_out(
        &mut self,
        job: &WriteJob,
        moment: Moment<'_>,
        due: Timestamp,
    ) -> Result<Verdict, ServiceError> {
        if self.damaged.is_some() {
            return self.carry_out_unread(job, moment, due);
        }
        if self.is_cold {
            return Ok(Verdict::Cold);
        }
        if let Some(key) = &job.write.terms.key
            && let Some(answer) = recall(&self.board, key, due)?
        {
            return Ok(Verdict::Recalled(answer));
        }
        let Some(board) = self.board_for(job) else { return Ok(Verdict::Moved) };
        let decision = decide_prepared(&board, &job.write, &job.prepared, moment)
            .map_err(|rejected| refused(rejected, board.revision()))?;
        // The images were left out for a session that dropped them, and it retains them now.
        if job.images.is_none() && decision.commit.as_ref().is_some_and(Commit::names_images) {
            return Ok(Verdict::Moved);
        }
        self.take(job, decision, due)
    }

    /// Decides the deletion or the replacement of a damaged session. Its history takes no commit, so both get a new
    /// id.
    fn carry_out_unread(
        &mut self,
        job: &WriteJob,
        moment: Moment<'_>,
        due: Timestamp,
    ) -> Result<Verdict, ServiceError> {
        let (head, write) = (self.board.revision(), &job.write);
        let decision = if matches!(write.command, Command::Session(SessionCommand::Delete)) {
            decide_unread(crate::new_session_id(), head, write, moment)
        } else if matches!(write.command, Command::Session(SessionCommand::Adopt { .. })) {
            let Some(board) = self.board_for(job) else { return Ok(Verdict::Moved) };
            decide(&board, write, moment)
        } else {
            return Err(ServiceError::Damaged);
        };
        let decision = decision.map_err(|rejected| refused(rejected, head))?;
        let verdict = self.take(job, decision, due)?;
        self.replaced = self.damaged.take();
        Ok(verdict)
    }

    /// Stages a decision.
    fn take(
        &mut self,
        job: &WriteJob,
        decision: Decision,
        due: Timestamp,
    ) -> Result<Verdict, ServiceError> {
        if self.is_cramped && decision.commit.as_ref().is_some_and(|commit| !commit.only_removes())
        {
            return Err(ServiceError::StoreFull);
        }
        let Decision { commit, board, answer, existed } = decision;
        let (board, committed) = (Arc::new(board), commit.is_some());
        let history_bytes = self.history_bytes;
        let mut receipt = Receipt { board, answer, existed, committed, history_bytes };
        let Some(mut commit) = commit else { return Ok(Verdict::Done { receipt, bytes: 0 }) };
        keep_answer(job, &mut commit, &mut receipt, due)?;
        let keyed = commit.kept.is_some();
        let frame = framed(receipt.board.id(), &commit, &job.prepared)?;
        // Nothing fails from here on, or a refused command would leave parts in the next run.
        if let Command::Session(SessionCommand::Adopt { board, .. }) = &job.write.command {
            // The session's stored history is the staged one; revisions that the name had already are skipped.
            self.head = Revision(commit.revision.0.saturating_sub(1)).max(board.revision());
            self.history_bytes = job.staged_bytes;
            self.adopts = true;
        }
        let bytes = self.add(Arc::clone(&receipt.board), commit, frame);
        if !keyed {
            receipt.history_bytes = self.history_bytes;
        }
        Ok(Verdict::Done { receipt, bytes })
    }

    /// The board that a command meets; `None` if its images lie under another session. A name without a session gets
    /// a new identity: the one under which the images lie already.
    fn board_for(&self, job: &WriteJob) -> Option<Arc<Board>> {
        let images_in = job.images_in();
        if self.board.life().is_some() {
            let is_here = images_in.is_none_or(|at| at.session() == self.board.id());
            return is_here.then(|| Arc::clone(&self.board));
        }
        if let Command::Session(SessionCommand::Adopt { board, .. }) = &job.write.command {
            return Some(Arc::new(Board::absent(board.id(), self.board.revision())));
        }
        let id = match images_in {
            Some(ImagesIn::Present(_)) => return None,
            Some(ImagesIn::New(id)) => id,
            None => crate::new_session_id(),
        };
        Some(Arc::new(Board::absent(id, self.board.revision())))
    }

    /// Stages a commit that was applied already, so that no inapplicable one is stored. Returns the bytes to store.
    fn add(&mut self, next: Arc<Board>, commit: Commit, frame: Vec<u8>) -> usize {
        let (bytes, stored) = (Frame::bytes(&frame), frame.len());
        let removes = commit.only_removes();
        self.grows |= !removes;
        self.shrinks |= removes;
        if commit.ends_session() {
            let (life, at) = (self.board.life(), self.board.updated_at());
            self.end = life.and_then(|life| end_before(next.id(), &life.name, at, &commit));
        }
        self.board = next;
        self.history_bytes += bytes as u64;
        self.closed = commit.ends_session();
        self.last = Frame::seal(&frame);
        self.frames.push(frame);
        self.commits.push((Arc::new(commit), bytes));
        stored
    }
}

/// Returns a commit's stored form.
fn framed(
    session: SessionId,
    commit: &Commit,
    prepared: &Prepared,
) -> Result<Vec<u8>, ServiceError> {
    let too_large = |bytes| ServiceError::CommitTooLarge { bytes, max: COMMIT_BYTES_MAX };
    let body = stored::encode_body(commit, &prepared.packed()).map_err(|error| {
        tracing::error!(%error, "a commit could not be encoded");
        ServiceError::Fault
    })?;
    Frame::encode(session, commit.revision, &body).map_err(|_| too_large(body.bytes()))
}

fn refused(rejected: Rejected, head: Revision) -> ServiceError {
    let revision = (!matches!(rejected, Rejected::NoSession { .. })).then_some(head);
    ServiceError::Rejected { rejected, revision }
}

/// Adds the answer of a keyed write to its commit. Fails without an answer.
fn keep_answer(
    job: &WriteJob,
    commit: &mut Commit,
    receipt: &mut Receipt,
    due: Timestamp,
) -> Result<(), ServiceError> {
    let Some(key) = &job.write.terms.key else { return Ok(()) };
    let answer = job.keep.as_ref().and_then(|keep| keep(receipt)).ok_or(ServiceError::Fault)?;
    let forgotten = receipt.board.keys().to_forget(due);
    let kept = Kept { key: key.clone(), answer, forgotten };
    let mut board = Board::clone(&receipt.board);
    board.remember(&kept, commit.at);
    receipt.board = Arc::new(board);
    commit.kept = Some(kept);
    Ok(())
}

/// Returns the first answer to a repeated write.
pub(crate) fn recall(
    board: &Board,
    key: &Key,
    due: Timestamp,
) -> Result<Option<Json>, ServiceError> {
    match board.keys().recall(key, due) {
        Ok(answer) => Ok(answer.cloned()),
        // A deleted session remembers only its deletion.
        Err(KeyReused) if board.life().is_none() => Ok(None),
        Err(KeyReused) => {
            let (rejected, revision) = (Rejected::KeyReused, Some(board.revision()));
            Err(ServiceError::Rejected { rejected, revision })
        }
    }
}
