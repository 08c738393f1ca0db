//! Queues of idle connections, by client and by time.
//!
//! Connections record their state without the queues, so entries may be outdated. An entry is corrected when it
//! reaches the front, and a busy connection is dequeued until it is idle again. Thus all evictions together cost
//! no more than the requests did.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::idle::{Idleness, Keeps};
use blackboard_fairness::Client;

/// The maximum number of clients examined for an eviction, those with the most connections first.
const LOOKS_MAX: usize = 256;

/// All connections of a listener.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    clients: HashMap<Client, Connections>,
    /// The clients with a non-empty queue, by their number of connections.
    by_number: BTreeSet<(usize, Client)>,
}

/// The connections of one client.
#[derive(Debug, Default)]
struct Connections {
    number: usize,
    idle: Queue,
    heads: Queue,
}

/// Connections by the start of their state, then by id.
type Queue = BTreeMap<(u64, u64), Arc<Idleness>>;

impl Queues {
    /// Adds a new connection.
    pub(crate) fn join(&mut self, new: &Arc<Idleness>) {
        self.change(new.client, |connections| {
            connections.number += 1;
            connections.queue(new);
        });
    }

    /// Removes a closed connection.
    pub(crate) fn leave(&mut self, old: &Idleness) {
        self.change(old.client, |connections| {
            connections.number -= 1;
            connections.remove(old);
        });
    }

    /// Moves a connection that became idle to the idle queue. An eviction would skip a recent entry among the heads.
    pub(crate) fn put_back(&mut self, idle: &Arc<Idleness>) {
        self.change(idle.client, |connections| {
            if !idle.is_queued_as_idle() {
                connections.remove(idle);
                connections.queue(idle);
            }
        });
    }

    /// Takes the connection to evict for a new one. A head that began after `late` is spared, unless its client has
    /// more connections than the new one's would have.
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

    /// Changes a client's connections and updates the client's place in the order.
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
    /// Returns the number of connections if any of them is queued.
    fn place(&self) -> Option<usize> {
        let is_queued = !(self.idle.is_empty() && self.heads.is_empty());
        is_queued.then_some(self.number)
    }

    /// Queues a connection by its current state, unless a request is under way.
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

    /// Takes the connection that has been without a request for longest.
    fn take(&mut self, late: Option<u64>) -> Option<Arc<Idleness>> {
        loop {
            let one = self.first(late)?;
            self.remove(&one);
            if one.keeps() == one.queued() {
                // Left recorded as queued, so that no other new connection counts on its place.
                return Some(one);
            }
            // In this order: a connection that becomes idle now either sees that it is dequeued, or is seen here.
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
mod tests {
    use super::*;
    use crate::connection::idle::{IdleConnections, Membership};

    const MANY: usize = 1000;

    fn client(number: u8) -> Client {
        Client::Token([number; 16])
    }

    /// Opens `number` connections of this client, each with its first request under way.
    fn busy(connections: &Arc<IdleConnections>, client: Client, number: usize) -> Vec<Membership> {
        let joined = (0..number).map(|_| connections.join(client));
        joined.inspect(|member| member.idleness().end()).collect()
    }

    #[test]
    fn busy_connections_are_looked_at_once() {
        let connections = IdleConnections::new();
        let members = busy(&connections, client(1), MANY);
        assert!(connections.take(client(2)).is_none());
        assert!(connections.queues.lock().by_number.is_empty());
        let idle = members[7].idleness();
        idle.begin();
        assert_eq!(connections.queues.lock().clients[&client(1)].idle.len(), 1);
        assert!(connections.take(client(2)).is_some_and(|taken| Arc::ptr_eq(&taken, idle)));
        assert!(connections.take(client(2)).is_none(), "it is to close already");
    }

    #[test]
    fn the_client_with_the_most_yields_its_idlest_first() {
        let connections = IdleConnections::new();
        let one = busy(&connections, client(1), 1);
        one[0].idleness().begin();
        let several = busy(&connections, client(2), 3);
        for place in [2, 0, 1, 2] {
            several[place].idleness().end();
            several[place].idleness().begin();
        }
        let is_next = |member: &Membership| {
            let taken = connections.take(client(3)).unwrap();
            assert!(Arc::ptr_eq(&taken, member.idleness()));
        };
        several.iter().for_each(is_next);
        is_next(&one[0]);
    }

    #[test]
    fn a_head_on_its_way_yields_only_where_its_client_has_more() {
        let connections = IdleConnections::new();
        let one = connections.join(client(1));
        assert!(connections.take(client(2)).is_none());
        let _second = connections.join(client(1));
        assert!(connections.take(client(1)).is_none());
        let taken = connections.take(client(2)).unwrap();
        assert!(Arc::ptr_eq(&taken, one.idleness()));
    }

    #[test]
    fn what_has_ended_is_in_no_queue() {
        let connections = IdleConnections::new();
        let members = busy(&connections, client(1), MANY);
        members.iter().for_each(|member| member.idleness().begin());
        drop(members);
        assert!(
            connections.queues.lock().clients.is_empty()
                && connections.queues.lock().by_number.is_empty()
        );
    }
}
