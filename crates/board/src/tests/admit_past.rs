//! Tests of admission of changes to questions, checkpoints and history.

use std::sync::Arc;

use super::board::*;
use crate::*;

use crate::{CheckpointChange, CheckpointCommand, LogChange, RequestCommand, SessionChange};
use LogName::{Questions, Requests, Trajectories};

/// At revision 6: two open questions of which the first waits, a checkpoint, a value, and a claimed request.
fn board() -> Board {
    let ask = Command::Ask { items: items([r#"{"text":"t"}"#]), ttl: ttl("60s"), default: None };
    let mut board = board_of([
        ask,
        append(Questions, items([r#"{"text":"t"}"#, "{}"])),
        Command::Checkpoint("c".parse().unwrap(), CheckpointCommand::Put),
        append(Requests, items(["{}", "{}"])),
        Command::State(path("a"), Edit::Put { value: json("{}"), ttl: None }),
    ]);
    let claim = Command::Request(Seq(1), RequestCommand::Claim { ttl: ttl("60s") });
    take(&mut board, &write_by("A", claim), 1_000).unwrap();
    board
}

fn commit(revision: u64, changes: Vec<Change>) -> Commit {
    let (revision, at) = (Revision(revision), Timestamp(1_000));
    Commit { revision, at, agent: None, trace: None, nonce: Nonce(0), kept: None, changes }
}

fn admitted(changes: Vec<Change>) -> Result<(), Misfit> {
    admit(&board(), &commit(7, changes))
}

fn awaited(first: u64, last: u64, default: usize) -> Change {
    let default = Some("d".repeat(default).into());
    let until = Awaited { expires_at: Timestamp(9), default };
    Change::Awaited { first: Seq(first), last: Seq(last), until }
}

#[test]
fn only_existing_questions_wait_and_only_waiting_ones_expire() {
    let no = |seq| Err(Misfit::Question { seq: Seq(seq) });
    let over = |seq| Change::Expired(Due::Question(Seq(seq)));
    for (changes, expected) in [
        (vec![over(1)], Ok(())),
        (vec![over(2)], no(2)),
        (vec![over(4)], no(4)),
        (vec![over(1), over(1)], no(1)),
        (vec![awaited(2, 3, 1), over(2)], Ok(())),
        (vec![awaited(2, 3, 1), over(3)], no(3)),
        (vec![awaited(1, 3, 0)], Ok(())),
        (vec![awaited(0, 1, 0)], no(0)),
        (vec![awaited(2, 1, 0)], no(2)),
        (vec![awaited(1, 4, 0)], no(1)),
        (vec![awaited(1, u64::MAX, 0)], no(1)),
        (vec![awaited(1, 1, DEFAULT_BYTES_MAX)], Ok(())),
        (vec![awaited(1, 1, DEFAULT_BYTES_MAX + 1)], no(1)),
    ] {
        assert_eq!(admitted(changes.clone()), expected, "{changes:?}");
    }
    let items = vec![item("{}"); AWAITED_AT_ONCE_MAX];
    let appended = Change::Log(Questions, LogChange::Appended { first: Seq(4), items });
    let last = 3 + AWAITED_AT_ONCE_MAX as u64;
    assert_eq!(admitted(vec![appended.clone(), awaited(4, last, 0)]), Ok(()));
    assert_eq!(admitted(vec![appended, awaited(3, last, 0)]), no(3));
}

#[test]
fn only_existing_checkpoints_go_and_their_number_is_bounded() {
    let put = |name: &str| Change::Checkpoint(name.parse().unwrap(), CheckpointChange::Put);
    let removed = |name: &str| Change::Checkpoint(name.parse().unwrap(), CheckpointChange::Removed);
    let no = |name: &str| Err(Misfit::Checkpoint { checkpoint: name.parse().unwrap() });
    assert_eq!(admitted(vec![put("c"), removed("c")]), Ok(()));
    assert_eq!(admitted(vec![removed("d")]), no("d"));
    assert_eq!(admitted(vec![removed("c"), removed("c")]), no("c"));
    let mut all: Vec<_> = (1..CHECKPOINTS_MAX).map(|n| put(&format!("c{n}"))).collect();
    all.push(put("c"));
    assert_eq!(admitted(all.clone()), Ok(()));
    all.push(put("more"));
    assert_eq!(admitted(all), no("more"));
}

fn entry(seq: u64, text: &str) -> Entry {
    let at = Timestamp(1);
    let (agent, updated, work) = (None, None, None);
    Entry {
        seq: Seq(seq),
        revision: Revision(7),
        at,
        agent,
        updated,
        work,
        task: None,
        acked_at: None,
        item: item(text),
    }
}

fn of_log(log: LogName, removed: &[(u64, u64)], entries: Vec<Entry>) -> Restored {
    let range = |&(first, last): &(u64, u64)| SeqRange { first: Seq(first), last: Seq(last) };
    let removed = removed.iter().map(range).collect();
    let entries = entries.into_iter().map(Arc::new).collect();
    let awaited = vec![(Seq(1), Awaited { expires_at: Timestamp(9), default: None })];
    let logs = vec![(log, RestoredLog { removed, entries })];
    Restored { to: Revision(6), logs, awaited, ..Restored::default() }
}

fn check(restored: Restored) -> Result<(), Misfit> {
    let commit = commit(7, vec![Change::Session(SessionChange::Restored(Box::new(restored)))]);
    let admitted = admit(&board(), &commit);
    let mut after = board();
    apply(&mut after, &commit);
    if admitted.is_ok() {
        check_asked(&after);
        assert_eq!(Board { oldest: after.oldest, ..rebased(&after) }, after);
        assert!(after.tasks().leases().is_empty());
    }
    admitted
}

#[test]
fn entries_come_back_in_order_to_places_that_were_given() {
    let no = |log, seq| Err(Misfit::Entry { log, seq: Seq(seq) });
    let requests = |removed, entries| check(of_log(Requests, removed, entries));
    let two = || vec![entry(1, "{}"), entry(2, "[]".replace("[]", "{}").as_str())];
    assert_eq!(requests(&[], two()), Ok(()));
    assert_eq!(requests(&[(1, 2)], two()), Ok(()));
    assert_eq!(requests(&[(1, 3)], vec![]), no(Requests, 3));
    assert_eq!(requests(&[], two().into_iter().rev().collect()), no(Requests, 1));
    for seq in [0, 3, u64::MAX] {
        assert_eq!(requests(&[], vec![entry(seq, "{}")]), no(Requests, seq));
    }
    let other = |revision| Entry { revision: Revision(revision), ..entry(1, "{}") };
    assert_eq!(requests(&[], vec![other(6)]), no(Requests, 1));
    assert_eq!(requests(&[], vec![other(8)]), no(Requests, 1));
    let work = |work| vec![Entry { work: Some(Box::new(work)), ..entry(1, "{}") }];
    let done =
        Done { agent: None, at: Timestamp(1), fence: None, result: Some(json("1")), verdict: None };
    assert_eq!(requests(&[], work(Work::Done(done.clone()))), Ok(()));
    let done = of_log(Questions, &[], work(Work::Done(done)));
    assert_eq!(check(done), no(Questions, 1));
    assert_eq!(requests(&[], work(Work::Lapsed { fence: Revision(1) })), no(Requests, 1));
    assert_eq!(check(of_log(memory("a"), &[], vec![])), no(memory("a"), 0));
    let image = Image { at: 1, ..screenshot(b"x").image().unwrap().clone() };
    let shot = Entry { item: Item::from_object("{}", Some(image)).unwrap(), ..entry(1, "{}") };
    assert_eq!(requests(&[], vec![shot]), Err(Misfit::ImagePlace { at: 1 }));
}

#[test]
fn what_a_restore_leaves_can_be() {
    let past = |to| Err(Misfit::Past { to: Revision(to) });
    let none = || of_log(Trajectories, &[], vec![]);
    assert_eq!(check(none()), Ok(()));
    for to in [7, 8, u64::MAX] {
        assert_eq!(check(Restored { to: Revision(to), ..none() }), past(to));
    }
    let twice = || [none().logs, none().logs].concat();
    assert_eq!(check(Restored { logs: twice(), ..none() }), past(6));
    let until = |default: usize| Awaited {
        expires_at: Timestamp(9),
        default: Some("d".repeat(default).into()),
    };
    for (awaited, expected) in [
        (vec![(Seq(1), until(1)), (Seq(2), until(2))], Ok(())),
        (vec![], Ok(())),
        (vec![(Seq(3), until(1))], past(6)),
        (vec![(Seq(2), until(1)), (Seq(1), until(1))], past(6)),
        (vec![(Seq(1), until(1)), (Seq(1), until(1))], past(6)),
        (vec![(Seq(1), until(DEFAULT_BYTES_MAX + 1))], past(6)),
    ] {
        assert_eq!(check(Restored { awaited, ..none() }), expected);
    }
    let answered = vec![entry(1, r#"{"text":"t","answer":1}"#)];
    assert_eq!(check(of_log(Questions, &[], answered.clone())), past(6), "it waits no longer");
    assert_eq!(check(Restored { awaited: vec![], ..of_log(Questions, &[], answered) }), Ok(()));
    let no_state = |at: &str| Err(Misfit::State { path: path(at) });
    for (state, expected) in [
        (vec![("a/b", Some("1")), ("x", Some("[]"))], Ok(())),
        (vec![("a", None)], Ok(())),
        (vec![("b", None)], no_state("b")),
        (vec![("a", Some("1")), ("a/b", Some("1"))], no_state("a/b")),
        (vec![("", Some("1"))], no_state("")),
    ] {
        let place = |(at, value): (&str, Option<&str>)| (path(at), value.map(json));
        let state = state.into_iter().map(place).collect();
        assert_eq!(check(Restored { state, ..none() }), expected);
    }
    for (at, expected) in [("a", Ok(())), ("b", past(6))] {
        let expiries = vec![(path(at), Timestamp(9))];
        assert_eq!(check(Restored { expiries, ..none() }), expected);
    }
}

#[test]
fn agents_come_back_with_the_restores_revision() {
    let known = |changed| Agent {
        profile: Profile::first(),
        registered_at: Timestamp(1),
        updated_at: Timestamp(1),
        changed: Revision(changed),
        last_seen: None,
    };
    let with = |agents| check(Restored { agents, ..of_log(Trajectories, &[], vec![]) });
    let no = Err(Misfit::Agent { agent: agent("A") });
    assert_eq!(with(vec![(agent("A"), Some(known(7)))]), Ok(()));
    assert_eq!(with(vec![(agent("A"), Some(known(6)))]), no);
    assert_eq!(with(vec![(agent("A"), None)]), no);
    let twice = vec![(agent("A"), Some(known(7))); 2];
    assert_eq!(with(twice), Err(Misfit::Past { to: Revision(6) }));
}

#[test]
fn a_history_comes_alone_and_goes_on_from_both() {
    let adopted = |after| {
        Change::Session(SessionChange::Adopted {
            name: "new".parse().unwrap(),
            after: Revision(after),
            fork_of: None,
        })
    };
    let check = |revision, changes| admit(&board(), &commit(revision, changes));
    let wrong = |found| Err(Misfit::Revision { head: Revision(6), found: Revision(found) });
    assert_eq!(check(7, vec![adopted(0)]), Ok(()));
    assert_eq!(check(7, vec![adopted(6)]), Ok(()));
    assert_eq!(check(91, vec![adopted(90)]), Ok(()));
    for (found, after) in [(6, 0), (8, 0), (7, 7), (90, 90), (92, 90)] {
        assert_eq!(check(found, vec![adopted(after)]), wrong(found));
    }
    assert_eq!(check(REVISION_MAX, vec![adopted(REVISION_MAX - 1)]), Ok(()));
    assert_eq!(check(REVISION_MAX + 1, vec![adopted(REVISION_MAX)]), wrong(REVISION_MAX + 1));
    assert_eq!(check(0, vec![adopted(u64::MAX)]), wrong(0));
    let put = Change::Checkpoint("d".parse().unwrap(), CheckpointChange::Put);
    assert_eq!(check(7, vec![adopted(0), put.clone()]), Err(Misfit::NotAlone));
    assert_eq!(check(7, vec![put, adopted(0)]), Err(Misfit::NotAlone));
    let life = Misfit::Life { change: 0, exists: false };
    assert_eq!(admit(&absent(), &commit(1, vec![adopted(0)])), Err(life));
}
