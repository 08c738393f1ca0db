//! Admission: checks of everything that `apply` assumes of commits.
//!
//! A stored or imported commit that does not fit its board is rejected.

pub(crate) mod imported;
mod restored;

use super::commit::apply;
use super::commit::{
    AgentChange, Change, CheckpointChange, Commit, IMAGES_FORGOTTEN_MAX, LogChange, RequestChange,
    SessionChange, StateChange,
};
use super::json;
use super::json::{DEPTH_MAX, Kind};
use super::log::Stamp;
use super::model::checkpoint::CHECKPOINTS_MAX;
use super::model::due::Due;
use super::model::open_questions::{AWAITED_AT_ONCE_MAX, Awaited, DEFAULT_BYTES_MAX};
use super::state::{State, StatePath};
use super::values::claim::{Claim, Work};
use super::values::task::{DEPENDANTS_MAX, Plan};
use super::{
    AgentName, Board, CheckpointName, Digest, Image, Item, Json, Log, LogName, Revision, Seq,
    SeqRange,
};
use restored::admit_restored;

/// The highest revision: far above any that a session reaches, and far below where counting overflows.
pub const REVISION_MAX: u64 = 1 << 53;

/// The reason why a commit does not fit its board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// The commit's revision is not the next one.
    #[error("commit {found} does not follow revision {head}")]
    Revision {
        /// The board's revision.
        head: Revision,
        /// The commit's revision.
        found: Revision,
    },
    /// The commit's time is before the last commit's time.
    #[error("the commit is older than the commit before it")]
    Time,
    /// The commit has no changes.
    #[error("the commit changes nothing")]
    Nothing,
    /// The commit creates an existing session, or changes a missing one.
    #[error("change {change} is impossible in a session that {}", if *exists { "exists" } else { "does not exist" })]
    Life {
        /// The index of the change in the commit.
        change: usize,
        /// True if the session exists before the change.
        exists: bool,
    },
    /// The first seq of appended entries is not the next free seq.
    #[error("{log}: an entry has seq {found} instead of {next}")]
    Seq {
        /// The log.
        log: LogName,
        /// The next free seq.
        next: Seq,
        /// The seq in the commit.
        found: Seq,
    },
    /// The commit names a missing entry, or ranges out of order.
    #[error("{log} has no entry {seq} to change or remove")]
    Entry {
        /// The log.
        log: LogName,
        /// The seq of the entry.
        seq: Seq,
    },
    /// The image's offset is not at an empty string in its item's text, or the data URL's head is invalid.
    #[error("an image cannot be at byte {at} of its item")]
    ImagePlace {
        /// The offset in the commit.
        at: usize,
    },
    /// The image's size differs from its known size, or overflows the total.
    #[error("image {sha256} cannot have {bytes} bytes")]
    ImageBytes {
        /// The image.
        sha256: Digest,
        /// The size in the commit.
        bytes: u64,
    },
    /// The path has no place for a value, or the value is not allowed there.
    #[error("the change of the state at '{path}' is inconsistent with the board")]
    State {
        /// The path.
        path: StatePath,
    },
    /// The commit removes an agent that does not exist.
    #[error("agent '{agent}' does not exist")]
    Agent {
        /// The agent.
        agent: AgentName,
    },
    /// The work on a request is not in the state that the commit assumes.
    #[error("the change of the claim on request {seq} is inconsistent with the board")]
    Work {
        /// The request.
        seq: Seq,
    },
    /// A question has no deadline, or a deadline is not valid for it.
    #[error("the change of question {seq}'s deadline is inconsistent with the board")]
    Question {
        /// The question.
        seq: Seq,
    },
    /// The commit removes a checkpoint that does not exist, or exceeds the limit.
    #[error("checkpoint '{checkpoint}' does not exist, or exceeds the limit")]
    Checkpoint {
        /// The checkpoint.
        checkpoint: CheckpointName,
    },
    /// The restore is not to an earlier revision, or its contents do not fit the board.
    #[error("the restore to revision {to} is inconsistent with the board")]
    Past {
        /// The revision of the restore.
        to: Revision,
    },
    /// An adoption is not the commit's only change.
    #[error("an adoption must be the only change of its commit")]
    NotAlone,
    /// A forgotten image is unknown, out of order, still named by an entry, or beyond the limit.
    #[error("image {sha256} cannot be forgotten")]
    ImageForgotten {
        /// The image.
        sha256: Digest,
    },
    /// The commit evicts more keys than the session has.
    #[error("the commit evicts {found} keys, but the session has {known}")]
    Keys {
        /// The number of keys in the session.
        known: usize,
        /// The number of keys in the commit.
        found: usize,
    },
}

