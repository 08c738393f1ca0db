//! Tests of the limits on a session's size, to the byte.

use super::board::*;
use crate::*;

use crate::{BoardCommand, LogCommand, SessionCommand};
use LogName::{Requests, Screenshots};

fn bounded(session_bytes_max: u64, session_blob_bytes_max: u64) -> Policy {
    Policy { session_bytes_max, session_blob_bytes_max, ..POLICY }
}

fn check(board: &Board, command: Command, policy: &Policy) -> Result<(), Rejected> {
    decide(board, &write(command), at(0, policy)).map(|_| ())
}

fn full(bytes: u64, max: u64) -> Result<(), Rejected> {
    Err(Rejected::SessionFull { bytes, max })
}

fn put(text: &str) -> Command {
    Command::Log(Requests, LogCommand::PutEntry { seq: Seq(1), item: item(text), basis: None })
}

#[test]
fn items_may_fill_a_session_to_the_last_byte() {
    let two = || append(Requests, items(["{}", "{}"]));
    assert_eq!(check(&absent(), two(), &bounded(4, 0)), Ok(()));
    assert_eq!(check(&absent(), two(), &bounded(3, 0)), full(4, 3));
    let board = board_of([two()]);
    // An agent's first step registers it, with a profile of its own.
    let max = 6 + r#"{"status":"CONTINUE"}"#.len() as u64;
    let remembered = || append(memory("a"), items(["{}"]));
    assert_eq!(check(&board, remembered(), &bounded(max, 0)), Ok(()));
    assert_eq!(check(&board, remembered(), &bounded(max - 1, 0)), full(max, max - 1));
}

#[test]
fn the_servers_questions_count_too() {
    let policy = Policy { qa_pairs: items(["{}"]), ..bounded(3, 0) };
    assert_eq!(check(&absent(), append(Requests, items(["{}"])), &policy), full(4, 3));
    let session = Command::Session(SessionCommand::Put {
        settings: Set::Keep,
        labels: Set::Keep,
        qa_pairs: vec![],
    });
    assert_eq!(check(&absent(), session, &policy), Ok(()));
}

