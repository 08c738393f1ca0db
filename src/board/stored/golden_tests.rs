//! Format 2, and what was written in format 1, as literal bytes: any later version reads them.

use crate::board::*;

const IMAGE: &str = concat!(
    r#"{"at":14,"head":"data:image/png;base64,","#,
    r#""sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","#,
    r#""bytes":1,"size":[5,3]}"#
);

/// Every kind of change that format 1 has, with and without each member that may be absent.
fn changes_of_format_1() -> String {
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

/// Those that came with format 2.
const CHANGES_OF_FORMAT_2: [&str; 18] = [
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

fn commit_of(idempotency: &str, changes: &str) -> String {
    format!(
        r#"{{"revision":42,"at":1795244591123,"agent":"日本 Agent","nonce":18446744073709551615,{idempotency}"changes":[{changes}]}}"#
    )
}

fn commit_of_format_1() -> String {
    commit_of("", &changes_of_format_1())
}

fn commit_text() -> String {
    let idempotency = concat!(
        r#""idempotency":{"key":"k \"1\"","#,
        r#""fingerprint":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","#,
        r#""answer":{"status" : 201},"forgotten":3},"#
    );
    let changes = [changes_of_format_1(), CHANGES_OF_FORMAT_2.join(",")];
    commit_of(idempotency, &changes.join(","))
}

fn base_text() -> String {
    let log = r#"{"last_seq":0,"changed":0,"entries":[]}"#;
    let questions = concat!(
        r#"{"last_seq":9,"changed":41,"entries":["#,
        r#"{"seq":2,"revision":3,"at":1000,"item":{"q":"?"}},"#,
        r#"{"seq":4,"revision":41,"at":1000,"agent":"A","updated_at":2000,"updated_by":"B","item":{}},"#,
        r#"{"seq":5,"revision":40,"at":1001,"updated_at":1999,"item":{"x" : 1.10}}]}"#
    );
    let requests = concat!(
        r#"{"last_seq":5,"changed":40,"entries":["#,
        r#"{"seq":1,"revision":30,"at":1000,"updated_at":1999,"updated_by":"A","work":{"claimed":{"agent":"A","fence":29,"expires_at":62000}},"item":{}},"#,
        r#"{"seq":2,"revision":31,"at":1000,"updated_at":1999,"work":{"lapsed":{"fence":28}},"item":{}},"#,
        r#"{"seq":3,"revision":32,"at":1000,"updated_at":1999,"work":{"done":{"agent":"A","at":1999,"fence":27,"result":[1, 2]}},"item":{}},"#,
        r#"{"seq":4,"revision":33,"at":1000,"updated_at":1999,"work":{"done":{"at":1999}},"item":{}},"#,
        r#"{"seq":5,"revision":34,"at":1000,"updated_at":1999,"work":{"done":{"at":1999,"result":null}},"item":{}}]}"#
    );
    let screenshots = format!(
        r#"{{"last_seq":1,"changed":7,"entries":[{{"seq":1,"revision":7,"at":1000,"item":{{"image_str":""}},"image":{IMAGE}}}]}}"#
    );
    let state = concat!(
        r#"{"document":{"a":{"b":1.50,"c":[1,{"x":2}]},"d/e":null},"changed":[39,38,37,36,39],"#,
        r#""expiries":[[["a"],63000],[["a","b"],64000]]}"#
    );
    let agents = concat!(
        r#"[{"name":"A","profile":{"status" : "PENDING"},"registered_at":1000,"updated_at":1500,"changed":35,"last_seen":2000},"#,
        r#"{"name":"日本","profile":{"status":"CONTINUE","type":"T"},"registered_at":1001,"updated_at":1001,"changed":9}]"#
    );
    let keys = concat!(
        r#"[{"key":"z","fingerprint":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","answer":{"status" : 200},"at":1000},"#,
        r#"{"key":"a","fingerprint":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","answer":null,"at":1001}]"#
    );
    [
        r#"{"id":"00000000-0000-0000-0000-000000000007","revision":41,"updated_at":2000,"written_at":1999,"#,
        r#""life":{"name":"sess_1","created_at":999,"settings":{"screenshot_to_memory":true,"max_items":{"memory":7},"ttl":"1h"},"labels":{"k":"v"},"configured":5},"#,
        &format!(r#""logs":[{questions},{requests},{log},{screenshots}],"#),
        &format!(r#""memories":[["a",{log}],["b",{log}]],"#),
        &format!(r#""state":{state},"agents":{agents},"agents_changed":36,"keys":{keys},"#),
        r#""images":[["2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",1]]}"#,
    ]
    .concat()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn is_commit(text: &str) -> bool {
    stored::decode_commit(text.as_bytes()).is_ok()
}

fn is_base(text: &str) -> bool {
    stored::decode_base(text.as_bytes()).is_ok()
}

#[test]
fn a_commit_is_these_bytes_and_stays_so() {
    let commit = stored::decode_commit(commit_text().as_bytes()).unwrap();
    assert_eq!(text(stored::encode_commit(&commit).unwrap()), commit_text());
    assert_eq!((commit.revision, commit.at), (Revision(42), Timestamp(1_795_244_591_123)));
    assert_eq!((commit.nonce, commit.changes.len()), (Nonce(u64::MAX), 28));
    let Change::Appended { items, .. } = &commit.changes[4] else { panic!("{commit:?}") };
    assert_eq!(items[0].image(), None);
    assert_eq!(items[1].image().unwrap().size, Some((5, 3)));
    let kept = commit.kept.unwrap();
    assert_eq!((&*kept.key.key, kept.forgotten), ("k \"1\"", Forgotten(3)));
    let Change::AgentPut { profile, .. } = &commit.changes[18] else { panic!() };
    assert_eq!(profile.status().as_str(), "FAIL");
    let results = commit.changes[22..25].iter().map(|change| {
        let Change::Finished { result, .. } = change else { panic!("{change:?}") };
        result.as_ref().map(Json::text)
    });
    assert_eq!(results.collect::<Vec<_>>(), [Some(r#"{"r" : 1.0}"#), Some("null"), None]);
}

#[test]
fn what_format_1_wrote_is_still_read() {
    let (session, body) = (SessionId(uuid::Uuid::nil()), commit_of_format_1());
    let mut frame = Frame::encode(session, Revision(42), body.as_bytes()).unwrap();
    frame[0] = 1;
    let read = Frame::decode(session, Revision(42), &frame).unwrap();
    let commit = stored::decode_commit(read).unwrap();
    assert_eq!((commit.changes.len(), &commit.kept), (10, &None));
    let whole = stored::decode_commit(commit_text().as_bytes()).unwrap();
    assert_eq!(commit.changes, whole.changes[..10]);
    assert_eq!(text(stored::encode_commit(&commit).unwrap()), body);
}

#[test]
fn a_key_that_pushed_none_out_says_nothing_of_it() {
    let body = commit_text().replace(r#","forgotten":3"#, "");
    let commit = stored::decode_commit(body.as_bytes()).unwrap();
    assert_eq!(commit.kept.as_ref().unwrap().forgotten, Forgotten(0));
    assert_eq!(text(stored::encode_commit(&commit).unwrap()), body);
}

#[test]
fn a_commit_by_nobody_has_no_agent() {
    let body = r#"{"revision":1,"at":-1,"nonce":0,"changes":[{"deleted":{}}]}"#;
    let commit = stored::decode_commit(body.as_bytes()).unwrap();
    assert_eq!((&commit.agent, commit.at), (&None, Timestamp(-1)));
    assert_eq!(text(stored::encode_commit(&commit).unwrap()), body);
}

#[test]
fn a_base_is_these_bytes_and_stays_so() {
    let board = stored::decode_base(base_text().as_bytes()).unwrap();
    assert_eq!(text(stored::encode_base(&board).unwrap()), base_text());
    let profiles = r#"{"status" : "PENDING"}{"status":"CONTINUE","type":"T"}"#.len() as u64;
    let state = r#""a":{"b":1.50,"c":[1,{"x":2}]},"d/e":null"#.len() as u64;
    let bytes = 39 + (5 * 2 + 6 + 4) + profiles + state;
    assert_eq!((board.oldest(), board.bytes(), board.image_bytes()), (Revision(41), bytes, 1));
    let questions = board.log(&LogName::Questions).unwrap();
    assert_eq!((questions.len(), questions.next_seq(), questions.bytes()), (3, Seq(10), 23));
    let by = Some("B".parse().unwrap());
    let updated = Some(Updated { at: Timestamp(2_000), by });
    assert_eq!(questions.get(Seq(4)).unwrap().updated, updated);
    assert_eq!(board.agents().len(), 2);
    assert_eq!(board.next_due(), Some(Timestamp(62_000)), "a lease is told by its claim");
    let keys: Vec<_> = board.keys().iter().map(|(key, _)| &**key).collect();
    assert_eq!((keys, board.keys().bytes()), (vec!["z", "a"], 22));
}

#[test]
fn a_base_of_a_deleted_session_has_no_life() {
    let board = Board::absent(SessionId(uuid::Uuid::nil()), Revision(9));
    let body = text(stored::encode_base(&board).unwrap());
    assert!(!body.contains("life"), "{body}");
    assert_eq!(stored::decode_base(body.as_bytes()).unwrap(), board);
}

#[test]
fn an_unknown_member_is_refused_in_each_object_of_ours() {
    let (commit, base) = (commit_text(), base_text());
    for (whole, is_read, objects) in [
        (
            &commit,
            is_commit as fn(&str) -> bool,
            &[
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
            ][..],
        ),
        (
            &base,
            is_base,
            &[
                r#"{"id""#,
                r#"{"name""#,
                r#"{"screenshot_to_memory""#,
                r#"{"last_seq":9"#,
                r#"{"seq":2"#,
                r#"{"at":14"#,
                r#"{"memory":7"#,
                r#"{"claimed""#,
                r#"{"agent":"A","fence""#,
                r#"{"lapsed""#,
                r#"{"fence":28"#,
                r#"{"done""#,
                r#"{"agent":"A","at""#,
                r#"{"document""#,
                r#"{"name":"A""#,
                r#"{"key":"z""#,
            ],
        ),
    ] {
        assert!(is_read(whole));
        for object in objects {
            assert!(whole.contains(object), "{object}");
            let more = object.replacen('{', r#"{"zz":1,"#, 1);
            assert!(!is_read(&whole.replacen(object, &more, 1)), "{object}");
        }
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
    ] {
        assert!(whole.contains(from), "{from}");
        assert!(!is_commit(&whole.replacen(from, to, 1)), "{from} -> {to}");
    }
    assert!(!is_commit(&format!("{whole}{{}}")));
    assert!(!is_commit(whole.strip_suffix('}').unwrap()));
}

#[test]
fn the_parts_of_a_base_belong_together() {
    let whole = base_text();
    for (from, to) in [
        (r#""changed":[39,38,37,36,39]"#, r#""changed":[39,38,37,36]"#),
        (r#""changed":[39,38,37,36,39]"#, r#""changed":[39,38,37,36,39,39]"#),
        (r#""document":{"a""#, r#""document":[],"a":{"a""#),
        (r#"[["a","b"],64000]"#, r#"[["a","x"],64000]"#),
        (r#"[["a","b"],64000]"#, r#"[["a","."],64000]"#),
        (r#"{"status" : "PENDING"}"#, "{}"),
        (r#""written_at":1999,"#, ""),
        (r#""agents_changed":36,"#, ""),
        (r#""lapsed""#, r#""gone""#),
    ] {
        assert!(whole.contains(from), "{from}");
        assert!(!is_base(&whole.replacen(from, to, 1)), "{from} -> {to}");
    }
    for (document, changed) in [("[]", "[39]"), ("1", "[39]"), ("null", "[39]")] {
        let at = whole.find(r#""document""#).unwrap();
        let end = whole.find(r#""expiries""#).unwrap();
        let parts = format!(r#""document":{document},"changed":{changed},"#);
        let other = [&whole[..at], &parts, &whole[end..]].concat();
        assert!(!is_base(&other.replace(r#"[["a"],63000],[["a","b"],64000]"#, "")), "{document}");
        assert!(is_base(
            &other
                .replace(r#"[["a"],63000],[["a","b"],64000]"#, "")
                .replace(&format!(r#""document":{document}"#), r#""document":{}"#)
        ));
    }
}

#[test]
fn an_image_belongs_to_an_item_that_is_there() {
    let whole = commit_text().replace("\"images\":[[1,", "\"images\":[[2,");
    let unreadable = stored::decode_commit(whole.as_bytes()).unwrap_err();
    let stored::Unreadable::Image { index: 2, items: 2 } = unreadable else {
        panic!("{unreadable:?}")
    };
}
