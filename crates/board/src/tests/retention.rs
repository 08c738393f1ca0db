//! Tests of retention by count: the commit that exceeds the limit removes the oldest entries.

use std::num::NonZeroUsize;

use super::board::*;
use crate::*;

use crate::{BoardCommand, LogChange, LogCommand, RequestCommand, SessionCommand};
use LogName::{Questions, Requests, Screenshots, Trajectories};

fn all(max: usize) -> MaxItems {
    MaxItems::All(NonZeroUsize::new(max).unwrap())
}

fn keep(max_items: Set<MaxItems>) -> Command {
    let patch = SettingsPatch { max_items, ..Default::default() };
    Command::Session(SessionCommand::Put {
        settings: Set::To(patch),
        labels: Set::Keep,
        qa_pairs: vec![],
    })
}

fn keep_all(max: usize) -> Command {
    keep(Set::To(all(max)))
}

fn many(log: LogName, count: usize) -> Command {
    append(log, vec![item("{}"); count])
}

fn five_logs() -> [LogName; 5] {
    [Questions, Requests, Trajectories, Screenshots, memory("A")]
}

#[test]
fn the_oldest_go_with_the_append_that_makes_them_too_many() {
    for log in five_logs() {
        let mut board = board_of([keep_all(3), many(log.clone(), 2)]);
        for (count, kept, expected) in [
            (1, vec![1, 2, 3], vec!["appended"]),
            (1, vec![2, 3, 4], vec!["appended", "removed"]),
            (2, vec![4, 5, 6], vec!["appended", "removed"]),
            (5, vec![9, 10, 11], vec!["appended", "removed"]),
            (0, vec![9, 10, 11], vec![]),
        ] {
            let decision = carry_out(&mut board, many(log.clone(), count));
            assert_eq!(seqs(&board, &log), kept, "{log}");
            assert_eq!(changes(&decision), expected, "{log}");
            let Answer::Added { count: added, dropped: 0, .. } = decision.answer else { panic!() };
            assert_eq!(added, count, "what is asked for is told, whatever goes");
        }
        assert_eq!(board.log(&log).unwrap().bytes(), 6);
    }
}

#[test]
fn each_log_has_its_own_maximum_or_none() {
    let only = |log: &LogName, max: usize| {
        let (max, mut each) = (NonZeroUsize::new(max), MaxItemsEach::default());
        match log {
            Questions => each.questions = max,
            Requests => each.requests = max,
            Trajectories => each.trajectories = max,
            Screenshots => each.screenshots = max,
            LogName::Memory(_) => each.memory = max,
            LogName::Messages(_) => each.messages = max,
        }
        keep(Set::To(MaxItems::Each(each)))
    };
    for bound in five_logs() {
        let mut board = board_of([only(&bound, 1)]);
        for log in five_logs() {
            carry_out(&mut board, many(log.clone(), 2));
            let kept = if log == bound { vec![2] } else { vec![1, 2] };
            assert_eq!(seqs(&board, &log), kept, "{bound}: {log}");
        }
        carry_out(&mut board, many(memory("B"), 2));
        let kept = if bound == memory("A") { vec![2] } else { vec![1, 2] };
        assert_eq!(seqs(&board, &memory("B")), kept, "{bound}");
    }
}

#[test]
fn the_oldest_go_too_when_the_setting_comes() {
    let mut board = absent();
    for log in five_logs() {
        carry_out(&mut board, many(log, 3));
    }
    carry_out(&mut board, many(memory("B"), 1));
    let decision = carry_out(&mut board, keep_all(2));
    assert_eq!(changes(&decision), [&["configured"][..], &["removed"; 5]].concat());
    for log in five_logs() {
        assert_eq!(seqs(&board, &log), [2, 3], "{log}");
    }
    assert_eq!(seqs(&board, &memory("B")), [1]);
    assert_eq!(changes(&carry_out(&mut board, keep_all(9))), ["configured"]);
    assert_eq!(changes(&carry_out(&mut board, keep(Set::Reset))), ["configured"]);
    assert_eq!(carry_out(&mut board, keep(Set::Reset)).commit, None);
    carry_out(&mut board, many(Requests, 20));
    assert_eq!(seqs(&board, &Requests).len(), 22, "without the setting all are kept");
}

