//! One batch: the staged sessions with the verdicts on their writes, and the outcomes of its runs.

use std::collections::{HashMap, HashSet};

use super::links::Links;
use super::staging::Staging;
use super::verdict::{Verdict, Verdicts};
use crate::job::WriteJob;
use blackboard_board::SessionName;
use blackboard_store::{Outcome, Run};

/// A session's part of a batch.
pub(crate) struct Part {
    pub(crate) name: SessionName,
    pub(crate) staging: Staging,
    pub(crate) verdicts: Verdicts,
}

/// The sessions that a batch touches, and its writes.
#[derive(Default)]
pub(crate) struct Batch {
    parts: Vec<Part>,
    /// The place of each session's part.
    places: HashMap<SessionName, usize>,
    /// The part that was asked for last: nearly all steps of a write ask for the same one.
    latest: usize,
    /// The sessions whose parts are stored all or none.
    pub(crate) links: Links,
    /// The number of writes.
    writes: usize,
}

/// A batch whose runs are ready to be appended, or have been.
#[derive(Default)]
pub(crate) struct Written {
    /// The parts of the runs, in their order.
    pub(crate) parts: Vec<Part>,
    pub(crate) runs: Vec<Run>,
    /// The outcome of each run.
    pub(crate) outcomes: Vec<Outcome>,
    /// The parts without a run.
    pub(crate) idle: Vec<Part>,
    pub(crate) links: Links,
}

/// Writes whose verdicts are void: another server's commits came between.
#[derive(Default)]
pub(crate) struct Void {
    /// The names of the sessions that they touch.
    pub(crate) names: Vec<SessionName>,
    /// The writes with their void verdicts, in the order of the batch.
    pub(crate) verdicts: Verdicts,
}

impl Part {
    /// A part without a write yet.
    pub(crate) fn of(name: SessionName, staging: Staging) -> Self {
        Self { name, staging, verdicts: Verdicts::new() }
    }
}

impl Batch {
    /// Returns a session's part, which begins with what `begin` stages.
    #[expect(
        clippy::indexing_slicing,
        reason = "places are those of parts, which are never removed"
    )]
    pub(crate) fn part(
        &mut self,
        name: &SessionName,
        begin: impl FnOnce() -> Staging,
    ) -> &mut Part {
        let place = self.place(name).unwrap_or_else(|| self.push(Part::of(name.clone(), begin())));
        self.latest = place;
        &mut self.parts[place]
    }

    /// Returns a session's part if the batch touches the session already.
    pub(crate) fn touched(&self, name: &SessionName) -> Option<&Part> {
        self.parts.get(self.place(name)?)
    }

    /// Adds the part of a session that the batch did not touch, and returns its place.
    pub(crate) fn push(&mut self, part: Part) -> usize {
        let place = self.parts.len();
        self.places.insert(part.name.clone(), place);
        self.parts.push(part);
        place
    }

    /// Returns the number of sessions that it touches.
    pub(crate) fn sessions(&self) -> usize {
        self.parts.len()
    }

    /// Adds a write with its verdict to its session's part.
    pub(crate) fn add(
        &mut self,
        mut job: Box<WriteJob>,
        verdict: Verdict,
        begin: impl FnOnce() -> Staging,
    ) {
        job.place = self.writes;
        self.writes += 1;
        let name = job.session().clone();
        self.part(&name, begin).verdicts.push((job, verdict));
    }

    /// Takes the parts and the links apart.
    pub(crate) fn into_parts(self) -> (Vec<Part>, Links) {
        (self.parts, self.links)
    }

    fn place(&self, name: &SessionName) -> Option<usize> {
        match self.parts.get(self.latest) {
            Some(part) if part.name == *name => Some(self.latest),
            Some(_) => self.places.get(name).copied(),
            None => None,
        }
    }
}

impl Written {
    /// Gives linked runs a common group.
    pub(crate) fn group(&mut self) {
        let mut groups: HashMap<&SessionName, u32> = HashMap::new();
        for (part, run) in self.parts.iter().zip(&mut self.runs) {
            let next = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            run.group = Some(*groups.entry(self.links.root(&part.name)).or_insert(next));
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
            met.map(|(part, _)| self.links.root(&part.name).clone()).collect();
        let belongs = |part: &Part| roots.contains(self.links.root(&part.name));
        let (mut void, mut parts, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
        for (part, outcome) in self.parts.drain(..).zip(self.outcomes.drain(..)) {
            if belongs(&part) {
                void.push(part);
            } else {
                parts.push(part);
                outcomes.push(outcome);
            }
        }
        let (linked, idle): (Vec<_>, _) = self.idle.drain(..).partition(belongs);
        void.extend(linked);
        (self.parts, self.outcomes, self.idle) = (parts, outcomes, idle);
        let (names, verdicts): (_, Vec<_>) =
            void.into_iter().map(|part| (part.name, part.verdicts)).unzip();
        let mut verdicts: Verdicts = verdicts.into_iter().flatten().collect();
        verdicts.sort_by_key(|(job, _)| job.place);
        Void { names, verdicts }
    }
}

impl Void {
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
