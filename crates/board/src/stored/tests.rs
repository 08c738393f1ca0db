//! Tests of the format, byte for byte. Once it is released, every later version must read it.

use crate::*;
use crate::{AgentChange, LogChange, RequestChange, SessionChange};

const IMAGE: &str = concat!(
    r#"{"at":14,"head":"data:image/png;base64,","#,
    r#""sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","#,
    r#""bytes":1,"size":[5,3]}"#
);

/// Every kind of change, with and without each member that may be absent: of sessions and logs.
fn changes_of_logs() -> String {
    [
        r#"{"created":{"name":"sess_1","settings":{"history_keys":["a","é"],"screenshot_to_memory":false},"labels":{"k":"v","l":""}}}"#,
        r#"{"configured":{"settings":{},"labels":{}}}"#,
        r#"{"appended":{"log":"questions","first":1,"items":[{ "b" : 1E5, "\u0061":-0.0 },{}]}}"#,
        r#"{"appended":{"log":{"memory":"Host Agent"},"first":1,"items":[{"step":1}]}}"#,
        &format!(
            r#"{{"appended":{{"log":"screenshots","first":1,"items":[{{}},{{"image_str":""}}],"images":[[1,{IMAGE}]]}}}}"#
        ),
        r#"{"cleared":{"log":"trajectories"}}"#,
        r#"{"removed":{"log":"requests","ranges":[[1,4],[7,7]]}}"#,
        r#"{"updated":{"log":"questions","seq":2,"item":{"a":[1, 2]}}}"#,
        &format!(
            r#"{{"updated":{{"log":"screenshots","seq":1,"item":{{"image_str":""}},"image":{IMAGE}}}}}"#
        ),
        r#"{"deleted":{}}"#,
    ]
    .join(",")
}

/// Of the state, agents and claims.
const CHANGES_OF_STATE: [&str; 18] = [
    r#"{"configured":{"settings":{"max_items":500,"ttl":"30d","agent_states":{"WAIT":{"from":["CONTINUE"],"to":[]}}},"labels":{}}}"#,
    r#"{"configured":{"settings":{"max_items":{"questions":1,"requests":2,"trajectories":3,"screenshots":4,"memory":5}},"labels":{}}}"#,
    r#"{"state_put":{"path":[],"value":{ "z" : 1E5, "\u0061":-0.0 }}}"#,
    r#"{"state_put":{"path":["a/b","c"],"value":null,"expires_at":1795244599999}}"#,
    r#"{"state_set":{"path":["n"],"value":1.50}}"#,
    r#"{"state_merged":{"path":["m"],"patch":{"x":null}}}"#,
    r#"{"state_appended":{"path":["l"],"elements":[1,"é",{"x" : []}]}}"#,
    r#"{"state_removed":{"path":["r"]}}"#,
    r#"{"agent_put":{"agent":"A","profile":{"type" : "T","status":"\u0046AIL"}}}"#,
    r#"{"agent_removed":{"agent":"日本"}}"#,
    r#"{"claimed":{"seq":1,"agent":"A","fence":42,"expires_at":1795244591124}}"#,
    r#"{"released":{"seq":2}}"#,
    r#"{"finished":{"seq":3,"fence":40,"result":{"r" : 1.0}}}"#,
    r#"{"finished":{"seq":3,"result":null}}"#,
    r#"{"finished":{"seq":4}}"#,
    r#"{"state_expired":{"path":["x"]}}"#,
    r#"{"claim_expired":{"seq":5}}"#,
    r#"{"session_expired":{}}"#,
];

