//! Application of commits to a board.
//!
//! Applying a commit cannot fail and reads no clock, setting or policy, so a replay equals the live board. `admit`
//! checks all assumptions about a commit beforehand.

use std::sync::Arc;

use super::restored::{end_claims, restore};
use super::{
    AgentChange, Change, CheckpointChange, Commit, LogChange, RequestChange, SessionChange,
    StateChange,
};
use crate::log::{SeqRange, Stamp};
use crate::model::agent::{Agent, Profile};
use crate::model::blob::Blob;
use crate::model::board::Life;
use crate::model::checkpoint::Checkpoint;
use crate::model::due::Due;
use crate::model::idempotency::Keys;
use crate::model::open_questions::Asked;
use crate::model::settings::{Labels, Settings};
use crate::model::tasks::Tasks;
use crate::values::claim::{Claim, Done, Failed, Work};
use crate::values::task::{Plan, Task};
use crate::{
    AgentName, Board, CheckpointName, Digest, Json, LogName, Revision, Seq, SessionName, StatePath,
};

/// Applies a commit to the board.
pub fn apply(board: &mut Board, commit: &Commit) {
    for change in &commit.changes {
        apply_change(board, change, commit.stamp());
    }
    close(board, commit);
}

/// Applies the rest of a commit: revision, times, author and key.
pub(crate) fn close(board: &mut Board, commit: &Commit) {
    board.revision = commit.revision;
    board.updated_at = commit.at;
    if !commit.is_system() {
        board.written_at = commit.at;
    }
    if let Some(agent) = &commit.agent
        && let Some(seen) = board.agents.get_mut(agent)
    {
        seen.last_seen = Some(commit.at);
    }
    if let Some(kept) = &commit.kept {
        board.remember(kept, commit.at);
    }
}

pub(crate) fn apply_change(board: &mut Board, change: &Change, stamp: Stamp<'_>) {
    board.keep_images(change.items());
    match change {
        Change::Session(change) => apply_session(board, change, stamp),
        Change::Log(log, change) => apply_log(board, log, change, stamp),
        Change::State(path, change) => apply_state(board, path, change, stamp),
        Change::Agent(agent, AgentChange::Put { profile }) => {
            put_agent(board, agent, profile, stamp);
        }
        Change::Agent(agent, AgentChange::Removed) => remove_agent(board, agent, stamp),
        Change::Request(seq, RequestChange::Claimed { agent, fence, expires_at }) => {
            let claim = Claim { agent: agent.clone(), fence: *fence, expires_at: *expires_at };
            mark(board, *seq, Some(Work::Claimed(claim)), stamp);
        }
        Change::Request(seq, RequestChange::Released) => mark(board, *seq, None, stamp),
        Change::Request(seq, RequestChange::Finished { fence, result }) => {
            let (agent, result) = (stamp.agent.cloned(), result.clone());
            let done = Done { agent, at: stamp.at, fence: *fence, result };
            mark(board, *seq, Some(Work::Done(done)), stamp);
            unblock(board, *seq, stamp);
        }
        Change::Request(seq, RequestChange::Failed { reason }) => {
            end_attempt(board, *seq, None, reason.as_ref(), stamp);
        }
        Change::Request(seq, RequestChange::Retried) => retry(board, *seq, stamp),
        Change::Planned { first, last, plan } => {
            put_plan(board, SeqRange { first: *first, last: *last }, plan);
        }
        Change::Expired(due) => expire(board, due, stamp),
        Change::Awaited { first, last, until } => {
            board.asked.wait(SeqRange { first: *first, last: *last }, until);
        }
        Change::Checkpoint(name, CheckpointChange::Put) => put_checkpoint(board, name, stamp),
        Change::Checkpoint(name, CheckpointChange::Removed) => {
            board.checkpoints.remove(name);
            board.checkpoints_changed = stamp.revision;
        }
    }
}

fn apply_session(board: &mut Board, change: &SessionChange, stamp: Stamp<'_>) {
    match change {
        SessionChange::Created { name, settings, labels } => {
            let (created_at, configured) = (stamp.at, stamp.revision);
            let (settings, labels) = (Arc::clone(settings), Arc::clone(labels));
            let name = name.clone();
            board.life = Some(Life { name, created_at, settings, labels, configured }.lean());
        }
        SessionChange::Configured { settings, labels } => {
            configure(board, settings, labels, stamp);
        }
        SessionChange::Deleted => *board = Board::absent(board.id, board.revision),
        SessionChange::Restored(restored) => restore(board, restored, stamp),
        SessionChange::Adopted { name, after, .. } => {
            adopt(board, name, *after, stamp);
        }
        SessionChange::ImagesForgotten { images } => forget_images(board, images),
        SessionChange::Noted(_) => {}
        SessionChange::BlobPut { sha256, bytes, media_type } => {
            let blob = Blob { media_type: media_type.clone(), uploaded_at: stamp.at };
            board.put_blob(*sha256, *bytes, blob);
        }
    }
}

