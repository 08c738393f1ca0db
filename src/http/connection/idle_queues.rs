//! Queues of idle connections, by client and by time.
//!
//! An entry may be out of date, since a connection notes its state without the queues. It is put right when it comes
//! to the front, and one that is busy leaves until it is idle again: so all choices together cost no more than all
//! requests did.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::idle::{Idleness, Keeps};
use crate::fairness::Client;

/// A choice looks at so many clients, those with the most connections first.
const LOOKS_MAX: usize = 256;

/// All connections of a listener.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    clients: HashMap<Client, Connections>,
    /// Those whose queues are not empty, by the number of all their connections.
    by_number: BTreeSet<(usize, Client)>,
}

/// The connections of one client.
#[derive(Debug, Default)]
struct Connections {
    number: usize,
    idle: Queue,
    heads: Queue,
}

/// By since when, and by id among those of one moment.
type Queue = BTreeMap<(u64, u64), Arc<Idleness>>;

impl Queues {
    /// Adds a connection that was just opened.
    pub(crate) fn join(&mut self, new: &Arc<Idleness>) {
        self.change(new.client, |connections| {
            connections.number += 1;
            connections.queue(new);
        });
    }

    /// Takes one out that has ended.
    pub(crate) fn leave(&mut self, old: &Idleness) {
        self.change(old.client, |connections| {
            connections.number -= 1;
            connections.remove(old);
        });
    }

    /// Queues one that has become idle. Its entry among the heads would be passed over while that is young.
    pub(crate) fn put_back(&mut self, idle: &Arc<Idleness>) {
        self.change(idle.client, |connections| {
            if !idle.is_queued_as_idle() {
                connections.remove(idle);
                connections.queue(idle);
            }
        });
    }

    /// Takes the connection that yields to a newcomer. A head that began after `late` is taken for one on its way,
    /// unless its client has more connections than the newcomer's would have.
    pub(crate) fn take(&mut self, newcomer: Client, late: Option<u64>) -> Option<Arc<Idleness>> {
        let own = self.clients.get(&newcomer).map_or(0, |connections| connections.number) + 1;
        let mut next = self.by_number.last().copied();
        for _ in 0..LOOKS_MAX {
            let (number, client) = next?;
            let late = if number > own { Some(u64::MAX) } else { late };
            let taken = self.change(client, |connections| connections.take(late));
            if taken.is_some() {
                return taken;
            }
            next = self.by_number.range(..(number, client)).next_back().copied();
        }
        None
    }

    /// Changes a client's connections, and keeps its place among the others.
    fn change<T>(&mut self, client: Client, how: impl FnOnce(&mut Connections) -> T) -> T {
        let connections = self.clients.entry(client).or_default();
        let before = connections.place();
        let came = how(connections);
        let after = connections.place();
        if connections.number == 0 {
            self.clients.remove(&client);
        }
        if before != after {
            before.map(|number| self.by_number.remove(&(number, client)));
            after.map(|number| self.by_number.insert((number, client)));
        }
        came
    }
}

impl Connections {
    /// How many there are, if any may be asking for nothing.
    fn place(&self) -> Option<usize> {
        let is_queued = !(self.idle.is_empty() && self.heads.is_empty());
        is_queued.then_some(self.number)
    }

    /// Queues one as it is now, unless it is busy.
    fn queue(&mut self, one: &Arc<Idleness>) {
        let keeps = one.keeps();
        one.is_queued_for(keeps);
        match keeps {
            Some(Keeps::Idle(since)) => self.idle.insert((since, one.id), Arc::clone(one)),
            Some(Keeps::Head(since)) => self.heads.insert((since, one.id), Arc::clone(one)),
            None => None,
        };
    }

    fn remove(&mut self, one: &Idleness) {
        match one.queued() {
            Some(Keeps::Idle(since)) => self.idle.remove(&(since, one.id)),
            Some(Keeps::Head(since)) => self.heads.remove(&(since, one.id)),
            None => None,
        };
    }

    /// The one that has asked for nothing the longest.
    fn take(&mut self, late: Option<u64>) -> Option<Arc<Idleness>> {
        loop {
            let one = self.first(late)?;
            self.remove(&one);
            if one.keeps() == one.queued() {
                // Still noted as queued, so that no other newcomer counts on its place.
                return Some(one);
            }
            // In this order: one that becomes idle now sees that it is in no queue, or is seen to be idle.
            one.is_queued_for(None);
            self.queue(&one);
        }
    }

    fn first(&self, late: Option<u64>) -> Option<Arc<Idleness>> {
        let idle = self.idle.first_key_value();
        let head = self
            .heads
            .first_key_value()
            .filter(|((since, _), _)| late.is_some_and(|late| *since <= late));
        let first = idle.into_iter().chain(head).min_by_key(|(place, _)| **place);
        first.map(|(_, one)| Arc::clone(one))
    }
}

#[cfg(test)]
mod tests;
