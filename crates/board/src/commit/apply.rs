//! Application of commits to a board.
//!
//! Applying a commit cannot fail and reads no clock, setting or policy, so a replay equals the live board. `admit`
//! checks all assumptions about a commit beforehand.

use std::sync::Arc;

use super::requests::{apply_request, fall_due, lapse, miss_deadline, put_plan, unblock};
use super::restored::{end_claims, restore};
use super::{AgentChange, Change, CheckpointChange, Commit, LogChange, SessionChange, StateChange};
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
        Change::Request(seq, change) => apply_request(board, *seq, change, stamp),
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
            board.find_tasks();
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
                board.add_tasks(*first, items.len());
            }
            if let LogName::Messages(agent) = log {
                board.unacked.add(agent, (first.0..).map(Seq).take(items.len()));
            }
        }
        LogChange::Cleared => clear(board, log, stamp),
        LogChange::Removed { ranges } => remove(board, log, ranges, stamp),
        LogChange::Updated { seq, item } => {
            if *log == LogName::Questions {
                board.edit_question(*seq, |log| log.update(*seq, item, stamp));
            } else if *log == LogName::Requests {
                board.edit_requests(*seq, |log| log.update(*seq, item, stamp));
            } else {
                board.edit_log(log, |log| log.update(*seq, item, stamp));
            }
        }
        LogChange::Acked { seq } => {
            board.edit_log(log, |log| log.acknowledge(*seq, stamp));
            if let LogName::Messages(agent) = log {
                board.unacked.remove(agent, &[SeqRange { first: *seq, last: *seq }]);
            }
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
    if !board.tasks.has_caps(&board.caps()) {
        board.find_tasks();
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
        board.tasks = Tasks::without_requests(board.caps());
    }
    if *log == LogName::Questions {
        board.asked = Asked::default();
    }
    board.clear_unacked(log);
    board.edit_log(log, |log| log.clear(stamp.revision));
}

fn remove(board: &mut Board, log: &LogName, ranges: &[SeqRange], stamp: Stamp<'_>) {
    let mut awaited = Vec::new();
    if *log == LogName::Requests {
        let [_, requests, ..] = &board.logs;
        awaited = board.tasks.remove_ranges(ranges, requests);
    }
    if *log == LogName::Questions {
        board.forget_questions(ranges);
    }
    if let LogName::Messages(agent) = log {
        board.unacked.remove(agent, ranges);
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
    for log in LogName::owned_by(name) {
        if board.log(&log).is_some_and(|log| !log.is_empty()) {
            clear(board, &log, stamp);
        }
    }
}

fn expire(board: &mut Board, due: &Due, stamp: Stamp<'_>) {
    match due {
        Due::Session => *board = Board::absent(board.id, board.revision),
        Due::State(path) => board.edit_state(|state| state.remove(path, stamp.revision)),
        Due::Question(seq) => board.asked.wait_for_ever(*seq),
        Due::Claim(seq) => lapse(board, *seq, stamp),
        Due::Deadline(seq) => miss_deadline(board, *seq, stamp),
        Due::Requests(ranges) => fall_due(board, ranges, stamp),
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
    end_claims(board, stamp);
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
