//! Tests of forks, and histories adopted under a name.

use std::sync::Arc;

use uuid::Uuid;

use super::board::*;
use crate::*;

use crate::{CheckpointCommand, LogCommand, RequestCommand, SessionChange, SessionCommand};
use LogName::{Questions, Requests, Screenshots};

const FORK: SessionId = SessionId(Uuid::from_u128(8));

fn adopt(board: &Board) -> Command {
    let fork_of = Some("elder".parse().unwrap());
    Command::Session(SessionCommand::Adopt { board: Arc::new(board.clone()), fork_of })
}

/// The name as it stands without a session, when its last revision was this.
fn vacant(last: u64) -> Board {
    Board::absent(ID, Revision(last))
}

/// At revision 5, at 1 s: images, a checkpoint, a question and a value with a deadline.
fn elder() -> Board {
    let ask = Command::Ask { items: items([r#"{"text":"t"}"#]), ttl: ttl("60s"), default: None };
    let put = Edit::Put { value: json("1"), ttl: Some(ttl("90s")) };
    board_of([
        append(Screenshots, vec![screenshot(b"one"), screenshot(b"other")]),
        Command::Log(Screenshots, LogCommand::DeleteEntry { seq: Seq(1) }),
        Command::Checkpoint("c".parse().unwrap(), CheckpointCommand::Put),
        ask,
        Command::State(path("a"), put),
    ])
}

#[test]
fn a_fork_begins_at_its_revision_with_its_images() {
    let mut elder = elder();
    let key = Key { key: "k".into(), fingerprint: Digest::of(b"") };
    elder.remember(&Kept { key, answer: json("1"), forgotten: Forgotten(0) }, Timestamp(0));
    let fork = elder.forked(FORK);
    assert_eq!((fork.id(), fork.oldest(), fork.revision()), (FORK, Revision(5), Revision(5)));
    assert_eq!((elder.image_bytes(), fork.image_bytes()), (8, 5));
    assert!(fork.images().eq([(&Digest::of(b"other"), &5)]));
    assert!(fork.keys().is_empty() && fork.keys().bytes() == 0);
    let same = Board { id: ID, oldest: elder.oldest, keys: elder.keys.clone(), ..fork.clone() };
    assert_eq!(Board { images: elder.images.clone(), image_bytes: 8, ..same }, elder);
    let item = |board: &Board| Arc::clone(board.log(&Screenshots).unwrap().at(0).unwrap());
    assert!(Arc::ptr_eq(&item(&fork), &item(&elder)), "nothing is copied");
}

#[test]
fn a_history_goes_on_from_the_higher_of_both_revisions() {
    for (last, revision) in [(0, 6), (4, 6), (5, 6), (6, 7), (90, 91)] {
        let fork = elder().forked(FORK);
        let decision = decide(&vacant(last), &write(adopt(&fork)), at(2_000, &POLICY)).unwrap();
        let commit = decision.commit.unwrap();
        assert_eq!((commit.revision, commit.at), (Revision(revision), Timestamp(2_000)));
        let name = "sess_1".parse().unwrap();
        let (after, fork_of) = (Revision(last), Some("elder".parse().unwrap()));
        assert_eq!(
            commit.changes,
            [Change::Session(SessionChange::Adopted { name, after, fork_of })]
        );
        assert_eq!((decision.existed, decision.answer), (false, Answer::Done));
        let mut board = fork.clone();
        admit(&board, &commit).unwrap();
        apply(&mut board, &commit);
        assert_eq!(board, decision.board);
        assert_eq!(board.life().unwrap().name.as_str(), "sess_1");
        assert_eq!((board.floor, board.fences_after.0), (Revision(last), revision));
        assert_eq!((board.written_at, board.id()), (Timestamp(2_000), FORK));
        let cursor = if last == 0 { 5 } else { 5.max(last + 1) };
        assert_eq!(board.oldest_cursor(), Revision(cursor));
        assert!(board.checkpoints().is_empty(), "its revision is not of this history");
        assert_eq!(board.checkpoints_version().changed.0, revision);
        assert_eq!((board.asked(), board.next_due()), (fork.asked(), fork.next_due()));
        assert_eq!(board.state(), fork.state());
    }
}

#[test]
fn a_checkpoint_of_the_revision_where_a_history_begins_stays() {
    let mut elder = elder();
    carry_out(&mut elder, Command::Checkpoint("here".parse().unwrap(), CheckpointCommand::Put));
    let fork = elder.forked(FORK);
    let board = decide(&vacant(0), &write(adopt(&fork)), at(0, &POLICY)).unwrap().board;
    assert_eq!(
        board.checkpoints().keys().map(CheckpointName::as_str).collect::<Vec<_>>(),
        ["here"]
    );
}

#[test]
fn nothing_that_was_held_before_is_held_after() {
    let mut elder = board_of([append(Requests, vec![item("{}"); 3])]);
    for (request, time) in [(1, "60s"), (2, "1s"), (3, "60s")] {
        let claim = Command::Request(Seq(request), RequestCommand::Claim { ttl: ttl(time) });
        take(&mut elder, &write_by("A", claim), 1_000).unwrap();
    }
    let end = expire(&elder, Timestamp(2_000), Nonce(9)).unwrap();
    apply(&mut elder, &end);
    let finish = Command::Request(Seq(3), RequestCommand::Finish { fence: None, result: None });
    take(&mut elder, &write_by("A", finish), 2_000).unwrap();
    let fork = elder.forked(FORK);
    let board = decide(&vacant(0), &write(adopt(&fork)), at(2_000, &POLICY)).unwrap().board;
    assert_eq!((board.work(Seq(1)), board.work(Seq(2)), board.next_due()), (None, None, None));
    assert_eq!(board.work(Seq(3)), fork.work(Seq(3)));
    let entry =
        |board: &Board, seq| Entry::clone(board.log(&Requests).unwrap().get(Seq(seq)).unwrap());
    let freed = entry(&fork, 1).freed(Timestamp(2_000));
    assert_eq!(entry(&board, 1), Entry { revision: board.revision(), ..freed });
    let past = entry(&board, 1).task.unwrap().past_attempts;
    assert!(past.iter().map(|attempt| attempt.outcome).eq([Outcome::Released]));
    assert_eq!(entry(&board, 3), entry(&fork, 3));
    for (request, fence) in [(1, 2), (2, 3), (3, 4)].map(|(r, f)| (Seq(r), Revision(f))) {
        let late = write(append(Questions, items(["{}"])));
        let fenced = Terms { fence: Some(Fence { request, fence }), ..late.terms };
        let late = Write { terms: fenced, ..late };
        let stale = Rejected::StaleFence { request, fence };
        assert_eq!(decide(&board, &late, at(2_000, &POLICY)).unwrap_err(), stale);
        let finish =
            Command::Request(request, RequestCommand::Finish { fence: Some(fence), result: None });
        assert_eq!(refused(&board, finish), stale);
    }
}

#[test]
fn a_name_with_a_session_adopts_no_history() {
    let fork = elder().forked(FORK);
    let exists = Rejected::SessionExists { session: "sess_1".parse().unwrap() };
    assert_eq!(refused(&elder(), adopt(&fork)), exists);
    assert_eq!(refused(&vacant(3), adopt(&Board::absent(FORK, Revision(3)))), no_session());
}

#[test]
fn what_is_adopted_has_the_size_of_a_session() {
    let fork = elder().forked(FORK);
    let small = Policy { session_bytes_max: 10, ..POLICY };
    let full = Rejected::SessionFull { bytes: fork.bytes(), max: 10 };
    assert_eq!(decide(&vacant(0), &write(adopt(&fork)), at(0, &small)).unwrap_err(), full);
}

#[test]
fn the_answer_to_an_adoption_is_remembered_by_what_was_adopted() {
    let fork = elder().forked(FORK);
    let key = Key { key: "k".into(), fingerprint: Digest::of(b"") };
    let adopted = write(adopt(&fork));
    let adopted = Write { terms: Terms { key: Some(key.clone()), ..adopted.terms }, ..adopted };
    let decision = decide_and_keep(&vacant(9), &adopted, at(2_000, &POLICY)).unwrap();
    let mut board = fork;
    apply(&mut board, &decision.commit.unwrap());
    assert_eq!(board, decision.board);
    let answer = board.keys().recall(&key, Timestamp(2_000)).unwrap();
    assert_eq!(answer.map(Json::text), Some("{\"revision\":10}"));
}
