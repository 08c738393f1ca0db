//! Deciding: every rule of a write, as a pure function of the board, the command and the moment.

mod condition;
mod logs;
mod session;

use std::borrow::Cow;

use super::Board;
use super::apply::apply_change;
use super::bounds;
use super::command::{Answer, Command, Moment, Policy, Rejected, Write};
use super::commit::{Change, Commit};
use super::log::{SeqRange, Stamp};
use condition::check_condition;
use logs::{append, clear_board, find_entry, put_entry, remove, replace, replace_board};
use session::{configure, opening};

pub use condition::patchable;

/// What is to be done: a commit, unless nothing changes, and what to answer once it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What happened.
    pub commit: Option<Commit>,
    /// What to answer.
    pub answer: Answer,
    /// Whether the thing written existed before.
    pub existed: bool,
}

/// Decides a write against the board of its session.
///
/// # Errors
///
/// [`Rejected`] where a rule or the write's condition refuses it.
pub fn decide(board: &Board, write: &Write, moment: Moment<'_>) -> Result<Decision, Rejected> {
    let draft = Draft::open(board, write, moment)?;
    let existed = check_condition(board, write)?;
    let (answer, changes) = draft.carry_out(&write.command)?;
    bounds::check(board, &changes, moment.policy)?;
    let commit = (!changes.is_empty()).then(|| Commit {
        revision: board.revision.next(),
        at: moment.now.max(board.updated_at),
        agent: write.author.clone(),
        nonce: moment.nonce,
        changes,
    });
    Ok(Decision { commit, answer, existed })
}

/// The board that a command meets: with the session made first where this write makes it.
struct Draft<'a> {
    board: Cow<'a, Board>,
    made: bool,
    opening: Vec<Change>,
}

impl<'a> Draft<'a> {
    fn open(board: &'a Board, write: &Write, moment: Moment<'_>) -> Result<Self, Rejected> {
        let mut draft = Self { board: Cow::Borrowed(board), made: false, opening: Vec::new() };
        if board.life.is_some() {
            return Ok(draft);
        }
        if !may_make_session(&write.command, moment.policy) {
            return Err(Rejected::NoSession { session: write.session.clone() });
        }
        let stamp = Stamp {
            revision: board.revision.next(),
            at: moment.now.max(board.updated_at),
            agent: write.author.as_ref(),
        };
        draft.opening = opening(write, moment.policy);
        for change in &draft.opening {
            apply_change(draft.board.to_mut(), change, stamp);
        }
        draft.made = true;
        Ok(draft)
    }

    fn carry_out(self, command: &Command) -> Result<(Answer, Vec<Change>), Rejected> {
        let board = &*self.board;
        let (answer, changes) = match command {
            Command::PutSession { qa_pairs, .. } if !self.made && !qa_pairs.is_empty() => {
                return Err(Rejected::NotAtCreation);
            }
            Command::PutSession { settings, labels, .. } if !self.made => {
                (Answer::Done, configure(board, settings, labels))
            }
            Command::PutSession { .. } => (Answer::Done, Vec::new()),
            Command::DeleteSession => (Answer::Done, vec![Change::Deleted]),
            Command::Append { log, items } => append(board, log, items),
            Command::ReplaceLog { log, items } => replace(board, log, items),
            Command::RemoveEntries { log, which } => remove(board, log, which),
            Command::PutEntry { log, seq, item, basis } => {
                (Answer::Done, put_entry(board, log, *seq, item, *basis)?)
            }
            Command::DeleteEntry { log, seq } => {
                find_entry(board, log, *seq)?;
                let ranges = vec![SeqRange { first: *seq, last: *seq }];
                (Answer::Removed { count: 1 }, vec![Change::Removed { log: log.clone(), ranges }])
            }
            Command::ReplaceBoard { logs } => (Answer::Done, replace_board(board, logs)),
            Command::ClearBoard => clear_board(board),
        };
        // An append of nothing makes no session; a PUT does, whatever it holds.
        if changes.is_empty() && matches!(command, Command::Append { .. }) {
            return Ok((answer, changes));
        }
        let mut all = self.opening;
        all.extend(changes);
        Ok((answer, all))
    }
}

/// Whether this command, on a session that does not exist, makes it.
fn may_make_session(command: &Command, policy: &Policy) -> bool {
    match command {
        Command::PutSession { .. } => true,
        Command::Append { .. } | Command::ReplaceLog { .. } | Command::ReplaceBoard { .. } => {
            policy.auto_create
        }
        Command::DeleteSession
        | Command::RemoveEntries { .. }
        | Command::PutEntry { .. }
        | Command::DeleteEntry { .. }
        | Command::ClearBoard => false,
    }
}
