//! Requests that wait for a worker, in the order of claims.

use imbl::ordmap::RangedIter;
use imbl::shared_ptr::DefaultSharedPtr;
use imbl::{OrdMap, OrdSet};

use super::caps::Groups;
use super::traits::Traits;
use crate::{Rank, size};

/// Requests in the order of claims, with their traits.
pub(super) type Queue = OrdMap<Rank, Traits>;

/// The part of a queue from a place on.
pub(super) type Rest<'a> = RangedIter<'a, Rank, Traits, DefaultSharedPtr>;

/// The first request of a queue, with the queue's groups.
pub(super) type Head = (Rank, Groups);

/// Queues of requests, one for each value that the caps count.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Queues {
    /// The requests that no cap counts: all of them in most sessions.
    uncounted: Queue,
    /// The others, by the groups in which they count. None of these queues is empty.
    counted: OrdMap<Groups, Queue>,
    /// The first of each queue of counted requests.
    heads: OrdSet<Head>,
}

impl Queues {
    /// Returns the requests that no cap counts.
    pub(super) fn uncounted(&self) -> &Queue {
        &self.uncounted
    }

    /// Returns the queues of requests that caps count, by their groups.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&Groups, &Queue)> {
        self.counted.iter()
    }

    /// Returns the first request of each queue that caps count, in the order of claims.
    pub(super) fn heads(&self) -> &OrdSet<Head> {
        &self.heads
    }

    /// Returns the requests of these groups, if there are any.
    pub(super) fn of(&self, groups: &Groups) -> Option<&Queue> {
        if groups.are_none() { Some(&self.uncounted) } else { self.counted.get(groups) }
    }

    /// Adds a request.
    pub(super) fn add(&mut self, rank: Rank, traits: Traits, groups: Groups) {
        if groups.are_none() {
            self.uncounted.insert(rank, traits);
        } else {
            self.change(groups, |queue| queue.insert(rank, traits));
        }
    }

    /// Removes a request.
    pub(super) fn remove(&mut self, rank: Rank, groups: Groups) {
        if groups.are_none() {
            self.uncounted.remove(&rank);
        } else {
            self.change(groups, |queue| queue.remove(&rank));
        }
    }

    /// Estimates the memory of the queues with all these requests. It takes no longer with more queues.
    pub(super) fn resident_bytes(&self, requests: usize) -> usize {
        let queue = |requests: usize| size::tree(requests, size_of::<(Rank, Traits)>());
        let uncounted = self.uncounted.len();
        let (counted, queues) = (requests.saturating_sub(uncounted), self.counted.len());
        let counted = queue(counted).max(queues.saturating_mul(queue(1)));
        let names = size::tree(queues, size_of::<(Groups, Queue)>());
        let heads = size::tree(self.heads.len(), size_of::<Head>());
        [queue(uncounted), counted, names, heads].into_iter().fold(0, usize::saturating_add)
    }

    fn change(&mut self, groups: Groups, change: impl FnOnce(&mut Queue) -> Option<Traits>) {
        let first = |queue: &Queue| queue.get_min().map(|(rank, _)| *rank);
        let mut queue = self.counted.get(&groups).cloned().unwrap_or_default();
        let before = first(&queue);
        change(&mut queue);
        let head = first(&queue);
        if head != before {
            if let Some(before) = before {
                self.heads.remove(&(before, groups.clone()));
            }
            if let Some(head) = head {
                self.heads.insert((head, groups.clone()));
            }
        }
        if queue.is_empty() {
            self.counted.remove(&groups);
        } else {
            self.counted.insert(groups, queue);
        }
    }
}