/// Checks that this commit may be applied to this board.
///
/// # Errors
///
/// The first [`Misfit`] found.
pub fn admit(board: &Board, commit: &Commit) -> Result<(), Misfit> {
    if Some(commit.revision) != next_revision(board, commit) {
        return Err(Misfit::Revision { head: board.revision, found: commit.revision });
    }
    if commit.at < board.updated_at {
        return Err(Misfit::Time);
    }
    if let Some(kept) = &commit.kept {
        let (known, found) = (board.keys.len(), kept.forgotten.0);
        if found > known {
            return Err(Misfit::Keys { known, found });
        }
    }
    match commit.changes.as_slice() {
        [] if commit.kept.is_some() => Ok(()),
        [] => Err(Misfit::Nothing),
        [only] => admit_change(board, commit, 0, only),
        changes => admit_all(board, commit, changes),
    }
}

/// Returns the revision that the commit must have. Only an adoption may skip revisions.
fn next_revision(board: &Board, commit: &Commit) -> Option<Revision> {
    let last = match commit.changes.as_slice() {
        [Change::Session(SessionChange::Adopted { after, .. })] => board.revision.max(*after),
        _ => board.revision,
    };
    (last.0 < REVISION_MAX).then(|| last.next())
}

/// Checks each change against the board after the changes before it.
fn admit_all(board: &Board, commit: &Commit, changes: &[Change]) -> Result<(), Misfit> {
    let mut board = board.clone();
    for (index, change) in changes.iter().enumerate() {
        admit_change(&board, commit, index, change)?;
        apply::apply_change(&mut board, change, commit.stamp());
    }
    Ok(())
}

fn admit_change(
    board: &Board,
    commit: &Commit,
    index: usize,
    change: &Change,
) -> Result<(), Misfit> {
    let exists = board.life.is_some();
    let creates = matches!(change, Change::Session(SessionChange::Created { .. }));
    if creates == exists {
        return Err(Misfit::Life { change: index, exists });
    }
    admit_images(board, change.items().iter())?;
    match change {
        Change::Session(change) => admit_session(board, commit, change),
        Change::Log(log, change) => admit_log(board, log, change),
        Change::State(
            path,
            StateChange::Put { value, .. }
            | StateChange::Set { value }
            | StateChange::Merged { patch: value },
        ) => admit_value(&board.state, path, value),
        Change::State(path, StateChange::Appended { elements }) => {
            admit_elements(board, path, elements)
        }
        Change::State(path, StateChange::Removed) | Change::Expired(Due::State(path)) => {
            let there = board.state.value(path).is_some();
            if there { Ok(()) } else { Err(Misfit::State { path: path.clone() }) }
        }
        Change::Agent(_, AgentChange::Put { .. }) | Change::Expired(Due::Session) => Ok(()),
        Change::Agent(agent, AgentChange::Removed) => {
            let known = board.agents.contains_key(agent);
            if known { Ok(()) } else { Err(Misfit::Agent { agent: agent.clone() }) }
        }
        Change::Request(seq, _) | Change::Expired(Due::Claim(seq) | Due::Deadline(seq)) => {
            admit_work(board, commit.stamp(), *seq, change)
        }
        Change::Expired(Due::Requests(ranges)) => admit_due(board, ranges),
        Change::Expired(Due::Question(seq)) => {
            let waits = board.asked.awaited(*seq).is_some();
            if waits { Ok(()) } else { Err(Misfit::Question { seq: *seq }) }
        }
        Change::Awaited { first, last, until } => admit_awaited(board, *first, *last, until),
        Change::Planned { first, last, plan } => {
            let new = SeqRange { first: *first, last: *last };
            admit_plan(board, commit.revision, new, plan)
        }
        Change::Checkpoint(name, change) => {
            let known = board.checkpoints.contains_key(name);
            let fits = match change {
                CheckpointChange::Put => known || board.checkpoints.len() < CHECKPOINTS_MAX,
                CheckpointChange::Removed => known,
            };
            if fits { Ok(()) } else { Err(Misfit::Checkpoint { checkpoint: name.clone() }) }
        }
    }
}