#[test]
fn what_goes_is_one_range_whatever_gaps_there_are() {
    let mut board = board_of([many(Requests, 6)]);
    for seq in [2, 5].map(Seq) {
        carry_out(&mut board, Command::Log(Requests, LogCommand::DeleteEntry { seq }));
    }
    let decision = carry_out(&mut board, keep_all(2));
    let removed = decision.commit.unwrap().changes.pop();
    let ranges = vec![SeqRange { first: Seq(1), last: Seq(3) }];
    assert_eq!(removed, Some(Change::Log(Requests, LogChange::Removed { ranges })));
    assert_eq!(seqs(&board, &Requests), [4, 6]);
}

#[test]
fn a_replacement_keeps_the_newest() {
    let mut board = board_of([keep_all(2), many(Requests, 1)]);
    let numbered = |texts: [&str; 3]| items(texts);
    let three = numbered([r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#]);
    let replace = Command::Log(Requests, LogCommand::Replace { items: three.clone() });
    assert_eq!(changes(&carry_out(&mut board, replace)), ["cleared", "appended", "removed"]);
    assert_eq!(seqs(&board, &Requests), [3, 4]);
    let logs = [vec![], three.clone(), three, vec![]];
    carry_out(&mut board, Command::Board(BoardCommand::Replace { logs, state: None }));
    assert_eq!(seqs(&board, &Requests), [6, 7]);
    assert_eq!(seqs(&board, &Trajectories), [2, 3]);
}

#[test]
fn a_session_begins_with_no_more_questions_than_it_keeps() {
    let patch = SettingsPatch { max_items: Set::To(all(2)), ..Default::default() };
    let qa_pairs = items([r#"{"n":2}"#, r#"{"n":3}"#]);
    let make = Command::Session(SessionCommand::Put {
        settings: Set::To(patch),
        labels: Set::Keep,
        qa_pairs,
    });
    let policy = Policy { qa_pairs: items([r#"{"n":0}"#, r#"{"n":1}"#]), ..POLICY };
    let decision = decide(&absent(), &write(make), at(0, &policy)).unwrap();
    assert_eq!(changes(&decision), ["created", "appended", "removed"]);
    assert_eq!(seqs(&decision.board, &Questions), [3, 4]);
}

#[test]
fn a_claim_goes_with_its_request() {
    let mut board = board_of([many(Requests, 2)]);
    for (request, time) in [(1, "1s"), (2, "2s")] {
        let command = Command::Request(Seq(request), RequestCommand::Claim { ttl: ttl(time) });
        take(&mut board, &write_by("A", command), 1_000).unwrap();
    }
    assert_eq!(board.next_due(), Some(Timestamp(2_000)));
    carry_out(&mut board, keep_all(2));
    carry_out(&mut board, many(Requests, 1));
    assert_eq!(board.next_due(), Some(Timestamp(3_000)));
    carry_out(&mut board, keep_all(1));
    assert_eq!((board.next_due(), seqs(&board, &Requests)), (None, vec![3]));
}

#[test]
fn each_operation_of_a_transaction_keeps_the_maximum() {
    let mut board = board_of([keep_all(2), many(Requests, 1)]);
    let then = vec![many(Requests, 2), many(Requests, 1), many(memory("A"), 3)];
    let transaction = Transaction { then, ..Default::default() };
    let decision = carry_out(&mut board, Command::Transact(Box::new(transaction)));
    let expected =
        ["appended", "removed", "appended", "removed", "agent_put", "appended", "removed"];
    assert_eq!(changes(&decision), expected);
    assert_eq!((seqs(&board, &Requests), seqs(&board, &memory("A"))), (vec![3, 4], vec![2, 3]));
}

#[test]
fn what_goes_makes_room_in_the_session() {
    let board = board_of([keep_all(2), many(Requests, 2)]);
    let policy = Policy { session_bytes_max: 4, ..POLICY };
    assert!(decide(&board, &write(many(Requests, 2)), at(1_000, &policy)).is_ok());
    let larger = append(Requests, items([r#"{"a":1}"#]));
    let full = Rejected::SessionFull { bytes: 9, max: 4 };
    assert_eq!(decide(&board, &write(larger), at(1_000, &policy)), Err(full));
}
