//! Decisions: all rules of a write.
//!
//! A decision is a pure function of board, command and moment.

mod agents;
mod blobs;
mod condition;
mod expiry;
mod history;
mod limits;
mod logs;
mod prepared;
mod questions;
mod requests;
mod session;
mod state;
mod transaction;

use std::sync::Arc;

use super::commit::apply::{apply_change, close};

use super::command::rejected::Rejected;
use super::command::{
    AgentCommand, Answer, BoardCommand, CheckpointCommand, Command, Edit, LogCommand, Moment,
    Policy, QuestionCommand, RequestCommand, SessionCommand, Write,
};
use super::commit::{Change, Commit, Note, SessionChange};
use super::log::Stamp;
use super::{AgentName, Board, Revision, SessionId, SessionName, Timestamp};
pub(super) use agents::check_fields;
use condition::check_condition;
use history::ground;
use requests::check_fence;
use session::opening;

pub use condition::{patchable, permits};
pub use expiry::expire;
pub use prepared::Prepared;

/// The result of a decision: a commit, unless nothing changes, and the answer to send once it is durable.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The commit.
    pub commit: Option<Commit>,
    /// The board after the commit, as [`apply`](super::commit::apply::apply()) makes it.
    pub board: Board,
    /// The answer.
    pub answer: Answer,
    /// True if the target existed before.
    pub existed: bool,
}

/// Decides a write against the board of its session.
///
/// A write with a key always makes a commit, so that its answer can be kept.
///
/// # Errors
///
/// [`Rejected`] if a rule or the write's condition refuses it.
pub fn decide(board: &Board, write: &Write, moment: Moment<'_>) -> Result<Decision, Rejected> {
    decide_prepared(board, write, &Prepared::default(), moment)
}

/// Decides a write with prepared values: the same result as [`decide`], sooner.
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
    draft.tell_exhausted();
    let Draft { board: mut after, changes, stamp, .. } = draft;
    // Nothing to claim is no answer to keep: a repeat may find something.
    let claims_nothing = answer == Answer::Next(None);
    let lives = after.life.is_some() || board.life.is_some();
    let keeps = write.terms.key.is_some() && lives && !claims_nothing;
    let commit = (keeps || !changes.is_empty()).then(|| Commit {
        revision: stamp.revision,
        at: stamp.at,
        agent: write.terms.author.clone(),
        trace: write.terms.trace,
        nonce: moment.nonce,
        kept: None,
        changes,
    });
    if let Some(commit) = &commit {
        close(&mut after, commit);
    }
    Ok(Decision { commit, board: after, answer, existed })
}

/// Decides a write that deletes a session whose history cannot be read.
///
/// Only the name and the last revision of the session are known. The commit creates the session again under the new
/// identity `id` and deletes it. It is readable without the old history and continues the name's revisions.
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
        name: write.session.clone(),
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