fn admit_session(board: &Board, commit: &Commit, change: &SessionChange) -> Result<(), Misfit> {
    match change {
        SessionChange::Created { .. }
        | SessionChange::Configured { .. }
        | SessionChange::Deleted
        | SessionChange::Noted(_) => Ok(()),
        SessionChange::BlobPut { sha256, bytes, .. } => admit_file(board, *sha256, *bytes),
        SessionChange::Restored(restored) => admit_restored(board, commit.stamp(), restored),
        SessionChange::Adopted { .. } if commit.changes.len() == 1 => Ok(()),
        SessionChange::Adopted { .. } => Err(Misfit::NotAlone),
        SessionChange::ImagesForgotten { images } => admit_forgotten(board, images),
    }
}

fn admit_log(board: &Board, log: &LogName, change: &LogChange) -> Result<(), Misfit> {
    match change {
        LogChange::Appended { first, .. } => {
            let next = board.log(log).map_or(Seq(1), Log::next_seq);
            let misfit = Misfit::Seq { log: log.clone(), next, found: *first };
            if *first == next { Ok(()) } else { Err(misfit) }
        }
        LogChange::Cleared => Ok(()),
        LogChange::Removed { ranges } => admit_ranges(board, log, ranges),
        LogChange::Updated { seq, .. } => admit_entry(board, log, *seq),
        LogChange::Acked { seq } => {
            admit_entry(board, log, *seq)?;
            let entry = board.log(log).and_then(|log| log.get(*seq));
            let is_unacked = entry.is_some_and(|entry| entry.acked_at.is_none());
            let fits = is_unacked && matches!(log, LogName::Messages(_));
            if fits { Ok(()) } else { Err(Misfit::Entry { log: log.clone(), seq: *seq }) }
        }
    }
}

/// Checks the place, the kind and the depth of a value in the state.
pub(super) fn admit_value(state: &State, path: &StatePath, value: &Json) -> Result<(), Misfit> {
    let fits = state.place(path).is_ok()
        && (!path.is_root() || json::kind(value.text()) == Kind::Object)
        && is_shallow(path.len(), value);
    if fits { Ok(()) } else { Err(Misfit::State { path: path.clone() }) }
}

fn admit_awaited(board: &Board, first: Seq, last: Seq, until: &Awaited) -> Result<(), Misfit> {
    let [questions, ..] = board.logs();
    let fits = Seq(0) < first && first <= last && last <= questions.last_seq();
    let few = last.0.saturating_sub(first.0) < AWAITED_AT_ONCE_MAX as u64;
    if fits && few && admit_default(until) {
        return Ok(());
    }
    Err(Misfit::Question { seq: first })
}

