//! The past's rules: names for revisions, going back to one, and a history that comes to a name.

use super::Draft;
use crate::board::checkpoint::CHECKPOINTS_MAX;
use crate::board::command::{Answer, Command, Write};
use crate::board::commit::Change;
use crate::board::rejected::Rejected;
use crate::board::{Board, CheckpointName, SessionName};

impl Draft<'_> {
    pub(super) fn put_checkpoint(&mut self, name: &CheckpointName) -> Result<Answer, Rejected> {
        let checkpoints = &self.board.checkpoints;
        if !checkpoints.contains_key(name) && checkpoints.len() >= CHECKPOINTS_MAX {
            return Err(Rejected::TooManyCheckpoints);
        }
        self.change(Change::CheckpointPut { name: name.clone() });
        Ok(Answer::Done)
    }

    pub(super) fn remove_checkpoint(&mut self, name: &CheckpointName) -> Result<Answer, Rejected> {
        find_checkpoint(&self.board, name)?;
        self.change(Change::CheckpointRemoved { name: name.clone() });
        Ok(Answer::Removed { count: 1 })
    }

    pub(super) fn restore(&mut self, then: &Board) -> Result<Answer, Rejected> {
        let is_past = then.id == self.board.id && then.revision <= self.before.revision;
        if !is_past || then.life.is_none() {
            return Err(Rejected::NoRevision { revision: then.revision });
        }
        if let Some(restored) = self.board.difference(then, self.stamp.revision) {
            self.change(Change::Restored(Box::new(restored)));
        }
        Ok(Answer::Done)
    }

    /// The draft is of the history that comes; the name has none of its own.
    pub(super) fn adopt(&mut self, fork_of: Option<&SessionName>) -> Answer {
        let (name, after) = (self.session.clone(), self.before.revision);
        self.change(Change::Adopted { name, after, fork_of: fork_of.cloned() });
        Answer::Done
    }
}

pub(super) fn find_checkpoint(board: &Board, name: &CheckpointName) -> Result<(), Rejected> {
    if board.checkpoints.contains_key(name) {
        return Ok(());
    }
    Err(Rejected::NoCheckpoint { checkpoint: name.clone() })
}

/// The board that a write changes: that of its session, or the one that comes to its name.
pub(super) fn ground<'a>(board: &'a Board, write: &'a Write) -> Result<&'a Board, Rejected> {
    let Command::Adopt { board: coming, .. } = &write.command else { return Ok(board) };
    let session = write.terms.session.clone();
    if board.life.is_some() {
        return Err(Rejected::SessionExists { session });
    }
    if coming.life.is_none() {
        return Err(Rejected::NoSession { session });
    }
    Ok(coming)
}
