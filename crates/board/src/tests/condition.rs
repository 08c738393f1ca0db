//! Tests of conditions of writes: `If-Match` and `If-None-Match: *` on each kind of target.

use super::board::*;
use crate::*;

use crate::{BoardCommand, LogCommand, SessionCommand};
use LogName::{Questions, Requests};

const ANY: Condition = Condition { matches: Some(Matches::Any), absent: false };
const ABSENT: Condition = Condition { matches: None, absent: true };

fn versions(versions: &[Version]) -> Condition {
    Condition { matches: Some(Matches::Versions(versions.to_vec())), absent: false }
}

fn check(board: &Board, command: &Command, condition: Condition) -> Result<bool, Rejected> {
    decide(board, &write_if(condition, command.clone()), at(0, &POLICY))
        .map(|decision| decision.existed)
}

fn present(rejected: Result<bool, Rejected>) -> Option<Revision> {
    match rejected {
        Err(Rejected::Precondition { present, .. }) => present.map(|version| version.changed),
        other => panic!("{other:?}"),
    }
}

/// Each kind of write on a session that exists, with the revision that last changed what it writes.
fn writes() -> (Board, Vec<(Command, u64)>) {
    let board = board_of([
        append(Questions, items(["{}", "{}"])),
        append(Requests, items(["{}"])),
        append(memory("a"), items(["{}"])),
    ]);
    let one = || items([r#"{"new":1}"#]);
    let seq = Seq(1);
    let put = |log| {
        Command::Log(log, LogCommand::PutEntry { seq, item: item(r#"{"new":1}"#), basis: None })
    };
    let writes = vec![
        (
            Command::Session(SessionCommand::Put {
                settings: Set::Keep,
                labels: Set::Keep,
                qa_pairs: vec![],
            }),
            3,
        ),
        (Command::Session(SessionCommand::Delete), 3),
        (append(Questions, one()), 1),
        (append(Requests, one()), 2),
        (append(LogName::Trajectories, one()), 0),
        (append(memory("a"), one()), 3),
        (Command::Log(Questions, LogCommand::Replace { items: one() }), 1),
        (Command::Log(Requests, LogCommand::Remove { which: Which::All }), 2),
        (Command::Board(BoardCommand::Replace { logs: Default::default(), state: None }), 2),
        (Command::Board(BoardCommand::Clear { state: false }), 2),
        (put(Questions), 1),
        (put(memory("a")), 3),
        (Command::Log(Requests, LogCommand::DeleteEntry { seq }), 2),
    ];
    (board, writes)
}

#[test]
fn a_write_on_what_exists_meets_any_and_its_own_version_alone() {
    let (board, writes) = writes();
    for (command, changed) in writes {
        let check = |condition| check(&board, &command, condition);
        let version = |changed| board.at_version(Revision(changed));
        assert_eq!(check(Condition::default()), Ok(true), "{command:?}");
        assert_eq!(check(ANY), Ok(true), "{command:?}");
        assert_eq!(check(versions(&[version(77), version(changed)])), Ok(true), "{command:?}");
        for others in [vec![], vec![version(changed + 1)], vec![version(77), version(78)]] {
            assert_eq!(present(check(versions(&others))), Some(Revision(changed)), "{command:?}");
        }
        let foreign = Version { session: SessionId(uuid::Uuid::nil()), ..version(changed) };
        assert_eq!(present(check(versions(&[foreign]))), Some(Revision(changed)), "{command:?}");
        assert_eq!(present(check(ABSENT)), Some(Revision(changed)), "{command:?}");
    }
}

#[test]
fn both_conditions_must_hold() {
    let (board, writes) = writes();
    let both = Condition { absent: true, ..ANY };
    for (command, changed) in writes {
        assert_eq!(present(check(&board, &command, both.clone())), Some(Revision(changed)));
        assert!(check(&absent(), &command, both.clone()).is_err());
    }
}

#[test]
fn an_unwritten_memory_does_not_exist_but_has_a_version() {
    let (board, _) = writes();
    let one = items(["{}"]);
    for command in [
        append(memory("b"), one.clone()),
        Command::Log(memory("b"), LogCommand::Replace { items: one }),
        Command::Log(memory("b"), LogCommand::Remove { which: Which::All }),
    ] {
        assert_eq!(check(&board, &command, ABSENT), Ok(false));
        assert_eq!(present(check(&board, &command, ANY)), Some(Revision(0)));
        let as_read = versions(&[board.at_version(Revision(0))]);
        assert_eq!(check(&board, &command, as_read), Ok(false));
        let other = versions(&[board.at_version(Revision(3))]);
        assert_eq!(present(check(&board, &command, other)), Some(Revision(0)));
    }
}

#[test]
fn an_emptied_log_exists() {
    let mut board = board_of([append(memory("a"), items(["{}"]))]);
    carry_out(&mut board, Command::Log(memory("a"), LogCommand::Remove { which: Which::All }));
    let command = append(memory("a"), items(["{}"]));
    assert_eq!(check(&board, &command, ANY), Ok(true));
    assert_eq!(present(check(&board, &command, ABSENT)), Some(Revision(2)));
}

#[test]
fn a_session_that_does_not_exist_has_no_version() {
    let gone =
        board_of([append(Requests, items(["{}"])), Command::Session(SessionCommand::Delete)]);
    for board in [absent(), gone] {
        let put = Command::Session(SessionCommand::Put {
            settings: Set::Keep,
            labels: Set::Keep,
            qa_pairs: vec![],
        });
        for command in [put, append(Requests, items(["{}"])), append(memory("a"), items(["{}"]))] {
            assert_eq!(check(&board, &command, ABSENT), Ok(false));
            assert_eq!(present(check(&board, &command, ANY)), None);
            let known = versions(&[board.version(), board.at_version(Revision(0))]);
            assert_eq!(present(check(&board, &command, known)), None);
        }
        assert_eq!(
            check(&board, &Command::Session(SessionCommand::Delete), ANY),
            Err(no_session())
        );
        assert_eq!(
            check(&board, &Command::Board(BoardCommand::Clear { state: false }), ABSENT),
            Err(no_session())
        );
    }
}

#[test]
fn a_missing_entry_is_told_before_any_condition() {
    let (board, _) = writes();
    let (log, seq) = (Requests, Seq(9));
    for condition in [Condition::default(), ANY, ABSENT, versions(&[])] {
        let none = Rejected::NoEntry { log: log.clone(), seq };
        let put =
            Command::Log(log.clone(), LogCommand::PutEntry { seq, item: item("{}"), basis: None });
        assert_eq!(check(&board, &put, condition.clone()), Err(none.clone()));
        let delete = Command::Log(log.clone(), LogCommand::DeleteEntry { seq });
        assert_eq!(check(&board, &delete, condition.clone()), Err(none.clone()));
        assert_eq!(patchable(&board, &log, seq, &condition).unwrap_err(), none);
    }
}

#[test]
fn a_refusal_of_an_entry_shows_it_as_it_is() {
    let (board, _) = writes();
    let entry = board.log(&Requests).unwrap().get(Seq(1)).unwrap();
    let refused = patchable(&board, &Requests, Seq(1), &ABSENT).unwrap_err();
    let expected = Rejected::Precondition {
        present: Some(board.at_version(Revision(2))),
        current: Some(Current::Entry(std::sync::Arc::clone(entry))),
    };
    assert_eq!(refused, expected);
    let delete = Command::Log(Requests, LogCommand::DeleteEntry { seq: Seq(1) });
    assert_eq!(check(&board, &delete, ABSENT), Err(expected));
    assert_eq!(patchable(&board, &Requests, Seq(1), &ANY), Ok(entry));
}

#[test]
fn a_condition_is_checked_before_the_basis_and_the_bounds() {
    let (board, _) = writes();
    let (log, basis) = (Requests, Some(Revision(1)));
    let patch = Command::Log(log, LogCommand::PutEntry { seq: Seq(1), item: item("{}"), basis });
    assert_eq!(present(check(&board, &patch, ABSENT)), Some(Revision(2)));
    assert_eq!(check(&board, &patch, ANY), Err(Rejected::Stale));
}

#[test]
fn an_unchanged_write_is_refused_where_its_condition_is_not_met() {
    let (board, _) = writes();
    let same = Command::Log(Requests, LogCommand::Replace { items: items(["{}"]) });
    assert_eq!(present(check(&board, &same, versions(&[]))), Some(Revision(2)));
    let nothing = append(Requests, vec![]);
    assert_eq!(present(check(&board, &nothing, ABSENT)), Some(Revision(2)));
}
