//! Tests of the check by revisions: correct histories pass, wrong ones fail.

use std::sync::Arc;
use std::time::Duration;

use super::choice::Mix;
use super::history::{Call, Op, Outcome, Shown};
use super::revisions::{Fault, check};
use super::simulated::{Flaw, history};
use super::tasks::{Claim, Task, Told};

const MIX: Mix = Mix { seed: 7, keys: 4, crossing: true, tasks: false };

fn shown(value: i64) -> Shown {
    Shown { value, tag: Arc::from(format!("\"{value}\"")) }
}

/// A call that was answered at once, at a time of its own.
fn call(op: Op, outcome: Outcome, revision: u64, at: u64) -> Call {
    let at = Duration::from_micros(at);
    Call { op, outcome, revision, began: at, ended: Some(at) }
}

fn put(value: i64, made: bool, revision: u64, at: u64) -> Call {
    call(Op::Put { key: 0, value }, Outcome::Put { made, tag: shown(value).tag }, revision, at)
}

fn read(value: i64, revision: u64, at: u64) -> Call {
    call(Op::Read { key: 0 }, Outcome::Shown(Some(shown(value))), revision, at)
}

/// Three puts, each read, from revision 4 on; the puts are the calls 0, 2 and 4.
fn sound() -> Vec<Call> {
    vec![
        put(1, true, 4, 1),
        read(1, 4, 2),
        put(2, false, 5, 3),
        read(2, 5, 4),
        put(3, false, 6, 5),
        read(3, 6, 6),
    ]
}

#[track_caller]
fn check_after(change: impl FnOnce(&mut Vec<Call>), expected: Result<(), Fault>) {
    let mut calls = sound();
    change(&mut calls);
    assert_eq!(check(1, 3, &calls), expected);
}

#[test]
fn a_sound_history_passes_in_any_order_of_its_calls() {
    check_after(|_| (), Ok(()));
    check_after(|calls| calls.reverse(), Ok(()));
    // A read may still show what was there when it began.
    let slow = |calls: &mut Vec<Call>| {
        let began = calls[3].began;
        calls[5] = Call { began, ..read(2, 5, 6) };
    };
    check_after(slow, Ok(()));
}

#[test]
fn two_writes_of_one_revision_are_found() {
    check_after(|calls| calls[4].revision = 5, Err(Fault::Twice { call: 4, other: 2 }));
}

#[test]
fn a_revision_that_is_nobodys_is_found() {
    check_after(|calls| drop(calls.drain(2..4)), Err(Fault::Gap { call: 2 }));
    check_after(|calls| drop(calls.drain(..2)), Err(Fault::Gap { call: 0 }));
    check_after(|calls| calls[5].revision = 7, Err(Fault::Beyond { call: 5 }));
}

#[test]
fn an_order_against_time_is_found() {
    check_after(|calls| calls[5] = read(2, 5, 6), Err(Fault::Stale { call: 5, known: 6 }));
    check_after(|calls| calls[3] = read(2, 6, 4), Err(Fault::Stale { call: 4, known: 6 }));
    let swapped = |calls: &mut Vec<Call>| {
        (calls[2].revision, calls[4].revision) = (6, 5);
        drop((calls.remove(5), calls.remove(3)));
    };
    check_after(swapped, Err(Fault::Stale { call: 3, known: 6 }));
}

#[test]
fn an_answer_that_its_revision_does_not_give_is_found() {
    check_after(|calls| calls[3] = read(1, 5, 4), Err(Fault::Misfit { call: 3 }));
    check_after(|calls| calls[2] = put(2, true, 5, 3), Err(Fault::Misfit { call: 2 }));
    let add = |sum| {
        let outcome = Outcome::Added { made: false, shown: shown(sum) };
        call(Op::Add { key: 0, by: 4 }, outcome, 7, 7)
    };
    check_after(|calls| calls.push(add(7)), Ok(()));
    check_after(|calls| calls.push(add(6)), Err(Fault::Misfit { call: 6 }));
}

#[test]
fn a_swap_that_should_have_gone_the_other_way_is_found() {
    let op = |seen| Op::Swap { key: 0, seen: Some(shown(seen)), value: 9 };
    let done = |seen| call(op(seen), Outcome::Put { made: false, tag: shown(9).tag }, 7, 7);
    let refused = |seen| call(op(seen), Outcome::Shown(Some(shown(3))), 6, 7);
    check_after(|calls| calls.push(done(3)), Ok(()));
    check_after(|calls| calls.push(done(2)), Err(Fault::Misfit { call: 6 }));
    check_after(|calls| calls.push(refused(2)), Ok(()));
    check_after(|calls| calls.push(refused(3)), Err(Fault::Misfit { call: 6 }));
}

#[test]
fn a_transaction_that_took_the_wrong_branch_is_found() {
    let of = |expected, outcome| {
        let op = Op::Transact { asked: 0, expected: Some(expected), key: 1, value: 8, by: 5 };
        call(op, outcome, 7, 7)
    };
    let checked = |call| {
        let mut calls = sound();
        calls.push(call);
        check(2, 3, &calls)
    };
    assert_eq!(checked(of(3, Outcome::Then)), Ok(()));
    assert_eq!(checked(of(2, Outcome::Else(5))), Ok(()));
    assert_eq!(checked(of(2, Outcome::Then)), Err(Fault::Misfit { call: 6 }));
    assert_eq!(checked(of(3, Outcome::Else(5))), Err(Fault::Misfit { call: 6 }));
    assert_eq!(checked(of(2, Outcome::Else(8))), Err(Fault::Misfit { call: 6 }));
}

