//! Search for the next request to claim, by priority and age.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use super::Tasks;
use super::queues::{Head, Queue, Rest};
use super::traits::Traits;
use crate::{Board, Rank, Seq, Wanted};

/// The maximum bytes of items that a search for the next request reads.
const READ_BYTES_MAX: u64 = 4 << 20;

/// The result of a search for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The first that matches.
    Found(Rank),
    /// None matches.
    None,
    /// None matches up to this one; the rest was not examined.
    After(Rank),
}

impl Board {
    /// Finds the first request with these members that can be claimed now, from a place in the order on. Examines at most
    /// `count` requests, and reads a bounded number of bytes. All requests that a cap holds back together count as one.
    #[must_use]
    pub fn next_claimable(&self, wanted: &Wanted, from: Rank, count: usize) -> Next {
        let [_, requests, ..] = &self.logs;
        let traits = Traits::wanted(wanted);
        let (mut last, mut bytes) = (from, 0);
        for (place, step) in self.tasks.walk(from).enumerate() {
            if place >= count || bytes > READ_BYTES_MAX {
                return Next::After(last);
            }
            let Step::Request(rank, own) = step else { continue };
            if traits.are_none() {
                return Next::Found(rank);
            }
            if own.may_have(traits)
                && let Some(entry) = requests.get(rank.seq)
            {
                if wanted.fits(&entry.item) {
                    return Next::Found(rank);
                }
                bytes += entry.item.bytes();
            }
            last = rank;
        }
        Next::None
    }

    /// Returns true if a request can be claimed now.
    #[must_use]
    pub fn is_claimable(&self, request: Seq) -> bool {
        let [_, requests, ..] = &self.logs;
        self.tasks.claimable.contains_key(&request)
            && requests.get(request).is_some_and(|entry| self.tasks.full_cap(&entry.item).is_none())
    }
}

/// A step of a walk over the requests that can be claimed.
enum Step {
    /// A request.
    Request(Rank, Traits),
    /// Requests that a cap holds back.
    Capped,
}

impl Tasks {
    /// Walks over the requests that can be claimed, in their order.
    fn walk(&self, from: Rank) -> impl Iterator<Item = Step> {
        let heads = self.queues.heads().iter().peekable();
        let (queues, next) = (Vec::new(), BinaryHeap::new());
        let mut walk = Walk { tasks: self, from, heads, queues, present: None, next };
        walk.open(self.queues.uncounted());
        walk
    }
}

/// A walk over several queues at once, each of which is opened when its turn comes.
struct Walk<'a, Heads: Iterator> {
    tasks: &'a Tasks,
    from: Rank,
    heads: Peekable<Heads>,
    queues: Vec<Peekable<Rest<'a>>>,
    /// The queue of the last request.
    present: Option<usize>,
    /// The next request of each other open queue, with the queue's index.
    next: BinaryHeap<Reverse<(Rank, usize)>>,
}

impl<'a, Heads: Iterator<Item = &'a Head>> Walk<'a, Heads> {
    fn open(&mut self, queue: &'a Queue) {
        let mut requests = queue.range(self.from..).peekable();
        if let Some((first, _)) = requests.peek() {
            self.next.push(Reverse((**first, self.queues.len())));
            self.queues.push(requests);
        }
    }

    /// Returns the next request of the present queue, if no other queue has an earlier one.
    fn in_present(&mut self) -> Option<Step> {
        let index = self.present?;
        let queue = self.queues.get_mut(index)?;
        let Some((rank, _)) = queue.peek() else {
            self.present = None;
            return None;
        };
        let is_first = self.next.peek().is_none_or(|Reverse((other, _))| *rank < other)
            && self.heads.peek().is_none_or(|(head, _)| *rank < head);
        if is_first {
            return queue.next().map(|(rank, traits)| Step::Request(*rank, *traits));
        }
        self.next.push(Reverse((**rank, index)));
        self.present = None;
        None
    }
}

impl<'a, Heads: Iterator<Item = &'a Head>> Iterator for Walk<'a, Heads> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if let Some(step) = self.in_present() {
            return Some(step);
        }
        loop {
            let first = self.next.peek().map(|Reverse((rank, _))| *rank);
            let begins = |head: &&Head| first.is_none_or(|first| head.0 < first);
            let Some((_, groups)) = self.heads.next_if(begins) else { break };
            if !self.tasks.has_room(groups) {
                return Some(Step::Capped);
            }
            if let Some(queue) = self.tasks.queues.of(groups) {
                self.open(queue);
            }
        }
        let Reverse((_, index)) = self.next.pop()?;
        self.present = Some(index);
        let (rank, traits) = self.queues.get_mut(index)?.next()?;
        Some(Step::Request(*rank, *traits))
    }
}
