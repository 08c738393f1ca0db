//! Tests of changes as JSON: each kind, byte for byte, in full and in brief.

use super::*;
use blackboard_board::{
    AgentChange, Awaited, COMMIT_KINDS, CheckpointChange, Entry, Item, LogChange, Nonce, Profile,
    RequestChange, RestoredLog, Revision, SessionChange, Settings, StateChange, stored,
};

fn session() -> SessionName {
    "s é".parse().unwrap()
}

fn item(text: &str) -> Item {
    Item::from_json(text).unwrap()
}

fn value(text: &str) -> Json {
    Json::from_json(text, 128).unwrap()
}

fn path(names: &[&str]) -> StatePath {
    StatePath::from_segments(names.iter().copied()).unwrap()
}

fn agent() -> AgentName {
    "A,B é".parse().unwrap()
}

const MOMENT: Timestamp = Timestamp(1_795_244_591_123);

fn text_of(change: &Change, form: Form) -> String {
    let mut out = String::new();
    Writer { session: &session(), form, out: &mut out }.change(change);
    out
}

/// Checks both forms of a change that differ.
fn differs(change: &Change, full: &str, brief: &str) {
    assert_eq!(text_of(change, Form::Full), full);
    assert_eq!(text_of(change, Form::Brief), brief);
    assert!(full.starts_with(&format!("{{\"kind\":\"{}\"", change.kind())));
    assert!(COMMIT_KINDS.contains(&change.kind()));
}

/// Checks a change whose two forms are the same.
fn same(change: &Change, text: &str) {
    differs(change, text, text);
}