/// A board with the changes that a write has made so far.
struct Draft<'a> {
    before: &'a Board,
    board: Board,
    changes: Vec<Change>,
    session: &'a SessionName,
    prepared: &'a Prepared,
    stamp: Stamp<'a>,
    /// The agent that the author's token is bound to.
    bound_to: Option<&'a AgentName>,
    /// The time of the decision. The commit's time is later if the session's last commit is.
    now: Timestamp,
    /// The number of changes that create the session, or 0 if it exists.
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
        let session = &write.session;
        let now = moment.now;
        let mut draft = Self {
            before: board,
            board: after,
            changes,
            session,
            prepared,
            stamp,
            bound_to: write.terms.bound_to.as_ref(),
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

    /// Carries out a command, which sees the changes of the commands before it.
    fn carry_out(&mut self, command: &Command) -> Result<Answer, Rejected> {
        let answer = self.change_by(command)?;
        self.check_blobs(command)?;
        Ok(answer)
    }

    fn change_by(&mut self, command: &Command) -> Result<Answer, Rejected> {
        match command {
            Command::Session(SessionCommand::Put { settings, labels, qa_pairs }) => {
                self.put_session(settings, labels, qa_pairs)
            }
            Command::Session(SessionCommand::Delete) => {
                self.change(Change::Session(SessionChange::Deleted));
                Ok(Answer::Done)
            }
            Command::Log(log, LogCommand::Append { items }) => self.append(log, items),
            Command::Log(log, LogCommand::Replace { items }) => self.replace_log(log, items),
            Command::Log(log, LogCommand::Remove { which }) => self.remove_entries(log, which),
            Command::Log(log, LogCommand::PutEntry { seq, item, basis }) => {
                self.put_entry(log, *seq, item, *basis)
            }
            Command::Log(log, LogCommand::DeleteEntry { seq }) => self.delete_entry(log, *seq),
            Command::Ack { agent, message } => self.acknowledge(agent.as_ref(), *message),
            Command::Board(BoardCommand::Replace { logs, state }) => {
                self.replace_board(logs, state.as_ref())
            }
            Command::Board(BoardCommand::Clear { state }) => Ok(self.clear_board(*state)),
            Command::State(path, edit) => self.edit_state(path, edit),
            Command::Agent(agent, AgentCommand::Put { profile }) => self.put_agent(agent, profile),
            Command::Agent(agent, AgentCommand::Patch { patch }) => self.patch_agent(agent, patch),
            Command::Agent(agent, AgentCommand::Remove) => self.remove_agent(agent),
            Command::RemoveAgents => Ok(self.remove_agents()),
            Command::Request(request, RequestCommand::Claim { ttl }) => self.claim(*request, *ttl),
            Command::Request(request, RequestCommand::Release) => self.release(*request),
            Command::Request(request, RequestCommand::Finish { fence, result }) => {
                self.finish(*request, *fence, result.as_ref())
            }
            Command::Request(request, RequestCommand::Fail { fence, reason, retry_in }) => {
                self.fail(*request, *fence, reason.as_ref(), *retry_in)
            }
            Command::Request(request, RequestCommand::Retry { deadline }) => {
                self.retry(*request, *deadline)
            }
            Command::Request(request, RequestCommand::Cancel { reason }) => {
                self.cancel(*request, reason.as_ref())
            }
            Command::Request(request, RequestCommand::Judge { fence, accepted, reason }) => {
                self.judge(*request, *fence, *accepted, reason.as_ref())
            }
            Command::Plan { items, plan } => self.append_planned(items, plan),
            Command::ClaimNext { wanted, from, ttl } => self.claim_next(wanted, *from, *ttl),
            Command::Question(question, QuestionCommand::Answer { answer }) => {
                self.answer_question(*question, answer)
            }
            Command::Ask { items, ttl, default } => self.ask(items, *ttl, default.as_deref()),
            Command::Question(question, QuestionCommand::Skip) => self.skip_question(*question),
            Command::Checkpoint(name, CheckpointCommand::Put) => self.put_checkpoint(name),
            Command::Checkpoint(name, CheckpointCommand::Remove) => self.remove_checkpoint(name),
            Command::Session(SessionCommand::Restore { then }) => self.restore(then),
            Command::Session(SessionCommand::Adopt { fork_of, .. }) => {
                Ok(self.adopt(fork_of.as_ref()))
            }
            Command::Session(SessionCommand::ForgetImages { seen, images }) => {
                self.forget_images(*seen, images)
            }
            Command::Session(SessionCommand::PutBlob {
                sha256,
                bytes,
                media_type,
                renewed_after_ms,
            }) => self.put_blob(*sha256, *bytes, media_type, *renewed_after_ms),
            Command::Transact(transaction) => self.transact(transaction),
        }
    }

    /// Adds the event that the costs of all agents have passed the session's budget, once each time.
    fn tell_exhausted(&mut self) {
        // A fork or an archive begins as it was.
        let exists = self.before.life.is_some();
        let passes = self.before.budget_passed().is_none() && self.board.budget_passed().is_some();
        if exists && passes {
            self.change(Change::Session(SessionChange::Noted(Note::BudgetExhausted)));
        }
    }

    /// Drops the creation of the session if an append, a state edit or a transaction changes nothing. A PUT creates
    /// the session even if its value is empty.
    fn drop_idle_opening(&mut self, command: &Command) {
        let puts = matches!(command, Command::State(_, Edit::Put { .. }));
        let adds = matches!(
            command,
            Command::Log(_, LogCommand::Append { .. })
                | Command::Ask { .. }
                | Command::Plan { .. }
                | Command::State(_, _)
                | Command::Transact(_)
        );
        if adds && !puts && self.opening > 0 && self.changes.len() == self.opening {
            self.changes.clear();
            self.board = self.before.clone();
        }
    }
}

/// Returns true if this command creates a missing session.
fn may_make_session(command: &Command, policy: &Policy) -> bool {
    match command {
        Command::Session(SessionCommand::Put { .. }) => true,
        Command::Log(_, LogCommand::Append { .. } | LogCommand::Replace { .. })
        | Command::Ask { .. }
        | Command::Plan { .. }
        | Command::Board(BoardCommand::Replace { .. })
        | Command::Agent(_, AgentCommand::Put { .. })
        | Command::Session(SessionCommand::PutBlob { .. })
        | Command::Transact(_) => policy.auto_create,
        Command::State(_, edit) => policy.auto_create && !matches!(edit, Edit::Remove),
        Command::Session(
            SessionCommand::Delete
            | SessionCommand::Restore { .. }
            | SessionCommand::Adopt { .. }
            | SessionCommand::ForgetImages { .. },
        )
        | Command::Log(
            _,
            LogCommand::Remove { .. }
            | LogCommand::PutEntry { .. }
            | LogCommand::DeleteEntry { .. },
        )
        | Command::Board(BoardCommand::Clear { .. })
        | Command::Agent(_, AgentCommand::Patch { .. } | AgentCommand::Remove)
        | Command::RemoveAgents
        | Command::Request(_, _)
        | Command::ClaimNext { .. }
        | Command::Question(_, _)
        | Command::Ack { .. }
        | Command::Checkpoint(_, _) => false,
    }
}
