//! Tests of prepared values: they make decisions cheap and change no result.

use allocation_counter::{AllocationInfo, measure};

use super::board::*;
use crate::BoardCommand;
use crate::*;

/// Returns an object of members numbered from `from` on.
fn document(members: usize, from: usize) -> String {
    let members: Vec<_> = (0..members).map(|i| format!("\"k{i}\":{}", from + i)).collect();
    format!("{{{}}}", members.join(","))
}

fn edit(at: &str, edit: Edit) -> Command {
    Command::State(path(at), edit)
}

fn put(at: &str, value: &str) -> Command {
    edit(at, Edit::Put { value: json(value), ttl: None })
}

/// The allocations of deciding with values made for the board `then`, and the decision.
fn prepared(board: &Board, then: &Board, command: &Command) -> (AllocationInfo, Decision) {
    let (prepared, write) = (Prepared::of(then, command), write(command.clone()));
    assert!(!prepared.is_empty());
    let mut decided = None;
    let taken = measure(|| {
        decided = Some(decide_prepared(board, &write, &prepared, at(2_000, &POLICY)).unwrap());
    });
    (taken, decided.unwrap())
}

fn commands(value: &str) -> Vec<Command> {
    let transaction =
        |then| Command::Transact(Box::new(Transaction { then, ..Transaction::default() }));
    vec![
        put("x", value),
        put("new/y", value),
        put("", value),
        edit("x", Edit::Merge(json(value))),
        edit("", Edit::Merge(json(value))),
        Command::Board(BoardCommand::Replace {
            logs: Default::default(),
            state: Some(json(value)),
        }),
        transaction(vec![put("x", value), edit("z", Edit::Merge(json(value)))]),
    ]
}

#[test]
fn deciding_with_a_value_that_was_made_before_makes_none_of_it() {
    let before = board_of([put("x", &document(20_000, 0)), put("z", "{\"a\":1}")]);
    for command in commands(&document(20_000, 1)) {
        for board in [&before, &absent()] {
            let (taken, decision) = prepared(board, board, &command);
            assert!(taken.count_total <= 120, "{command:.80?}: {taken:?}");
            assert!(taken.bytes_total <= 16 << 10, "{command:.80?}: {taken:?}");
            assert_eq!(Ok(decision), decide(board, &write(command.clone()), at(2_000, &POLICY)));
        }
    }
}

#[test]
fn a_value_that_was_made_for_another_board_is_made_again() {
    let then = board_of([put("x", &document(2_000, 0))]);
    let now = board_of([put("x", &document(2_000, 0)), put("x/k7", "\"other\"")]);
    for command in commands(&document(2_000, 0)) {
        let plain = decide(&now, &write(command.clone()), at(2_000, &POLICY));
        for then in [&then, &now, &absent()] {
            assert_eq!(Ok(prepared(&now, then, &command).1), plain);
        }
    }
}

#[test]
fn of_two_branches_for_one_place_each_has_its_own_value() {
    let board = board_of([put("x", "1")]);
    let values = [document(2_000, 0), document(2_000, 1)];
    let [then, otherwise] = [0, 1].map(|branch| vec![put("x", &values[branch])]);
    for (is_absent, value) in [(false, &values[0]), (true, &values[1])] {
        let (then, otherwise) = (then.clone(), otherwise.clone());
        let tests = vec![Test::Absent(path("x"), is_absent)];
        let transaction = Transaction { tests, then, otherwise };
        let (_, decision) = prepared(&board, &board, &Command::Transact(Box::new(transaction)));
        assert!(decision.board.state().value(&path("x")).unwrap().equals(value));
    }
}

#[test]
fn what_was_made_once_is_decided_any_number_of_times() {
    let mut board = board_of([put("x", "1")]);
    let command = put("y", &document(2_000, 0));
    let (made, write) = (Prepared::of(&board, &command), write(command));
    for _ in 0..2 {
        let decision = decide_prepared(&board, &write, &made, at(2_000, &POLICY)).unwrap();
        let value = decision.board.state().value(&path("y")).unwrap();
        assert_eq!(value.changed(), board.revision().next());
        // The first one was never stored; another write came first.
        carry_out(&mut board, put("x", "2"));
    }
}

#[test]
fn a_small_value_is_not_prepared() {
    let command = put("x", &document(10, 0));
    assert!(Prepared::of(&absent(), &command).is_empty());
    assert_eq!(Prepared::bytes(&command), 0);
}
