//! Steps by which the index follows the boards, carried out many in one transaction.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::progress::Progress;
use crate::disk_room::has_room;
use crate::error::ServiceError;
use crate::threads::pace::Pace;
use crate::threads::signal::Signal;
use blackboard_board::{AgentName, Entry, Json, LogName, Seq, SessionId, SessionName};
use blackboard_search::{
    Batch, Document, Index, Position, SearchError, WORDS_VERSION, Words, log_key, text_of,
};
use blackboard_store::{FREE_BYTES_MIN, TextChange, TextStore};

/// The number of steps in one transaction.
const STEPS_MAX: usize = 1000;

/// The bytes of items in one transaction. Only the last item may pass it.
const BYTES_MAX: usize = 4 << 20;

/// The fraction of busy processors' time that the indexer uses (one in so many).
const SHARE_PART: u32 = 64;

/// A change of the index.
pub(super) enum Step {
    /// A session is gone.
    Forget(SessionName),
    /// A session is indexed anew.
    Clear(SessionName),
    ClearLog(SessionName, LogName),
    Remove(SessionName, LogName, Seq, Seq),
    Put(SessionName, LogName, Arc<Entry>),
    Reached(SessionName, Position),
}

/// The reason why a round broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Index(#[from] SearchError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("the server stops")]
    Stopping,
}

/// The bytes that are free on the disk before a transaction, besides the reserve of the store.
const ROOM_BYTES: u64 = 32 << 20;

/// The pause before the disk is looked at again.
const NO_ROOM_REST: Duration = Duration::from_secs(10);

/// Waits until the disk has room for more of the index; returns false if the thread is to end.
pub(super) fn waits_for_room(path: &Path, signal: &Signal) -> bool {
    let needed = FREE_BYTES_MIN + ROOM_BYTES;
    if has_room(path, needed) {
        return true;
    }
    tracing::warn!(needed, "the disk is nearly full: the search index waits for room");
    while signal.pause(NO_ROOM_REST) {
        if has_room(path, needed) {
            tracing::info!("the disk has room again: the search index follows the commits");
            return true;
        }
    }
    false
}

/// The index that steps are carried out on.
pub(super) enum Target<'a> {
    /// A file of this server.
    File(&'a Index, &'a Path),
    /// The store, which other servers write to.
    Store(&'a dyn TextStore, &'a Words),
}

impl Target<'_> {
    /// Returns false if the thread is to end.
    fn waits_for_room(&self, signal: &Signal) -> bool {
        match self {
            Self::File(_, path) => waits_for_room(path, signal),
            Self::Store(..) => true,
        }
    }

    fn carry_out(&self, steps: &[Step], progress: &Progress) -> Result<(), Failed> {
        match self {
            Self::File(index, _) => {
                Ok(index.write(|batch| steps.iter().try_for_each(|step| carry_out(batch, step)))?)
            }
            Self::Store(store, words) => {
                let changes: Result<Vec<_>, Failed> = steps
                    .iter()
                    .filter_map(|step| changed(words, step, progress).transpose())
                    .collect();
                Ok(store.change_texts(&changes?).map_err(ServiceError::from)?)
            }
        }
    }
}

/// Returns a step as a change of the store's texts; `None` if nothing is known of the session.
fn changed(
    words: &Words,
    step: &Step,
    progress: &Progress,
) -> Result<Option<(SessionId, TextChange)>, Failed> {
    let change = match step {
        Step::Forget(_) | Step::Clear(_) => TextChange::Forget,
        Step::ClearLog(_, log) => TextChange::ClearLog(log_key(log)),
        Step::Remove(_, log, first, last) => {
            TextChange::Remove { log: log_key(log), first: first.0, last: last.0 }
        }
        Step::Put(_, log, entry) => {
            let found = words.of(&searchable(entry))?.into_iter();
            TextChange::Put {
                log: log_key(log),
                seq: entry.seq.0,
                at: entry.at,
                agent: author(log, entry).map(ToString::to_string),
                words: found.map(|word| (word.text, word.place)).collect(),
            }
        }
        Step::Reached(_, position) => {
            TextChange::Reached { revision: position.revision, version: WORDS_VERSION }
        }
    };
    Ok(progress.session(step.name()).map(|session| (session, change)))
}

