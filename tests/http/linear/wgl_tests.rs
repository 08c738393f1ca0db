//! Tests of the linearizability checker: an order is found if and only if one exists.

use std::sync::Arc;
use std::time::Duration;

use super::choice::Mix;
use super::history::{Call, Op, Outcome, Shown};
use super::simulated::{Flaw, history};
use super::wgl::{Span, Stuck, linearize};
use super::{linearize_calls, of_key};

const KEY: usize = 0;

fn shown(value: i64) -> Shown {
    Shown { value, tag: Arc::from(format!("\"{value}\"")) }
}

fn call(op: Op, outcome: Outcome, began: u64, ended: u64) -> Call {
    let at = Duration::from_micros;
    let ended = (!matches!(outcome, Outcome::Unknown)).then_some(at(ended));
    Call { op, outcome, revision: 0, began: at(began), ended }
}

fn read(value: i64, began: u64, ended: u64) -> Call {
    let outcome = Outcome::Shown((value != 0).then(|| shown(value)));
    call(Op::Read { key: KEY }, outcome, began, ended)
}

fn put_first(value: i64, began: u64, ended: u64) -> Call {
    let outcome = Outcome::Put { made: true, tag: shown(value).tag };
    call(Op::Put { key: KEY, value }, outcome, began, ended)
}

fn put(value: i64, began: u64, ended: u64) -> Call {
    let outcome = Outcome::Put { made: false, tag: shown(value).tag };
    call(Op::Put { key: KEY, value }, outcome, began, ended)
}

fn lost_put(value: i64, began: u64) -> Call {
    call(Op::Put { key: KEY, value }, Outcome::Unknown, began, 0)
}

fn swap(seen: i64, value: i64, began: u64, ended: u64) -> Call {
    let outcome = Outcome::Put { made: false, tag: shown(value).tag };
    call(Op::Swap { key: KEY, seen: Some(shown(seen)), value }, outcome, began, ended)
}

fn refused_swap(seen: i64, present: i64, began: u64, ended: u64) -> Call {
    let op = Op::Swap { key: KEY, seen: Some(shown(seen)), value: 99 };
    call(op, Outcome::Shown(Some(shown(present))), began, ended)
}

fn add(by: i64, sum: i64, began: u64, ended: u64) -> Call {
    let outcome = Outcome::Added { made: sum == by, shown: shown(sum) };
    call(Op::Add { key: KEY, by }, outcome, began, ended)
}

fn transaction(expected: i64, value: i64, outcome: Outcome, began: u64, ended: u64) -> Call {
    let expected = (expected != 0).then_some(expected);
    call(Op::Transact { asked: KEY, expected, key: KEY, value, by: 1 }, outcome, began, ended)
}

#[track_caller]
fn good(calls: &[Call]) {
    let order = linearize_calls(1, calls).expect("an order");
    let ended = calls.iter().filter(|call| call.ended.is_some()).count();
    assert!(order.len() >= ended, "{order:?} leaves out what was answered");
}

#[track_caller]
fn bad(calls: &[Call]) -> Stuck {
    linearize_calls(1, calls).expect_err("no order explains this")
}

#[test]
fn an_order_is_found() {
    good(&[]);
    good(&[read(0, 0, 1), put_first(5, 2, 3), read(5, 4, 5)]);
    good(&[put_first(5, 0, 1), swap(5, 6, 2, 3), refused_swap(5, 6, 4, 5), add(1, 7, 6, 7)]);
    good(&[add(2, 2, 0, 1), add(3, 5, 2, 3), read(5, 4, 5)]);
    good(&[
        transaction(0, 5, Outcome::Then, 0, 1),
        transaction(5, 7, Outcome::Then, 2, 3),
        transaction(5, 8, Outcome::Else(8), 4, 5),
        read(8, 6, 7),
    ]);
    let delete = call(Op::Delete { key: KEY }, Outcome::Deleted, 2, 3);
    let again = call(Op::Delete { key: KEY }, Outcome::Shown(None), 4, 5);
    good(&[put_first(5, 0, 1), delete, again, read(0, 6, 7), put_first(6, 8, 9)]);
}

#[test]
fn what_overlaps_may_come_in_any_order() {
    // Each read is while the put is under way: the first may miss it, no later one.
    good(&[put_first(5, 0, 1), put(6, 2, 20), read(5, 3, 4), read(6, 5, 6), read(6, 7, 8)]);
    bad(&[put_first(5, 0, 1), put(6, 2, 20), read(6, 3, 4), read(5, 5, 6)]);
    // What touches overlaps.
    good(&[put_first(5, 0, 2), read(0, 2, 3)]);
    bad(&[put_first(5, 0, 2), read(0, 3, 4)]);
}

#[test]
fn a_stale_read_is_found() {
    let stuck = bad(&[put_first(5, 0, 1), put(6, 2, 3), read(5, 4, 5), read(6, 6, 7)]);
    assert_eq!(stuck, Stuck { placed: vec![0, 1], blocked: vec![2] });
}

#[test]
fn a_value_that_nobody_wrote_is_found() {
    bad(&[put_first(5, 0, 1), read(7, 2, 3)]);
}

