//! Tests of queues with cheap and expensive entries, new clients, and a closed queue.

use super::*;

fn client(number: u8) -> Client {
    Client::Token([number; 16])
}

fn order(queue: &Queue<u32>, took: impl Fn(u32) -> Duration) -> Vec<u32> {
    let next = || {
        let (client, entry) = queue.try_pop().ok()?;
        queue.charge(client, took(entry));
        Some(entry)
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn clients_take_turns_and_each_keeps_its_order() {
    let queue = Queue::new(100);
    (0..3).for_each(|n| queue.push(client(1), 10 + n).unwrap());
    (0..3).for_each(|n| queue.push(client(2), 20 + n).unwrap());
    assert_eq!(order(&queue, |_| Duration::from_millis(1)), [10, 20, 11, 21, 12, 22]);
}

#[test]
fn a_client_of_small_entries_is_served_more_often() {
    let queue = Queue::new(100);
    (0..2).for_each(|n| queue.push(client(1), 10 + n).unwrap());
    (0..4).for_each(|n| queue.push(client(2), 20 + n).unwrap());
    let took = |entry| Duration::from_millis(if entry < 20 { 100 } else { 1 });
    assert_eq!(order(&queue, took), [10, 20, 21, 22, 23, 11]);
}

#[test]
fn a_client_that_took_much_waits_for_it_when_it_comes_back() {
    let queue = Queue::new(100);
    queue.push(client(1), 10).unwrap();
    queue.push(client(2), 20).unwrap();
    let (first, _) = queue.try_pop().unwrap();
    queue.charge(first, Duration::from_secs(1));
    queue.push(client(1), 11).unwrap();
    queue.push(client(2), 21).unwrap();
    assert_eq!(order(&queue, |_| Duration::from_millis(1)), [20, 21, 11]);
}

#[test]
fn a_newcomer_owes_nothing_and_is_owed_nothing() {
    let queue = Queue::new(100);
    (0..4).for_each(|n| queue.push(client(1), 10 + n).unwrap());
    for _ in 0..2 {
        let (client, _) = queue.try_pop().unwrap();
        queue.charge(client, Duration::from_secs(1));
    }
    (0..3).for_each(|n| queue.push(client(2), 20 + n).unwrap());
    assert_eq!(order(&queue, |_| Duration::from_secs(1)), [20, 12, 21, 13, 22]);
}

#[test]
fn a_job_put_back_is_its_clients_next() {
    let queue = Queue::new(100);
    (0..2).for_each(|n| queue.push(client(1), 10 + n).unwrap());
    let (first, entry) = queue.try_pop().unwrap();
    queue.push(client(2), 20).unwrap();
    queue.charge(first, Duration::from_millis(1));
    queue.put_back(first, entry);
    queue.close();
    assert_eq!(order(&queue, |_| Duration::from_millis(5)), [20, 10, 11]);
}

#[test]
fn one_client_leaves_places_to_others() {
    let queue = Queue::new(8);
    let taken = (0..10).take_while(|n| queue.push(client(1), *n).is_ok()).count();
    assert_eq!(taken, 8);
    assert!(queue.push(client(2), 20).is_ok());
    assert!(matches!(queue.push(client(1), 9), Err(Refused::Full(9))));
    assert!(queue.push(client(3), 30).is_ok());
    assert!(matches!(queue.push(client(4), 40), Err(Refused::Full(40))));
}

#[test]
fn what_waits_at_the_end_is_still_given_out() {
    let queue = Queue::new(10);
    queue.push(client(1), 1).unwrap();
    queue.close();
    assert!(matches!(queue.push(client(1), 2), Err(Refused::Closed(2))));
    assert_eq!(queue.pop().unwrap().1, 1);
    assert_eq!(queue.pop(), None);
    assert_eq!(queue.try_pop(), Err(Left::Closed));
    queue.wait(None);
}

#[test]
fn whoever_waits_is_woken() {
    let queue = Queue::new(10);
    queue.wait(Some(Instant::now()));
    assert_eq!(queue.try_pop(), Err(Left::Nothing));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| queue.pop());
        queue.push(client(1), 1).unwrap();
        assert_eq!(waiting.join().unwrap(), Some((client(1), 1)));
    });
}

#[test]
fn a_wait_that_is_woken_early_ends_at_once() {
    let queue = Queue::<u32>::new(10);
    queue.wake();
    queue.wait(None);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| queue.wait(None));
        queue.wake();
        waiting.join().unwrap();
    });
}
