//! Conditions of a write: `If-Match` and `If-None-Match`.

use std::sync::Arc;

use super::history::find_checkpoint;
use super::logs::{find_entry, inbox};
use super::requests::check_fence;
use crate::command::rejected::{Current, Rejected};
use crate::command::{
    AgentCommand, BoardCommand, CheckpointCommand, Command, Condition, Edit, LogCommand, Matches,
    SessionCommand, Terms, Write,
};
use crate::log::{Entry, LogName};
use crate::state::StatePath;
use crate::{AgentName, Board, Seq, SessionName, Version};

/// The target of a command: its existence and its version.
struct Target {
    exists: bool,
    /// `None` if the target does not exist. A missing memory has a version, since it reads as an empty log.
    version: Option<Version>,
    current: Option<Current>,
}

impl Target {
    const ABSENT: Self = Self { exists: false, version: None, current: None };

    fn of(board: &Board, write: &Write) -> Result<Self, Rejected> {
        let exists = board.life.is_some();
        let whole = |version| Self { exists, version: Some(version), current: None };
        Ok(match &write.command {
            Command::Session(SessionCommand::PutBlob { sha256, .. }) => {
                Self { exists: board.blob(sha256).is_some(), ..whole(board.blobs_version()) }
            }
            Command::Session(_) | Command::Transact(_) => whole(board.version()),
            // The tag covers all checkpoints; existence concerns this one.
            Command::Checkpoint(name, CheckpointCommand::Put) => Self {
                exists: board.checkpoints.contains_key(name),
                ..whole(board.checkpoints_version())
            },
            Command::Checkpoint(name, CheckpointCommand::Remove) => {
                let version = board.at_version(find_checkpoint(board, name)?.revision);
                Self { exists: true, version: Some(version), current: None }
            }
            Command::Ask { .. } => Self {
                exists: exists && board.log(&LogName::Questions).is_some(),
                ..whole(board.log_version(&LogName::Questions))
            },
            Command::Plan { .. } | Command::ClaimNext { .. } => {
                Self { exists, ..whole(board.log_version(&LogName::Requests)) }
            }
            Command::Log(
                log,
                LogCommand::Append { .. } | LogCommand::Replace { .. } | LogCommand::Remove { .. },
            ) => {
                Self { exists: exists && board.log(log).is_some(), ..whole(board.log_version(log)) }
            }
            Command::Board(
                BoardCommand::Replace { state: Some(_), .. } | BoardCommand::Clear { state: true },
            ) => whole(board.dictionary_version()),
            Command::Board(
                BoardCommand::Replace { state: None, .. } | BoardCommand::Clear { state: false },
            ) => whole(board.logs_version()),
            Command::Log(
                log,
                LogCommand::PutEntry { seq, .. } | LogCommand::DeleteEntry { seq },
            ) => Self::entry(board, find_entry(board, log, *seq)?),
            Command::State(path, edit) => Self::state(board, path, edit)?,
            Command::Agent(agent, AgentCommand::Put { .. }) => Self::agent(board, agent),
            Command::Agent(agent, AgentCommand::Patch { .. } | AgentCommand::Remove) => {
                let target = Self::agent(board, agent);
                if !target.exists {
                    return Err(Rejected::NoAgent { agent: agent.clone() });
                }
                target
            }
            Command::RemoveAgents => whole(board.agents_version()),
            Command::Request(request, _) => {
                Self::entry(board, find_entry(board, &LogName::Requests, *request)?)
            }
            Command::Question(question, _) => {
                Self::entry(board, find_entry(board, &LogName::Questions, *question)?)
            }
            Command::Ack { agent, message } => {
                let log = inbox(agent.as_ref(), write.terms.author.as_ref())?;
                Self::entry(board, find_entry(board, &log, *message)?)
            }
        })
    }

    fn entry(board: &Board, entry: &Arc<Entry>) -> Self {
        let version = Some(board.at_version(entry.revision));
        Self { exists: true, version, current: Some(Current::Entry(Arc::clone(entry))) }
    }

    fn state(board: &Board, path: &StatePath, edit: &Edit) -> Result<Self, Rejected> {
        match board.state.value(path).filter(|_| board.life.is_some()) {
            Some(value) => {
                let version = Some(board.at_version(value.changed()));
                Ok(Self { exists: true, version, current: Some(Current::State(value)) })
            }
            None if matches!(edit, Edit::Remove) => Err(Rejected::NoPath { path: path.clone() }),
            None => Ok(Self::ABSENT),
        }
    }

    fn agent(board: &Board, name: &AgentName) -> Self {
        let Some(agent) = board.agents.get(name) else { return Self::ABSENT };
        let version = Some(board.at_version(agent.changed));
        let current = Some(Current::Agent(name.clone(), Box::new(agent.clone())));
        Self { exists: true, version, current }
    }
}

/// Checks the write's condition and returns true if the target exists. A missing entry is refused before any
/// condition is evaluated (RFC 9110, section 13.2.1).
pub(super) fn check_condition(board: &Board, write: &Write) -> Result<bool, Rejected> {
    let target = Target::of(board, write)?;
    meets(board, &write.terms.condition, &target)?;
    Ok(target.exists)
}

fn meets(board: &Board, condition: &Condition, target: &Target) -> Result<(), Rejected> {
    let matches = match &condition.matches {
        None => true,
        Some(Matches::Any) => target.exists,
        Some(Matches::Versions(versions)) => {
            let version = target.version.filter(|_| board.life.is_some());
            version.is_some_and(|version| versions.contains(&version))
        }
    };
    if matches && !(condition.absent && target.exists) {
        return Ok(());
    }
    let present = target.version.filter(|_| board.life.is_some());
    Err(Rejected::Precondition { present, current: target.current.clone() })
}

/// Checks that these terms allow a write to the session as a whole. For writes that make no commit.
///
/// # Errors
///
/// [`Rejected::StaleFence`] or [`Rejected::Precondition`].
pub fn permits(board: &Board, session: &SessionName, terms: &Terms) -> Result<(), Rejected> {
    let command = Command::Session(SessionCommand::Delete);
    let write = Write { session: session.clone(), terms: terms.clone(), command };
    check_fence(board, &write)?;
    check_condition(board, &write).map(drop)
}

/// Returns the entry to patch, if it exists and meets the condition.
///
/// # Errors
///
/// [`Rejected::NoEntry`] or [`Rejected::Precondition`].
pub fn patchable<'a>(
    board: &'a Board,
    log: &LogName,
    seq: Seq,
    condition: &Condition,
) -> Result<&'a Arc<Entry>, Rejected> {
    let entry = find_entry(board, log, seq)?;
    meets(board, condition, &Target::entry(board, entry))?;
    Ok(entry)
}
