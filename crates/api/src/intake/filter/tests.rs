//! Tests of `on` and `agent`: parsing and filtering.

use super::*;
use blackboard_board::{
    AgentChange, CheckpointChange, Code, Due, Item, LogChange, Nonce, RequestChange, Revision, Seq,
    SessionChange, StateChange, Timestamp,
};

fn wanted(query: &str) -> Result<Wanted, Code> {
    let mut params = Params::parse(query).unwrap();
    Wanted::take(&mut params).map_err(|refusal| refusal.code())
}

fn path(names: &[&str]) -> StatePath {
    StatePath::from_segments(names.iter().copied()).unwrap()
}

fn put(names: &[&str]) -> Change {
    let value = Json::from_json("1", 1).unwrap();
    Change::State(path(names), StateChange::Put { value, expires_at: None })
}

fn merged(names: &[&str], patch: &str) -> Change {
    Change::State(path(names), StateChange::Merged { patch: Json::from_json(patch, 128).unwrap() })
}

fn appended(log: LogName) -> Change {
    Change::Log(
        log,
        LogChange::Appended { first: Seq(1), items: vec![Item::from_json("{}").unwrap()] },
    )
}

fn agent(name: &str) -> AgentName {
    name.parse().unwrap()
}

fn commit(changes: Vec<Change>) -> Commit {
    let at = Timestamp(0);
    Commit {
        revision: Revision(1),
        at,
        agent: None,
        trace: None,
        nonce: Nonce(1),
        kept: None,
        changes,
    }
}

fn lets(query: &str, change: Change) -> bool {
    wanted(query).unwrap().of(&commit(vec![change])).is_some()
}

#[test]
fn parts_are_named_as_in_events() {
    let query =
        "on=trajectories,%73tate%2Fa~1b/c%20%252C&on=[\"agents/A,+%B/memory\"]&on=agents,agents/C";
    let on = wanted(&query.replace("%B", "%25B"));
    let expected = [
        On::Log(LogName::Trajectories),
        On::State(path(&["a/b", "c %2C"])),
        On::Log(LogName::Memory(agent("A, %B"))),
        On::Agents,
        On::Agent(agent("C")),
    ];
    assert_eq!(on.unwrap().on.as_deref(), Some(&expected[..]));
    let none = Wanted::default();
    assert_eq!(wanted(""), Ok(none));
}

#[test]
fn what_names_no_part_is_refused() {
    for wrong in [
        "",
        ",",
        "x",
        "Agents",
        "questions/1",
        "questions/",
        "agents/",
        "agents//memory",
        "agents/A/b",
        "agents/A/memory/1",
        "agents/..",
        "state/",
        "state//a",
        "state/.",
        "state/~2",
        "agents/A/x/memory",
        "memory",
    ] {
        let refused = wanted(&format!("on={wrong}"));
        assert_eq!(refused, Err(Code::InvalidParameter), "{wrong}");
    }
    assert_eq!(wanted("on=state/%ff"), Err(Code::InvalidEncoding));
    assert_eq!(wanted("on=%zz"), Err(Code::InvalidEncoding));
    let many = vec!["agents"; ON_MAX + 1].join(",");
    assert_eq!(wanted(&format!("on={many}")), Err(Code::InvalidParameter));
    assert_eq!(wanted("agent="), Err(Code::InvalidParameter));
}

#[test]
fn a_place_is_changed_above_and_below_it() {
    for (names, changed) in [
        (&["a", "b"][..], true),
        (&["a"], true),
        (&[], true),
        (&["a", "b", "c"], true),
        (&["a", "c"], false),
        (&["ab"], false),
    ] {
        assert_eq!(lets("on=state/a/b", put(names)), changed, "{names:?}");
        assert!(lets("on=state", put(names)));
        assert!(!lets("on=agents", put(names)));
    }
    for (names, patch, changed) in [
        (&[][..], r#"{"a":{"b":1}}"#, true),
        (&[], r#"{"a":{"b":{"c":1}}}"#, true),
        (&[], r#"{"a":null}"#, true),
        (&[], r#"{"a":{"c":1}}"#, false),
        (&[], r#"{"c":{"b":1}}"#, false),
        (&["a"], r#"{"b":1}"#, true),
        (&["a"], "{}", false),
        (&["a", "b"], "{}", true),
        (&["a", "b", "c"], "{}", true),
        (&["c"], r#"{"a":{"b":1}}"#, false),
    ] {
        assert_eq!(lets("on=state/a/b", merged(names, patch)), changed, "{names:?} {patch}");
    }
}

#[test]
fn what_became_of_requests_and_questions_is_of_their_logs() {
    for change in [
        Change::Request(Seq(1), RequestChange::Released),
        Change::Request(Seq(1), RequestChange::Finished { fence: None, result: None }),
        Change::Expired(Due::Claim(Seq(1))),
    ] {
        assert!(lets("on=requests", change.clone()));
        assert!(!lets("on=questions", change));
    }
    assert!(lets("on=questions", Change::Expired(Due::Question(Seq(1)))));
}

#[test]
fn an_agent_that_goes_takes_its_memory_with_it() {
    let removed = || Change::Agent(agent("A"), AgentChange::Removed);
    for on in ["agents", "agents/A", "agents/A/memory"] {
        assert!(lets(&format!("on={on}"), removed()), "{on}");
    }
    assert!(!lets("on=agents/B,agents/B/memory", removed()));
    let step = || appended(LogName::Memory(agent("A")));
    assert!(lets("on=agents/A/memory", step()));
    assert!(!lets("on=agents,agents/A", step()));
}

#[test]
fn a_commit_is_trimmed_to_what_is_wanted() {
    let commit = commit(vec![
        appended(LogName::Requests),
        put(&["a"]),
        appended(LogName::Questions),
        put(&["b"]),
    ]);
    let trimmed = wanted("on=state/b,questions").unwrap();
    let changes: Vec<_> = commit.changes.iter().skip(2).collect();
    assert_eq!(trimmed.of(&commit), Some(changes));
    assert_eq!(wanted("on=screenshots").unwrap().of(&commit), None);
    assert_eq!(wanted("").unwrap().of(&commit).map(|all| all.len()), Some(4));
    assert_eq!(wanted("agent=A").unwrap().of(&commit), None);
}

#[test]
fn what_changes_all_is_let_through() {
    for change in [
        Change::Session(SessionChange::Deleted),
        Change::Expired(Due::Session),
        Change::Session(SessionChange::Restored(Box::default())),
        Change::Session(SessionChange::Adopted {
            name: "s".parse().unwrap(),
            after: Revision(1),
            fork_of: None,
        }),
    ] {
        assert!(lets("on=questions", change));
    }
    assert!(!lets("on=questions", Change::Checkpoint("c".parse().unwrap(), CheckpointChange::Put)));
    let unchanged = commit(Vec::new());
    assert_eq!(wanted("").unwrap().of(&unchanged), Some(Vec::new()));
    assert_eq!(wanted("on=state").unwrap().of(&unchanged), None);
}