fn apply_log(board: &mut Board, log: &LogName, change: &LogChange, stamp: Stamp<'_>) {
    match change {
        LogChange::Appended { first, items } => {
            if *log == LogName::Questions {
                board.asked.append(*first, items);
            }
            board.edit_log(log, |log| log.append(*first, items, stamp));
            if *log == LogName::Requests {
                let appended = (first.0..).map(Seq).take(items.len());
                appended.for_each(|request| board.note_request(request));
            }
        }
        LogChange::Cleared => clear(board, log, stamp),
        LogChange::Removed { ranges } => remove(board, log, ranges, stamp),
        LogChange::Updated { seq, item } => {
            if *log == LogName::Questions {
                board.asked.update(*seq, item);
            }
            board.edit_log(log, |log| log.update(*seq, item, stamp));
        }
    }
}

fn apply_state(board: &mut Board, path: &StatePath, change: &StateChange, stamp: Stamp<'_>) {
    match change {
        StateChange::Put { value, expires_at } => board.edit_state(|state| {
            state.put(path, value.text(), *expires_at, stamp.revision);
        }),
        StateChange::Set { value } => {
            board.edit_state(|state| state.set(path, value.text(), stamp.revision));
        }
        StateChange::Merged { patch } => {
            board.edit_state(|state| state.merge(path, patch.text(), stamp.revision));
        }
        StateChange::Appended { elements } => board.edit_state(|state| {
            state.append(path, elements.iter().map(Json::text), stamp.revision);
        }),
        StateChange::Removed => {
            board.edit_state(|state| state.remove(path, stamp.revision));
        }
    }
}

fn configure(board: &mut Board, settings: &Arc<Settings>, labels: &Arc<Labels>, stamp: Stamp<'_>) {
    if let Some(life) = &mut board.life {
        life.settings = Arc::clone(settings);
        life.labels = Arc::clone(labels);
        life.configured = stamp.revision;
    }
}

fn forget_images(board: &mut Board, images: &[Digest]) {
    for sha256 in images {
        board.image_bytes -= board.images.remove(sha256).unwrap_or_default();
        board.blobs.remove(sha256);
    }
}

fn clear(board: &mut Board, log: &LogName, stamp: Stamp<'_>) {
    if *log == LogName::Requests {
        board.claim_deadlines.clear();
        board.tasks = Tasks::default();
    }
    if *log == LogName::Questions {
        board.asked = Asked::default();
    }
    board.edit_log(log, |log| log.clear(stamp.revision));
}

fn remove(board: &mut Board, log: &LogName, ranges: &[SeqRange], stamp: Stamp<'_>) {
    let mut awaited = Vec::new();
    if *log == LogName::Requests {
        let [_, requests, ..] = &board.logs;
        awaited = board.tasks.remove(ranges, requests);
        let gone = |seq: Seq| {
            let range = ranges.get(ranges.partition_point(|range| range.last < seq));
            range.is_some_and(|range| range.contains(seq))
        };
        let gone: Vec<_> =
            board.claim_deadlines.iter().filter(|(_, seq)| gone(*seq)).copied().collect();
        for lease in gone {
            board.claim_deadlines.remove(&lease);
        }
    }
    if *log == LogName::Questions {
        board.asked.remove(ranges);
    }
    board.edit_log(log, |log| log.remove(ranges, stamp.revision));
    awaited.into_iter().for_each(|request| unblock(board, request, stamp));
}

fn put_agent(board: &mut Board, name: &AgentName, profile: &Profile, stamp: Stamp<'_>) {
    let before = board.agents.get(name);
    let known = before.map_or(0, |agent| agent.profile.item().bytes());
    let agent = Agent {
        profile: profile.clone(),
        registered_at: before.map_or(stamp.at, |agent| agent.registered_at),
        updated_at: stamp.at,
        changed: stamp.revision,
        last_seen: before.and_then(|agent| agent.last_seen),
    };
    board.bytes = board.bytes - known + profile.item().bytes();
    board.agents.insert(name.clone(), agent);
    board.agents_changed = stamp.revision;
}

fn remove_agent(board: &mut Board, name: &AgentName, stamp: Stamp<'_>) {
    if let Some(agent) = board.agents.remove(name) {
        board.bytes -= agent.profile.item().bytes();
        board.agents_changed = stamp.revision;
    }
    let memory = LogName::Memory(name.clone());
    if board.log(&memory).is_some_and(|log| !log.is_empty()) {
        board.edit_log(&memory, |log| log.clear(stamp.revision));
    }
}

