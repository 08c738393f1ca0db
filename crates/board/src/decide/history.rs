//! Rules for checkpoints, restores, adopted histories and forgotten images.

use std::collections::BTreeSet;

use super::Draft;
use crate::command::rejected::Rejected;
use crate::command::{Answer, Command, SessionCommand, Write};
use crate::commit::{Change, CheckpointChange, SessionChange};
use crate::model::checkpoint::CHECKPOINTS_MAX;
use crate::{Board, Checkpoint, CheckpointName, Digest, SessionName, Version};

impl Draft<'_> {
    pub(super) fn put_checkpoint(&mut self, name: &CheckpointName) -> Result<Answer, Rejected> {
        let checkpoints = &self.board.checkpoints;
        if !checkpoints.contains_key(name) && checkpoints.len() >= CHECKPOINTS_MAX {
            return Err(Rejected::TooManyCheckpoints);
        }
        self.change(Change::Checkpoint(name.clone(), CheckpointChange::Put));
        Ok(Answer::Done)
    }

    pub(super) fn remove_checkpoint(&mut self, name: &CheckpointName) -> Result<Answer, Rejected> {
        find_checkpoint(&self.board, name)?;
        self.change(Change::Checkpoint(name.clone(), CheckpointChange::Removed));
        Ok(Answer::Removed { count: 1 })
    }

    pub(super) fn restore(&mut self, then: &Board) -> Result<Answer, Rejected> {
        let is_past = then.id == self.board.id && then.revision <= self.before.revision;
        if !is_past || then.life.is_none() {
            return Err(Rejected::NoRevision { revision: then.revision });
        }
        if let Some(restored) = self.board.difference(then, self.stamp) {
            let change = Change::Session(SessionChange::Restored(Box::new(restored)));
            // History was compacted since, so the bytes of an image may be deleted.
            let image_lost = change.images().any(|image| !self.board.has_image(&image.sha256));
            let blob_lost = self.board.lost_blobs_of(then, &change);
            if image_lost || blob_lost {
                return Err(Rejected::NoRevision { revision: then.revision });
            }
            self.change(change);
        }
        Ok(Answer::Done)
    }

    /// Forgets the images, unless a commit after the scan may name one.
    pub(super) fn forget_images(
        &mut self,
        seen: Version,
        images: &BTreeSet<Digest>,
    ) -> Result<Answer, Rejected> {
        if seen != self.before.version() {
            return Err(Rejected::Stale);
        }
        let mut images = images.clone();
        images.retain(|sha256| self.board.has_image(sha256));
        for image in self.board.named_images() {
            images.remove(&image.sha256);
        }
        let count = images.len();
        if count > 0 {
            self.change(Change::Session(SessionChange::ImagesForgotten {
                images: images.into_iter().collect(),
            }));
        }
        Ok(Answer::Removed { count })
    }

    /// Adopts the history on which the draft is based. The name has no session.
    pub(super) fn adopt(&mut self, fork_of: Option<&SessionName>) -> Answer {
        let (name, after) = (self.session.clone(), self.before.revision);
        self.change(Change::Session(SessionChange::Adopted {
            name,
            after,
            fork_of: fork_of.cloned(),
        }));
        Answer::Done
    }
}

pub(super) fn find_checkpoint<'a>(
    board: &'a Board,
    name: &CheckpointName,
) -> Result<&'a Checkpoint, Rejected> {
    let found = board.checkpoints.get(name);
    found.ok_or_else(|| Rejected::NoCheckpoint { checkpoint: name.clone() })
}

/// Returns the board that a write changes: its session's, or the adopted one.
pub(super) fn ground<'a>(board: &'a Board, write: &'a Write) -> Result<&'a Board, Rejected> {
    let Command::Session(SessionCommand::Adopt { board: coming, .. }) = &write.command else {
        return Ok(board);
    };
    let session = write.session.clone();
    if board.life.is_some() {
        return Err(Rejected::SessionExists { session });
    }
    if coming.life.is_none() {
        return Err(Rejected::NoSession { session });
    }
    Ok(coming)
}