impl Step {
    fn name(&self) -> &SessionName {
        match self {
            Self::Forget(name)
            | Self::Clear(name)
            | Self::ClearLog(name, _)
            | Self::Remove(name, ..)
            | Self::Put(name, ..)
            | Self::Reached(name, _) => name,
        }
    }
}

/// Gathers steps, and carries them out at its pace.
pub(super) struct Steps<'a> {
    target: Target<'a>,
    progress: &'a Progress,
    signal: &'a Signal,
    pace: Pace,
    gathered: Vec<Step>,
    bytes: usize,
}

impl<'a> Steps<'a> {
    pub(super) fn new(target: Target<'a>, progress: &'a Progress, signal: &'a Signal) -> Self {
        let (pace, gathered) = (Pace::begin(SHARE_PART), Vec::new());
        Self { target, progress, signal, pace, gathered, bytes: 0 }
    }

    pub(super) fn add(&mut self, step: Step) -> Result<(), Failed> {
        if let Step::Put(_, _, entry) = &step {
            self.bytes += entry.item.text().len();
        }
        self.gathered.push(step);
        if self.gathered.len() >= STEPS_MAX || self.bytes >= BYTES_MAX {
            self.carry_out()?;
        }
        Ok(())
    }

    /// Carries out all steps in one transaction, and rests.
    pub(super) fn carry_out(&mut self) -> Result<(), Failed> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        if !self.target.waits_for_room(self.signal) {
            return Err(Failed::Stopping);
        }
        self.bytes = 0;
        let steps = std::mem::take(&mut self.gathered);
        self.target.carry_out(&steps, self.progress)?;
        let reached = steps.into_iter().filter_map(|step| match step {
            Step::Reached(name, position) => Some((name, Some(position))),
            Step::Forget(name) | Step::Clear(name) => Some((name, None)),
            Step::ClearLog(..) | Step::Remove(..) | Step::Put(..) => None,
        });
        self.progress.reached(reached.collect());
        if self.signal.pause(self.pace.rest()) { Ok(()) } else { Err(Failed::Stopping) }
    }
}

/// Returns the JSON values by whose texts an entry is found: its item, and a request's result and reasons.
fn values(entry: &Entry) -> impl Iterator<Item = &str> {
    let outcomes = entry.work.iter().flat_map(|work| work.texts());
    std::iter::once(entry.item.text()).chain(outcomes.map(Json::text))
}

/// Returns the text by which an entry is found.
pub(crate) fn searchable(entry: &Entry) -> String {
    let mut text = String::new();
    values(entry).for_each(|value| text_of(value, &mut text));
    text
}

/// Returns the agent whose entry it is: of an agent's log its owner, else the author.
pub(crate) fn author<'a>(log: &'a LogName, entry: &'a Entry) -> Option<&'a AgentName> {
    log.owner().or(entry.agent.as_ref())
}

fn carry_out(batch: &mut Batch<'_>, step: &Step) -> Result<(), SearchError> {
    match step {
        // Until all of a session is indexed anew, it counts as not followed.
        Step::Forget(name) | Step::Clear(name) => batch.forget(name),
        Step::ClearLog(name, log) => {
            let session = batch.session(name)?;
            batch.clear_log(session, log)
        }
        Step::Remove(name, log, first, last) => {
            let session = batch.session(name)?;
            batch.remove(session, log, *first, *last)
        }
        Step::Put(name, log, entry) => {
            let session = batch.session(name)?;
            let values: Vec<&str> = values(entry).collect();
            let (seq, at, agent) = (entry.seq, entry.at, author(log, entry));
            batch.put(session, Document { log, seq, at, agent, values: &values })
        }
        Step::Reached(name, position) => {
            let session = batch.session(name)?;
            batch.reached(session, *position)
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use blackboard_board::Epoch;

    #[test]
    fn an_index_without_room_waits_until_its_thread_is_to_end() {
        let dir = TempDir::new().unwrap();
        let index = Index::open(&dir.path().join("search.db"), Epoch(1)).unwrap();
        let signal = Signal::default();
        assert!(Target::File(&index, dir.path()).waits_for_room(&signal));
        signal.stop();
        // This file system has no blocks.
        assert!(!Target::File(&index, Path::new("/proc/search.db")).waits_for_room(&signal));
    }
}