#[test]
fn the_value_of_a_version_under_the_tag_of_another_is_found() {
    let odd = Outcome::Shown(Some(Shown { value: 5, tag: shown(6).tag }));
    bad(&[put_first(5, 0, 1), call(Op::Read { key: KEY }, odd, 2, 3)]);
}

#[test]
fn a_lost_update_is_found() {
    bad(&[put_first(5, 0, 1), swap(5, 6, 2, 8), put(7, 3, 7), read(6, 9, 10), read(7, 11, 12)]);
    bad(&[put_first(5, 0, 1), add(1, 6, 2, 5), add(2, 7, 3, 6), read(7, 7, 8)]);
}

#[test]
fn two_swaps_of_one_version_are_found() {
    bad(&[put_first(5, 0, 1), swap(5, 6, 2, 5), swap(5, 7, 3, 6)]);
}

#[test]
fn a_swap_that_was_refused_for_nothing_is_found() {
    bad(&[put_first(5, 0, 1), refused_swap(5, 5, 2, 3)]);
    bad(&[put_first(5, 0, 1), refused_swap(5, 6, 2, 3), put(6, 4, 5)]);
}

#[test]
fn one_sum_told_twice_is_found() {
    good(&[put_first(5, 0, 1), add(1, 6, 2, 5), add(1, 7, 3, 6)]);
    bad(&[put_first(5, 0, 1), add(1, 6, 2, 5), add(1, 6, 3, 6)]);
}

#[test]
fn two_winners_of_one_transaction_are_found() {
    let then = |value, began, ended| transaction(5, value, Outcome::Then, began, ended);
    bad(&[put_first(5, 0, 1), then(6, 2, 5), then(7, 3, 6)]);
    let otherwise = transaction(5, 7, Outcome::Else(6), 2, 3);
    bad(&[put_first(5, 0, 1), otherwise]);
}

#[test]
fn an_order_against_time_is_found() {
    // The sums say that the second came first.
    bad(&[add(1, 3, 0, 1), add(2, 2, 2, 3)]);
    good(&[add(1, 3, 0, 3), add(2, 2, 2, 3)]);
}

#[test]
fn what_was_lost_may_have_happened_at_any_time_or_never() {
    good(&[put_first(5, 0, 1), lost_put(6, 2), read(5, 3, 4)]);
    good(&[put_first(5, 0, 1), lost_put(6, 2), read(5, 3, 4), read(6, 5, 6)]);
    good(&[put_first(5, 0, 1), lost_put(6, 2), lost_put(7, 2), read(7, 3, 4), read(6, 5, 6)]);
    // But not twice, not before it began, and not against its own condition.
    bad(&[put_first(5, 0, 1), lost_put(6, 2), read(6, 3, 4), put(7, 5, 6), read(6, 7, 8)]);
    bad(&[put_first(5, 0, 1), read(6, 2, 3), lost_put(6, 4)]);
    let seen = Some(shown(4));
    let swap = call(Op::Swap { key: KEY, seen, value: 6 }, Outcome::Unknown, 2, 0);
    bad(&[put_first(5, 0, 1), swap, read(6, 3, 4)]);
}

const SEEDS: std::ops::Range<u64> = 0..10;

#[test]
fn simulated_histories_of_eight_clients_are_linearizable() {
    for seed in SEEDS {
        let calls =
            history(Mix { seed, keys: 1, crossing: false, tasks: false }, 8, 500, Flaw::None);
        assert_eq!(linearize_calls(1, &calls).expect("an order").len(), 500);
        let crossing =
            history(Mix { seed, keys: 4, crossing: true, tasks: false }, 8, 500, Flaw::None);
        assert_eq!(linearize_calls(4, &crossing).expect("an order").len(), 500);
    }
}

#[test]
fn every_flaw_is_found_in_every_history() {
    for flaw in Flaw::OF_NUMBERS {
        for seed in SEEDS {
            let calls =
                history(Mix { seed, keys: 3, crossing: false, tasks: false }, 8, 1_200, flaw);
            let found = (0..3).any(|key| linearize_calls(3, &of_key(&calls, key)).is_err());
            assert!(found, "{flaw:?} with seed {seed} is not found");
        }
    }
}

#[test]
fn a_history_with_lost_answers_is_still_linearizable() {
    for seed in SEEDS {
        let mut calls =
            history(Mix { seed, keys: 1, crossing: false, tasks: false }, 8, 500, Flaw::None);
        // What these clients would be told they had not done is only what nobody was told.
        for call in calls.iter_mut().skip(20).step_by(60) {
            (call.outcome, call.ended) = (Outcome::Unknown, None);
        }
        let ended = calls.iter().filter(|call| call.ended.is_some()).count();
        assert!(linearize_calls(1, &calls).expect("an order").len() >= ended);
    }
}

/// A queue's model is another than a number's: the search knows neither.
#[test]
fn the_search_takes_any_model() {
    let span = |began, ended| {
        let at = Duration::from_micros;
        Span { began: at(began), ended: Some(at(ended)) }
    };
    let spans = [span(0, 9), span(1, 2), span(3, 4)];
    // The second takes what the first left, the third finds nothing.
    let step = |left: &u32, call: usize| match call {
        0 => Some(left + 1),
        1 => left.checked_sub(1),
        _ => (*left == 0).then_some(0),
    };
    assert_eq!(linearize(0, &spans, step), Ok(vec![0, 1, 2]));
}