/// Of questions that expire, and of history.
const CHANGES_OF_HISTORY: [&str; 14] = [
    r#"{"configured":{"settings":{"history":{"revisions":9}},"labels":{}}}"#,
    r#"{"configured":{"settings":{"history":{"bytes":1048576}},"labels":{}}}"#,
    r#"{"configured":{"settings":{"history":{"age":"30d"}},"labels":{}}}"#,
    r#"{"question_expired":{"seq":6}}"#,
    r#"{"awaited":{"first":3,"last":4,"expires_at":1795244591124,"default":"\"é\""}}"#,
    r#"{"awaited":{"first":3,"last":3,"expires_at":-1}}"#,
    r#"{"checkpoint_put":{"name":"v 1"}}"#,
    r#"{"checkpoint_removed":{"name":"v"}}"#,
    r#"{"restored":{"to":0}}"#,
    RESTORED_LOGS,
    RESTORED_PLACES,
    r#"{"restored":{"to":7,"agents":[["A",{"profile":{"type" : "T","status":"\u0046AIL"},"registered_at":1000,"updated_at":1001,"last_seen":2000}],["B",{"profile":{"status":"CONTINUE"},"registered_at":1,"updated_at":1}],["C",null]]}}"#,
    r#"{"adopted":{"name":"sess_2","after":41,"fork_of":"sess_1"}}"#,
    r#"{"adopted":{"name":"sess_2","after":0}}"#,
];

/// Of profiles, and of images that are forgotten.
const CHANGES_OF_PROFILES: [&str; 3] = [
    r#"{"configured":{"settings":{"profiles":{"p \"é\"":{"format":"anthropic","include":["questions","memory:日本","state"],"keys":["a","é"],"latest":5,"agent":"A","status":"FAIL","steps":["1","2.0"],"screenshots":0,"images":"none","max_px":1024,"cache_marks":true,"max_tokens":8000,"headings":{"blackboard":"a","questions":"b","requests":"c","trajectories":"d","state":"e","memory":"{agent}"}}}},"labels":{}}}"#,
    r#"{"configured":{"settings":{"profiles":{"a":{"format":"parts","images":"inline"},"b":{"format":"responses","images":"url"},"c":{"format":"gemini"},"d":{"format":"markdown","headings":{}}}},"labels":{}}}"#,
    r#"{"images_forgotten":{"images":["2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"]}}"#,
];

/// Of tasks, budgets and blobs.
const CHANGES_OF_TASKS: [&str; 20] = [
    r#"{"planned":{"first":4,"last":6,"after":[1,3],"attempts":3}}"#,
    r#"{"planned":{"first":7,"last":7,"after":[1]}}"#,
    r#"{"planned":{"first":8,"last":8,"attempts":1}}"#,
    r#"{"failed":{"seq":4,"reason":{"why" : null}}}"#,
    r#"{"failed":{"seq":4}}"#,
    r#"{"retried":{"seq":4}}"#,
    r#"{"planned":{"first":9,"last":9,"priority":-7,"not_before":1795244591124,"deadline":1795244591125,"review":true}}"#,
    r#"{"failed":{"seq":5,"reason":"so","retry_at":1795244591124}}"#,
    r#"{"retried":{"seq":5,"deadline":1795244591125}}"#,
    r#"{"cancel_requested":{"seq":7,"reason":"é"}}"#,
    r#"{"cancelled":{"seq":8}}"#,
    r#"{"verdict":{"seq":9,"accepted":false,"reason":{"why" : 1}}}"#,
    r#"{"deadline_passed":{"seq":10}}"#,
    r#"{"due":{"requests":[[1,4],[7,7]]}}"#,
    r#"{"configured":{"settings":{"running_max":[{"max":8},{"by":"device","max":1}]},"labels":{}}}"#,
    RESTORED_WORK,
    RESTORED_TASKS,
    r#"{"configured":{"settings":{"cost_max":12500000000},"labels":{}}}"#,
    r#"{"budget_exhausted":{}}"#,
    r#"{"blob_put":{"sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","bytes":1,"media_type":"Text/Plain; charset=\"utf-8\""}}"#,
];

