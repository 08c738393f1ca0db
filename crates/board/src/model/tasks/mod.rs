//! The requests of a board as tasks: which can be claimed, which are claimed, early, in review, or wait for others.
//!
//! All of it is derived from the entries of the log and the session's caps.

pub(crate) mod caps;
pub(crate) mod matching;
mod queues;
mod search;
mod traits;

use std::collections::BinaryHeap;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::log::Entry;
use crate::{AgentName, Board, Item, Log, Revision, Seq, SeqRange, Timestamp, Work, size};
use caps::{Cap, Claims, Groups};
use queues::{Queue, Queues};
pub use search::Next;
use traits::Traits;

/// The requests of a board as tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tasks {
    caps: Arc<[Cap]>,
    /// Requests that wait for a worker, each with its last change. A cap may hold them back.
    claimable: OrdMap<Seq, Revision>,
    /// The same, by the values that the caps count, in the order of claims.
    queues: Queues,
    /// The claims that the caps count.
    claims: Claims,
    /// The deadlines of claims.
    leases: OrdSet<(Timestamp, Seq)>,
    /// Requests that cannot be claimed before a time.
    early: OrdSet<(Timestamp, Seq)>,
    /// The deadlines of requests that have not ended.
    deadlines: OrdSet<(Timestamp, Seq)>,
    /// Requests whose results wait for a verdict, each with its last change.
    in_review: OrdMap<Seq, Revision>,
    /// Claimed requests that are cancelled, by their holders.
    cancelled: OrdSet<(AgentName, Seq)>,
    /// The blocked requests, by each request that they wait for.
    dependants: OrdMap<Seq, OrdSet<Seq>>,
}

impl Tasks {
    /// Returns the requests that wait for a worker, oldest first, each with its last change. A cap may hold them back.
    #[must_use]
    pub fn claimable(&self) -> &OrdMap<Seq, Revision> {
        &self.claimable
    }

    /// Returns the deadlines of claims.
    #[must_use]
    pub fn leases(&self) -> &OrdSet<(Timestamp, Seq)> {
        &self.leases
    }

    /// Returns the requests that cannot be claimed before a time.
    pub(crate) fn early(&self) -> &OrdSet<(Timestamp, Seq)> {
        &self.early
    }

    /// Returns the deadlines of requests that have not ended.
    pub(crate) fn deadlines(&self) -> &OrdSet<(Timestamp, Seq)> {
        &self.deadlines
    }

    /// Returns the requests whose results wait for a verdict, oldest first, each with its last change.
    #[must_use]
    pub fn in_review(&self) -> &OrdMap<Seq, Revision> {
        &self.in_review
    }

    /// Returns the requests that this agent has claimed and that are cancelled, oldest first.
    pub fn cancelled_of(&self, agent: &AgentName) -> impl DoubleEndedIterator<Item = Seq> {
        let all = (agent.clone(), Seq(0))..=(agent.clone(), Seq(u64::MAX));
        self.cancelled.range(all).map(|(_, seq)| *seq)
    }

    /// Returns true if a request can be claimed now.
    #[must_use]
    pub fn can_be_claimed(&self) -> bool {
        let mut heads = self.queues.heads().iter();
        !self.queues.uncounted().is_empty() || heads.any(|(_, groups)| self.has_room(groups))
    }

    /// Counts the requests that can be claimed now, each by itself.
    #[must_use]
    pub fn claimable_now(&self) -> usize {
        if self.caps.is_empty() {
            return self.claimable.len();
        }
        self.open_queues().map(OrdMap::len).sum()
    }

    /// Returns the queues that no cap holds back.
    fn open_queues(&self) -> impl Iterator<Item = &Queue> {
        let counted = self.queues.counted().filter(|(groups, _)| self.has_room(groups));
        std::iter::once(self.queues.uncounted()).chain(counted.map(|(_, queue)| queue))
    }

    /// Estimates the memory of the sets.
    pub(crate) fn resident_bytes(&self) -> usize {
        let numbers = [self.claimable.len(), self.in_review.len()];
        let times = [&self.leases, &self.early, &self.deadlines].map(OrdSet::len);
        let pairs = numbers.into_iter().chain(times);
        let pairs: usize = pairs.map(|count| size::tree(count, size_of::<(Seq, Revision)>())).sum();
        let cancelled = size::tree(self.cancelled.len(), size_of::<(AgentName, Seq)>());
        pairs
            .saturating_add(cancelled)
            .saturating_add(self.queues.resident_bytes(self.claimable.len()))
    }

    /// Returns true if these are the caps.
    pub(crate) fn has_caps(&self, caps: &[Cap]) -> bool {
        *self.caps == *caps
    }

    /// Returns the first requests after the given one that can be claimed now, oldest first.
    pub(crate) fn claimable_after(&self, after: Seq, limit: usize) -> Vec<Seq> {
        let later = Seq(after.0.saturating_add(1))..;
        if self.caps.is_empty() {
            return self.claimable.range(later).take(limit).map(|(seq, _)| *seq).collect();
        }
        let seqs = self.open_queues().flat_map(|queue| queue.keys().map(|rank| rank.seq));
        let mut first = BinaryHeap::new();
        for seq in seqs.filter(|seq| later.contains(seq)) {
            first.push(seq);
            if first.len() > limit {
                first.pop();
            }
        }
        first.into_sorted_vec()
    }

