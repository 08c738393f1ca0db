//! Decisions: every rule of a write, as a pure function of board, command and moment.

mod agents;
mod claims;
mod condition;
mod expiry;
mod history;
mod limits;
mod logs;
mod prepared;
mod questions;
mod session;
mod state;
mod transaction;

use std::sync::Arc;

use super::commit::apply::{apply_change, close};

use super::command::rejected::Rejected;
use super::command::{Answer, Command, Edit, Moment, Policy, Write};
use super::commit::{Change, Commit, SessionChange};
use super::log::Stamp;
use super::{Board, Revision, SessionId, SessionName, Timestamp};
pub(super) use agents::check_fields;
use claims::check_fence;
use condition::check_condition;
use history::ground;
use session::opening;

pub use condition::{patchable, permits};
pub use expiry::expire;
pub use prepared::Prepared;

/// The result of a decision: a commit, unless nothing changes, and the answer once it is durable.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The commit.
    pub commit: Option<Commit>,
    /// The board after it, as [`apply`](super::commit::apply::apply()) makes it.
    pub board: Board,
    /// The answer.
    pub answer: Answer,
    /// Whether the thing written existed before.
    pub existed: bool,
}

/// Decides a write against the board of its session.
///
/// A write with a key always makes a commit, so that its answer can be kept.
///
/// # Errors
///
/// [`Rejected`] where a rule or the write's condition refuses it.
pub fn decide(board: &Board, write: &Write, moment: Moment<'_>) -> Result<Decision, Rejected> {
    decide_prepared(board, write, &Prepared::default(), moment)
}

/// As [`decide`], with prepared values: the same result, sooner.
///
/// # Errors
///
/// As for [`decide`].
pub fn decide_prepared(
    board: &Board,
    write: &Write,
    prepared: &Prepared,
    moment: Moment<'_>,
) -> Result<Decision, Rejected> {
    let mut draft = Draft::open(board, write, prepared, moment)?;
    check_fence(board, write)?;
    let existed = check_condition(board, write)?;
    let answer = draft.carry_out(&write.command)?;
    draft.drop_idle_opening(&write.command);
    limits::check(board, &draft.board, &draft.changes, moment)?;
    let Draft { board: mut after, changes, stamp, .. } = draft;
    let keeps = write.terms.key.is_some() && (after.life.is_some() || board.life.is_some());
    let commit = (keeps || !changes.is_empty()).then(|| Commit {
        revision: stamp.revision,
        at: stamp.at,
        agent: write.terms.author.clone(),
        nonce: moment.nonce,
        kept: None,
        changes,
    });
    if let Some(commit) = &commit {
        close(&mut after, commit);
    }
    Ok(Decision { commit, board: after, answer, existed })
}

/// Decides a write that ends a session whose history cannot be read, and of which only the name and the last
/// revision are known. Under an identity of its own, `id`, the commit makes the session once more and ends it:
/// it can be read without that history, and the name's revisions go on.
///
/// # Errors
///
/// As for [`decide`]. A condition on a tag is refused, since the tags of an unreadable session are unknown.
pub fn decide_unread(
    id: SessionId,
    head: Revision,
    write: &Write,
    moment: Moment<'_>,
) -> Result<Decision, Rejected> {
    let created = Change::Session(SessionChange::Created {
        name: write.terms.session.clone(),
        settings: Arc::default(),
        labels: Arc::default(),
    });
    let mut exists = Board::absent(id, head);
    let stamp = Stamp { revision: head, at: Timestamp::default(), agent: None };
    apply_change(&mut exists, &created, stamp);
    let mut decision = decide(&exists, write, moment)?;
    if let Some(commit) = &mut decision.commit {
        commit.changes.insert(0, created);
    }
    Ok(decision)
}

/// A board with what a write has changed so far.
struct Draft<'a> {
    before: &'a Board,
    board: Board,
    changes: Vec<Change>,
    session: &'a SessionName,
    prepared: &'a Prepared,
    stamp: Stamp<'a>,
    /// The moment of the decision. The commit's time is later where the session's last commit is.
    now: Timestamp,
    /// The number of changes that create the session, if this write does.
    opening: usize,
}

impl<'a> Draft<'a> {
    /// Starts from the session, or creates it.
    fn open(
        board: &'a Board,
        write: &'a Write,
        prepared: &'a Prepared,
        moment: Moment<'a>,
    ) -> Result<Self, Rejected> {
        let ground = ground(board, write)?;
        let stamp = Stamp {
            revision: ground.revision.max(board.revision).next(),
            at: moment.now.max(board.updated_at).max(ground.updated_at),
            agent: write.terms.author.as_ref(),
        };
        let (after, changes) = (ground.clone(), Vec::new());
        let session = &write.terms.session;
        let now = moment.now;
        let mut draft = Self {
            before: board,
            board: after,
            changes,
            session,
            prepared,
            stamp,
            now,
            opening: 0,
        };
        if ground.life.is_none() {
            if !may_make_session(&write.command, moment.policy) {
                return Err(Rejected::NoSession { session: session.clone() });
            }
            opening(write, moment).into_iter().for_each(|change| draft.change(change));
            draft.opening = draft.changes.len();
        }
        Ok(draft)
    }

