//! Tests of idempotency keys: their retention, eviction and cost.

use super::board::*;
use crate::model::idempotency::{KEY_AGE_MS_MAX, KEYS_MAX};
use crate::*;

use crate::{LogCommand, SessionCommand};
use LogName::Requests;

fn key(key: &str, print: &str) -> Key {
    Key { key: key.into(), fingerprint: Digest::of(print.as_bytes()) }
}

fn keyed(key: Key, command: Command) -> Write {
    let write = write(command);
    Write { terms: Terms { key: Some(key), ..write.terms }, ..write }
}

fn one() -> Command {
    append(Requests, items(["{}"]))
}

fn forgotten(decision: &Decision) -> usize {
    decision.commit.as_ref().unwrap().kept.as_ref().unwrap().forgotten.0
}

fn recalled<'a>(board: &'a Board, of: &Key, now: i64) -> Option<&'a str> {
    board.keys().recall(of, Timestamp(now)).unwrap().map(Json::text)
}

#[test]
fn a_repeat_is_known_and_another_request_with_its_key_refused() {
    let mut board = absent();
    take(&mut board, &keyed(key("k", "1"), one()), 1_000).unwrap();
    take(&mut board, &keyed(key("l", "1"), one()), 1_000).unwrap();
    assert_eq!(recalled(&board, &key("k", "1"), 1_000), Some("{\"revision\":1}"));
    assert_eq!(recalled(&board, &key("l", "1"), 1_000), Some("{\"revision\":2}"));
    assert_eq!(recalled(&board, &key("K", "1"), 1_000), None);
    let reused = board.keys().recall(&key("k", "2"), Timestamp(1_000));
    assert_eq!(reused, Err(KeyReused));
}

#[test]
fn a_keyed_write_without_change_is_a_commit_of_a_session() {
    let mut board = absent();
    let nothing = append(Requests, vec![]);
    let on_none = take(&mut board, &keyed(key("k", "1"), nothing.clone()), 1_000).unwrap();
    assert_eq!((on_none.commit, recalled(&board, &key("k", "1"), 1_000)), (None, None));
    carry_out(&mut board, one());
    assert_eq!(carry_out(&mut board, nothing.clone()).commit, None);
    let kept = take(&mut board, &keyed(key("k", "1"), nothing), 2_000).unwrap();
    let commit = kept.commit.unwrap();
    assert_eq!((commit.revision, commit.changes.len()), (Revision(2), 0));
    assert!(!commit.is_system());
    assert_eq!(recalled(&board, &key("k", "1"), 2_000), Some("{\"revision\":2}"));
    assert_eq!(board.log_version(&Requests).changed, Revision(1));
}

#[test]
fn a_refused_write_is_not_remembered() {
    let mut board = board_of([one()]);
    let delete = Command::Log(Requests, LogCommand::DeleteEntry { seq: Seq(9) });
    assert!(take(&mut board, &keyed(key("k", "1"), delete), 1_000).is_err());
    assert_eq!(board.keys().len(), 0);
}

#[test]
fn as_many_newer_keys_push_the_oldest_out() {
    let mut board = board_of([one()]);
    for i in 0..KEYS_MAX {
        let write = keyed(key(&format!("k{i}"), ""), append(Requests, vec![]));
        let decision = decide_and_keep(&board, &write, at(1_000, &POLICY)).unwrap();
        assert_eq!(forgotten(&decision), 0);
        board = decision.board;
    }
    assert_eq!(board.keys().len(), KEYS_MAX);
    assert!(recalled(&board, &key("k0", ""), 1_000).is_some());
    for (i, next) in [("a", "k0"), ("b", "k1"), ("c", "k2")] {
        assert!(recalled(&board, &key(next, ""), 1_000).is_some());
        let decision = take(&mut board, &keyed(key(i, ""), one()), 1_000).unwrap();
        assert_eq!((forgotten(&decision), board.keys().len()), (1, KEYS_MAX));
        assert_eq!(recalled(&board, &key(next, ""), 1_000), None);
        // A forgotten key may be used again for another request.
        assert_eq!(board.keys().recall(&key(next, "other"), Timestamp(1_000)), Ok(None));
    }
    assert!(recalled(&board, &key("k3", ""), 1_000).is_some());
    let base = rebased(&board);
    assert_eq!(base.keys(), board.keys());
}