/// Checks that a plan is for requests of the same commit, and names earlier ones.
fn admit_plan(board: &Board, revision: Revision, new: SeqRange, plan: &Plan) -> Result<(), Misfit> {
    let [_, requests, ..] = board.logs();
    let is_new = |seq: Seq| {
        let entry = requests.get(seq);
        entry.is_some_and(|entry| entry.revision == revision && entry.task.is_none())
    };
    let count = new.last.0.saturating_sub(new.first.0).saturating_add(1);
    let has_room = |seq: &Seq| {
        let waiting = board.tasks.dependants_len(*seq) as u64;
        waiting.saturating_add(count) <= DEPENDANTS_MAX as u64
    };
    let fits = new.first <= new.last
        && new.last <= requests.last_seq()
        && !plan.is_empty()
        && plan.is_sound()
        && (new.first.0..=new.last.0).map(Seq).all(is_new)
        && plan.after.last().is_none_or(|last| *last < new.first)
        && plan.after.iter().all(has_room);
    if fits { Ok(()) } else { Err(Misfit::Work { seq: new.first }) }
}

pub(super) fn admit_default(until: &Awaited) -> bool {
    until.default.as_ref().is_none_or(|default| default.len() <= DEFAULT_BYTES_MAX)
}

fn admit_elements(board: &Board, path: &StatePath, elements: &[Json]) -> Result<(), Misfit> {
    let place = board.state.place(path);
    let array = place.is_ok_and(|value| value.is_none_or(|value| value.kind() == Kind::Array));
    if array && elements.iter().all(|element| is_shallow(path.len() + 1, element)) {
        return Ok(());
    }
    Err(Misfit::State { path: path.clone() })
}

fn is_shallow(levels_above: usize, value: &Json) -> bool {
    let left = DEPTH_MAX.checked_sub(levels_above);
    left.is_some_and(|left| json::check(value.text(), left).is_ok())
}

fn admit_work(board: &Board, stamp: Stamp<'_>, seq: Seq, change: &Change) -> Result<(), Misfit> {
    admit_entry(board, &LogName::Requests, seq)?;
    let [_, requests, ..] = board.logs();
    let entry = requests.get(seq);
    let is_waiting = entry.is_some_and(|entry| entry.is_claimable());
    let task = entry.and_then(|entry| entry.task.as_deref());
    let is_unblocked = task.is_none_or(|task| task.blocked_by.is_empty());
    let is_asked = task.is_some_and(|task| task.cancel.is_some());
    let work = board.work(seq);
    let is_free = matches!(work, None | Some(Work::Lapsed { .. }));
    let claim = work.and_then(Work::claim);
    let is_open = work.is_none_or(|work| !work.is_ended());
    let Change::Request(_, change) = change else {
        let deadline = task.and_then(|task| task.plan.deadline);
        let of_deadline = matches!(change, Change::Expired(Due::Deadline(_)));
        let fits = if of_deadline { deadline.is_some() && is_open } else { claim.is_some() };
        return if fits { Ok(()) } else { Err(Misfit::Work { seq }) };
    };
    let fits = match change {
        RequestChange::Claimed { agent, fence, .. } => {
            // A claim is either new, or a renewal of the current claim. The caps may have been others.
            let stands = |claim: &Claim| claim.agent == *agent && claim.fence == *fence;
            claim.map_or(is_waiting && *fence == stamp.revision, stands)
        }
        RequestChange::Released | RequestChange::Failed { .. } => claim.is_some(),
        RequestChange::Finished { .. } => claim.is_some() || (is_free && is_unblocked),
        RequestChange::Retried { .. } => {
            matches!(work, Some(Work::Failed(_) | Work::Cancelled(_)))
        }
        RequestChange::CancelRequested { .. } => claim.is_some() && !is_asked,
        RequestChange::Cancelled { .. } => is_open && (claim.is_none() || is_asked),
        RequestChange::Verdict { .. } => {
            stamp.agent.is_some() && matches!(work, Some(Work::InReview(_)))
        }
    };
    if fits { Ok(()) } else { Err(Misfit::Work { seq }) }
}