#[test]
fn sessions_are_shown_with_what_they_are_set_to() {
    let settings = Settings { screenshot_to_memory: Some(false), ..Settings::default() };
    let labels = Labels::from([("k".to_owned(), "v".to_owned())]);
    let (settings, labels) = (settings.into(), labels.into());
    let set = r#""settings":{"screenshot_to_memory":false},"labels":{"k":"v"}"#;
    differs(
        &Change::Session(SessionChange::Configured { settings, labels }),
        &format!(r#"{{"kind":"configured",{set}}}"#),
        r#"{"kind":"configured"}"#,
    );
    differs(
        &Change::Session(SessionChange::Created {
            name: session(),
            settings: Settings::default().into(),
            labels: Labels::default().into(),
        }),
        r#"{"kind":"created","settings":{},"labels":{}}"#,
        r#"{"kind":"created"}"#,
    );
    same(&Change::Session(SessionChange::Deleted), r#"{"kind":"deleted"}"#);
    same(&Change::Expired(Due::Session), r#"{"kind":"session_expired"}"#);
    let adopted = |fork_of| {
        Change::Session(SessionChange::Adopted { name: session(), after: Revision(7), fork_of })
    };
    same(&adopted(None), r#"{"kind":"adopted","after":7}"#);
    same(&adopted(Some(session())), r#"{"kind":"adopted","after":7,"fork_of":"s é"}"#);
}

#[test]
fn logs_are_shown_with_their_items() {
    let items = vec![item(r#"{ "b" : 1E5 }"#), item("{}")];
    differs(
        &Change::Log(LogName::Trajectories, LogChange::Appended { first: Seq(17), items }),
        r#"{"kind":"appended","log":"trajectories","entries":[{"seq":17,"item":{ "b" : 1E5 }},{"seq":18,"item":{}}]}"#,
        r#"{"kind":"appended","log":"trajectories","first":17,"count":2,"url":"/v1/sessions/s%20%C3%A9/trajectories?after=16&before=19"}"#,
    );
    let memory = LogName::Memory(agent());
    differs(
        &Change::Log(memory.clone(), LogChange::Updated { seq: Seq(2), item: item("{}") }),
        r#"{"kind":"updated","log":"agents/A,B é/memory","seq":2,"item":{}}"#,
        r#"{"kind":"updated","log":"agents/A,B é/memory","seq":2,"url":"/v1/sessions/s%20%C3%A9/agents/A%2CB%20%C3%A9/memory/2"}"#,
    );
    same(
        &Change::Log(memory, LogChange::Cleared),
        r#"{"kind":"cleared","log":"agents/A,B é/memory"}"#,
    );
    let ranges = vec![(Seq(1), Seq(4)).into(), (Seq(7), Seq(7)).into()];
    same(
        &Change::Log(LogName::Requests, LogChange::Removed { ranges }),
        r#"{"kind":"removed","log":"requests","ranges":[[1,4],[7,7]]}"#,
    );
}

#[test]
fn a_stored_image_is_shown_by_its_address() {
    let image = concat!(
        r#"{"at":20,"head":"data:image/png;base64,","#,
        r#""sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","#,
        r#""bytes":1,"size":[5,3]}"#
    );
    let change = format!(
        r#"{{"updated":{{"log":"screenshots","seq":3,"item":{{"n":1,"image_str":""}},"image":{image}}}}}"#
    );
    let commit = format!(r#"{{"revision":1,"at":0,"nonce":1,"changes":[{change}]}}"#);
    let commit = stored::decode_commit(commit.as_bytes()).unwrap();
    differs(
        &commit.changes[0],
        r#"{"kind":"updated","log":"screenshots","seq":3,"item":{"n":1},"image":{"url":"/v1/sessions/s%20%C3%A9/screenshots/3/image","media_type":"image/png","bytes":1,"sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","width":5,"height":3}}"#,
        r#"{"kind":"updated","log":"screenshots","seq":3,"url":"/v1/sessions/s%20%C3%A9/screenshots/3"}"#,
    );
}

#[test]
fn the_state_is_shown_by_its_paths() {
    let (place, url) = (r#""path":"a~1b/c""#, r#""url":"/v1/sessions/s%20%C3%A9/state/a~1b/c""#);
    let at = || path(&["a/b", "c"]);
    let check = |change: &Change, rest: &str, brief: &str| {
        let kind = change.kind();
        let full = format!(r#"{{"kind":"{kind}",{place},{rest}}}"#);
        differs(change, &full, &format!(r#"{{"kind":"{kind}",{place},{url}{brief}}}"#));
    };
    let one = || value("{ \"z\" : 1E5 }");
    check(
        &Change::State(at(), StateChange::Put { value: one(), expires_at: None }),
        r#""value":{ "z" : 1E5 }"#,
        "",
    );
    let until = r#""expires_at":"2026-11-21T07:03:11.123Z""#;
    check(
        &Change::State(at(), StateChange::Put { value: value("null"), expires_at: Some(MOMENT) }),
        &format!(r#""value":null,{until}"#),
        &format!(",{until}"),
    );
    check(&Change::State(at(), StateChange::Set { value: value("1.50") }), r#""value":1.50"#, "");
    check(
        &Change::State(at(), StateChange::Merged { patch: one() }),
        r#""patch":{ "z" : 1E5 }"#,
        "",
    );
    let elements = vec![value("1"), value("\"é\"")];
    check(&Change::State(at(), StateChange::Appended { elements }), r#""elements":[1,"é"]"#, "");
    same(
        &Change::State(StatePath::root(), StateChange::Removed),
        r#"{"kind":"state_removed","path":""}"#,
    );
    same(&Change::Expired(Due::State(at())), r#"{"kind":"state_expired","path":"a~1b/c"}"#);
}

#[test]
fn agents_and_their_work_are_shown() {
    let profile = Profile::new(item(r#"{"type" : "T","status":"FAIL"}"#)).unwrap();
    differs(
        &Change::Agent(agent(), AgentChange::Put { profile }),
        r#"{"kind":"agent_put","agent":"A,B é","value":{"type" : "T","status":"FAIL"}}"#,
        r#"{"kind":"agent_put","agent":"A,B é","url":"/v1/sessions/s%20%C3%A9/agents/A%2CB%20%C3%A9"}"#,
    );
    same(
        &Change::Agent(agent(), AgentChange::Removed),
        r#"{"kind":"agent_removed","agent":"A,B é"}"#,
    );
    same(
        &Change::Request(
            Seq(4),
            RequestChange::Claimed { agent: agent(), fence: Revision(9), expires_at: MOMENT },
        ),
        r#"{"kind":"claimed","request":4,"agent":"A,B é","fence":9,"expires_at":"2026-11-21T07:03:11.123Z"}"#,
    );
    same(&Change::Request(Seq(4), RequestChange::Released), r#"{"kind":"released","request":4}"#);
    same(&Change::Expired(Due::Claim(Seq(4))), r#"{"kind":"claim_expired","request":4}"#);
    let url = r#""url":"/v1/sessions/s%20%C3%A9/requests/4""#;
    differs(
        &Change::Request(
            Seq(4),
            RequestChange::Finished { fence: Some(Revision(9)), result: Some(value("1.0")) },
        ),
        r#"{"kind":"finished","request":4,"fence":9,"result":1.0}"#,
        &format!(r#"{{"kind":"finished","request":4,"fence":9,{url}}}"#),
    );
    differs(
        &Change::Request(Seq(4), RequestChange::Finished { fence: None, result: None }),
        r#"{"kind":"finished","request":4}"#,
        &format!(r#"{{"kind":"finished","request":4,{url}}}"#),
    );
}

#[test]
fn questions_and_checkpoints_are_shown() {
    let awaited = |default: Option<&str>| Change::Awaited {
        first: Seq(2),
        last: Seq(3),
        until: Awaited { expires_at: MOMENT, default: default.map(Into::into) },
    };
    let text = r#"{"kind":"awaited","first":2,"last":3,"expires_at":"2026-11-21T07:03:11.123Z"}"#;
    same(&awaited(None), text);
    let full = text.replace('}', r#","default":"no"}"#);
    differs(&awaited(Some("no")), &full, text);
    same(&Change::Expired(Due::Question(Seq(2))), r#"{"kind":"question_expired","question":2}"#);
    let name = || "before \"it\"".parse().unwrap();
    same(
        &Change::Checkpoint(name(), CheckpointChange::Put),
        r#"{"kind":"checkpoint_put","name":"before \"it\""}"#,
    );
    same(
        &Change::Checkpoint(name(), CheckpointChange::Removed),
        r#"{"kind":"checkpoint_removed","name":"before \"it\""}"#,
    );
    differs(
        &Change::Session(SessionChange::ImagesForgotten {
            images: vec![Digest([0; 32]), Digest([0xfe; 32])],
        }),
        &format!(
            r#"{{"kind":"images_forgotten","images":["{}","{}"]}}"#,
            "00".repeat(32),
            "fe".repeat(32)
        ),
        r#"{"kind":"images_forgotten","count":2}"#,
    );
}

#[test]
fn a_restore_is_shown_by_what_it_touched() {
    let entry = Entry {
        seq: Seq(9),
        revision: Revision(1),
        at: MOMENT,
        agent: None,
        updated: None,
        work: None,
        task: None,
        acked_at: None,
        item: item("{}"),
    };
    let log = RestoredLog { removed: vec![(Seq(1), Seq(4)).into()], entries: vec![entry.into()] };
    let restored = Restored {
        to: Revision(5),
        logs: vec![(LogName::Questions, log)],
        state: vec![(path(&["a", "b"]), Some(value("1"))), (path(&["c"]), None)],
        agents: vec![(agent(), None)],
        ..Restored::default()
    };
    same(
        &Change::Session(SessionChange::Restored(Box::new(restored))),
        r#"{"kind":"restored","to":5,"logs":[{"log":"questions","removed":[[1,4]],"restored":1}],"state":["a/b","c"],"agents":["A,B é"]}"#,
    );
}

fn appended(items: Vec<Item>) -> Commit {
    Commit {
        revision: Revision(17),
        at: MOMENT,
        agent: Some(agent()),
        trace: None,
        nonce: Nonce(1),
        kept: None,
        changes: vec![Change::Log(LogName::Requests, LogChange::Appended { first: Seq(1), items })],
    }
}

fn event(commit: &Commit, kind: bool) -> String {
    let mut out = String::new();
    let changes: Vec<_> = commit.changes.iter().collect();
    write_event(&session(), commit, &changes, kind, &mut out);
    out
}

#[test]
fn a_commit_is_shown_with_its_author_and_its_time() {
    let head = r#"{"revision":17,"at":"2026-11-21T07:03:11.123Z","agent":"A,B é""#;
    let change = r#"{"kind":"appended","log":"requests","entries":[{"seq":1,"item":{}}]}"#;
    let commit = appended(vec![item("{}")]);
    assert_eq!(event(&commit, false), format!(r#"{head},"changes":[{change}]}}"#));
    assert_eq!(event(&commit, true), format!(r#"{head},"kind":"appended","changes":[{change}]}}"#));
    let unchanged = Commit { changes: Vec::new(), agent: None, ..commit };
    let text = r#"{"revision":17,"at":"2026-11-21T07:03:11.123Z","changes":[]}"#;
    assert_eq!(event(&unchanged, false), text);
}

#[test]
fn an_event_beyond_its_bound_is_brief() {
    let whole = event(&appended(vec![item("{}")]), false).len() - 2;
    let of = |bytes: usize| {
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - whole - "{\"a\":\"\"}".len()));
        event(&appended(vec![item(&text)]), false)
    };
    assert_eq!(of(EVENT_BYTES_MAX).len(), EVENT_BYTES_MAX);
    assert!(of(EVENT_BYTES_MAX + 1).contains("\"url\""));
    // Many small items, whose envelopes make the event too large.
    let many = event(&appended(vec![item("{}"); 20_000]), false);
    assert!(many.contains("\"count\":20000"), "{} bytes", many.len());
}
