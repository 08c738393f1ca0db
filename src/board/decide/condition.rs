//! Conditions: how the thing written must stand before a write is done.

use std::sync::Arc;

use super::logs::find_entry;
use crate::board::command::{Command, Condition, Matches, Rejected, Write};
use crate::board::log::{Entry, LogName};
use crate::board::{Board, Seq, Version};

/// The thing that a command writes: how it stands, or `None` where it does not exist.
fn target(board: &Board, command: &Command) -> Result<Target, Rejected> {
    let exists = board.life.is_some();
    Ok(match command {
        Command::PutSession { .. } | Command::DeleteSession => {
            Target { exists, version: board.version(), entry: None }
        }
        Command::Append { log, .. }
        | Command::ReplaceLog { log, .. }
        | Command::RemoveEntries { log, .. } => Target {
            exists: exists && board.log(log).is_some(),
            version: board.log_version(log),
            entry: None,
        },
        Command::ReplaceBoard { .. } | Command::ClearBoard => {
            Target { exists, version: board.logs_version(), entry: None }
        }
        Command::PutEntry { log, seq, .. } | Command::DeleteEntry { log, seq } => {
            Target::entry(board, find_entry(board, log, *seq)?)
        }
    })
}

struct Target {
    exists: bool,
    version: Version,
    entry: Option<Arc<Entry>>,
}

impl Target {
    fn entry(board: &Board, entry: &Arc<Entry>) -> Self {
        let version = board.at_version(entry.revision);
        Self { exists: true, version, entry: Some(Arc::clone(entry)) }
    }
}

/// Checks the write's condition and tells whether the thing written exists. A missing entry is
/// refused as such before any condition is looked at (RFC 9110, section 13.2.1).
pub(super) fn check_condition(board: &Board, write: &Write) -> Result<bool, Rejected> {
    let target = target(board, &write.command)?;
    meets(board, &write.condition, &target)?;
    Ok(target.exists)
}

fn meets(board: &Board, condition: &Condition, target: &Target) -> Result<(), Rejected> {
    let matches = match &condition.matches {
        None => true,
        Some(Matches::Any) => target.exists,
        Some(Matches::Versions(versions)) => {
            board.life.is_some() && versions.contains(&target.version)
        }
    };
    if matches && !(condition.absent && target.exists) {
        return Ok(());
    }
    let present = board.life.is_some().then_some(target.version);
    Err(Rejected::Precondition { present, current: target.entry.clone() })
}

/// The entry that a patch is to be applied to, if it exists and is as the condition wants it.
///
/// # Errors
///
/// [`Rejected::NoSession`], [`Rejected::NoEntry`] or [`Rejected::Precondition`].
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
