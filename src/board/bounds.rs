//! How large a session may grow, and how much one write may bring.

use super::command::{Policy, Rejected};
use super::commit::{COMMIT_ITEMS_MAX, Change};
use super::log::Log;
use super::settings::LABELS_MAX;
use super::{Board, Item};

/// Checks that a board may grow by these changes.
pub(super) fn check(board: &Board, changes: &[Change], policy: &Policy) -> Result<(), Rejected> {
    for change in changes {
        if let Change::Created { labels, .. } | Change::Configured { labels, .. } = change
            && labels.len() > LABELS_MAX
        {
            return Err(Rejected::TooManyLabels { labels: labels.len(), max: LABELS_MAX });
        }
    }
    let items = || changes.iter().flat_map(Change::items);
    let count = items().count();
    if count > COMMIT_ITEMS_MAX {
        return Err(Rejected::TooManyItems { items: count, max: COMMIT_ITEMS_MAX });
    }
    let bytes = board.bytes + items().map(Item::bytes).sum::<u64>() - freed(board, changes);
    if bytes > policy.session_bytes_max && bytes > board.bytes {
        return Err(Rejected::SessionFull { bytes, max: policy.session_bytes_max });
    }
    let mut new: Vec<_> = items().filter_map(Item::image).map(|i| (i.sha256, i.bytes)).collect();
    new.retain(|(digest, _)| !board.images.contains_key(digest));
    new.sort_unstable();
    new.dedup();
    let added: u64 = new.iter().map(|(_, bytes)| bytes).sum();
    let bytes = board.image_bytes + added;
    if added > 0 && bytes > policy.session_blob_bytes_max {
        return Err(Rejected::ImagesFull { bytes, max: policy.session_blob_bytes_max });
    }
    Ok(())
}

/// The bytes of the items that go away, as far as a write that also brings some can make them go.
fn freed(board: &Board, changes: &[Change]) -> u64 {
    let freed_by = |change: &Change| match change {
        Change::Cleared { log } => board.log(log).map_or(0, Log::bytes),
        Change::Updated { log, seq, .. } => {
            board.log(log).and_then(|log| log.get(*seq)).map_or(0, |entry| entry.item.bytes())
        }
        Change::Created { .. }
        | Change::Configured { .. }
        | Change::Deleted
        | Change::Appended { .. }
        | Change::Removed { .. } => 0,
    };
    changes.iter().map(freed_by).sum()
}
