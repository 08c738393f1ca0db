//! Tests of expiry: kinds of deadlines, and writes that move them.

use super::board::*;
use crate::*;

use crate::{BoardCommand, RequestChange, RequestCommand, SessionCommand, StateChange};
use LogName::Requests;

fn edit(at: &str, edit: Edit) -> Command {
    Command::State(path(at), edit)
}

fn put(at: &str, value: &str, time: Option<&str>) -> Command {
    edit(at, Edit::Put { value: json(value), ttl: time.map(ttl) })
}

fn live_for(time: &str) -> Command {
    let patch = SettingsPatch { ttl: Set::To(ttl(time)), ..Default::default() };
    Command::Session(SessionCommand::Put {
        settings: Set::To(patch),
        labels: Set::Keep,
        qa_pairs: vec![],
    })
}

fn claim(request: u64, time: &str) -> Write {
    write_by("A", Command::Request(Seq(request), RequestCommand::Claim { ttl: ttl(time) }))
}

/// Applies all expiries and returns the names of the expired things.
fn lapse(board: &mut Board, now: i64) -> Vec<String> {
    let mut ended = Vec::new();
    while let Some(commit) = expire(board, Timestamp(now), Nonce(9)) {
        assert!(commit.is_system() && commit.only_removes());
        assert_eq!((&commit.agent, &commit.kept, commit.nonce), (&None, &None, Nonce(9)));
        admit(board, &commit).unwrap();
        apply(board, &commit);
        ended.extend(commit.changes.iter().map(|change| {
            let Change::Expired(due) = change else { panic!("{change:?}") };
            match due {
                Due::Question(seq) => format!("question {seq}"),
                Due::State(path) => path.to_string(),
                Due::Claim(seq) => format!("claim {seq}"),
                Due::Deadline(seq) => format!("deadline {seq}"),
                Due::Requests(ranges) => format!("due {ranges:?}"),
                Due::Session => "session".to_owned(),
            }
        }));
    }
    ended
}

fn deadlines(board: &Board) -> Vec<(String, i64)> {
    board.state().expiries().map(|(path, at)| (path.to_string(), at.0)).collect()
}

