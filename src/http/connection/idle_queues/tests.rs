//! Tests of the queues: the choice of the connection to evict, and its cost.

use super::*;
use crate::http::connection::idle::{IdleConnections, Membership};

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
