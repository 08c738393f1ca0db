//! Applying a commit: it cannot fail and reads no clock, setting or policy, so replay equals live.
//!
//! What it assumes of a commit is what `admit` checks.

use std::sync::Arc;

use super::board::Life;
use super::commit::{Change, Commit};
use super::log::Stamp;
use super::{Board, Item, Log, LogName};

/// Makes the board what it is after this commit.
pub fn apply(board: &mut Board, commit: &Commit) {
    for change in &commit.changes {
        apply_change(board, change, commit.stamp());
    }
    board.revision = commit.revision;
    board.updated_at = commit.at;
}

pub(super) fn apply_change(board: &mut Board, change: &Change, stamp: Stamp<'_>) {
    for image in change.items().iter().filter_map(Item::image) {
        if board.images.insert(image.sha256, image.bytes).is_none() {
            board.image_bytes += image.bytes;
        }
    }
    match change {
        Change::Created { name, settings, labels } => {
            board.life = Some(Life {
                name: name.clone(),
                created_at: stamp.at,
                settings: Arc::clone(settings),
                labels: Arc::clone(labels),
                configured: stamp.revision,
            });
        }
        Change::Configured { settings, labels } => {
            if let Some(life) = &mut board.life {
                life.settings = Arc::clone(settings);
                life.labels = Arc::clone(labels);
                life.configured = stamp.revision;
            }
        }
        Change::Deleted => *board = Board::absent(board.id, board.revision),
        Change::Appended { log, first, items } => {
            edit(board, log, |log| log.append(*first, items, stamp));
        }
        Change::Cleared { log } => edit(board, log, |log| log.clear(stamp.revision)),
        Change::Removed { log, ranges } => {
            edit(board, log, |log| log.remove(ranges, stamp.revision));
        }
        Change::Updated { log, seq, item } => edit(board, log, |log| log.update(*seq, item, stamp)),
    }
}

/// Edits a log, making an agent's memory with its first entry, and keeps the board's byte count.
fn edit(board: &mut Board, name: &LogName, change: impl FnOnce(&mut Log)) {
    let [questions, requests, trajectories, screenshots] = &mut board.logs;
    let log = match name {
        LogName::Questions => questions,
        LogName::Requests => requests,
        LogName::Trajectories => trajectories,
        LogName::Screenshots => screenshots,
        LogName::Memory(agent) => board.memories.entry(agent.clone()).or_default(),
    };
    let before = log.bytes();
    change(log);
    board.bytes = board.bytes - before + log.bytes();
}