#[test]
fn what_goes_away_makes_room_for_what_comes() {
    let board = board_of([append(Requests, items([r#"{"a":1}"#, "{}"]))]);
    let policy = bounded(9, 0);
    assert_eq!(board.bytes(), 9);
    let replace = |texts| Command::Log(Requests, LogCommand::Replace { items: items(texts) });
    assert_eq!(check(&board, replace([r#"{"abc":1}"#]), &policy), Ok(()));
    assert_eq!(check(&board, replace([r#"{"abcd":1}"#]), &policy), full(10, 9));
    assert_eq!(check(&board, put(r#"{"b":2}"#), &policy), Ok(()));
    assert_eq!(check(&board, put(r#"{"bc":2}"#), &policy), full(10, 9));
    let logs = [items([r#"{"abc":1}"#]), vec![], vec![], vec![]];
    assert_eq!(
        check(&board, Command::Board(BoardCommand::Replace { logs, state: None }), &policy),
        Ok(())
    );
}

#[test]
fn a_session_beyond_a_lowered_bound_may_shrink_but_not_grow() {
    let board = board_of([append(Requests, items([r#"{"abc":1}"#, "{}"]))]);
    let policy = bounded(5, 0);
    assert_eq!(check(&board, put(r#"{"a":1}"#), &policy), Ok(()));
    assert_eq!(check(&board, put(r#"{"abd":1}"#), &policy), Ok(()), "as large as before");
    assert_eq!(check(&board, put(r#"{"abcd":1}"#), &policy), full(12, 5));
    assert_eq!(check(&board, append(Requests, items(["{}"])), &policy), full(13, 5));
    for command in [
        append(Requests, vec![]),
        Command::Log(Requests, LogCommand::DeleteEntry { seq: Seq(1) }),
        Command::Log(Requests, LogCommand::Remove { which: Which::AllButNewest(1) }),
        Command::Board(BoardCommand::Clear { state: false }),
        Command::Session(SessionCommand::Delete),
    ] {
        assert_eq!(check(&board, command, &policy), Ok(()));
    }
}

#[test]
fn an_image_counts_once_however_often_it_comes() {
    let shots = |all: &[&[u8]]| append(Screenshots, all.iter().map(|b| screenshot(b)).collect());
    let policy = bounded(1 << 20, 8);
    assert_eq!(check(&absent(), shots(&[b"12345678", b"12345678"]), &policy), Ok(()));
    let full = |bytes| Err(Rejected::ImagesFull { bytes, max: 8 });
    assert_eq!(check(&absent(), shots(&[b"12345678", b"1"]), &policy), full(9));
    let board = board_of([shots(&[b"12345", b"123"])]);
    assert_eq!(board.image_bytes(), 8);
    assert_eq!(check(&board, shots(&[b"123", b"12345"]), &policy), Ok(()));
    assert_eq!(check(&board, shots(&[b"1"]), &policy), full(9));
    assert_eq!(check(&board, shots(&[b"123"]), &bounded(1 << 20, 4)), Ok(()), "nothing is new");
}

#[test]
fn an_image_counts_as_long_as_the_history_names_it() {
    let board = board_of([
        append(Screenshots, vec![screenshot(b"12345")]),
        Command::Board(BoardCommand::Clear { state: false }),
    ]);
    assert_eq!((board.bytes(), board.image_bytes()), (0, 5));
    let other = append(Screenshots, vec![screenshot(b"1234")]);
    let full = Rejected::ImagesFull { bytes: 9, max: 8 };
    assert_eq!(check(&board, other, &bounded(1 << 20, 8)), Err(full));
}

#[test]
fn a_session_has_so_many_entries_and_no_more() {
    let policy = |session_items_max| Policy { session_items_max, ..POLICY };
    let board = board_of([
        append(Requests, items(["{}", "{}"])),
        append(memory("a"), items(["{}"])),
        Command::Log(Requests, LogCommand::DeleteEntry { seq: Seq(1) }),
    ]);
    let one = || append(Screenshots, items(["{}"]));
    assert_eq!(check(&board, one(), &policy(3)), Ok(()));
    let too_many = |items, max| Err(Rejected::TooManyEntries { items, max });
    assert_eq!(check(&board, one(), &policy(2)), too_many(3, 2));
    assert_eq!(check(&board, put_second(), &policy(1)), Ok(()), "as many as before");
    assert_eq!(
        check(&board, Command::Board(BoardCommand::Clear { state: false }), &policy(0)),
        Ok(())
    );
    let seeded = Policy { qa_pairs: items(["{}"]), ..policy(1) };
    assert_eq!(check(&absent(), one(), &seeded), too_many(2, 1));
}

fn put_second() -> Command {
    Command::Log(
        Requests,
        LogCommand::PutEntry { seq: Seq(2), item: item(r#"{"a":1}"#), basis: None },
    )
}

#[test]
fn there_are_so_many_sessions_and_no_more() {
    let policy = Policy { sessions_max: 2, ..POLICY };
    let check = |board: &Board, sessions| {
        let moment = Moment { sessions, ..at(0, &policy) };
        decide(board, &write(append(Requests, items(["{}"]))), moment).map(|_| ())
    };
    assert_eq!(check(&absent(), 1), Ok(()));
    assert_eq!(check(&absent(), 2), Err(Rejected::TooManySessions { sessions: 2, max: 2 }));
    assert_eq!(check(&board_of([append(Requests, items(["{}"]))]), 2), Ok(()));
}

#[test]
fn one_write_brings_so_many_items_and_no_more() {
    let many = vec![item("{}"); COMMIT_ITEMS_MAX];
    assert_eq!(check(&absent(), append(Requests, many.clone()), &POLICY), Ok(()));
    let max = COMMIT_ITEMS_MAX;
    let too_many = Err(Rejected::TooManyItems { items: max + 1, max });
    let logs = [many.clone(), items(["{}"]), vec![], vec![]];
    assert_eq!(
        check(&absent(), Command::Board(BoardCommand::Replace { logs, state: None }), &POLICY),
        too_many
    );
    let seeded = Policy { qa_pairs: items(["{}"]), ..POLICY };
    assert_eq!(check(&absent(), append(Requests, many), &seeded), too_many);
}

#[test]
fn a_session_has_so_many_labels_and_no_more() {
    let labels = |range: std::ops::Range<usize>, value: Option<&str>| {
        let all = range.map(|i| (format!("l{i}"), value.map(str::to_owned)));
        let labels = Set::To(all.collect::<LabelsPatch>());
        Command::Session(SessionCommand::Put { settings: Set::Keep, labels, qa_pairs: vec![] })
    };
    let too_many = |labels| Err(Rejected::TooManyLabels { labels, max: LABELS_MAX });
    assert_eq!(check(&absent(), labels(0..64, Some("")), &POLICY), Ok(()));
    assert_eq!(check(&absent(), labels(0..65, Some("")), &POLICY), too_many(65));
    let board = board_of([labels(0..64, Some(""))]);
    assert_eq!(check(&board, labels(60..70, Some("")), &POLICY), too_many(70));
    assert_eq!(check(&board, labels(60..70, None), &POLICY), Ok(()));
}

fn put_blob(number: usize) -> Command {
    let (sha256, media_type) = (Digest::of(&number.to_le_bytes()), "image/png".parse().unwrap());
    Command::Session(SessionCommand::PutBlob { sha256, bytes: 0, media_type, renewed_after_ms: 0 })
}

#[test]
fn a_session_has_so_many_blobs_and_no_more() {
    let mut board = board_of([put_blob(0)]);
    let blob = board.blobs().values().next().unwrap().clone();
    for number in 1..BLOBS_MAX {
        board.put_blob(Digest::of(&number.to_le_bytes()), 0, blob.clone());
    }
    assert_eq!(check(&board, put_blob(BLOBS_MAX), &POLICY), Err(Rejected::TooManyBlobs));
    assert_eq!(check(&board, put_blob(0), &POLICY), Ok(()));
}

#[test]
fn so_many_requests_wait_for_one_and_no_more() {
    let board = board_of([append(Requests, items(["{}"]))]);
    let waiting = |count| {
        let plan = PlanRequest { after: [Seq(1)].into(), ..PlanRequest::default() };
        Command::Plan { items: vec![item("{}"); count], plan }
    };
    assert_eq!(check(&board, waiting(DEPENDANTS_MAX), &POLICY), Ok(()));
    let too_many = Rejected::TooManyDependants { request: Seq(1), index: 0 };
    assert_eq!(check(&board, waiting(DEPENDANTS_MAX + 1), &POLICY), Err(too_many));
}
