//! Tests of edits of the state: results and refusals.

use super::board::*;
use crate::*;
use crate::{BoardCommand, StateChange};

fn edit(at: &str, edit: Edit) -> Command {
    Command::State(path(at), edit)
}

fn put(at: &str, value: &str) -> Command {
    edit(at, Edit::Put { value: json(value), ttl: None })
}

fn merge(at: &str, patch: &str) -> Command {
    edit(at, Edit::Merge(json(patch)))
}

fn add(at: &str, number: &str) -> Command {
    edit(at, Edit::Add(json(number)))
}

fn append_to(at: &str, elements: &[&str]) -> Command {
    edit(at, Edit::Append(elements.iter().map(|element| json(element)).collect()))
}

fn remove(at: &str) -> Command {
    edit(at, Edit::Remove)
}

fn text(board: &Board) -> String {
    board.state().text()
}

fn shown_at(board: &Board, at: &str) -> Option<String> {
    let value = board.state().value(&path(at))?;
    let mut text = String::new();
    value.write(&mut text);
    Some(text)
}

const DOCUMENT: &str = r#"{"a":{"b":1,"c":[1]},"n":null,"s":"x"}"#;

#[test]
fn an_edit_comes_to_one_change_or_to_none_where_the_state_stays() {
    for (command, after, expected) in [
        (put("a/b", "2"), r#"{"a":{"b":2,"c":[1]},"n":null,"s":"x"}"#, "state_put"),
        (put("a/b", " 1 "), DOCUMENT, ""),
        (put("a/b", "1.0"), r#"{"a":{"b":1.0,"c":[1]},"n":null,"s":"x"}"#, "state_put"),
        (put("x/y", "{}"), r#"{"a":{"b":1,"c":[1]},"n":null,"s":"x","x":{"y":{}}}"#, "state_put"),
        (put("", "{}"), "{}", "state_put"),
        (put("", DOCUMENT), DOCUMENT, ""),
        (put("n", "null"), DOCUMENT, ""),
        (merge("a", r#"{"b":null}"#), r#"{"a":{"c":[1]},"n":null,"s":"x"}"#, "state_merged"),
        (merge("a", r#"{"x":null,"b":1}"#), DOCUMENT, ""),
        (merge("", "{}"), DOCUMENT, ""),
        (merge("s", "{}"), r#"{"a":{"b":1,"c":[1]},"n":null,"s":{}}"#, "state_merged"),
        (merge("a/c", "null"), r#"{"a":{"b":1,"c":null},"n":null,"s":"x"}"#, "state_merged"),
        (add("a/b", "41"), r#"{"a":{"b":42,"c":[1]},"n":null,"s":"x"}"#, "state_set"),
        (add("a/b", "0.5"), r#"{"a":{"b":1.5,"c":[1]},"n":null,"s":"x"}"#, "state_set"),
        (add("a/b", "0"), DOCUMENT, ""),
        (add("new", "7"), r#"{"a":{"b":1,"c":[1]},"n":null,"s":"x","new":7}"#, "state_set"),
        (
            append_to("a/c", &["2", "[]"]),
            r#"{"a":{"b":1,"c":[1,2,[]]},"n":null,"s":"x"}"#,
            "state_appended",
        ),
        (append_to("a/c", &[]), DOCUMENT, ""),
        (append_to("l", &[]), r#"{"a":{"b":1,"c":[1]},"n":null,"s":"x","l":[]}"#, "state_appended"),
        (remove("a/c"), r#"{"a":{"b":1},"n":null,"s":"x"}"#, "state_removed"),
        (remove("n"), r#"{"a":{"b":1,"c":[1]},"s":"x"}"#, "state_removed"),
        (remove(""), "{}", "state_removed"),
    ] {
        let mut board = board_of([put("", DOCUMENT)]);
        let decision = carry_out(&mut board, command.clone());
        assert_eq!(text(&board), after, "{command:?}");
        assert_eq!(changes(&decision).concat(), expected, "{command:?}");
        assert_eq!(board.bytes(), after.len() as u64 - 2, "{command:?}");
    }
}

#[test]
fn what_cannot_be_edited_so_is_refused() {
    let board = board_of([put("", DOCUMENT)]);
    let no_object = |at: &str| Rejected::NotAnObject { at: path(at) };
    let no_number = |at: &str| Rejected::NotANumber { path: path(at) };
    let no_array = |at: &str| Rejected::NotAnArray { path: path(at) };
    for (command, expected) in [
        (put("a/b/x", "1"), no_object("a/b")),
        (put("a/c/0", "1"), no_object("a/c")),
        (put("s/t/u", "1"), no_object("s")),
        (merge("n/x", "{}"), no_object("n")),
        (add("n/x", "1"), no_object("n")),
        (append_to("s/l", &["1"]), no_object("s")),
        (remove("s/x"), Rejected::NoPath { path: path("s/x") }),
        (remove("x"), Rejected::NoPath { path: path("x") }),
        (remove("a/x"), Rejected::NoPath { path: path("a/x") }),
        (put("", "[]"), Rejected::RootNotAnObject),
        (put("", "null"), Rejected::RootNotAnObject),
        (merge("", "1"), Rejected::RootNotAnObject),
        (add("s", "1"), no_number("s")),
        (add("n", "1"), no_number("n")),
        (add("", "1"), no_number("")),
        (append_to("a/b", &["1"]), no_array("a/b")),
        (append_to("a", &[]), no_array("a")),
        (append_to("", &["1"]), no_array("")),
    ] {
        assert_eq!(refused(&board, command.clone()), expected, "{command:?}");
    }
}

#[test]
fn a_sum_is_exact_until_it_cannot_be_read_again() {
    let nines = "9".repeat(4_300);
    let mut board = board_of([put("", &format!(r#"{{"i":{nines},"d":1e308}}"#))]);
    assert_eq!(refused(&board, add("i", "1")), Rejected::SumTooLarge);
    assert_eq!(refused(&board, add("d", "1e308")), Rejected::SumTooLarge);
    carry_out(&mut board, add("i", "-1"));
    assert_eq!(shown_at(&board, "i"), Some(format!("{}8", "9".repeat(4_299))));
}

#[test]
fn an_addition_and_an_append_answer_the_new_value() {
    let mut board = board_of([put("", DOCUMENT)]);
    for (command, expected) in [
        (add("a/b", "1"), Some("2")),
        (add("a/b", "0"), Some("2")),
        (append_to("a/c", &["{\"x\":1}"]), Some("[1,{\"x\":1}]")),
        (append_to("a/c", &[]), Some("[1,{\"x\":1}]")),
        (put("a/b", "3"), None),
        (merge("a", "{}"), None),
        (remove("a"), None),
    ] {
        let answer = carry_out(&mut board, command.clone()).answer;
        let expected = expected.map(|expected| {
            let Command::State(path, _) = &command else { panic!() };
            let value = board.state().value(path).unwrap();
            assert!(value.equals(expected), "{command:?}");
            Answer::Value(value)
        });
        assert_eq!(answer, expected.unwrap_or(Answer::Done), "{command:?}");
    }
}

#[test]
fn a_first_edit_makes_the_session_unless_it_removes() {
    for (command, expected) in [
        (put("a", "1"), vec!["created", "state_put"]),
        (put("", "{}"), vec!["created"]),
        (put("", r#"{"a":1}"#), vec!["created", "state_put"]),
        (merge("a", "{}"), vec!["created", "state_merged"]),
        (add("a", "1"), vec!["created", "state_set"]),
        (append_to("a", &[]), vec!["created", "state_appended"]),
        (merge("", "{}"), vec![]),
    ] {
        let mut board = absent();
        let decision = carry_out(&mut board, command.clone());
        assert_eq!(changes(&decision), expected, "{command:?}");
        assert!(!decision.existed, "{command:?}");
        let closed = Policy { auto_create: false, ..POLICY };
        let refused = decide(&absent(), &write(command), at(0, &closed));
        assert_eq!(refused, Err(no_session()));
    }
    assert_eq!(refused(&absent(), remove("a")), no_session());
    assert_eq!(refused(&absent(), remove("")), no_session());
}

#[test]
fn a_write_says_whether_its_path_existed() {
    let board = board_of([put("", DOCUMENT)]);
    for (command, existed) in [
        (put("a/b", "2"), true),
        (put("", "{}"), true),
        (put("n", "1"), true),
        (put("a/x", "2"), false),
        (merge("x", "{}"), false),
        (add("x", "1"), false),
        (remove("a"), true),
    ] {
        let decision = decide(&board, &write(command.clone()), at(0, &POLICY)).unwrap();
        assert_eq!(decision.existed, existed, "{command:?}");
    }
}

#[test]
fn a_condition_on_a_path_is_on_that_value_alone() {
    let mut board = board_of([put("", DOCUMENT)]);
    carry_out(&mut board, put("a/b", "2"));
    let absent = Condition { matches: None, absent: true };
    let any = Condition { matches: Some(Matches::Any), absent: false };
    let left = |revision| {
        let versions = vec![board.at_version(Revision(revision))];
        Condition { matches: Some(Matches::Versions(versions)), absent: false }
    };
    let check = |command: &Command, condition: Condition| {
        decide(&board, &write_if(condition, command.clone()), at(2_000, &POLICY))
    };
    for (command, revision) in
        [(put("a", "1"), 2), (put("s", "1"), 1), (merge("", "{}"), 2), (remove("a/c"), 1)]
    {
        let Command::State(path, _) = &command else { panic!() };
        let shown = Some(Current::State(board.state().value(path).unwrap()));
        let refusal = Rejected::Precondition {
            present: Some(board.at_version(Revision(revision))),
            current: shown,
        };
        assert!(check(&command, left(revision)).is_ok(), "{command:?}");
        assert!(check(&command, any.clone()).is_ok(), "{command:?}");
        assert_eq!(check(&command, left(3 - revision)), Err(refusal.clone()), "{command:?}");
        assert_eq!(check(&command, absent.clone()), Err(refusal), "{command:?}");
    }
    let none = Err(Rejected::Precondition { present: None, current: None });
    assert!(check(&put("x", "1"), absent.clone()).is_ok());
    assert_eq!(check(&put("x", "1"), any.clone()), none);
    assert_eq!(check(&put("x", "1"), left(2)), none);
    // A missing path is reported before any condition is evaluated.
    assert_eq!(check(&remove("x"), any), Err(Rejected::NoPath { path: path("x") }));
}

#[test]
fn the_document_may_be_so_large_and_shrink_where_it_is_larger() {
    let max = usize::try_from(STATE_BYTES_MAX).unwrap();
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let rest = r#"{"a":}"#.len();
    let mut board = board_of([put("a", &text(max - rest))]);
    assert_eq!(board.state().bytes(), STATE_BYTES_MAX);
    let full = |bytes: u64| Rejected::StateFull { bytes };
    assert_eq!(refused(&board, put("a", &text(max - rest + 1))), full(STATE_BYTES_MAX + 1));
    assert_eq!(refused(&board, put("b", "1")), full(STATE_BYTES_MAX + 6));
    assert_eq!(refused(&board, append_to("l", &[])), full(STATE_BYTES_MAX + 7));
    // A board that a later version made may be beyond the bound.
    let over = Commit {
        revision: board.revision().next(),
        at: board.updated_at(),
        agent: None,
        trace: None,
        nonce: Nonce(0),
        kept: None,
        changes: vec![Change::State(
            path("b"),
            StateChange::Put { value: json("[0]"), expires_at: None },
        )],
    };
    admit(&board, &over).unwrap();
    apply(&mut board, &over);
    for command in [put("b", "0"), remove("b"), put("b", "[1]"), remove("")] {
        let decided = decide(&board, &write(command.clone()), at(2_000, &POLICY));
        assert!(decided.is_ok(), "{command:?}");
    }
    assert_eq!(refused(&board, put("b", "[10]")), full(STATE_BYTES_MAX + 9));
}

#[test]
fn the_state_counts_into_the_session() {
    let policy = Policy { session_bytes_max: 6, ..POLICY };
    let check = |command| decide(&absent(), &write(command), at(0, &policy)).map(|_| ());
    assert_eq!(check(put("a", "10")), Ok(()));
    assert_eq!(check(put("a", "100")), Err(Rejected::SessionFull { bytes: 7, max: 6 }));
}

#[test]
fn the_state_may_be_replaced_and_cleared_with_the_board() {
    let mut board = board_of([put("", r#"{"a":1,"b":[]}"#)]);
    let replace = |state: Option<&str>| {
        let logs = [items(["{}"]), vec![], vec![], vec![]];
        Command::Board(BoardCommand::Replace { logs, state: state.map(json) })
    };
    for (command, after, expected) in [
        (replace(None), r#"{"a":1,"b":[]}"#, vec!["appended"]),
        (replace(Some(r#"{"b" : [],"a":1}"#)), r#"{"b":[],"a":1}"#, vec!["state_put"]),
        (replace(Some(r#"{"b":[],"a":1}"#)), r#"{"b":[],"a":1}"#, vec![]),
        (
            Command::Board(BoardCommand::Clear { state: false }),
            r#"{"b":[],"a":1}"#,
            vec!["cleared"],
        ),
        (Command::Board(BoardCommand::Clear { state: true }), "{}", vec!["state_removed"]),
        (Command::Board(BoardCommand::Clear { state: true }), "{}", vec![]),
    ] {
        let decision = carry_out(&mut board, command.clone());
        assert_eq!(changes(&decision), expected, "{command:?}");
        assert_eq!(text(&board), after, "{command:?}");
    }
    assert_eq!(refused(&board, replace(Some("1"))), Rejected::RootNotAnObject);
}