#[test]
fn a_key_is_remembered_for_a_day_by_the_moments_time() {
    let mut board = absent();
    for (name, now) in [("a", 1_000), ("b", 1_000), ("c", 2_000)] {
        take(&mut board, &keyed(key(name, ""), one()), now).unwrap();
    }
    let day = KEY_AGE_MS_MAX;
    for (name, last) in [("a", 1_000 + day), ("b", 1_000 + day), ("c", 2_000 + day)] {
        assert!(recalled(&board, &key(name, ""), last).is_some());
        assert_eq!(recalled(&board, &key(name, ""), last + 1), None);
        assert_eq!(board.keys().recall(&key(name, "2"), Timestamp(last + 1)), Ok(None));
    }
    let on_time = take(&mut board, &keyed(key("d", ""), one()), 1_000 + day).unwrap();
    assert_eq!((forgotten(&on_time), board.keys().len()), (0, 4));
    let later = take(&mut board, &keyed(key("a", "2"), one()), 1_001 + day).unwrap();
    assert_eq!((forgotten(&later), board.keys().len()), (2, 3));
    let names: Vec<_> = board.keys().iter().map(|(key, _)| &**key).collect();
    assert_eq!(names, ["c", "d", "a"]);
}

#[test]
fn a_clock_that_goes_back_forgets_nothing_and_keeps_the_order() {
    let mut board = absent();
    take(&mut board, &keyed(key("a", ""), one()), 50_000).unwrap();
    let back = take(&mut board, &keyed(key("b", ""), one()), -50_000).unwrap();
    assert_eq!(forgotten(&back), 0);
    let times: Vec<_> = board.keys().iter().map(|(_, first)| first.at.0).collect();
    assert_eq!(times, [50_000, 50_000]);
    assert!(recalled(&board, &key("b", ""), i64::MIN).is_some());
}

#[test]
fn a_deletion_is_remembered_by_what_is_left_of_its_session() {
    let mut board = absent();
    take(&mut board, &keyed(key("a", ""), one()), 1_000).unwrap();
    let deleted =
        take(&mut board, &keyed(key("b", ""), Command::Session(SessionCommand::Delete)), 2_000)
            .unwrap();
    assert_eq!(forgotten(&deleted), 0);
    assert!(board.life().is_none());
    assert_eq!(recalled(&board, &key("a", ""), 2_000), None);
    assert_eq!(recalled(&board, &key("b", ""), 2_000), Some("{\"revision\":2}"));
    let base = rebased(&board);
    assert_eq!(recalled(&base, &key("b", ""), 2_000), Some("{\"revision\":2}"));
}

#[test]
fn keys_and_answers_count_into_the_session() {
    let mut board = board_of([one()]);
    take(&mut board, &keyed(key("key", ""), one()), 1_000).unwrap();
    let kept = "key{\"revision\":2}".len() as u64;
    assert_eq!((board.keys().bytes(), board.bytes()), (kept, 4));
    let check = |command, session_bytes_max| {
        let policy = Policy { session_bytes_max, ..POLICY };
        decide(&board, &write(command), at(1_000, &policy)).map(|_| ())
    };
    let held = 4 + kept;
    assert_eq!(check(one(), held + 2), Ok(()));
    let full = Rejected::SessionFull { bytes: held + 2, max: held + 1 };
    assert_eq!(check(one(), held + 1), Err(full));
    let which = Which::AllButNewest(1);
    assert_eq!(check(Command::Log(Requests, LogCommand::Remove { which }), 0), Ok(()));
}

#[test]
fn a_key_that_comes_again_from_elsewhere_is_the_newest_once() {
    let mut board = absent();
    for name in ["a", "b"] {
        take(&mut board, &keyed(key(name, ""), one()), 1_000).unwrap();
    }
    let kept = Kept { key: key("a", "2"), answer: json("[]"), forgotten: Forgotten(0) };
    let commit = Commit {
        revision: Revision(3),
        at: Timestamp(1_000),
        agent: None,
        trace: None,
        nonce: Nonce(0),
        kept: Some(kept),
        changes: vec![],
    };
    admit(&board, &commit).unwrap();
    apply(&mut board, &commit);
    let names: Vec<_> = board.keys().iter().map(|(key, _)| &**key).collect();
    assert_eq!((names, board.keys().len()), (vec!["b", "a"], 2));
    assert_eq!(recalled(&board, &key("a", "2"), 1_000), Some("[]"));
    let bytes = "b{\"revision\":2}a[]".len() as u64;
    assert_eq!(board.keys().bytes(), bytes);
}
