//! Patches of the state: merge (RFC 7396), `add`, `append`, and their refusals.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::whole::{made_at, pointer, receipt, refuses};

/// A value before, a patch, and the text of the value after: appendix A of RFC 7396, then our own.
const MERGES: [(&str, &str, &str); 19] = [
    (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
    (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
    (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
    (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
    (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
    (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
    (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
    (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
    (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
    (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
    (r#"{"a":"foo"}"#, "null", "null"),
    (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
    (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
    ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
    ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
    (r#"{"z":1E5,"k":1.50}"#, r#"{"k":-0,"l":1.0}"#, r#"{"z":1E5,"k":-0,"l":1.0}"#),
    ("5", r#"{"a":{"b":null,"c":1}}"#, r#"{"a":{"c":1}}"#),
    (
        r#"{"a":{"x":[1,{"n":null}]}}"#,
        r#"{"a":{"y":[null]}}"#,
        r#"{"a":{"x":[1,{"n":null}],"y":[null]}}"#,
    ),
    (r#"{"a/b":1,"~":2}"#, r#"{"a/b":null,"":3}"#, r#"{"~":2,"":3}"#),
];

#[tokio::test]
async fn a_merge_patch_is_that_of_rfc_7396_at_every_path() {
    let server = Server::start();
    let board = server.board("s");
    for (index, (before, patch, after)) in MERGES.into_iter().enumerate() {
        for tail in [format!("state/m{index}"), format!("state/deep/er/m{index}")] {
            board.put(&tail, before).await.is(201);
            let patched = board.merge(&tail, patch).await;
            assert_eq!(receipt(patched.is(200)), json!({"revision":patched.revision()}));
            let shown = board.get(&tail).await;
            assert_eq!((shown.text().trim_end(), shown.etag()), (after, patched.etag()), "{patch}");
        }
        let is_object = |text: &str| text.starts_with('{');
        if [before, patch, after].into_iter().all(is_object) {
            let root = server.board(&format!("root-{index}"));
            root.put("state", before).await.succeeded();
            root.merge("state", patch).await.is(200);
            assert_eq!(root.get("state").await.text().trim_end(), after, "{patch}");
        }
    }
}

#[tokio::test]
async fn a_merge_patch_makes_what_is_absent() {
    let server = Server::start();
    let board = server.board("s");
    for (tail, patch, after) in [
        ("state/a/b", r#"{"x":{"y":null,"z":1E5},"n":null}"#, r#"{"x":{"z":1E5}}"#),
        ("state/c", "[null]", "[null]"),
        ("state/d", "5.0", "5.0"),
        ("state/e~1f", "{}", "{}"),
    ] {
        let made = board.merge(tail, patch).await;
        assert_eq!(receipt(made.is(201)), json!({"revision":made.revision()}));
        assert!(made.header("location").ends_with(&format!("/v1/sessions/s/{tail}")), "{made}");
        assert_eq!(made_at(&server, &made).await.is(200).text().trim_end(), after);
    }
}

#[tokio::test]
async fn a_merge_patch_that_changes_nothing_commits_nothing() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state/a", r#"{"x":1,"y":{"z":[1]}}"#).await.is(201);
    let tag = board.get("state/a").await.etag();
    for patch in ["{}", r#"{"x":1}"#, r#"{"gone":null}"#, r#"{"y":{"z":[1],"w":null}}"#] {
        let same = board.merge("state/a", patch).await;
        assert_eq!((receipt(same.is(200)), same.etag()), (json!({"revision":1}), tag.clone()));
    }
    board.merge("state", r#"{"a":{}}"#).await.is(200);
    assert_eq!(board.get("").await.revision(), 1);
}

async fn sum(board: &Board, tail: &str, n: &str) -> Answer {
    board.patch(tail, &format!("{{\"add\":{n}}}")).await
}

#[tokio::test]
async fn integers_are_added_exactly_whatever_their_size() {
    let server = Server::start();
    let board = server.board("s");
    for (before, n, after) in [
        ("1", "2", "3"),
        ("5", "-5", "0"),
        ("-3", "1", "-2"),
        ("9223372036854775807", "1", "9223372036854775808"),
        ("-9223372036854775808", "-1", "-9223372036854775809"),
        ("18446744073709551615", "1", "18446744073709551616"),
        ("18446744073709551616", "18446744073709551616", "36893488147419103232"),
        ("9007199254740992", "1", "9007199254740993"),
        ("100000000000000000000000000000", "-1", "99999999999999999999999999999"),
        ("-99999999999999999999999999999", "-1", "-100000000000000000000000000000"),
        ("123456789012345678901234567890", "-123456789012345678901234567890", "0"),
        ("123456789012345678901234567890", "-123456789012345678901234567891", "-1"),
    ] {
        board.put("state/n", before).await.succeeded();
        let added = sum(&board, "state/n", n).await;
        assert!(
            added.is(200).text().ends_with(&format!(",\"value\":{after}}}\n")),
            "{before} + {n}"
        );
        let shown = board.get("state/n").await;
        assert_eq!((shown.text().trim_end(), shown.etag()), (after, added.etag()));
    }
    // 4,300 digits are the most that a Python client reads.
    board.put("state/n", &format!("{}8", "9".repeat(4299))).await.is(200);
    // Too long for the parser of this test.
    board.json(Method::PATCH, "state/n", r#"{"add":1}"#).send().await.unwrap();
    assert_eq!(board.get("state/n").await.text().trim_end(), "9".repeat(4300));
    let add = board.json(Method::PATCH, "state/n", r#"{"add":1}"#);
    refuses(&board, add, 422, "unsupported-value").await;
}

#[tokio::test]
async fn other_numbers_are_added_as_doubles() {
    let server = Server::start();
    let board = server.board("s");
    for (before, n, after) in [
        ("0.1", "0.2", 0.1 + 0.2),
        ("1", "0.5", 1.5),
        ("1.5", "2", 3.5),
        ("1.5", "0.5", 2.0),
        ("1E5", "1", 100_001.0),
        ("-1e-3", "1e-3", 0.0),
        ("1e16", "1.0", 1e16),
        ("9007199254740993", "0.0", 9_007_199_254_740_992.0),
    ] {
        board.put("state/n", before).await.succeeded();
        let added = sum(&board, "state/n", n).await;
        assert_eq!(added.is(200).json()["value"].as_f64(), Some(after), "{before} + {n}: {added}");
        assert_eq!(board.get("state/n").await.json().as_f64(), Some(after), "{before} + {n}");
    }
    let digits = "9".repeat(400);
    for (before, n) in [
        ("1e308", "1e308"),
        ("-1e308", "-1e308"),
        ("1.7976931348623157e308", "1e300"),
        (&digits, "0.5"),
    ] {
        board.put("state/n", before).await.is(200);
        let add = board.json(Method::PATCH, "state/n", &format!("{{\"add\":{n}}}"));
        refuses(&board, add, 422, "unsupported-value").await;
    }
}

#[tokio::test]
async fn adding_starts_where_nothing_is() {
    let server = Server::start();
    let board = server.board("s");
    for (n, index) in
        ["5", "-0", "1.50", "1E5", "123456789012345678901234567890"].into_iter().zip(0_u64..)
    {
        let made = sum(&board, &format!("state/counters/{index}"), n).await;
        assert!(made.is(201).text().ends_with(&format!(",\"value\":{n}}}\n")), "{made}");
        assert_eq!(made.revision(), index + 1);
        assert_eq!(made_at(&server, &made).await.text().trim_end(), n);
    }
}

#[tokio::test]
async fn many_adders_lose_nothing() {
    let server = Server::start();
    let adders = (0..16).map(|_| {
        let board = server.board("s");
        tokio::spawn(async move {
            let mut values = Vec::new();
            for _ in 0..20 {
                let added = sum(&board, "state/n", "1").await;
                values.push(added.succeeded().json()["value"].as_u64().unwrap());
            }
            values
        })
    });
    let mut values = Vec::new();
    for adder in adders.collect::<Vec<_>>() {
        values.extend(adder.await.unwrap());
    }
    values.sort_unstable();
    assert_eq!(values, (1..=320).collect::<Vec<u64>>());
    assert_eq!(server.board("s").get("state/n").await.text(), "320\n");
}

#[tokio::test]
async fn appending_adds_to_an_array_or_makes_one() {
    let server = Server::start();
    let board = server.board("s");
    let steps: [(&str, u16, &str); 5] = [
        ("[]", 201, "[]"),
        (r#"[1E5,{"b":1,"a":[]}]"#, 200, r#"[1E5,{"b":1,"a":[]}]"#),
        ("[null]", 200, r#"[1E5,{"b":1,"a":[]},null]"#),
        ("[]", 200, r#"[1E5,{"b":1,"a":[]},null]"#),
        ("[[],-0]", 200, r#"[1E5,{"b":1,"a":[]},null,[],-0]"#),
    ];
    let mut tag = String::new();
    for ((values, status, after), revision) in steps.into_iter().zip([1, 2, 3, 3, 4]) {
        let appended = board.patch("state/l/list", &format!("{{\"append\":{values}}}")).await;
        assert!(
            appended.is(status).text().ends_with(&format!(",\"value\":{after}}}\n")),
            "{appended}"
        );
        assert_eq!(appended.revision(), revision);
        assert_eq!(board.get("state/l/list").await.text().trim_end(), after);
        assert_eq!(appended.etag() == tag, status == 200 && values == "[]", "{appended}");
        tag = appended.etag();
    }
}

/// A body, its refusal, and where its fault is said to stand.
const BAD_CALLS: [(&str, u16, &str, &str); 14] = [
    (r#"{"add":"1"}"#, 422, "invalid-field", "/add"),
    (r#"{"add":null}"#, 422, "invalid-field", "/add"),
    (r#"{"add":true}"#, 422, "invalid-field", "/add"),
    (r#"{"add":[1]}"#, 422, "invalid-field", "/add"),
    (r#"{"add":{}}"#, 422, "invalid-field", "/add"),
    (r#"{"add":1e400}"#, 422, "unsupported-value", "/add"),
    (r#"{"append":1}"#, 422, "array-required", "/append"),
    (r#"{"append":null}"#, 422, "array-required", "/append"),
    (r#"{"append":{}}"#, 422, "array-required", "/append"),
    (r#"{"append":"x"}"#, 422, "array-required", "/append"),
    (r#"{"append":[1e400]}"#, 422, "unsupported-value", "/append/0"),
    (r#"{"sub":1}"#, 422, "unknown-field", "/sub"),
    (r#"{"add":1,"by":2}"#, 422, "unknown-field", "/by"),
    (r#"{"Append":[]}"#, 422, "unknown-field", "/Append"),
];

#[tokio::test]
async fn a_call_that_cannot_be_is_refused_by_name() {
    let server = Server::start();
    let (absent, there) = (server.board("absent"), server.board("there"));
    there.put("state", r#"{"n":1,"l":[1]}"#).await.succeeded();
    for board in [&absent, &there] {
        for tail in ["state/n", "state/l", "state/new"] {
            for (body, status, code, place) in BAD_CALLS {
                let call = board.json(Method::PATCH, tail, body);
                assert_eq!(pointer(&refuses(board, call, status, code).await), place, "{body}");
            }
            for body in ["{}", r#"{"add":1,"append":[1]}"#, "5", "null", "[]", r#"[{"add":1}]"#] {
                board.patch(tail, body).await.is(422);
            }
            for body in ["", "{", r#"{"add":01}"#, r#"{"add":NaN}"#] {
                let call = board.json(Method::PATCH, tail, body);
                refuses(board, call, 400, "invalid-json").await;
            }
        }
    }
    assert_eq!(there.get("").await.revision(), 1);
    absent.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_call_finds_a_value_of_its_kind_or_is_refused() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state", r#"{"n":1,"s":"1","l":[1],"o":{},"z":null,"t":true}"#).await.succeeded();
    for tail in ["state/s", "state/l", "state/o", "state/z", "state/t", "state"] {
        let add = board.json(Method::PATCH, tail, r#"{"add":1}"#);
        refuses(&board, add, 409, "not-a-number").await;
    }
    for tail in ["state/n", "state/s", "state/o", "state/z", "state/t", "state"] {
        for body in [r#"{"append":[1]}"#, r#"{"append":[]}"#] {
            let append = board.json(Method::PATCH, tail, body);
            refuses(&board, append, 422, "array-required").await;
        }
    }
}

#[tokio::test]
async fn another_media_type_is_told_what_to_send() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state/a", "1").await.is(201);
    for media_type in ["text/plain", "application/json-patch+json", "application/x-ndjson", ""] {
        for tail in ["state", "state/a", "state/new"] {
            let patch = board.typed(Method::PATCH, tail, media_type, "{}");
            let refused = refuses(&board, patch, 415, "unsupported-media-type").await;
            for accepted in ["application/merge-patch+json", "application/json"] {
                let header = refused.header("accept-patch");
                assert!(header.split(',').any(|name| name.trim() == accepted), "{refused}");
            }
            let put = board.typed(Method::PUT, tail, media_type, "{}");
            refuses(&board, put, 415, "unsupported-media-type").await;
        }
    }
    let put = board.typed(Method::PUT, "state/a", "application/merge-patch+json", "{}");
    refuses(&board, put, 415, "unsupported-media-type").await;
    let untyped = board.to(Method::PATCH, "state/a").body("{}");
    refuses(&board, untyped, 415, "unsupported-media-type").await;
    for media_type in ["Application/JSON", "application/json; charset=utf-8"] {
        ask(board.typed(Method::PATCH, "state/a", media_type, r#"{"add":1}"#)).await.is(200);
        ask(board.typed(Method::PUT, "state/b", media_type, "1")).await.succeeded();
    }
    assert_eq!(board.get("state").await.json(), json!({"a":3,"b":1}));
}

#[tokio::test]
async fn adding_nothing_commits_nothing() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state/n", "5").await.is(201);
    let same = sum(&board, "state/n", "0").await;
    let body: Value = receipt(same.is(200));
    assert_eq!(body, json!({"revision":1,"value":5}));
}