/// Records a request's work and its lease.
fn mark(board: &mut Board, seq: Seq, work: Option<Work>, stamp: Stamp<'_>) {
    let lease = |work: &Work| work.claim().map(|claim| (claim.expires_at, seq));
    if let Some(before) = board.work(seq).and_then(lease) {
        board.claim_deadlines.remove(&before);
    }
    if let Some(lease) = work.as_ref().and_then(lease) {
        board.claim_deadlines.insert(lease);
    }
    board.edit_log(&LogName::Requests, |log| log.mark(seq, work, stamp));
    board.note_request(seq);
}

/// Ends the wait of the requests that wait for this one, which is done or removed.
fn unblock(board: &mut Board, request: Seq, stamp: Stamp<'_>) {
    for waiting in board.tasks.take_dependants(request) {
        if let Some(mut task) = task_of(board, waiting) {
            task.blocked_by = task.blocked_by.into_iter().filter(|seq| *seq != request).collect();
            board.edit_log(&LogName::Requests, |log| log.set_task(waiting, task, stamp));
            board.note_request(waiting);
        }
    }
}

fn task_of(board: &Board, request: Seq) -> Option<Task> {
    board.log(&LogName::Requests)?.get(request)?.task.as_deref().cloned()
}

fn put_plan(board: &mut Board, requests: SeqRange, plan: &Plan) {
    let blocked_by = board.blockers(&plan.after);
    for request in (requests.first.0..=requests.last.0).map(Seq) {
        let task = Task { blocked_by: blocked_by.clone(), ..Task::of(plan.clone()) };
        board.edit_log(&LogName::Requests, |log| log.plan(request, task));
        board.note_request(request);
    }
}

/// Ends a claim without success: the request has failed if its attempts are spent. Otherwise its work is `after`.
fn end_attempt(
    board: &mut Board,
    request: Seq,
    after: Option<Work>,
    reason: Option<&Json>,
    stamp: Stamp<'_>,
) {
    let Some(claim) = board.work(request).and_then(Work::claim).cloned() else { return };
    let Some(mut task) = task_of(board, request).filter(|task| task.plan.attempts.is_some()) else {
        return mark(board, request, after, stamp);
    };
    task.failures = task.failures.saturating_add(1);
    let work = if task.is_spent() {
        let Claim { agent, fence, .. } = claim;
        Some(Work::Failed(Failed { agent, at: stamp.at, fence, reason: reason.cloned() }))
    } else {
        after
    };
    board.edit_log(&LogName::Requests, |log| log.set_task(request, task, stamp));
    mark(board, request, work, stamp);
}

fn retry(board: &mut Board, request: Seq, stamp: Stamp<'_>) {
    if let Some(task) = task_of(board, request) {
        let task = Task { failures: 0, ..task };
        board.edit_log(&LogName::Requests, |log| log.set_task(request, task, stamp));
    }
    mark(board, request, None, stamp);
}

fn expire(board: &mut Board, due: &Due, stamp: Stamp<'_>) {
    match due {
        Due::Session => *board = Board::absent(board.id, board.revision),
        Due::State(path) => board.edit_state(|state| state.remove(path, stamp.revision)),
        Due::Question(seq) => board.asked.wait_for_ever(*seq),
        Due::Claim(seq) => {
            let fence = board.work(*seq).and_then(Work::claim).map(|claim| claim.fence);
            end_attempt(board, *seq, fence.map(|fence| Work::Lapsed { fence }), None, stamp);
        }
    }
}

fn put_checkpoint(board: &mut Board, name: &CheckpointName, stamp: Stamp<'_>) {
    let (at, agent) = (stamp.at, stamp.agent.cloned());
    board.checkpoints.insert(name.clone(), Checkpoint { revision: stamp.revision, at, agent });
    board.checkpoints_changed = stamp.revision;
}

/// Names the history, and ends earlier claims, keys and fences.
fn adopt(board: &mut Board, name: &SessionName, after: Revision, stamp: Stamp<'_>) {
    if let Some(life) = &mut board.life {
        life.name = name.clone();
    }
    end_claims(board, stamp.revision);
    board.floor = after;
    board.keys = Keys::default();
    // Checkpoints before a fork's oldest revision name nothing in it.
    let (known, oldest) = (board.checkpoints.len(), board.oldest);
    let named = std::mem::take(&mut board.checkpoints).into_iter();
    board.checkpoints = named.filter(|(_, checkpoint)| checkpoint.revision >= oldest).collect();
    if board.checkpoints.len() < known {
        board.checkpoints_changed = stamp.revision;
    }
}
