//! Claimable requests, and the requests that wait for others.
//!
//! Both are derived from the entries of the log.

use imbl::{OrdMap, OrdSet};

use crate::log::Entry;
use crate::{Board, Log, LogName, Seq, SeqRange, Wanted, Work};

/// The requests of a board as tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tasks {
    /// Requests that are neither claimed, done, failed nor blocked.
    claimable: OrdSet<Seq>,
    /// The blocked requests, by each request that they wait for.
    dependants: OrdMap<Seq, OrdSet<Seq>>,
}

impl Tasks {
    /// Returns the claimable requests, oldest first.
    #[must_use]
    pub fn claimable(&self) -> &OrdSet<Seq> {
        &self.claimable
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

    /// Finds the claimable and the blocked requests of a log.
    pub(crate) fn of(requests: &Log) -> Self {
        let mut tasks = Self::default();
        requests.iter().for_each(|entry| tasks.note(entry));
        tasks
    }

    /// Adds a request, or notes its change.
    pub(crate) fn note(&mut self, request: &Entry) {
        if request.is_claimable() {
            self.claimable.insert(request.seq);
        } else {
            self.claimable.remove(&request.seq);
        }
        for blocker in request.task.iter().flat_map(|task| &task.blocked_by) {
            let mut waiting = self.dependants.get(blocker).cloned().unwrap_or_default();
            waiting.insert(request.seq);
            self.dependants.insert(*blocker, waiting);
        }
    }

    /// Removes a request's place among those that wait for others.
    fn unblock(&mut self, request: &Entry) {
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

    /// Takes the requests that wait for this one.
    pub(crate) fn take_dependants(&mut self, request: Seq) -> OrdSet<Seq> {
        self.dependants.remove(&request).unwrap_or_default()
    }

    /// Removes the requests in these ranges. Returns those removed for which others wait.
    pub(crate) fn remove(&mut self, ranges: &[SeqRange], requests: &Log) -> Vec<Seq> {
        let mut awaited = Vec::new();
        for SeqRange { first, last } in ranges.iter().copied() {
            let gone: Vec<Seq> = self.claimable.range(first..=last).copied().collect();
            for request in gone {
                self.claimable.remove(&request);
            }
            if !self.dependants.is_empty() {
                let places = requests.count_through(Seq(first.0.saturating_sub(1)))..;
                let gone = places.map_while(|place| requests.at(place));
                gone.take_while(|entry| entry.seq <= last).for_each(|entry| self.unblock(entry));
                let named = self.dependants.range(first..=last).map(|(request, _)| *request);
                awaited.extend(named);
            }
        }
        awaited
    }
}

/// The maximum bytes of items that a search for the next request examines.
const EXAMINED_BYTES_MAX: u64 = 4 << 20;

/// The result of a search for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The oldest that matches.
    Found(Seq),
    /// None matches.
    None,
    /// None matches up to this one; the rest was not examined.
    After(Seq),
}

impl Board {
    /// Finds the oldest claimable request with these members, from a seq on. Examines at most `count` requests, and
    /// a bounded number of bytes.
    #[must_use]
    pub fn next_claimable(&self, wanted: &Wanted, from: Seq, count: usize) -> Next {
        let [_, requests, ..] = &self.logs;
        let (mut last, mut bytes) = (from, 0);
        for (place, seq) in self.tasks.claimable.range(from..).enumerate() {
            if place == count || bytes > EXAMINED_BYTES_MAX {
                return Next::After(last);
            }
            if let Some(entry) = requests.get(*seq) {
                if wanted.fits(&entry.item) {
                    return Next::Found(*seq);
                }
                bytes += entry.item.bytes();
            }
            last = *seq;
        }
        Next::None
    }

    /// Returns the claimable and the blocked requests.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Returns true if a request is neither claimed, done, failed nor blocked.
    #[must_use]
    pub fn is_claimable(&self, request: Seq) -> bool {
        self.tasks.claimable.contains(&request)
    }

    /// Returns the requests of `after` that exist and are not done.
    pub(crate) fn blockers(&self, after: &[Seq]) -> Box<[Seq]> {
        let requests = self.log(&LogName::Requests);
        let is_open = |seq: &&Seq| {
            let entry = requests.and_then(|requests| requests.get(**seq));
            entry.is_some_and(|entry| !matches!(entry.work.as_deref(), Some(Work::Done(_))))
        };
        after.iter().filter(is_open).copied().collect()
    }

    /// Notes a request's change among the tasks.
    pub(crate) fn note_request(&mut self, request: Seq) {
        let [_, requests, ..] = &self.logs;
        if let Some(entry) = requests.get(request) {
            self.tasks.note(entry);
        }
    }
}