    fn change(&mut self, change: Change) {
        apply_change(&mut self.board, &change, self.stamp);
        self.changes.push(change);
    }

    /// Does what a command asks for; each one sees what those before it changed.
    fn carry_out(&mut self, command: &Command) -> Result<Answer, Rejected> {
        match command {
            Command::PutSession { settings, labels, qa_pairs } => {
                self.put_session(settings, labels, qa_pairs)
            }
            Command::DeleteSession => {
                self.change(Change::Session(SessionChange::Deleted));
                Ok(Answer::Done)
            }
            Command::Append { log, items } => self.append(log, items),
            Command::ReplaceLog { log, items } => self.replace_log(log, items),
            Command::RemoveEntries { log, which } => Ok(self.remove_entries(log, which)),
            Command::PutEntry { log, seq, item, basis } => self.put_entry(log, *seq, item, *basis),
            Command::DeleteEntry { log, seq } => self.delete_entry(log, *seq),
            Command::ReplaceBoard { logs, state } => self.replace_board(logs, state.as_ref()),
            Command::ClearBoard { state } => Ok(self.clear_board(*state)),
            Command::EditState { path, edit } => self.edit_state(path, edit),
            Command::PutAgent { agent, profile } => self.put_agent(agent, profile),
            Command::PatchAgent { agent, patch } => self.patch_agent(agent, patch),
            Command::RemoveAgent { agent } => self.remove_agent(agent),
            Command::RemoveAgents => Ok(self.remove_agents()),
            Command::Claim { request, ttl } => self.claim(*request, *ttl),
            Command::Release { request } => self.release(*request),
            Command::Finish { request, fence, result } => {
                self.finish(*request, *fence, result.as_ref())
            }
            Command::AnswerQuestion { question, answer } => self.answer_question(*question, answer),
            Command::Ask { items, ttl, default } => self.ask(items, *ttl, default.as_deref()),
            Command::SkipQuestion { question } => self.skip_question(*question),
            Command::PutCheckpoint { name } => self.put_checkpoint(name),
            Command::RemoveCheckpoint { name } => self.remove_checkpoint(name),
            Command::Restore { then } => self.restore(then),
            Command::Adopt { fork_of, .. } => Ok(self.adopt(fork_of.as_ref())),
            Command::ForgetImages { seen, images } => self.forget_images(*seen, images),
            Command::Transact(transaction) => self.transact(transaction),
        }
    }

    /// A write that would change nothing creates no session. A PUT of one of its parts does, even if empty.
    fn drop_idle_opening(&mut self, command: &Command) {
        let puts = matches!(command, Command::EditState { edit: Edit::Put { .. }, .. });
        let adds = matches!(
            command,
            Command::Append { .. }
                | Command::Ask { .. }
                | Command::EditState { .. }
                | Command::Transact(_)
        );
        if adds && !puts && self.opening > 0 && self.changes.len() == self.opening {
            self.changes.clear();
            self.board = self.before.clone();
        }
    }
}

/// Whether this command, on a session that does not exist, makes it.
fn may_make_session(command: &Command, policy: &Policy) -> bool {
    match command {
        Command::PutSession { .. } => true,
        Command::Append { .. }
        | Command::Ask { .. }
        | Command::ReplaceLog { .. }
        | Command::ReplaceBoard { .. }
        | Command::PutAgent { .. }
        | Command::Transact(_) => policy.auto_create,
        Command::EditState { edit, .. } => policy.auto_create && !matches!(edit, Edit::Remove),
        Command::DeleteSession
        | Command::RemoveEntries { .. }
        | Command::PutEntry { .. }
        | Command::DeleteEntry { .. }
        | Command::ClearBoard { .. }
        | Command::PatchAgent { .. }
        | Command::RemoveAgent { .. }
        | Command::RemoveAgents
        | Command::Claim { .. }
        | Command::Release { .. }
        | Command::Finish { .. }
        | Command::AnswerQuestion { .. }
        | Command::SkipQuestion { .. }
        | Command::PutCheckpoint { .. }
        | Command::RemoveCheckpoint { .. }
        | Command::Restore { .. }
        | Command::Adopt { .. }
        | Command::ForgetImages { .. } => false,
    }
}