/// Checks that requests whose time has come wait for it.
fn admit_due(board: &Board, ranges: &[SeqRange]) -> Result<(), Misfit> {
    admit_ranges(board, &LogName::Requests, ranges)?;
    let mut early = board.tasks.early().iter().map(|(_, seq)| *seq).collect::<Vec<_>>();
    early.sort_unstable();
    for range in ranges {
        // Each of them is there.
        let from = early.partition_point(|seq| *seq < range.first);
        let to = early.partition_point(|seq| *seq <= range.last);
        let count = range.last.0 - range.first.0 + 1;
        if (to - from) as u64 != count {
            return Err(Misfit::Work { seq: range.first });
        }
    }
    Ok(())
}

pub(super) fn admit_ranges(
    board: &Board,
    log: &LogName,
    ranges: &[SeqRange],
) -> Result<(), Misfit> {
    let mut after = Seq(0);
    for range in ranges {
        if range.first <= after || range.last < range.first {
            return Err(Misfit::Entry { log: log.clone(), seq: range.first });
        }
        admit_entry(board, log, range.first)?;
        admit_entry(board, log, range.last)?;
        after = range.last;
    }
    Ok(())
}

fn admit_entry(board: &Board, log: &LogName, seq: Seq) -> Result<(), Misfit> {
    match board.log(log).and_then(|log| log.get(seq)) {
        Some(_) => Ok(()),
        None => Err(Misfit::Entry { log: log.clone(), seq }),
    }
}

pub(super) fn admit_images<'a>(
    board: &Board,
    items: impl Iterator<Item = &'a Item>,
) -> Result<(), Misfit> {
    let (mut known, mut total) = (board.images.clone(), board.image_bytes);
    for (item, image) in items.filter_map(|item| Some((item, item.image()?))) {
        admit_image(item.text(), image)?;
        let misfit = Misfit::ImageBytes { sha256: image.sha256, bytes: image.bytes };
        match known.insert(image.sha256, image.bytes) {
            Some(bytes) if bytes == image.bytes => {}
            Some(_) => return Err(misfit),
            None => total = total.checked_add(image.bytes).ok_or(misfit)?,
        }
    }
    Ok(())
}

/// Checks the size of an uploaded blob.
fn admit_file(board: &Board, sha256: Digest, bytes: u64) -> Result<(), Misfit> {
    let fits = match board.images.get(&sha256) {
        Some(known) => *known == bytes,
        None => board.image_bytes.checked_add(bytes).is_some(),
    };
    if fits { Ok(()) } else { Err(Misfit::ImageBytes { sha256, bytes }) }
}

/// Checks that the images are known, in order, and not named by any entry.
fn admit_forgotten(board: &Board, images: &[Digest]) -> Result<(), Misfit> {
    let misfit = |sha256: &Digest| Err(Misfit::ImageForgotten { sha256: *sha256 });
    if images.is_empty() {
        return Err(Misfit::Nothing);
    }
    if let Some(beyond) = images.get(IMAGES_FORGOTTEN_MAX) {
        return misfit(beyond);
    }
    let mut before = None;
    for sha256 in images {
        if before >= Some(sha256) || !board.has_image(sha256) {
            return misfit(sha256);
        }
        before = Some(sha256);
    }
    let is_forgotten = |image: &&Image| images.binary_search(&image.sha256).is_ok();
    board.named_images().find(is_forgotten).map_or(Ok(()), |image| misfit(&image.sha256))
}

/// Checks that the image's offset is between two quotes, and that its data URL needs no escape there.
pub(super) fn admit_image(text: &str, image: &Image) -> Result<(), Misfit> {
    let quoted = |(before, after): (&str, &str)| before.ends_with('"') && after.starts_with('"');
    match text.split_at_checked(image.at) {
        Some(parts) if quoted(parts) && image.is_sound() => Ok(()),
        Some(_) | None => Err(Misfit::ImagePlace { at: image.at }),
    }
}
