//! Tests of slow-client deadlines: silence, trickle and recovery.

use super::*;

const MAX: Duration = Duration::from_secs(10);
const S: Duration = Duration::from_secs(1);

/// Returns the time from now until the deadline of a silent client.
fn left(patience: &mut Patience, now: Instant) -> Duration {
    patience.end(now) - now
}

#[test]
fn silence_ends_patience() {
    let (mut patience, begun) = (Patience::new(MAX), Instant::now());
    assert_eq!(left(&mut patience, begun), MAX);
    assert_eq!(left(&mut patience, begun + 4 * S), MAX - 4 * S);
}

#[test]
fn a_drip_ends_patience_as_silence_does() {
    let (mut patience, mut now) = (Patience::new(MAX), Instant::now());
    for _ in 0..9 {
        assert!(left(&mut patience, now) > S);
        now += S;
        patience.moved_at(1, now);
    }
    assert!(left(&mut patience, now) < 2 * S);
}

#[test]
fn the_slowest_rate_is_borne_for_ever() {
    let (mut patience, mut now) = (Patience::new(MAX), Instant::now());
    for _ in 0..1000 {
        assert_eq!(left(&mut patience, now), MAX);
        now += 5 * S;
        patience.moved_at(5 * 1024, now);
    }
}

#[test]
fn what_moved_before_is_no_credit() {
    let (mut patience, now) = (Patience::new(MAX), Instant::now());
    patience.moved_at(usize::MAX, now);
    assert_eq!(left(&mut patience, now), MAX);
}

#[test]
fn time_in_which_nobody_waits_is_no_debt() {
    let (mut patience, mut now) = (Patience::new(MAX), Instant::now());
    for _ in 0..100 {
        assert_eq!(left(&mut patience, now), MAX);
        patience.moved_at(8, now);
        now += 100 * MAX;
    }
}