#[test]
fn what_is_written_keeps_a_deadline_ends_it_or_moves_it() {
    let document =
        |state| Command::Board(BoardCommand::Replace { logs: Default::default(), state });
    let (first, kept, ended) = (61_000, &[("a/b", 61_000)][..], &[][..]);
    for (command, expected) in [
        // The path itself.
        (put("a/b", "2", None), ended),
        (put("a/b", r#"{"c":1}"#, None), ended),
        (put("a/b", r#"{"c":1}"#, Some("90s")), &[("a/b", 92_000)]),
        (put("a/b", "2", Some("1s")), &[("a/b", 3_000)]),
        (edit("a/b", Edit::Merge(json(r#"{"d":1}"#))), kept),
        (edit("a/b", Edit::Merge(json("1"))), kept),
        (edit("a/b", Edit::Remove), ended),
        // Above it.
        (put("a", r#"{"b":{"c":1}}"#, None), ended),
        (put("a", r#"{"b":{"c":1}}"#, Some("1s")), &[("a", 3_000)]),
        (put("", r#"{"a":{"b":{"c":1}}}"#, None), ended),
        (document(Some(json(r#"{"a":{"b":{"c":1}}}"#))), ended),
        (document(None), kept),
        (edit("a", Edit::Merge(json(r#"{"b":{"c":2},"x":null}"#))), kept),
        (edit("a", Edit::Merge(json(r#"{"b":2}"#))), kept),
        (edit("a", Edit::Merge(json(r#"{"b":null}"#))), ended),
        (edit("a", Edit::Merge(json("1"))), ended),
        (edit("", Edit::Merge(json(r#"{"a":null}"#))), ended),
        (edit("a", Edit::Remove), ended),
        (edit("", Edit::Remove), ended),
        (Command::Board(BoardCommand::Clear { state: true }), ended),
        (Command::Board(BoardCommand::Clear { state: false }), kept),
        // Below and beside it.
        (put("a/b/c", "2", None), kept),
        (put("a/b/c", "2", Some("1s")), &[("a/b", first), ("a/b/c", 3_000)]),
        (edit("a/b/c", Edit::Add(json("1"))), kept),
        (edit("a/b/c", Edit::Remove), kept),
        (put("a/x", "1", Some("1s")), &[("a/b", first), ("a/x", 3_000)]),
        (put("a!", "1", None), kept),
        (append(Requests, items(["{}"])), kept),
    ] {
        let mut board = board_of([put("a/b", r#"{"c":1}"#, Some("60s"))]);
        take(&mut board, &write(command.clone()), 2_000).unwrap();
        let expected = expected.iter().map(|(path, at)| ((*path).to_owned(), *at));
        assert_eq!(deadlines(&board), expected.collect::<Vec<_>>(), "{command:?}");
    }
}

#[test]
fn a_counter_and_a_list_keep_their_deadlines() {
    let mut board = board_of([put("n", "1", Some("60s")), put("l", "[]", Some("60s"))]);
    carry_out(&mut board, edit("n", Edit::Add(json("1"))));
    carry_out(&mut board, edit("l", Edit::Append(vec![json("1")])));
    assert_eq!(deadlines(&board).len(), 2);
}

#[test]
fn a_deadline_alone_may_be_written_and_moves_no_tag() {
    let mut board = board_of([put("a", "1", None)]);
    for (command, now, commits) in [
        (put("a", "1", None), 2_000, false),
        (put("a", "1", Some("60s")), 2_000, true),
        (put("a", " 1 ", Some("61s")), 2_000, true),
        (put("a", "1", Some("61s")), 2_000, false),
        (put("a", "1", Some("60s")), 3_000, false),
        (put("a", "1", None), 3_000, true),
        (put("a", "1", None), 3_000, false),
    ] {
        let decision = take(&mut board, &write(command.clone()), now).unwrap();
        assert_eq!(decision.commit.is_some(), commits, "{command:?} {now}");
        assert_eq!(board.state().changed(), Revision(1));
    }
}

#[test]
fn what_is_over_goes_at_its_deadline_and_not_before() {
    let mut board = board_of([put("a/b", "1", Some("2s")), append(Requests, items(["{}"]))]);
    take(&mut board, &claim(1, "3s"), 1_000).unwrap();
    assert_eq!(board.next_due(), Some(Timestamp(3_000)));
    assert_eq!(
        (board.due(Timestamp(2_999), usize::MAX), lapse(&mut board, 2_999)),
        (vec![], vec![])
    );
    assert_eq!(lapse(&mut board, 3_000), ["a/b"]);
    assert_eq!(
        (board.state().text().as_str(), board.state().changed()),
        (r#"{"a":{}}"#, Revision(4))
    );
    assert_eq!(board.next_due(), Some(Timestamp(4_000)));
    assert_eq!(lapse(&mut board, 9_000), ["claim 1"]);
    assert_eq!((board.next_due(), board.revision()), (None, Revision(5)));
    assert_eq!(lapse(&mut board, i64::MAX), [""; 0]);
}

#[test]
fn of_paths_that_are_over_together_the_upper_one_is_named() {
    let mut board = board_of([
        put("a/b/c", "1", Some("1s")),
        put("a/b2", "1", Some("2s")),
        put("x", "{}", None),
        put("x/y", "1", Some("4s")),
        put("z", "1", Some("9s")),
    ]);
    let upper = Change::State(
        path("w"),
        StateChange::Put { value: json("{}"), expires_at: Some(Timestamp(2_000)) },
    );
    let lower = Change::State(
        path("w/v"),
        StateChange::Put { value: json("1"), expires_at: Some(Timestamp(1_500)) },
    );
    let commit = Commit {
        revision: board.revision().next(),
        at: Timestamp(1_000),
        agent: None,
        trace: None,
        nonce: Nonce(0),
        kept: None,
        changes: vec![upper, lower],
    };
    admit(&board, &commit).unwrap();
    apply(&mut board, &commit);
    assert_eq!(lapse(&mut board, 5_000), ["a/b/c", "w", "a/b2", "x/y"]);
    assert_eq!(board.state().text(), r#"{"a":{"b":{}},"x":{},"z":1}"#);
    assert_eq!(lapse(&mut board, 10_000), ["z"]);
}

#[test]
fn the_whole_state_may_have_a_deadline() {
    let mut board = board_of([put("", r#"{"a":1}"#, Some("1s")), append(Requests, items(["{}"]))]);
    assert_eq!(lapse(&mut board, 2_000), [""]);
    assert!(board.state().is_empty() && board.life().is_some());
    assert_eq!((board.next_due(), board.bytes()), (None, 2));
}

#[test]
fn an_expired_claim_leaves_its_fence_and_no_author() {
    let mut board = board_of([append(Requests, items(["{}"]))]);
    take(&mut board, &claim(1, "1s"), 1_000).unwrap();
    assert_eq!(lapse(&mut board, 5_000), ["claim 1"]);
    let entry = board.log(&Requests).unwrap().get(Seq(1)).unwrap();
    assert_eq!(entry.work.as_deref(), Some(&Work::Lapsed { fence: Revision(2) }));
    assert_eq!(entry.updated, Some(Box::new(Updated { at: Timestamp(5_000), by: None })));
    assert_eq!(entry.revision, Revision(3));
    assert!(take(&mut board, &claim(1, "1s"), 5_000).is_ok());
}

#[test]
fn a_renewed_claim_runs_out_at_its_new_end() {
    let mut board = board_of([append(Requests, items(["{}"]))]);
    take(&mut board, &claim(1, "1s"), 1_000).unwrap();
    take(&mut board, &claim(1, "5s"), 1_500).unwrap();
    assert_eq!(lapse(&mut board, 6_499), [""; 0]);
    assert_eq!(lapse(&mut board, 6_500), ["claim 1"]);
}

#[test]
fn a_session_expires_after_its_last_write_not_its_last_expiry() {
    let mut board = board_of([live_for("10s"), put("a", "1", Some("3s"))]);
    assert_eq!(board.next_due(), Some(Timestamp(4_000)));
    assert_eq!(lapse(&mut board, 5_000), ["a"]);
    assert_eq!((board.updated_at(), board.next_due()), (Timestamp(5_000), Some(Timestamp(11_000))));
    take(&mut board, &write(append(Requests, items(["{}"]))), 6_000).unwrap();
    take(&mut board, &write(append(Requests, vec![])), 7_000).unwrap();
    take(&mut board, &claim(1, "4s"), 8_000).unwrap();
    assert_eq!(lapse(&mut board, 17_999), ["claim 1"]);
    let last = board.revision();
    assert_eq!(lapse(&mut board, 18_000), ["session"]);
    assert_eq!((board.life(), board.next_due(), board.revision()), (None, None, last.next()));
    assert_eq!(
        Board { oldest: board.revision(), updated_at: Timestamp(0), ..board },
        Board::absent(ID, last.next())
    );
}

#[test]
fn a_session_that_goes_takes_all_else_with_it() {
    let mut board = board_of([
        live_for("2s"),
        put("a", "1", Some("1s")),
        append(memory("A"), items(["{}"])),
        append(Requests, items(["{}"])),
    ]);
    take(&mut board, &claim(1, "1s"), 1_000).unwrap();
    assert_eq!(lapse(&mut board, 9_000), ["session"]);
    assert_eq!((board.bytes(), board.agents().len()), (0, 0));
}

#[test]
fn a_sessions_ttl_counts_from_its_setting_and_can_be_reset() {
    let mut board = board_of([append(Requests, items(["{}"]))]);
    take(&mut board, &write(live_for("1s")), 50_000).unwrap();
    assert_eq!(board.next_due(), Some(Timestamp(51_000)));
    take(&mut board, &write(live_for("36500d")), 50_500).unwrap();
    assert_eq!(board.next_due(), Some(Timestamp(50_500 + 36_500 * 86_400_000)));
    let patch = SettingsPatch { ttl: Set::Reset, ..Default::default() };
    let settings = Set::To(patch);
    let reset =
        Command::Session(SessionCommand::Put { settings, labels: Set::Keep, qa_pairs: vec![] });
    take(&mut board, &write(reset), 50_500).unwrap();
    assert_eq!(board.next_due(), None);
}

#[test]
fn an_equal_put_renews_a_sessions_ttl_as_it_does_a_values() {
    let mut board = board_of([live_for("1s"), put("a", "1", Some("1s"))]);
    let revision = board.revision();
    take(&mut board, &write(live_for("1s")), 1_900).unwrap();
    assert_eq!((board.revision(), board.ends_at()), (revision.next(), Some(Timestamp(2_900))));
    take(&mut board, &write(put("a", "1", Some("1s"))), 1_950).unwrap();
    assert_eq!(deadlines(&board), [("a".to_owned(), 2_950)]);
    // So does one that leaves all as it is.
    let (settings, labels, qa_pairs) = (Set::Keep, Set::Keep, Vec::new());
    let nothing = Command::Session(SessionCommand::Put { settings, labels, qa_pairs });
    take(&mut board, &write(nothing.clone()), 2_000).unwrap();
    assert_eq!(board.ends_at(), Some(Timestamp(3_000)));
    // Without a time to live there is nothing to renew.
    let mut board = board_of([append(Requests, items(["{}"]))]);
    let revision = board.revision();
    take(&mut board, &write(nothing), 2_000).unwrap();
    assert_eq!(board.revision(), revision);
}

#[test]
fn a_keyed_write_that_changes_nothing_keeps_its_session_alive() {
    let mut board = board_of([live_for("1s")]);
    let nothing = write(append(Requests, vec![]));
    let key = Some(Key { key: "k".into(), fingerprint: Digest::of(b"") });
    let nothing = Write { terms: Terms { key, ..nothing.terms }, ..nothing };
    take(&mut board, &nothing, 1_900).unwrap();
    assert_eq!(board.next_due(), Some(Timestamp(2_900)));
}

#[test]
fn time_does_not_go_back_for_an_expiry_nor_beyond_the_end() {
    let mut board = absent();
    take(&mut board, &write(put("a", "1", Some("1ms"))), i64::MAX - 1).unwrap();
    take(&mut board, &write(put("b", "1", Some("36500d"))), i64::MAX - 1).unwrap();
    assert_eq!(deadlines(&board), [("a".to_owned(), i64::MAX), ("b".to_owned(), i64::MAX)]);
    assert_eq!(lapse(&mut board, i64::MAX), ["a", "b"]);
    let mut board = board_of([append(Requests, items(["{}"]))]);
    take(&mut board, &write(put("a", "1", Some("1s"))), -9_000).unwrap();
    assert_eq!(deadlines(&board), [("a".to_owned(), -8_000)], "from the moment of the decision");
    assert_eq!(board.updated_at(), Timestamp(1_000), "its commit is no earlier than the last");
}

#[test]
fn one_commit_has_ten_thousand_expiries_the_earliest_first() {
    let mut board = board_of([append(Requests, vec![item("{}"); 6_000])]);
    let expires_at = |i: u64| Timestamp(2_000 + i64::try_from(i).unwrap());
    let puts = (0..6_000).map(|i| {
        Change::State(
            path(&format!("p{i}")),
            StateChange::Put { value: json("1"), expires_at: Some(expires_at(i)) },
        )
    });
    let claims = (1..=6_000).map(|seq| {
        Change::Request(
            Seq(seq),
            RequestChange::Claimed {
                agent: agent("A"),
                fence: Revision(2),
                expires_at: expires_at(seq),
            },
        )
    });
    let commit = Commit {
        revision: Revision(2),
        at: Timestamp(1_000),
        agent: None,
        trace: None,
        nonce: Nonce(0),
        kept: None,
        changes: puts.chain(claims).collect(),
    };
    apply(&mut board, &commit);
    let mut counts = Vec::new();
    while let Some(commit) = expire(&board, Timestamp(9_000), Nonce(0)) {
        apply(&mut board, &commit);
        counts.push(commit.changes.len());
    }
    assert_eq!(counts, [1_000; 12]);
    assert_eq!((board.next_due(), board.state().is_empty()), (None, true));
}
