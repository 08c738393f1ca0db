//! Tests of agents: registration, profiles, and every transition of a status.

use super::board::*;
use crate::model::agent::known_statuses;
use crate::*;
use crate::{AgentChange, AgentCommand, LogChange, SessionCommand};

fn put(name: &str, profile: &str) -> Command {
    Command::Agent(agent(name), AgentCommand::Put { profile: item(profile) })
}

fn patch(name: &str, patch: &str) -> Command {
    Command::Agent(agent(name), AgentCommand::Patch { patch: item(patch) })
}

fn remove(name: &str) -> Command {
    Command::Agent(agent(name), AgentCommand::Remove)
}

fn status(status: &str) -> String {
    format!(r#"{{"status":"{status}"}}"#)
}

fn profile<'a>(board: &'a Board, name: &str) -> &'a str {
    board.agents()[&agent(name)].profile.item().text()
}

/// A session whose agents have these statuses of its own besides.
fn session(states: &[(&str, &[&str], &[&str])]) -> Command {
    let texts = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let states = states
        .iter()
        .map(|(name, from, to)| ((*name).to_owned(), Moves { from: texts(from), to: texts(to) }));
    let agent_states = Set::To(states.collect());
    let settings = Set::To(SettingsPatch { agent_states, ..Default::default() });
    Command::Session(SessionCommand::Put { settings, labels: Set::Keep, qa_pairs: vec![] })
}

/// Returns the result of a change of status, the same by PUT and by PATCH.
fn go(states: &[(&str, &[&str], &[&str])], from: &str, to: &str) -> Result<bool, Rejected> {
    let board = board_of([session(states), put("A", &status(from))]);
    let mut results = [put("A", &status(to)), patch("A", &status(to))].map(|command| {
        let decision = decide(&board, &write(command), at(2_000, &POLICY))?;
        assert_eq!(decision.answer, Answer::Status(Status::new(to)));
        Ok(decision.commit.is_some())
    });
    assert_eq!(results[0], results[1], "{from} {to}");
    std::mem::replace(&mut results[0], Ok(false))
}

fn illegal(from: &str, to: &str) -> Result<bool, Rejected> {
    Err(Rejected::IllegalTransition { from: Status::new(from), to: Status::new(to) })
}

