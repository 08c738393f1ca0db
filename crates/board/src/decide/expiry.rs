//! Expiry: the system commit that removes expired values, claims, questions and sessions.

use super::questions::expired;
use crate::commit::{Change, Commit, LogChange};
use crate::model::due::Due;
use crate::{Board, Item, LogName, Nonce, Seq, Timestamp};

/// The maximum number of changes in one commit. The next commit takes the rest.
const CHANGES_MAX: usize = 1_000;

/// The maximum size of questions in one commit in bytes, not counting the last question.
const QUESTION_BYTES_MAX: u64 = 4 << 20;

/// Returns the system commit for all that expired, if anything did.
#[must_use]
pub fn expire(board: &Board, now: Timestamp, nonce: Nonce) -> Option<Commit> {
    if board.next_due().is_none_or(|next| next > now) {
        return None;
    }
    let (mut changes, mut bytes) = (Vec::new(), 0);
    for due in board.due(now, CHANGES_MAX) {
        let answered = if let Due::Question(seq) = due { answered(board, seq) } else { None };
        let more = 1 + usize::from(answered.is_some());
        if changes.len() + more > CHANGES_MAX || bytes > QUESTION_BYTES_MAX {
            break;
        }
        bytes += answered.iter().flat_map(Change::items).map(Item::bytes).sum::<u64>();
        changes.push(Change::Expired(due));
        changes.extend(answered);
    }
    (!changes.is_empty()).then(|| Commit {
        revision: board.revision.next(),
        at: now.max(board.updated_at),
        agent: None,
        trace: None,
        nonce,
        kept: None,
        changes,
    })
}

/// Returns the change that answers an expired question with its default.
fn answered(board: &Board, question: Seq) -> Option<Change> {
    let [questions, ..] = board.logs();
    let until = board.asked.awaited(question)?;
    let item = expired(&questions.get(question)?.item, until.default.as_deref());
    Some(Change::Log(LogName::Questions, LogChange::Updated { seq: question, item }))
}