    /// Returns the first cap that holds back a request with this item.
    #[must_use]
    pub fn full_cap(&self, item: &Item) -> Option<&Cap> {
        self.claims.first_full(None, &self.caps, &self.groups(item))
    }

    /// Returns the caps by which requests are counted.
    #[must_use]
    pub fn caps(&self) -> &Arc<[Cap]> {
        &self.caps
    }

    /// Returns the groups in which the caps count a request with this item.
    #[must_use]
    pub fn groups(&self, item: &Item) -> Groups {
        Groups::of(&self.caps, item)
    }

    /// Returns the groups of waiting requests that a cap holds back.
    pub fn held_back(&self) -> impl Iterator<Item = &Groups> {
        self.queues.counted().map(|(groups, _)| groups).filter(|groups| !self.has_room(groups))
    }

    /// Returns the waiting requests of these groups, in the order of claims.
    pub fn queue(&self, groups: &Groups) -> impl Iterator<Item = Seq> {
        let queue = self.queues.of(groups).into_iter().flat_map(OrdMap::keys);
        queue.map(|rank| rank.seq)
    }

    /// Returns the claims that are left, which offers take one by one.
    #[must_use]
    pub fn slots(&self) -> Slots<'_> {
        Slots { tasks: self, offered: Claims::default() }
    }

    /// Returns the requests that wait for this one, ascending.
    pub fn dependants(&self, request: Seq) -> impl Iterator<Item = Seq> {
        self.dependants.get(&request).into_iter().flatten().copied()
    }

    /// Returns the requests in this range for which others wait, each with these.
    pub(crate) fn awaited(
        &self,
        range: SeqRange,
    ) -> impl Iterator<Item = (Seq, impl Iterator<Item = Seq>)> {
        let awaited = self.dependants.range(range.first..=range.last);
        awaited.map(|(request, waiting)| (*request, waiting.iter().copied()))
    }

    /// Returns the number of requests that wait for this one.
    pub(crate) fn dependants_len(&self, request: Seq) -> usize {
        self.dependants.get(&request).map_or(0, OrdSet::len)
    }

    /// Finds the tasks of a log.
    pub(crate) fn of(requests: &Log, caps: Arc<[Cap]>) -> Self {
        let mut tasks = Self::without_requests(caps);
        requests.iter().for_each(|entry| tasks.add(entry));
        tasks
    }

    /// Creates the tasks of an empty log.
    pub(crate) fn without_requests(caps: Arc<[Cap]>) -> Self {
        Self { caps, ..Self::default() }
    }

    /// Adds a request.
    pub(crate) fn add(&mut self, request: &Entry) {
        let standing = self.standing(request);
        if let Some((at, seq)) = standing.early {
            self.early.insert((at, seq));
        }
        if let Some((at, seq)) = standing.deadline {
            self.deadlines.insert((at, seq));
        }
        match standing.place {
            Place::Waiting(groups) => self.enqueue(request, groups),
            Place::Claimed(groups, lease) => {
                self.leases.insert(lease);
                self.claims.add(&groups);
                self.cancelled.extend(cancelled(request));
            }
            Place::InReview => drop(self.in_review.insert(request.seq, request.revision)),
            Place::Nowhere => {}
        }
        for blocker in request.task.iter().flat_map(|task| &task.blocked_by) {
            let mut waiting = self.dependants.get(blocker).cloned().unwrap_or_default();
            waiting.insert(request.seq);
            self.dependants.insert(*blocker, waiting);
        }
    }

    /// Removes a request, as it was added.
    pub(crate) fn remove(&mut self, request: &Entry) {
        let standing = self.standing(request);
        if let Some(early) = standing.early {
            self.early.remove(&early);
        }
        if let Some(deadline) = standing.deadline {
            self.deadlines.remove(&deadline);
        }
        match standing.place {
            Place::Waiting(groups) => self.dequeue(request, groups),
            Place::Claimed(groups, lease) => {
                self.leases.remove(&lease);
                self.claims.remove(&groups);
                cancelled(request).iter().for_each(|own| drop(self.cancelled.remove(own)));
            }
            Place::InReview => drop(self.in_review.remove(&request.seq)),
            Place::Nowhere => {}
        }
        for blocker in request.task.iter().flat_map(|task| &task.blocked_by) {
            let Some(waiting) = self.dependants.get(blocker) else { continue };
            let waiting = waiting.without(&request.seq);
            if waiting.is_empty() {
                self.dependants.remove(blocker);
            } else {
                self.dependants.insert(*blocker, waiting);
            }
        }
    }

    /// Removes the requests in these ranges. Returns those removed for which others wait.
    pub(crate) fn remove_ranges(&mut self, ranges: &[SeqRange], requests: &Log) -> Vec<Seq> {
        for range in ranges.iter().copied() {
            requests.range(range).for_each(|entry| self.remove(entry));
        }
        let awaited =
            ranges.iter().flat_map(|range| self.dependants.range(range.first..=range.last));
        awaited.map(|(request, _)| *request).collect()
    }

    fn enqueue(&mut self, request: &Entry, groups: Groups) {
        self.claimable.insert(request.seq, request.revision);
        self.queues.add(request.rank(), Traits::of(&request.item), groups);
    }

    fn dequeue(&mut self, request: &Entry, groups: Groups) {
        self.claimable.remove(&request.seq);
        self.queues.remove(request.rank(), groups);
    }

    /// Returns true if no cap holds back the requests of these groups.
    fn has_room(&self, groups: &Groups) -> bool {
        self.claims.first_full(None, &self.caps, groups).is_none()
    }

    /// Finds the places of a request.
    fn standing(&self, request: &Entry) -> Standing {
        let (seq, task) = (request.seq, request.task.as_deref());
        let plan = task.map(|task| &task.plan);
        let groups = || self.groups(&request.item);
        let work = request.work.as_deref();
        let is_free = matches!(work, None | Some(Work::Lapsed { .. }));
        let place = match work {
            None | Some(Work::Lapsed { .. }) if request.is_claimable() => Place::Waiting(groups()),
            Some(Work::Claimed(claim)) => Place::Claimed(groups(), (claim.expires_at, seq)),
            Some(Work::InReview(_)) => Place::InReview,
            None
            | Some(Work::Lapsed { .. } | Work::Done(_) | Work::Failed(_) | Work::Cancelled(_)) => {
                Place::Nowhere
            }
        };
        let early = plan.filter(|_| is_free).and_then(|plan| plan.not_before);
        let is_open = work.is_none_or(|work| !work.is_ended());
        let deadline = plan.filter(|_| is_open).and_then(|plan| plan.deadline);
        let at = |at| (at, seq);
        Standing { place, early: early.map(at), deadline: deadline.map(at) }
    }
}