const RESTORED_WORK: &str = concat!(
    r#"{"restored":{"to":7,"logs":[{"log":"requests","entries":["#,
    r#"{"seq":4,"at":1000,"in_review":{"since":1500,"done":{"agent":"A","at":1999,"fence":27,"result":"so"}},"task":{"priority":7,"review":true},"item":{}},"#,
    r#"{"seq":5,"at":1000,"cancelled":{"agent":"A","at":1999,"reason":"é"},"task":{"past_attempts":[{"agent":"B","from":1500,"to":1999,"outcome":"failed","reason":{"x" : 1}}]},"item":{}},"#,
    r#"{"seq":6,"at":1000,"done":{"at":1999,"verdict":{"agent":"B","at":2000,"reason":1.0}},"item":{}}]}]}}"#
);

const RESTORED_TASKS: &str = concat!(
    r#"{"restored":{"to":7,"logs":[{"log":"requests","entries":["#,
    r#"{"seq":4,"at":1000,"failed":{"agent":"A","at":1999,"fence":27,"reason":"so"},"task":{"attempts":2,"failures":2},"item":{}},"#,
    r#"{"seq":5,"at":1000,"failed":{"agent":"A","at":1999,"fence":27},"task":{"attempts":1,"failures":1},"item":{}},"#,
    r#"{"seq":6,"at":1000,"task":{"after":[1,4]},"item":{}}]}]}}"#
);

const RESTORED_LOGS: &str = concat!(
    r#"{"restored":{"to":7,"logs":[{"log":"questions","removed":[[5,6],[9,9]]},"#,
    r#"{"log":"requests","entries":["#,
    r#"{"seq":1,"at":1000,"agent":"A","updated_at":2000,"updated_by":"B","done":{"agent":"A","at":1999,"fence":27,"result":[1, 2]},"item":{ "x" : 1E5 }},"#,
    r#"{"seq":2,"at":1000,"updated_at":2000,"done":{"at":1999,"result":null},"item":{}},"#,
    r#"{"seq":3,"at":1000,"item":{}}]},"#,
    r#"{"log":"screenshots","removed":[[1,1]],"entries":[{"seq":2,"at":1000,"item":{"image_str":""},"image":{"at":14,"head":"data:image/png;base64,","#,
    r#""sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","bytes":1,"size":[5,3]}}]},"#,
    r#"{"log":{"memory":"日本"},"entries":[{"seq":7,"at":1,"item":{}}]}]}}"#
);

const RESTORED_PLACES: &str = concat!(
    r#"{"restored":{"to":7,"state":[{"path":["a/b"],"value":{ "z" : null }},{"path":["b"],"value":null},{"path":["c"]}],"#,
    r#""expiries":[[["a/b"],63000]],"#,
    r#""awaited":[{"seq":4,"expires_at":64000,"default":"d"},{"seq":5,"expires_at":65000}]}}"#
);

fn commit_of(changes: &str) -> String {
    format!(
        r#"{{"revision":42,"at":1795244591123,"agent":"日本 Agent","nonce":18446744073709551615,{IDEMPOTENCY}"changes":[{changes}]}}"#
    )
}

const IDEMPOTENCY: &str = concat!(
    r#""idempotency":{"key":"k \"1\"","#,
    r#""fingerprint":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","#,
    r#""answer":{"status" : 201},"forgotten":3},"#
);