#[test]
fn a_tag_of_two_versions_is_found() {
    let again = |calls: &mut Vec<Call>| {
        calls[4].outcome = Outcome::Put { made: false, tag: shown(1).tag };
        calls.truncate(5);
    };
    check_after(again, Err(Fault::TagAgain { call: 4 }));
}

#[test]
fn a_call_of_unknown_outcome_is_not_judged() {
    let unknown = |calls: &mut Vec<Call>| {
        (calls[4].outcome, calls[4].ended) = (Outcome::Unknown, None);
    };
    check_after(unknown, Err(Fault::Unknown { call: 4 }));
}

#[test]
fn a_hundred_thousand_calls_pass() {
    for tasks in [false, true] {
        let calls = history(Mix { tasks, ..MIX }, 8, 100_000, Flaw::None);
        assert_eq!(check(MIX.keys, 0, &calls), Ok(()));
    }
}

#[test]
fn every_flaw_is_found_in_every_history() {
    let of_numbers = Flaw::OF_NUMBERS.map(|flaw| (flaw, false, 2_000));
    let of_tasks = Flaw::OF_TASKS.map(|flaw| (flaw, true, 8_000));
    for (flaw, tasks, count) in of_numbers.into_iter().chain(of_tasks) {
        for seed in 0..10 {
            let calls = history(Mix { seed, tasks, ..MIX }, 8, count, flaw);
            assert!(check(MIX.keys, 0, &calls).is_err(), "{flaw:?} with seed {seed} is not found");
        }
    }
}

#[test]
fn one_wrong_answer_among_a_hundred_thousand_is_found() {
    let mut calls = history(MIX, 8, 100_000, Flaw::None);
    let wrong = calls.iter().skip(70_000).position(|call| {
        matches!((&call.op, &call.outcome), (Op::Read { .. }, Outcome::Shown(Some(_))))
    });
    let wrong = 70_000 + wrong.expect("a read of a number");
    if let Outcome::Shown(Some(shown)) = &mut calls[wrong].outcome {
        shown.value += 1;
    }
    assert_eq!(check(MIX.keys, 0, &calls), Err(Fault::Misfit { call: wrong }));
}

fn task(task: Task, told: Told, revision: u64) -> Call {
    call(Op::Task(task), Outcome::Task(told), revision, revision)
}

/// An answered question, and a request that client 1 claims at revision 4, with whatever comes then.
#[track_caller]
fn check_tasks(more: &[Call], expected: Result<(), Fault>) {
    let mut calls = vec![
        task(Task::AppendQuestion, Told::Appended { seq: 1 }, 1),
        task(Task::Answer { seq: 1, text: 5 }, Told::Done, 2),
        task(Task::AppendRequest, Told::Appended { seq: 1 }, 3),
        task(Task::Claim { seq: 1, client: 1 }, Told::Claimed { fence: 4 }, 4),
    ];
    calls.extend_from_slice(more);
    assert_eq!(check(0, 0, &calls), expected);
}

#[test]
fn a_claim_of_two_is_found() {
    let claims = |client, told, revision| task(Task::Claim { seq: 1, client }, told, revision);
    let won = |fence| Told::Claimed { fence };
    check_tasks(&[claims(2, Told::Refused, 4), claims(1, won(4), 5)], Ok(()));
    let misfit = Err(Fault::Misfit { call: 4 });
    check_tasks(&[claims(2, won(5), 5)], misfit);
    check_tasks(&[claims(1, won(5), 5)], misfit);
    check_tasks(&[claims(1, Told::Refused, 4)], misfit);
}

#[test]
fn an_end_under_a_claim_that_is_over_is_found() {
    let claim = Claim { seq: 1, fence: 4 };
    let back = task(Task::GiveBack { claim, client: 1 }, Told::Done, 5);
    let finish =
        |told, revision| task(Task::Finish { claim, client: 1, result: 0 }, told, revision);
    check_tasks(&[finish(Told::Done, 5)], Ok(()));
    check_tasks(&[back.clone(), finish(Told::Refused, 5)], Ok(()));
    check_tasks(&[back, finish(Told::Done, 6)], Err(Fault::Misfit { call: 5 }));
    check_tasks(&[finish(Told::Refused, 4)], Err(Fault::Misfit { call: 4 }));
}

#[test]
fn a_second_answer_is_found() {
    let answer = |told, revision| task(Task::Answer { seq: 1, text: 6 }, told, revision);
    let read = |text| task(Task::ReadQuestion { seq: 1 }, Told::Question(text), 4);
    check_tasks(&[answer(Told::Refused, 4), read(Some(5))], Ok(()));
    check_tasks(&[answer(Told::Done, 5)], Err(Fault::Misfit { call: 4 }));
    check_tasks(&[read(Some(6))], Err(Fault::Misfit { call: 4 }));
    check_tasks(&[read(None)], Err(Fault::Misfit { call: 4 }));
}
