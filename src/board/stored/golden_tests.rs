//! Format 1 as literal bytes: what is written today is what any later version reads.

use crate::board::*;

const IMAGE: &str = concat!(
    r#"{"at":14,"head":"data:image/png;base64,","#,
    r#""sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","#,
    r#""bytes":1,"size":[5,3]}"#
);

/// Every kind of change, with and without each member that may be absent.
fn commit_text() -> String {
    let changes = [
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
    ];
    format!(
        r#"{{"revision":42,"at":1795244591123,"agent":"日本 Agent","nonce":18446744073709551615,"changes":[{}]}}"#,
        changes.join(",")
    )
}

fn base_text() -> String {
    let log = r#"{"last_seq":0,"changed":0,"entries":[]}"#;
    let questions = concat!(
        r#"{"last_seq":9,"changed":41,"entries":["#,
        r#"{"seq":2,"revision":3,"at":1000,"item":{"q":"?"}},"#,
        r#"{"seq":4,"revision":41,"at":1000,"agent":"A","updated_at":2000,"updated_by":"B","item":{}},"#,
        r#"{"seq":5,"revision":40,"at":1001,"updated_at":1999,"item":{"x" : 1.10}}]}"#
    );
    let screenshots = format!(
        r#"{{"last_seq":1,"changed":7,"entries":[{{"seq":1,"revision":7,"at":1000,"item":{{"image_str":""}},"image":{IMAGE}}}]}}"#
    );
    [
        r#"{"id":"00000000-0000-0000-0000-000000000007","revision":41,"updated_at":2000,"#,
        r#""life":{"name":"sess_1","created_at":999,"settings":{"screenshot_to_memory":true},"labels":{"k":"v"},"configured":5},"#,
        &format!(r#""logs":[{questions},{log},{log},{screenshots}],"#),
        &format!(r#""memories":[["a",{log}],["b",{log}]],"#),
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
    assert_eq!((commit.nonce, commit.changes.len()), (Nonce(u64::MAX), 10));
    let Change::Appended { items, .. } = &commit.changes[4] else { panic!("{commit:?}") };
    assert_eq!(items[0].image(), None);
    assert_eq!(items[1].image().unwrap().size, Some((5, 3)));
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
    assert_eq!((board.oldest(), board.bytes(), board.image_bytes()), (Revision(41), 39, 1));
    let questions = board.log(&LogName::Questions).unwrap();
    assert_eq!((questions.len(), questions.next_seq(), questions.bytes()), (3, Seq(10), 23));
    let by = Some("B".parse().unwrap());
    let updated = Some(Updated { at: Timestamp(2_000), by });
    assert_eq!(questions.get(Seq(4)).unwrap().updated, updated);
    assert_eq!(board.agents(), 2);
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
    assert!(is_commit(&of_clients.replace(r#"{"step":1"#, r#"{"zz":"","step":1"#)));
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