fn commit_text() -> String {
    let of_logs = changes_of_logs();
    let rest = CHANGES_OF_STATE.into_iter().chain(CHANGES_OF_HISTORY);
    let rest = rest.chain(CHANGES_OF_PROFILES).chain(CHANGES_OF_TASKS);
    let changes: Vec<_> = std::iter::once(of_logs.as_str()).chain(rest).collect();
    commit_of(&changes.join(","))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn is_commit(text: &str) -> bool {
    stored::decode_commit(text.as_bytes()).is_ok()
}

#[test]
fn a_commit_is_these_bytes_and_stays_so() {
    let commit = stored::decode_commit(commit_text().as_bytes()).unwrap();
    assert_eq!(text(stored::encode_commit(&commit).unwrap()), commit_text());
    assert_eq!((commit.revision, commit.at), (Revision(42), Timestamp(1_795_244_591_123)));
    assert_eq!((commit.nonce, commit.changes.len()), (Nonce(u64::MAX), 65));
    let Change::Log(_, LogChange::Appended { items, .. }) = &commit.changes[4] else {
        panic!("{commit:?}")
    };
    assert_eq!(items[0].image(), None);
    assert_eq!(items[1].image().unwrap().size, Some((5, 3)));
    let kept = commit.kept.unwrap();
    assert_eq!((&*kept.key.key, kept.forgotten), ("k \"1\"", Forgotten(3)));
    let Change::Agent(_, AgentChange::Put { profile, .. }) = &commit.changes[18] else { panic!() };
    assert_eq!(profile.status().as_str(), "FAIL");
    let results = commit.changes[22..25].iter().map(|change| {
        let Change::Request(_, RequestChange::Finished { result, .. }) = change else {
            panic!("{change:?}")
        };
        result.as_ref().map(Json::text)
    });
    assert_eq!(results.collect::<Vec<_>>(), [Some(r#"{"r" : 1.0}"#), Some("null"), None]);
}

#[test]
fn a_restore_is_all_of_its_commits_revision() {
    let commit = stored::decode_commit(commit_text().as_bytes()).unwrap();
    let restored = |index: usize| {
        let Change::Session(SessionChange::Restored(restored)) = &commit.changes[index] else {
            panic!("{commit:?}")
        };
        Restored::clone(restored)
    };
    let logs = restored(37).logs;
    let entries = logs.iter().flat_map(|(_, log)| &log.entries);
    assert!(entries.clone().all(|entry| entry.revision == Revision(42)));
    let done: Vec<_> = entries.map(|entry| entry.work.is_some()).collect();
    assert_eq!(done, [true, true, false, false, false]);
    let agents = restored(39).agents;
    let changed = agents.iter().map(|(_, agent)| agent.as_ref().map(|agent| agent.changed.0));
    assert_eq!(changed.collect::<Vec<_>>(), [Some(42), Some(42), None]);
    let values = restored(38).state.into_iter().map(|(_, value)| value);
    let values: Vec<_> = values.map(|value| value.map(|json| json.text().to_owned())).collect();
    assert_eq!(values, [Some(r#"{ "z" : null }"#.to_owned()), Some("null".to_owned()), None]);
}

#[test]
fn a_key_that_pushed_none_out_says_nothing_of_it() {
    let body = commit_text().replace(r#","forgotten":3"#, "");
    let commit = stored::decode_commit(body.as_bytes()).unwrap();
    assert_eq!(commit.kept.as_ref().unwrap().forgotten, Forgotten(0));
    assert_eq!(text(stored::encode_commit(&commit).unwrap()), body);
}

#[test]
fn a_commit_has_the_trace_of_its_request() {
    let trace = r#""trace":"0af7651916cd43dd8448eb211c80319c","nonce":"#;
    let body = commit_text().replace(r#""nonce":"#, trace);
    let commit = stored::decode_commit(body.as_bytes()).unwrap();
    assert_eq!(commit.trace.unwrap().to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(text(stored::encode_commit(&commit).unwrap()), body);
    assert!(!is_commit(&body.replace("0af7", "0AF7")));
}

#[test]
fn a_commit_by_nobody_has_no_agent() {
    let body = r#"{"revision":1,"at":-1,"nonce":0,"changes":[{"deleted":{}}]}"#;
    let commit = stored::decode_commit(body.as_bytes()).unwrap();
    assert_eq!((&commit.agent, commit.at), (&None, Timestamp(-1)));
    assert_eq!(text(stored::encode_commit(&commit).unwrap()), body);
}

#[test]
fn an_unknown_member_is_refused_in_each_object_of_ours() {
    let commit = commit_text();
    assert!(is_commit(&commit));
    for object in [
        r#"{"revision""#,
        r#"{"created""#,
        r#"{"name""#,
        r#"{"history_keys""#,
        r#"{"configured""#,
        r#"{"settings""#,
        r#"{"appended""#,
        r#"{"log":"questions","first""#,
        r#"{"memory""#,
        r#"{"at":14"#,
        r#"{"cleared""#,
        r#"{"log":"trajectories""#,
        r#"{"removed""#,
        r#"{"log":"requests""#,
        r#"{"updated""#,
        r#"{"log":"questions","seq""#,
        r#"{"deleted""#,
        r#"{"key""#,
        r#"{"max_items":500"#,
        r#"{"from""#,
        r#"{"questions":1"#,
        r#"{"state_put""#,
        r#"{"path":["a/b""#,
        r#"{"state_set""#,
        r#"{"path":["n""#,
        r#"{"state_merged""#,
        r#"{"path":["m""#,
        r#"{"state_appended""#,
        r#"{"path":["l""#,
        r#"{"state_removed""#,
        r#"{"path":["r""#,
        r#"{"agent_put""#,
        r#"{"agent":"A","profile""#,
        r#"{"agent_removed""#,
        r#"{"agent":"日本"}"#,
        r#"{"claimed""#,
        r#"{"seq":1,"agent""#,
        r#"{"released""#,
        r#"{"seq":2}"#,
        r#"{"finished""#,
        r#"{"seq":3,"fence""#,
        r#"{"state_expired""#,
        r#"{"path":["x""#,
        r#"{"claim_expired""#,
        r#"{"seq":5"#,
        r#"{"session_expired""#,
        r#"{"question_expired""#,
        r#"{"seq":6}"#,
        r#"{"revisions":9"#,
        r#"{"awaited""#,
        r#"{"first":3,"last":4"#,
        r#"{"checkpoint_put""#,
        r#"{"name":"v 1""#,
        r#"{"checkpoint_removed""#,
        r#"{"name":"v""#,
        r#"{"restored""#,
        r#"{"to":7,"logs""#,
        r#"{"log":"questions","removed""#,
        r#"{"seq":1,"at":1000"#,
        r#"{"agent":"A","at":1999"#,
        r#"{"path":["a/b"],"value""#,
        r#"{"seq":4,"expires_at":64000"#,
        r#"{"profile":{"type" "#,
        r#"{"profiles""#,
        r#"{"format":"anthropic""#,
        r#"{"blackboard":"a""#,
        r#"{"adopted""#,
        r#"{"name":"sess_2","after":41"#,
        r#"{"images_forgotten""#,
        r#"{"images":["2d71"#,
        r#"{"blob_put""#,
        r#"{"sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","bytes":1,"media_type""#,
    ] {
        assert!(commit.contains(object), "{object}");
        let more = object.replacen('{', r#"{"zz":1,"#, 1);
        assert!(!is_commit(&commit.replacen(object, &more, 1)), "{object}");
    }
    let of_clients = commit.replace(r#"{"k":"v""#, r#"{"zz":"","k":"v""#);
    let of_clients = of_clients.replace(r#"{"step":1"#, r#"{"zz":"","step":1"#);
    let of_clients = of_clients.replace(r#"{"type" "#, r#"{"zz":"","type" "#);
    assert!(is_commit(&of_clients.replace(r#"{"status" : 201"#, r#"{"zz":"","status" : 201"#)));
}

#[test]
fn a_missing_member_or_an_unknown_kind_is_refused() {
    let whole = commit_text();
    for (from, to) in [
        (r#""revision":42,"#, ""),
        (r#","nonce":18446744073709551615"#, ""),
        (r#""first":1,"#, ""),
        (r#""deleted":{}"#, r#""restored":{}"#),
        (r#""deleted":{}"#, r#""purged":{}"#),
        (r#""question_expired":{"seq":6}"#, r#""question_expired":{}"#),
        (r#""expires_at":-1"#, r#""expires":-1"#),
        (r#""name":"v 1""#, r#""name":"1""#),
        (r#""after":41,"#, ""),
        (r#"{"images":["2d"#, r#"{"images":["#),
        (r#""images_forgotten":{"images""#, r#""images_forgotten":{"image""#),
        (r#""media_type":"Text/"#, r#""media_type":"Text "#),
        (r#","bytes":1,"media"#, r#","bytes":-1,"media"#),
        (r#""fork_of":"sess_1""#, r#""fork_of":"a/b""#),
        (r#""profile":{"status":"CONTINUE"}"#, r#""profile":{"status":1}"#),
        (r#""to":7,"agents""#, r#""agents""#),
        (r#"{"seq":7,"at":1,"item":{}}"#, r#"{"seq":7,"at":1}"#),
        (r#""deleted":{}"#, ""),
        (r#"{"deleted":{}}"#, r#""deleted""#),
        (r#"{"deleted":{}}"#, "null"),
        (r#""log":"requests""#, r#""log":"responses""#),
        (r#""log":{"memory":"Host Agent"}"#, r#""log":{"memory":"a/b"}"#),
        (r#""name":"sess_1""#, r#""name":"""#),
        (r#"[7,7]"#, "[7]"),
        (r#""revision":42"#, r#""revision":-1"#),
        (r#""revision":42"#, r#""revision":42,"revision":42"#),
        ("\"2d71", "\"2D71"),
        (r#""session_expired":{}"#, r#""agent_expired":{}"#),
        (r#""key":"k \"1\"","#, ""),
        (r#","answer":{"status" : 201}"#, ""),
        (r#""forgotten":3"#, r#""forgotten":-1"#),
        (r#""path":["a/b","c"]"#, r#""path":["a/b",""]"#),
        (r#""path":["n"]"#, r#""path":"n""#),
        (r#","value":null"#, ""),
        (r#","elements":[1,"#, r#","element":[1,"#),
        (r#","status":"\u0046AIL""#, ""),
        (r#""status":"\u0046AIL""#, r#""status":1"#),
        (r#""profile":{"#, r#""profile":[{"#),
        (r#""fence":42,"#, ""),
        (r#""max_items":500"#, r#""max_items":0"#),
        (r#""requests":2"#, r#""requests":0"#),
        (r#""ttl":"30d""#, r#""ttl":"30""#),
        (r#""from":["CONTINUE"],"#, ""),
        (r#""format":"anthropic""#, r#""format":"claude""#),
        (r#""images":"none""#, r#""images":"no""#),
        (r#""latest":5"#, r#""latest":0"#),
        (r#""steps":["1","2.0"]"#, r#""steps":[1]"#),
        (r#""memory:日本""#, r#""memory:a/b""#),
        (r#""profiles":{"a""#, r#""profiles":{"a/b""#),
    ] {
        assert!(whole.contains(from), "{from}");
        assert!(!is_commit(&whole.replacen(from, to, 1)), "{from} -> {to}");
    }
    assert!(!is_commit(&format!("{whole}{{}}")));
    assert!(!is_commit(whole.strip_suffix('}').unwrap()));
}

#[test]
fn an_image_belongs_to_an_item_that_is_there() {
    let whole = commit_text().replace("\"images\":[[1,", "\"images\":[[2,");
    let unreadable = stored::decode_commit(whole.as_bytes()).unwrap_err();
    let stored::Unreadable::Image { index: 2, items: 2 } = unreadable else {
        panic!("{unreadable:?}")
    };
}

#[test]
fn what_cannot_be_read_is_not_quoted() {
    for text in [r#"{"format":"secret words"}"#, r#"{"secret words":1}"#, "\"secret words\""] {
        let unreadable = stored::decode_commit(text.as_bytes()).unwrap_err();
        let told = format!("{} {unreadable:?}", blackboard_error_chain::Chain(&unreadable));
        assert!(told.contains("invalid stored data") && !told.contains("secret"), "{told}");
    }
}
