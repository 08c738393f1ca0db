//! The disk of the simulated engine: the rules of an append, and all that is durable.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use uuid::Uuid;

use blackboard_board::{Digest, Revision, SessionId};
use blackboard_store::{End, Outcome, PageMax, Run, StoreError};

/// All that survives a crash.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) histories: BTreeMap<SessionId, History>,
    pub(super) names: HashMap<Vec<u8>, SessionId>,
    pub(super) blobs: HashMap<(SessionId, Digest), Vec<u8>>,
    pub(super) tokens: HashMap<Uuid, Vec<u8>>,
    last: u64,
    /// Durable, but not read before the next start, since the sync has failed.
    pub(super) unread: Unread,
    /// The revision before the deletion of each session that was deleted.
    pub(super) ended: HashMap<SessionId, Revision>,
    /// Every frame that was ever durable, deleted ones included.
    pub(super) ever: Vec<(SessionId, Revision, Vec<u8>)>,
}

/// Writes of a failed sync that are durable nevertheless.
#[derive(Default)]
pub(super) struct Unread {
    pub(super) runs: Vec<Run>,
    pub(super) base: Option<(SessionId, Revision)>,
}

#[derive(Clone, Default)]
pub(super) struct History {
    pub(super) base: Option<(Revision, Vec<Vec<u8>>)>,
    pub(super) ended: bool,
    /// A base that is not in force.
    pub(super) put: Option<(Revision, Vec<Vec<u8>>)>,
    pub(super) commits: Vec<(u64, Revision, Vec<u8>)>,
    pub(super) staged: bool,
}

impl History {
    pub(super) fn head(&self) -> Option<Revision> {
        let last = self.commits.last().map(|(_, revision, _)| *revision);
        last.or(self.base())
    }

    /// The revision at which it begins, if it has a base.
    pub(super) fn base(&self) -> Option<Revision> {
        self.base.as_ref().map(|(revision, _)| *revision)
    }

    pub(super) fn page(
        &self,
        session: SessionId,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        let base = self.base().unwrap_or_default();
        if after < base {
            return Err(StoreError::Forgotten { session, base });
        }
        let commits = self.commits.iter().filter(|(_, revision, _)| *revision > after);
        Ok(commits.take(max.commits).map(|(_, at, frame)| (*at, frame.clone())).collect())
    }

    pub(super) fn visit_base(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) {
        let parts = self.base.iter().flat_map(|(_, parts)| parts);
        for part in parts {
            if visit(part).is_break() {
                return;
            }
        }
    }

    fn begin(&mut self, base: (Revision, Vec<Vec<u8>>), ended: bool) {
        self.commits.retain(|(_, revision, _)| *revision > base.0);
        (self.base, self.ended, self.put) = (Some(base), ended, None);
    }
}

impl Disk {
    /// Reads what the last failed sync left, and deletes what has no name, as an opening does.
    pub(super) fn open(&mut self) {
        let Unread { runs, base } = std::mem::take(&mut self.unread);
        runs.iter().for_each(|run| self.store(run));
        if let Some((session, base)) = base {
            self.set_base(session, base);
        }
        self.histories.retain(|_, history| !history.staged);
        self.histories.values_mut().for_each(|history| history.put = None);
    }

    /// The last durable revision of a session.
    pub(super) fn head(&self, session: SessionId) -> Option<Revision> {
        self.histories.get(&session)?.head()
    }

    /// The revision at which the durable history of a session begins, if it has a base.
    pub(super) fn base(&self, session: SessionId) -> Option<Revision> {
        self.histories.get(&session)?.base()
    }

    /// Puts a base in force. Returns false if it was not put before.
    pub(super) fn set_base(&mut self, session: SessionId, base: Revision) -> bool {
        let Some(history) = self.histories.get_mut(&session) else { return false };
        let Some(put) = history.put.take_if(|put| put.0 == base) else { return false };
        history.begin(put, false);
        true
    }

    pub(super) fn judge(&self, batch: &[Run]) -> Vec<Outcome> {
        let mut heads: HashMap<SessionId, (bool, Option<Revision>)> = HashMap::new();
        let mut names: HashMap<&[u8], SessionId> = HashMap::new();
        let mut outcomes = Vec::new();
        for run in batch {
            let of_disk = || match self.histories.get(&run.session) {
                Some(history) => (history.staged, history.head()),
                None => (false, None),
            };
            let (staged, head) = heads.get(&run.session).copied().unwrap_or_else(of_disk);
            let follows = match (staged, head) {
                (false, _) if run.adopts => false,
                (false, head) => head.is_none_or(|head| head == run.expected),
                (true, head) => head.is_none_or(|head| head <= run.expected),
            };
            let owns = run.claim.as_ref().is_none_or(|claim| {
                let known = names.get(&claim.name[..]).or_else(|| self.names.get(&claim.name));
                match (known, &claim.before) {
                    (None, _) => true,
                    (Some(known), Some((before, _))) => known == before,
                    (Some(known), None) => self.histories.get(known).is_none_or(|one| one.ended),
                }
            });
            if !follows || !owns {
                outcomes.push(Outcome::Conflict { head: head.unwrap_or_default() });
                continue;
            }
            names.extend(run.claim.iter().map(|claim| (&claim.name[..], run.session)));
            heads.insert(run.session, (staged && !run.adopts, Some(run.head())));
            outcomes.push(Outcome::Appended);
        }
        hold_together(batch, &mut outcomes);
        outcomes
    }

    pub(super) fn store(&mut self, run: &Run) {
        let history = self.histories.entry(run.session).or_default();
        if let Some(End { revision, parts }) = &run.ends {
            history.begin((*revision, parts.clone()), true);
            self.ended.insert(run.session, *revision);
        }
        if run.adopts {
            history.staged = false;
            if let Some(put) = history.put.take() {
                history.begin(put, false);
            }
        }
        if let Some(claim) = &run.claim {
            self.names.insert(claim.name.clone(), run.session);
        }
        for (frame, revision) in run.frames.iter().zip(run.after().0 + 1..) {
            self.last += 1;
            history.commits.push((self.last, Revision(revision), frame.clone()));
            self.ever.push((run.session, Revision(revision), frame.clone()));
        }
    }
}

/// A group is stored all or none.
pub(super) fn hold_together(batch: &[Run], outcomes: &mut [Outcome]) {
    let failed: HashMap<u32, Outcome> = batch
        .iter()
        .zip(&*outcomes)
        .filter(|(_, outcome)| **outcome != Outcome::Appended)
        .filter_map(|(run, outcome)| Some((run.group?, *outcome)))
        .collect();
    for (run, outcome) in batch.iter().zip(outcomes) {
        if let Some(first) = run.group.and_then(|group| failed.get(&group)) {
            *outcome = *first;
        }
    }
}