#[test]
fn an_agent_goes_from_status_to_status_as_the_original_has_it() {
    const COLUMNS: [&str; 7] =
        ["ERROR", "FINISH", "CONTINUE", "FAIL", "PENDING", "CONFIRM", "SCREENSHOT"];
    // `+` a move, `-` none that is allowed, `=` the same again.
    const MOVES: [(&str, &str); 7] = [
        ("ERROR", "=-+----"),
        ("FINISH", "-=+----"),
        ("CONTINUE", "++=++++"),
        ("FAIL", "--+=---"),
        ("PENDING", "--+-=--"),
        ("CONFIRM", "--++-=-"),
        ("SCREENSHOT", "--+---="),
    ];
    assert_eq!(COLUMNS, Status::BUILT_IN);
    let mut pairs = 0;
    for (from, row) in MOVES {
        for (to, allowed) in COLUMNS.into_iter().zip(row.chars()) {
            let expected = match allowed {
                '+' => Ok(true),
                '=' => Ok(false),
                _ => illegal(from, to),
            };
            assert_eq!(go(&[], from, to), expected, "{from} {to}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, 49);
}

#[test]
fn a_session_may_add_statuses_with_their_moves() {
    let states: &[(&str, &[&str], &[&str])] = &[
        ("WAIT", &["CONTINUE", "FAIL", "MORE"], &["PENDING", "WAIT"]),
        ("MORE", &[], &["FINISH"]),
        ("FAIL", &["PENDING"], &["ERROR"]),
    ];
    for (from, to, allowed) in [
        ("CONTINUE", "WAIT", true),
        ("FAIL", "WAIT", true),
        ("MORE", "WAIT", true),
        ("PENDING", "WAIT", false),
        ("WAIT", "PENDING", true),
        ("WAIT", "CONTINUE", false),
        ("WAIT", "MORE", false),
        ("CONTINUE", "MORE", false),
        ("MORE", "FINISH", true),
        ("MORE", "CONTINUE", false),
        // A built-in one may get more moves, and loses none.
        ("PENDING", "FAIL", true),
        ("FAIL", "ERROR", true),
        ("FAIL", "CONTINUE", true),
        ("CONTINUE", "FAIL", true),
        ("ERROR", "FAIL", false),
    ] {
        let expected = if allowed { Ok(true) } else { illegal(from, to) };
        assert_eq!(go(states, from, to), expected, "{from} {to}");
    }
    assert_eq!(go(states, "WAIT", "WAIT"), Ok(false));
    assert_eq!(go(states, "MORE", "MORE"), Ok(false));
}

#[test]
fn a_status_is_known_to_its_session_or_refused() {
    for name in ["WAIT", "continue", "", "CONTINUE "] {
        let unknown = Rejected::UnknownStatus {
            known: known_statuses(&AgentStates::new()),
            status: Status::new(name),
        };
        let board = board_of([put("A", "{}")]);
        for command in [put("A", &status(name)), put("B", &status(name)), patch("A", &status(name))]
        {
            assert_eq!(refused(&board, command), unknown, "{name}");
        }
    }
    for first in Status::BUILT_IN {
        let board = board_of([put("A", &status(first))]);
        assert_eq!(profile(&board, "A"), status(first), "any may be the first");
    }
}

#[test]
fn from_a_removed_status_only_continue_follows() {
    let mut board = board_of([
        session(&[("WAIT", &[], &["PENDING"]), ("MORE", &["WAIT"], &[])]),
        put("A", &status("WAIT")),
        session(&[("MORE", &["WAIT"], &[])]),
    ]);
    for to in ["PENDING", "FAIL", "ERROR"] {
        let illegal = illegal("WAIT", to).unwrap_err();
        assert_eq!(refused(&board, patch("A", &status(to))), illegal, "{to}");
    }
    assert_eq!(changes(&carry_out(&mut board, patch("A", r#"{"x":1}"#))), ["agent_put"]);
    assert_eq!(changes(&carry_out(&mut board, patch("A", &status("CONTINUE")))), ["agent_put"]);
    let known = known_statuses(&AgentStates::new()).into_iter().chain(["MORE".to_owned()]);
    let unknown = Rejected::UnknownStatus { known: known.collect(), status: Status::new("WAIT") };
    assert_eq!(refused(&board, patch("A", &status("WAIT"))), unknown);
}

#[test]
fn what_an_agent_says_is_put_or_patched_and_keeps_its_status() {
    let mut board = absent();
    for (command, expected, commits) in [
        (put("A", r#"{"type":"T"}"#), r#"{"type":"T","status":"CONTINUE"}"#, true),
        (put("A", r#"{"type":"T"}"#), r#"{"type":"T","status":"CONTINUE"}"#, false),
        (
            put("A", r#"{"status":"PENDING","type":"T"}"#),
            r#"{"status":"PENDING","type":"T"}"#,
            true,
        ),
        (put("A", r#"{"host":"H"}"#), r#"{"host":"H","status":"PENDING"}"#, true),
        (patch("A", r#"{"host":null,"x":[1]}"#), r#"{"status":"PENDING","x":[1]}"#, true),
        (patch("A", "{}"), r#"{"status":"PENDING","x":[1]}"#, false),
        (patch("A", r#"{"status":"PENDING"}"#), r#"{"status":"PENDING","x":[1]}"#, false),
        (patch("A", r#"{"status":"CONTINUE"}"#), r#"{"status":"CONTINUE","x":[1]}"#, true),
    ] {
        let existed = board.agents().contains_key(&agent("A"));
        let decision = carry_out(&mut board, command.clone());
        assert_eq!(profile(&board, "A"), expected, "{command:?}");
        assert_eq!(
            (decision.commit.is_some(), decision.existed),
            (commits, existed),
            "{command:?}"
        );
        assert_eq!(board.bytes(), expected.len() as u64);
    }
}

#[test]
fn what_an_agent_may_not_say_is_refused() {
    let board = board_of([put("A", "{}")]);
    let is_field = |rejected: &Rejected, field: &str| matches!(rejected, Rejected::AgentField { name, .. } if *name == field);
    for name in ["agent", "revision", "registered_at", "updated_at", "last_seen"] {
        for value in ["null", "1", "\"A\""] {
            let profile = format!(r#"{{"{name}":{value}}}"#);
            assert!(is_field(&refused(&board, put("A", &profile)), name), "{profile}");
            // A null in a patch takes away what is not there.
            if value != "null" {
                assert!(is_field(&refused(&board, patch("A", &profile)), name), "{profile}");
            }
        }
    }
    for name in ["type", "platform", "host"] {
        for value in ["1", "{}", "[\"x\"]", "false"] {
            let profile = format!(r#"{{"{name}":{value}}}"#);
            assert!(is_field(&refused(&board, put("B", &profile)), name), "{profile}");
            assert!(is_field(&refused(&board, patch("A", &profile)), name), "{profile}");
        }
    }
    for profile in [r#"{"status":1}"#, r#"{"status":null}"#, r#"{"status":["FAIL"]}"#] {
        assert_eq!(refused(&board, put("A", profile)), Rejected::NoStatus, "{profile}");
        assert_eq!(refused(&board, patch("A", profile)), Rejected::NoStatus, "{profile}");
    }
}

#[test]
fn a_profile_may_be_so_large_with_its_status() {
    let rest = r#"{"x":"","status":"CONTINUE"}"#.len();
    let profile = |bytes: usize| format!(r#"{{"x":"{}"}}"#, "x".repeat(bytes - rest));
    let board = board_of([put("A", &profile(PROFILE_BYTES_MAX))]);
    assert_eq!(board.bytes(), PROFILE_BYTES_MAX as u64);
    let bytes = PROFILE_BYTES_MAX as u64 + 1;
    let too_large = Rejected::ProfileTooLarge { bytes };
    assert_eq!(refused(&board, put("B", &profile(PROFILE_BYTES_MAX + 1))), too_large);
    assert_eq!(
        refused(&board, patch("A", r#"{"":0}"#)),
        Rejected::ProfileTooLarge { bytes: bytes + 4 }
    );
}

#[test]
fn a_first_memory_registers_its_agent() {
    let mut board = board_of([put("B", "{}")]);
    let remembered = carry_out(&mut board, append(memory("A"), items(["{}", "{}"])));
    assert_eq!(changes(&remembered), ["agent_put", "appended"]);
    assert_eq!(profile(&board, "A"), status("CONTINUE"));
    let more = carry_out(&mut board, append(memory("A"), items(["{}"])));
    assert_eq!(changes(&more), ["appended"]);
    assert_eq!(carry_out(&mut board, append(memory("C"), vec![])).commit, None);
    assert_eq!(board.agents().len(), 2);
    let removed = carry_out(&mut board, remove("A"));
    assert_eq!(
        (changes(&removed), removed.answer),
        (vec!["agent_removed"], Answer::Removed { count: 1 })
    );
    assert_eq!((seqs(&board, &memory("A")), board.agents().len()), (vec![], 1));
    assert_eq!(board.bytes(), status("CONTINUE").len() as u64);
    assert_eq!(refused(&board, remove("A")), Rejected::NoAgent { agent: agent("A") });
    assert_eq!(refused(&board, patch("A", "{}")), Rejected::NoAgent { agent: agent("A") });
    carry_out(&mut board, append(memory("A"), items(["{}"])));
    assert_eq!(seqs(&board, &memory("A")), [4], "no seq is given twice");
}

#[test]
fn all_agents_may_be_removed_at_once() {
    let mut board = board_of([
        put("A", "{}"),
        append(memory("B"), items(["{}"])),
        append(LogName::Requests, items(["{}"])),
    ]);
    let removed = carry_out(&mut board, Command::RemoveAgents);
    assert_eq!(removed.answer, Answer::Removed { count: 2 });
    assert_eq!(changes(&removed), ["agent_removed", "agent_removed"]);
    assert_eq!((board.agents().len(), board.bytes()), (0, 2));
    let again = carry_out(&mut board, Command::RemoveAgents);
    assert_eq!((again.commit, again.answer), (None, Answer::Removed { count: 0 }));
    assert_eq!(refused(&absent(), Command::RemoveAgents), no_session());
    assert_eq!(refused(&absent(), remove("A")), no_session());
    assert_eq!(refused(&absent(), patch("A", "{}")), no_session());
}

#[test]
fn an_unregistered_agents_memory_is_removed_with_the_agents() {
    let mut board = board_of([append(LogName::Requests, items(["{}"]))]);
    let appended =
        Change::Log(memory("A"), LogChange::Appended { first: Seq(1), items: items(["{}"]) });
    let commit = Commit {
        revision: Revision(2),
        at: Timestamp(1_000),
        agent: None,
        trace: None,
        nonce: Nonce(0),
        kept: None,
        changes: vec![appended],
    };
    admit(&board, &commit).unwrap();
    apply(&mut board, &commit);
    let removed = carry_out(&mut board, Command::RemoveAgents);
    assert_eq!(
        (changes(&removed), removed.answer),
        (vec!["cleared"], Answer::Removed { count: 0 })
    );
}

#[test]
fn an_agent_is_seen_when_it_writes_and_registered_once() {
    let mut board = absent();
    take(&mut board, &write_by("A", put("A", "{}")), 1_000).unwrap();
    take(&mut board, &write_by("B", put("A", r#"{"x":1}"#)), 2_000).unwrap();
    take(&mut board, &write_by("A", append(LogName::Requests, items(["{}"]))), 3_000).unwrap();
    let known = &board.agents()[&agent("A")];
    assert_eq!((known.registered_at, known.updated_at), (Timestamp(1_000), Timestamp(2_000)));
    assert_eq!((known.changed, known.last_seen), (Revision(2), Some(Timestamp(3_000))));
    assert_eq!(board.agents_version(), board.at_version(Revision(2)), "to be seen is no change");
    take(&mut board, &write_by("A", append(LogName::Requests, vec![])), 4_000).unwrap();
    assert_eq!(
        board.agents()[&agent("A")].last_seen,
        Some(Timestamp(3_000)),
        "nothing was written"
    );
    take(&mut board, &write(remove("A")), 5_000).unwrap();
    take(&mut board, &write(put("A", "{}")), 6_000).unwrap();
    let again = &board.agents()[&agent("A")];
    assert_eq!((again.registered_at, again.last_seen), (Timestamp(6_000), None));
}

#[test]
fn a_condition_on_an_agent_is_on_that_agent_alone() {
    let board = board_of([put("A", "{}"), put("B", "{}")]);
    let left = |revision| {
        let versions = vec![board.at_version(Revision(revision))];
        Condition { matches: Some(Matches::Versions(versions)), absent: false }
    };
    let check = |command: Command, condition| {
        decide(&board, &write_if(condition, command), at(2_000, &POLICY)).map(|_| ())
    };
    let current = Some(Current::Agent(agent("A"), Box::new(board.agents()[&agent("A")].clone())));
    let refusal = Rejected::Precondition { present: Some(board.at_version(Revision(1))), current };
    for command in [put("A", r#"{"x":1}"#), patch("A", r#"{"x":1}"#), remove("A")] {
        assert_eq!(check(command.clone(), left(1)), Ok(()));
        assert_eq!(check(command.clone(), left(2)), Err(refusal.clone()));
    }
    assert_eq!(check(Command::RemoveAgents, left(2)), Ok(()));
    assert!(check(Command::RemoveAgents, left(1)).is_err());
    let any = Condition { matches: Some(Matches::Any), absent: false };
    let none = Rejected::Precondition { present: None, current: None };
    assert_eq!(check(put("C", "{}"), any.clone()), Err(none));
    assert_eq!(check(put("C", "{}"), Condition { matches: None, absent: true }), Ok(()));
    assert_eq!(check(remove("C"), any), Err(Rejected::NoAgent { agent: agent("C") }));
}

#[test]
fn the_limit_of_agents_counts_those_with_memories() {
    let mut board = board_of([append(LogName::Requests, items(["{}"]))]);
    let put_agent = |i: usize| {
        Change::Agent(agent(&format!("a{i}")), AgentChange::Put { profile: Profile::first() })
    };
    let remembered = |i: usize| {
        Change::Log(
            memory(&format!("a{i}")),
            LogChange::Appended { first: Seq(1), items: items(["{}"]) },
        )
    };
    let commit = |board: &Board, changes| Commit {
        revision: board.revision().next(),
        at: Timestamp(1_000),
        agent: None,
        trace: None,
        nonce: Nonce(0),
        kept: None,
        changes,
    };
    let most = commit(&board, (1..AGENTS_MAX).map(put_agent).collect());
    apply(&mut board, &most);
    carry_out(&mut board, put("last", "{}"));
    assert_eq!(board.agents().len(), AGENTS_MAX);
    for command in [put("more", "{}"), append(memory("more"), items(["{}"]))] {
        assert_eq!(refused(&board, command), Rejected::TooManyAgents);
    }
    carry_out(&mut board, put("a7", r#"{"x":1}"#));
    carry_out(&mut board, append(memory("a7"), items(["{}"])));
    carry_out(&mut board, remove("a8"));
    carry_out(&mut board, put("more", "{}"));
    // Now their memories are all that is left.
    let all = commit(&board, (0..AGENTS_MAX).filter(|i| *i != 7).map(remembered).collect());
    apply(&mut board, &all);
    carry_out(&mut board, Command::RemoveAgents);
    assert_eq!((board.agents().len(), board.bytes()), (0, 2));
    assert_eq!(refused(&board, put("new", "{}")), Rejected::TooManyAgents);
    carry_out(&mut board, put("a7", "{}"));
}