/// Returns the holder of a claimed request that is cancelled.
fn cancelled(request: &Entry) -> Option<(AgentName, Seq)> {
    let claim = request.work.as_deref().and_then(Work::claim)?;
    let task = request.task.as_deref().filter(|task| task.cancel.is_some());
    task.map(|_| (claim.agent.clone(), request.seq))
}

/// The claims that the caps leave, without those that are offered.
#[derive(Clone, Debug)]
pub struct Slots<'a> {
    tasks: &'a Tasks,
    offered: Claims,
}

impl Slots<'_> {
    /// Returns true if one more request of these groups can be claimed.
    #[must_use]
    pub fn has_room(&self, groups: &Groups) -> bool {
        let Self { tasks, offered } = self;
        tasks.claims.first_full(Some(offered), &tasks.caps, groups).is_none()
    }

    /// Takes the place of a request of these groups.
    pub fn take(&mut self, groups: &Groups) {
        self.offered.add(groups);
    }
}

/// The places of a request among the tasks.
struct Standing {
    place: Place,
    early: Option<(Timestamp, Seq)>,
    deadline: Option<(Timestamp, Seq)>,
}

enum Place {
    Waiting(Groups),
    Claimed(Groups, (Timestamp, Seq)),
    InReview,
    Nowhere,
}

impl Board {
    /// Returns the requests as tasks.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Returns the requests of `after` that exist and are not done.
    pub(crate) fn blockers(&self, after: &[Seq]) -> Box<[Seq]> {
        let [_, requests, ..] = &self.logs;
        let is_open = |seq: &&Seq| {
            let entry = requests.get(**seq);
            entry.is_some_and(|entry| entry.work.as_deref().and_then(Work::done).is_none())
        };
        after.iter().filter(is_open).copied().collect()
    }

    /// Returns those of the blockers that failed or were cancelled.
    pub(crate) fn stoppers(&self, blockers: &[Seq]) -> Box<[Seq]> {
        let [_, requests, ..] = &self.logs;
        let is_stopped = |seq: &&Seq| {
            let work = requests.get(**seq).and_then(|entry| entry.work.as_deref());
            work.is_some_and(|work| work.is_ended() && work.done().is_none())
        };
        blockers.iter().filter(is_stopped).copied().collect()
    }

    /// Returns the session's caps on claims.
    pub(crate) fn caps(&self) -> Arc<[Cap]> {
        let caps = self.life.as_ref().and_then(|life| life.settings.running_max.as_ref());
        caps.map_or_else(Arc::default, |caps| caps.as_slice().into())
    }

    /// Adds the requests of an append.
    pub(crate) fn add_tasks(&mut self, first: Seq, count: usize) {
        let [_, requests, ..] = &self.logs;
        let appended = (first.0..).map(Seq).take(count);
        let appended = appended.filter_map(|seq| requests.get(seq));
        appended.for_each(|entry| self.tasks.add(entry));
    }

    /// Finds the tasks of all requests anew.
    pub(crate) fn find_tasks(&mut self) {
        let [_, requests, ..] = &self.logs;
        self.tasks = Tasks::of(requests, self.caps());
    }
}
