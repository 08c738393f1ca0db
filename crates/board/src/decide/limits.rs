//! Limits of sessions, of their number, and of one write.

use crate::command::Moment;
use crate::command::rejected::Rejected;
use crate::commit::{COMMIT_ITEMS_MAX, Change, LogChange, RequestChange, SessionChange};
use crate::model::attention::unacked::UNACKED_MAX;
use crate::model::blob::BLOBS_MAX;
use crate::model::settings::LABELS_MAX;
use crate::{Board, LogName};

/// Checks that these changes keep the board within its limits.
pub(crate) fn check(
    before: &Board,
    after: &Board,
    changes: &[Change],
    moment: Moment<'_>,
) -> Result<(), Rejected> {
    let (policy, sessions) = (moment.policy, moment.sessions);
    let makes_session = before.life.is_none() && after.life.is_some();
    if makes_session && sessions >= policy.sessions_max {
        return Err(Rejected::TooManySessions { sessions, max: policy.sessions_max });
    }
    for change in changes {
        if let Change::Session(SessionChange::Created { labels, .. })
        | Change::Session(SessionChange::Configured { labels, .. }) = change
            && labels.len() > LABELS_MAX
        {
            return Err(Rejected::TooManyLabels { labels: labels.len(), max: LABELS_MAX });
        }
    }
    let items = changes.iter().map(|change| change.items().len()).sum();
    if items > COMMIT_ITEMS_MAX {
        return Err(Rejected::TooManyItems { items, max: COMMIT_ITEMS_MAX });
    }
    let held = |board: &Board| board.bytes + board.keys.bytes() + board.asked.bytes();
    let (bytes, max) = (held(after), policy.session_bytes_max);
    if bytes > max && bytes > held(before) {
        return Err(Rejected::SessionFull { bytes, max });
    }
    let (items, max) = (after.entries, policy.session_items_max);
    if items > max && items > before.entries {
        return Err(Rejected::TooManyEntries { items, max });
    }
    let (bytes, max) = (after.image_bytes, policy.session_blob_bytes_max);
    if bytes > max && bytes > before.image_bytes {
        return Err(Rejected::ImagesFull { bytes, max });
    }
    check_unacked(before, after, changes)?;
    if after.blobs.len() > BLOBS_MAX && after.blobs.len() > before.blobs.len() {
        return Err(Rejected::TooManyBlobs);
    }
    check_budget(before, after, changes)
}

/// Refuses messages to an agent that has too many unacknowledged ones.
fn check_unacked(before: &Board, after: &Board, changes: &[Change]) -> Result<(), Rejected> {
    for change in changes {
        let Change::Log(LogName::Messages(agent), LogChange::Appended { .. }) = change else {
            continue;
        };
        let unacked = after.unacked().count(agent);
        if unacked > UNACKED_MAX && unacked > before.unacked().count(agent) {
            return Err(Rejected::TooManyUnacked { agent: agent.clone() });
        }
    }
    Ok(())
}

/// Refuses new steps and claims once the costs of all agents have passed the session's budget. A claim may be renewed.
fn check_budget(before: &Board, after: &Board, changes: &[Change]) -> Result<(), Rejected> {
    let (Some(_), Some(max)) = (before.budget_passed(), after.budget_passed()) else {
        return Ok(());
    };
    let adds_step = |change: &Change| {
        matches!(
            change,
            Change::Log(LogName::Trajectories | LogName::Memory(_), LogChange::Appended { .. })
        )
    };
    let claims = |change: &Change| {
        matches!(
            change,
            Change::Request(_, RequestChange::Claimed { fence, .. }) if *fence > before.revision
        )
    };
    let spends = |change: &Change| adds_step(change) || claims(change);
    if changes.iter().any(spends) {
        return Err(Rejected::BudgetExhausted { max });
    }
    Ok(())
}
