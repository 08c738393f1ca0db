//! Admission: the checks of everything that `apply` assumes of a commit.
//!
//! A stored or imported commit that does not fit its board is refused, not guessed at.

pub(crate) mod imported;
mod restored;

use super::commit::apply;
use super::commit::{
    AgentChange, Change, CheckpointChange, Commit, IMAGES_FORGOTTEN_MAX, LogChange, RequestChange,
    SessionChange, StateChange,
};
use super::json;
use super::json::{DEPTH_MAX, Kind};
use super::model::checkpoint::CHECKPOINTS_MAX;
use super::model::due::Due;
use super::model::open_questions::{AWAITED_AT_ONCE_MAX, Awaited, DEFAULT_BYTES_MAX};
use super::state::{State, StatePath};
use super::values::claim::{Claim, Work};
use super::{
    AgentName, Board, CheckpointName, Digest, Image, Item, Json, Log, LogName, Revision, Seq,
    SeqRange,
};
use restored::admit_restored;

/// The highest revision, far above any that is ever reached and far below where counting ends.
pub const REVISION_MAX: u64 = 1 << 53;

/// The reason why a commit does not fit its board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Its revision is not the next one.
    #[error("commit {found} does not follow revision {head}")]
    Revision {
        /// The board's revision.
        head: Revision,
        /// The commit's.
        found: Revision,
    },
    /// Its time is before the last commit's.
    #[error("the commit is older than the commit before it")]
    Time,
    /// It has no changes.
    #[error("the commit changes nothing")]
    Nothing,
    /// The commit creates an existing session, or changes a missing one.
    #[error("change {change} does not fit a session that {}", if *exists { "exists" } else { "does not exist" })]
    Life {
        /// Which of its changes.
        change: usize,
        /// Whether the session exists at that point.
        exists: bool,
    },
    /// The seqs it gives do not go on from the last.
    #[error("{log}: an entry has seq {found} instead of {next}")]
    Seq {
        /// Which log.
        log: LogName,
        /// The next free seq.
        next: Seq,
        /// The seq in the commit.
        found: Seq,
    },
    /// It names an entry that is not there, or ranges out of order.
    #[error("{log}: there is no entry {seq} to change or remove")]
    Entry {
        /// Which log.
        log: LogName,
        /// Which entry.
        seq: Seq,
    },
    /// An image's place is not in its item's text, or it would need escapes there.
    #[error("an image cannot be at byte {at} of its item")]
    ImagePlace {
        /// The expected position.
        at: usize,
    },
    /// An image's length differs from before, or overflows the count.
    #[error("image {sha256} cannot have {bytes} bytes")]
    ImageBytes {
        /// Which image.
        sha256: Digest,
        /// The length in the commit.
        bytes: u64,
    },
    /// The state has no place for a value, or not this one.
    #[error("the change of the state at '{path}' does not fit")]
    State {
        /// Where.
        path: StatePath,
    },
    /// There is no such agent to remove.
    #[error("agent '{agent}' does not exist")]
    Agent {
        /// Which one.
        agent: AgentName,
    },
    /// A request's claim is not as the commit takes it to be.
    #[error("the change of the work on request {seq} does not fit")]
    Work {
        /// Which request.
        seq: Seq,
    },
    /// A question waits for no moment, or is not open.
    #[error("the change of question {seq}'s deadline does not fit")]
    Question {
        /// Which question.
        seq: Seq,
    },
    /// There is no such checkpoint to remove, or there are too many.
    #[error("checkpoint '{checkpoint}' does not exist, or exceeds the limit")]
    Checkpoint {
        /// Its name.
        checkpoint: CheckpointName,
    },
    /// It restores what is not in the past of its board, or not so.
    #[error("the restore to revision {to} does not fit the board")]
    Past {
        /// The revision.
        to: Revision,
    },
    /// An adoption is not the only change.
    #[error("an adoption must be the only change of its commit")]
    NotAlone,
    /// It forgets an image that is not known, comes out of order or is named by an entry, or too many.
    #[error("image {sha256} cannot be forgotten")]
    ImageForgotten {
        /// Which image.
        sha256: Digest,
    },
    /// More keys are forgotten than there are.
    #[error("the commit forgets {found} keys of {known}")]
    Keys {
        /// How many there are.
        known: usize,
        /// The number in the commit.
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

/// Checks that the commit's revision follows the head. Only an adoption may skip revisions.
fn next_revision(board: &Board, commit: &Commit) -> Option<Revision> {
    let last = match commit.changes.as_slice() {
        [Change::Session(SessionChange::Adopted { after, .. })] => board.revision.max(*after),
        _ => board.revision,
    };
    (last.0 < REVISION_MAX).then(|| last.next())
}

/// Each change is checked against the board that those before it leave.
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
        Change::Request(seq, _) | Change::Expired(Due::Claim(seq)) => {
            admit_work(board, commit.revision, *seq, change)
        }
        Change::Expired(Due::Question(seq)) => {
            let waits = board.asked.awaited(*seq).is_some();
            if waits { Ok(()) } else { Err(Misfit::Question { seq: *seq }) }
        }
        Change::Awaited { first, last, until } => admit_awaited(board, *first, *last, until),
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
        | SessionChange::Deleted => Ok(()),
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
    }
}

/// A value below objects only, and no deeper with its path than a document may be.
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

fn admit_work(board: &Board, revision: Revision, seq: Seq, change: &Change) -> Result<(), Misfit> {
    admit_entry(board, &LogName::Requests, seq)?;
    let work = board.work(seq);
    let claim = work.and_then(Work::claim);
    let done = matches!(work, Some(Work::Done(_)));
    let fits = if let Change::Request(_, RequestChange::Claimed { agent, fence, .. }) = change {
        // A claim is won now, or is the one that stands.
        let stands = |claim: &Claim| claim.agent == *agent && claim.fence == *fence;
        claim.map_or(!done && *fence == revision, stands)
    } else if matches!(change, Change::Request(_, RequestChange::Finished { .. })) {
        !done
    } else {
        claim.is_some()
    };
    if fits { Ok(()) } else { Err(Misfit::Work { seq }) }
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

/// Images that are known, in order, and that no entry names.
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

/// An image goes between two quotes, and its data URL needs no escape there.
pub(super) fn admit_image(text: &str, image: &Image) -> Result<(), Misfit> {
    let quoted = |(before, after): (&str, &str)| before.ends_with('"') && after.starts_with('"');
    match text.split_at_checked(image.at) {
        Some(parts) if quoted(parts) && image.is_sound() => Ok(()),
        Some(_) | None => Err(Misfit::ImagePlace { at: image.at }),
    }
}
