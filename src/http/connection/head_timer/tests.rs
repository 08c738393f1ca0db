//! Tests of the timeouts of first and later heads.

use tokio::time::timeout;

use super::*;
use crate::fairness::Client;
use crate::http::connection::idle::IdleConnections;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Returns the timer of a new connection.
fn timer(head_timeout: Duration) -> HeadTimer {
    let member = IdleConnections::new().join(Client::default());
    HeadTimer::new(head_timeout, Arc::clone(member.idleness()))
}

/// Returns the wait for a second head.
fn second(timer: &HeadTimer) -> Pin<Box<dyn Sleep>> {
    drop(timer.sleep(HOUR));
    timer.sleep(HOUR)
}

#[tokio::test]
async fn a_first_head_has_its_time_from_the_beginning() {
    let timer = timer(MS);
    timer.sleep(HOUR).await;
}

#[tokio::test]
async fn a_later_one_has_its_time_from_its_first_byte() {
    let timer = timer(MS);
    let mut wait = second(&timer);
    assert!(timeout(50 * MS, wait.as_mut()).await.is_err());
    timer.idleness.read();
    wait.await;
}

#[tokio::test]
async fn what_was_read_of_a_request_is_not_taken_for_the_next_head() {
    let timer = timer(MS);
    drop(timer.sleep(HOUR));
    timer.idleness.read();
    assert!(timeout(50 * MS, timer.sleep(HOUR)).await.is_err());
}

#[tokio::test]
async fn a_rest_is_for_as_long_as_it_may_be() {
    let timer = timer(HOUR);
    drop(second(&timer));
    let deadline = timer.now() + 5 * MS;
    timer.sleep_until(deadline).await;
    assert!(timer.now() >= deadline);
}
