//! One batch: the staged sessions, the verdicts on its writes, and the outcomes of its runs.

use std::collections::{HashMap, HashSet};

use super::links::Links;
use super::staging::Staging;
use super::verdict::{Verdict, Verdicts};
use crate::job::WriteJob;
use blackboard_board::SessionName;
use blackboard_store::{Outcome, Run};

/// The sessions that a batch touches, and its writes.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) staged: HashMap<SessionName, Staging>,
    pub(crate) verdicts: HashMap<SessionName, Verdicts>,
    /// The sessions whose parts are stored all or none.
    pub(crate) links: Links,
    /// The number of writes.
    writes: usize,
}

/// A batch whose runs are ready to be appended, or have been.
#[derive(Default)]
pub(crate) struct Written {
    /// The sessions of the runs, in their order.
    pub(crate) parts: Vec<(SessionName, Staging)>,
    pub(crate) runs: Vec<Run>,
    /// The outcome of each run.
    pub(crate) outcomes: Vec<Outcome>,
    /// The sessions without a run.
    pub(crate) idle: Vec<SessionName>,
    pub(crate) verdicts: HashMap<SessionName, Verdicts>,
    pub(crate) links: Links,
}

/// Writes whose verdicts are void: another server's commits came between.
#[derive(Default)]
pub(crate) struct Void {
    /// The sessions that they touch.
    pub(crate) names: Vec<SessionName>,
    /// The writes with their void verdicts, in the order of the batch.
    pub(crate) verdicts: Verdicts,
}

impl Batch {
    /// Adds a write with its verdict.
    pub(crate) fn add(&mut self, mut job: Box<WriteJob>, verdict: Verdict) {
        job.place = self.writes;
        self.writes += 1;
        self.verdicts.entry(job.session().clone()).or_default().push((job, verdict));
    }
}

impl Written {
    /// Gives linked runs a common group.
    pub(crate) fn group(&mut self) {
        let mut groups: HashMap<&SessionName, u32> = HashMap::new();
        for ((name, _), run) in self.parts.iter().zip(&mut self.runs) {
            let next = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            run.group = Some(*groups.entry(self.links.root(name)).or_insert(next));
        }
    }

    /// Takes out the sessions that met commits of another server, with all that is linked to them.
    pub(crate) fn take_conflicts(&mut self) -> Void {
        let is_void = |outcome: &Outcome| matches!(outcome, Outcome::Conflict { .. });
        if !self.outcomes.iter().any(is_void) {
            return Void::default();
        }
        let met = self.parts.iter().zip(&self.outcomes).filter(|(_, outcome)| is_void(outcome));
        let roots: HashSet<SessionName> =
            met.map(|((name, _), _)| self.links.root(name).clone()).collect();
        let belongs = |name: &SessionName| roots.contains(self.links.root(name));
        let mut void = Void::default();
        let (mut parts, mut outcomes) = (Vec::new(), Vec::new());
        for ((name, staging), outcome) in self.parts.drain(..).zip(self.outcomes.drain(..)) {
            if belongs(&name) {
                void.names.push(name);
            } else {
                parts.push((name, staging));
                outcomes.push(outcome);
            }
        }
        let (linked, idle) = self.idle.drain(..).partition(belongs);
        void.names.extend::<Vec<_>>(linked);
        (self.parts, self.outcomes, self.idle) = (parts, outcomes, idle);
        let verdicts = void.names.iter().filter_map(|name| self.verdicts.remove(name));
        void.verdicts = verdicts.flatten().collect();
        void.verdicts.sort_by_key(|(job, _)| job.place);
        void
    }
}

impl Void {
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
