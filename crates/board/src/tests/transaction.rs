//! Tests of transactions: tests, branches and operations in one commit, all of it or nothing.

use super::board::*;
use crate::*;

use crate::{AgentCommand, QuestionCommand, RequestCommand};
use LogName::{Questions, Requests, Trajectories};

fn put(at: &str, value: &str) -> Command {
    Command::State(path(at), Edit::Put { value: json(value), ttl: None })
}

fn add(at: &str, number: &str) -> Command {
    Command::State(path(at), Edit::Add(json(number)))
}

fn transact(tests: Vec<Test>, then: Vec<Command>, otherwise: Vec<Command>) -> Command {
    Command::Transact(Box::new(Transaction { tests, then, otherwise }))
}

fn answer_to(question: u64) -> Command {
    Command::Question(Seq(question), QuestionCommand::Answer { answer: "so".to_owned() })
}

/// At revision 6: a document, a question, three requests of which the second is claimed and the third done.
fn board() -> Board {
    let mut board = board_of([
        put("", r#"{"n":1.0,"o":{"a":[1,{"x":null}],"b":"\u0041"},"gone":null}"#),
        append(Questions, items(["{}"])),
        append(Requests, items(["{}", "{}", "{}"])),
        put("o/c", "true"),
    ]);
    let claim = Command::Request(Seq(2), RequestCommand::Claim { ttl: ttl("60s") });
    take(&mut board, &write_by("A", claim), 1_000).unwrap();
    carry_out(
        &mut board,
        Command::Request(Seq(3), RequestCommand::Finish { fence: None, result: None }),
    );
    board
}

fn succeeded(board: &Board, tests: Vec<Test>) -> bool {
    let write = write(transact(tests, vec![], vec![]));
    let decision = decide(board, &write, at(2_000, &POLICY)).unwrap();
    assert_eq!(decision.commit, None);
    let Answer::Transacted { succeeded, results } = decision.answer else { panic!() };
    assert_eq!(results, []);
    succeeded
}

#[test]
fn each_test_holds_or_does_not() {
    let board = board();
    let equals = |at: &str, value: &str| Test::Equals(path(at), json(value));
    let is_absent = |at: &str, absent| Test::Absent(path(at), absent);
    let version =
        |at: &str, revision| Test::InVersion(path(at), Some(board.at_version(Revision(revision))));
    let foreign = Version { session: SessionId(uuid::Uuid::nil()), changed: Revision(4) };
    let count = Test::Count;
    let claimable = |seq, is| Test::Claimable(Seq(seq), is);
    for (test, holds) in [
        (equals("n", "1"), true),
        (equals("n", "10e-1"), true),
        (equals("n", "1.1"), false),
        (equals("n", "\"1\""), false),
        (equals("o", r#"{"c":true,"b":"A","a":[1.0,{"x":null}]}"#), true),
        (equals("o", r#"{"c":true,"b":"A","a":[{"x":null},1]}"#), false),
        (equals("o", r#"{"b":"A","a":[1,{"x":null}]}"#), false),
        (equals("o/a", r#"[1,{"x":null}]"#), true),
        (equals("gone", "null"), true),
        (equals("absent", "null"), false),
        (equals("n/x", "null"), false),
        (is_absent("absent", true), true),
        (is_absent("absent", false), false),
        (is_absent("gone", true), false),
        (is_absent("gone", false), true),
        (is_absent("n/x/y", true), true),
        (is_absent("", false), true),
        (version("o", 4), true),
        (version("o", 1), false),
        (version("o/a", 1), true),
        (version("", 4), true),
        (version("absent", 0), false),
        (Test::InVersion(path("o"), None), false),
        (Test::InVersion(path("o"), Some(foreign)), false),
        (Test::InVersion(path("absent"), None), false),
        (count(Requests, 3), true),
        (count(Requests, 2), false),
        (count(Trajectories, 0), true),
        (count(memory("nobody"), 0), true),
        (count(memory("nobody"), 1), false),
        (claimable(1, true), true),
        (claimable(1, false), false),
        (claimable(2, true), false),
        (claimable(2, false), true),
        (claimable(3, true), false),
        (claimable(3, false), true),
        (claimable(4, true), false),
        (claimable(4, false), true),
        (Test::AtRevision(Revision(6)), true),
        (Test::AtRevision(Revision(5)), false),
        (Test::AtRevision(Revision(7)), false),
    ] {
        assert_eq!(succeeded(&board, vec![test.clone()]), holds, "{test:?}");
    }
}

#[test]
fn all_tests_must_hold_and_none_always_does() {
    let board = board();
    let (yes, no) = (Test::Count(Requests, 3), Test::Count(Requests, 4));
    for (tests, holds) in [
        (vec![], true),
        (vec![yes.clone(), yes.clone()], true),
        (vec![yes.clone(), no.clone()], false),
        (vec![no.clone(), yes], false),
        (vec![no.clone(), no], false),
    ] {
        assert_eq!(succeeded(&board, tests), holds);
    }
}

#[test]
fn one_branch_is_done_and_the_other_is_not_looked_at() {
    for (count, value) in [(3, "\"then\""), (4, "\"else\"")] {
        let (mut then, mut otherwise) = (vec![put("x", "\"then\"")], vec![put("x", "\"else\"")]);
        if count == 3 { &mut otherwise } else { &mut then }.push(add("o", "1"));
        let mut board = board();
        let command = transact(vec![Test::Count(Requests, count)], then, otherwise);
        let decision = carry_out(&mut board, command);
        let results = vec![Answer::Done];
        assert_eq!(decision.answer, Answer::Transacted { succeeded: count == 3, results });
        assert!(board.state().value(&path("x")).unwrap().equals(value));
    }
}

#[test]
fn each_operation_sees_those_before_it_and_the_tests_see_none() {
    let mut board = board();
    let tests = vec![Test::Absent(path("counter"), true), Test::Count(Trajectories, 0)];
    let claim = Command::Request(Seq(1), RequestCommand::Claim { ttl: ttl("60s") });
    let finish = |fence: Option<u64>| {
        let fence = fence.map(Revision);
        Command::Request(Seq(1), RequestCommand::Finish { fence, result: Some(json("1")) })
    };
    let patch = |status: &str| {
        Command::Agent(
            agent("A"),
            AgentCommand::Patch { patch: item(&format!(r#"{{"status":"{status}"}}"#)) },
        )
    };
    let then = vec![
        add("counter", "1"),
        add("counter", "1"),
        append(Trajectories, items(["{}", "{}"])),
        append(Trajectories, items(["{}"])),
        append(memory("A"), items(["{}"])),
        patch("PENDING"),
        patch("CONTINUE"),
        claim,
        finish(Some(7)),
        answer_to(1),
        Command::State(path("o/a"), Edit::Append(vec![])),
        put("o/a", "[]"),
        Command::State(path("o/a"), Edit::Remove),
    ];
    let command = transact(tests, then, vec![]);
    let decision = take(&mut board, &write_by("A", command), 2_000).unwrap();
    let expected = [
        "state_set",
        "state_set",
        "appended",
        "appended",
        "agent_put",
        "appended",
        "agent_put",
        "agent_put",
        "claimed",
        "finished",
        "updated",
        "state_put",
        "state_removed",
    ];
    assert_eq!(changes(&decision), expected);
    let Answer::Transacted { succeeded: true, results } = decision.answer else { panic!() };
    let [first, second, added, more, ..] = results.as_slice() else { panic!() };
    let values = [first, second].map(|answer| {
        let Answer::Value(value) = answer else { panic!("{answer:?}") };
        value.number().map(str::to_owned)
    });
    assert_eq!(values, [Some("1".to_owned()), Some("2".to_owned())]);
    assert_eq!((added.first_added(), more.first_added()), (Some(Seq(1)), Some(Seq(3))));
    assert_eq!(results.len(), 13);
    let Answer::Claimed { claim, won: true } = &results[7] else { panic!() };
    assert_eq!(claim.fence, Revision(7));
    assert_eq!((board.revision(), board.next_due()), (Revision(7), Some(Timestamp(61_000))));
}

#[test]
fn an_operation_that_changes_nothing_takes_nothing_back() {
    let mut board = board();
    let nothing = Command::State(path("o/a"), Edit::Append(vec![]));
    let command = transact(vec![], vec![put("x", "1"), nothing, put("o/c", "true")], vec![]);
    assert_eq!(changes(&carry_out(&mut board, command)), ["state_put"]);
    assert!(board.state().value(&path("x")).is_some());
}

#[test]
fn a_refused_operation_refuses_all_and_says_which() {
    let board = board();
    let no_object = Rejected::NotAnObject { at: path("n") };
    let taken = Rejected::AlreadyClaimed { request: Seq(2), by: agent("A") };
    let claim = |request| Command::Request(Seq(request), RequestCommand::Claim { ttl: ttl("1s") });
    let patch = Command::Agent(agent("Z"), AgentCommand::Patch { patch: item("{}") });
    let finish = |request, fence| {
        Command::Request(Seq(request), RequestCommand::Finish { fence, result: None })
    };
    for (command, rejected) in [
        (put("n/x", "1"), no_object),
        (add("o", "1"), Rejected::NotANumber { path: path("o") }),
        (Command::State(path("x"), Edit::Remove), Rejected::NoPath { path: path("x") }),
        (claim(2), taken.clone()),
        (claim(3), Rejected::AlreadyDone { request: Seq(3) }),
        (claim(9), Rejected::NoEntry { log: Requests, seq: Seq(9) }),
        (finish(2, None), taken),
        (
            finish(1, Some(Revision(1))),
            Rejected::StaleFence { request: Seq(1), fence: Revision(1) },
        ),
        (answer_to(2), Rejected::NoEntry { log: Questions, seq: Seq(2) }),
        (patch, Rejected::NoAgent { agent: agent("Z") }),
    ] {
        for index in 0..3 {
            let mut commands = vec![add("counter", "1"); 3];
            commands[index] = command.clone();
            for branch in [Branch::Then, Branch::Else] {
                let (tests, then, otherwise) = match branch {
                    Branch::Then => (vec![], commands.clone(), vec![]),
                    Branch::Else => (vec![Test::Count(Requests, 9)], vec![], commands.clone()),
                };
                let asked = write_by("B", transact(tests, then, otherwise));
                let refused = decide(&board, &asked, at(2_000, &POLICY)).unwrap_err();
                let rejected = Box::new(rejected.clone());
                assert_eq!(refused.code(), rejected.code());
                assert_eq!(refused, Rejected::InOperation { branch, index, rejected });
            }
        }
    }
}

#[test]
fn a_transaction_needs_the_author_that_its_operations_need() {
    let claim = Command::Request(Seq(1), RequestCommand::Claim { ttl: ttl("1s") });
    let rejected = Box::new(Rejected::AgentRequired);
    let expected = Rejected::InOperation { branch: Branch::Then, index: 0, rejected };
    assert_eq!(refused(&board(), transact(vec![], vec![claim], vec![])), expected);
}

#[test]
fn a_question_is_answered_once() {
    let mut board = board();
    let twice = transact(vec![], vec![answer_to(1), answer_to(1)], vec![]);
    let rejected = Box::new(Rejected::AlreadyAnswered { question: Seq(1) });
    let expected = Rejected::InOperation { branch: Branch::Then, index: 1, rejected };
    assert_eq!(refused(&board, twice), expected);
    carry_out(&mut board, transact(vec![], vec![answer_to(1)], vec![]));
    assert_eq!(shown(&board, &Questions), [(1, r#"{"answer":"so"}"#.to_owned())]);
    assert_eq!(refused(&board, answer_to(1)), Rejected::AlreadyAnswered { question: Seq(1) });
    let null = item(r#"{"question":"q","answer":null}"#);
    carry_out(&mut board, append(Questions, vec![null, item(r#"{"q":1}"#)]));
    assert_eq!(refused(&board, answer_to(2)), Rejected::AlreadyAnswered { question: Seq(2) });
    assert_eq!(changes(&carry_out(&mut board, answer_to(3))), ["updated"]);
}

#[test]
fn a_transaction_without_change_creates_no_session() {
    let seeded = Policy { qa_pairs: items([r#"{"q":1,"answer":2}"#]), ..POLICY };
    let decide_on_none =
        |command, policy: &Policy| decide(&absent(), &write(command), at(0, policy));
    for (tests, then, expected) in [
        (vec![], vec![put("a", "1")], vec!["created", "appended", "state_put"]),
        (
            vec![Test::Count(Questions, 0)],
            vec![add("a", "1")],
            vec!["created", "appended", "state_set"],
        ),
        (
            vec![Test::AtRevision(Revision(0))],
            vec![append(Requests, items(["{}"]))],
            vec!["created", "appended", "appended"],
        ),
        (vec![Test::Count(Questions, 1)], vec![put("a", "1")], vec![]),
        (vec![], vec![], vec![]),
        (vec![], vec![append(Requests, vec![])], vec![]),
        (vec![], vec![put("", "{}")], vec![]),
    ] {
        let decision = decide_on_none(transact(tests, then, vec![]), &seeded).unwrap();
        assert_eq!(changes(&decision), expected);
        assert_eq!(decision.board.life().is_some(), !expected.is_empty());
    }
    let closed = Policy { auto_create: false, ..POLICY };
    let asked = transact(vec![], vec![put("a", "1")], vec![]);
    assert_eq!(decide_on_none(asked, &closed), Err(no_session()));
}

#[test]
fn a_transaction_is_bound_as_one_write() {
    let policy = Policy { session_bytes_max: 5, ..POLICY };
    let check = |then| {
        let write = write(transact(vec![], then, vec![]));
        decide(&absent(), &write, at(0, &policy)).map(|_| ())
    };
    let one = || append(Requests, items(["{}"]));
    assert_eq!(check(vec![one(), one()]), Ok(()));
    assert_eq!(check(vec![one(), one(), one()]), Err(Rejected::SessionFull { bytes: 6, max: 5 }));
    let half = vec![item("{}"); COMMIT_ITEMS_MAX / 2];
    let many = vec![append(Requests, half.clone()), append(Requests, half), one()];
    let (items, max) = (COMMIT_ITEMS_MAX + 1, COMMIT_ITEMS_MAX);
    assert_eq!(
        refused(&absent(), transact(vec![], many, vec![])),
        Rejected::TooManyItems { items, max }
    );
}

#[test]
fn a_condition_on_a_transaction_is_on_the_session() {
    let board = board();
    let check = |revision| {
        let versions = vec![board.at_version(Revision(revision))];
        let condition = Condition { matches: Some(Matches::Versions(versions)), absent: false };
        let write = write_if(condition, transact(vec![], vec![add("counter", "1")], vec![]));
        decide(&board, &write, at(2_000, &POLICY)).map(|_| ())
    };
    assert_eq!(check(6), Ok(()));
    let refusal = Rejected::Precondition { present: Some(board.version()), current: None };
    assert_eq!(check(4), Err(refusal));
}
