//! `Idempotency-Key`: repeats of any write get the first answer and write nothing.

use reqwest::{Method, RequestBuilder};

use crate::answer::{Answer, ask};
use crate::claims::won;
use crate::harness::{Board, Server};
use crate::images::png;
use crate::whole::{Whole, refuses};

/// Every kind of write that makes or changes something, on the board that `filled` makes.
const WRITES: [(Method, &str, &str); 40] = [
    (Method::POST, "questions", r#"{"question":"q"}"#),
    (Method::POST, "requests", "[{},{}]"),
    (Method::POST, "trajectories", r#""text""#),
    (Method::POST, "trajectories?trajectory_key=k", "{}"),
    (Method::POST, "screenshots", r#"{"metadata":1,"image_str":""}"#),
    (Method::POST, "agents/A/memory", "{}"),
    (Method::POST, "agents/new/memory", "{}"),
    (Method::PUT, "questions", "[{}]"),
    (Method::PUT, "agents/A/memory", "[{},{}]"),
    (Method::DELETE, "requests", ""),
    (Method::DELETE, "trajectories?keep=1", ""),
    (Method::DELETE, "trajectories?steps=1", ""),
    (Method::DELETE, "agents/A/memory", ""),
    (Method::PUT, "requests/3", r#"{"x":1}"#),
    (Method::PUT, "agents/A/memory/1", r#"{"x":1}"#),
    (Method::PATCH, "requests/3", r#"{"x":1}"#),
    (Method::DELETE, "requests/3", ""),
    (Method::DELETE, "agents/A/memory/1", ""),
    (Method::PUT, "state/new/path", "1E5"),
    (Method::PUT, "state/n", "2"),
    (Method::PUT, "state/n?ttl=1h", "1"),
    (Method::PUT, "state", r#"{"z":1}"#),
    (Method::PATCH, "state", r#"{"z":1}"#),
    (Method::PATCH, "state/made", r#"{"z":1}"#),
    (Method::DELETE, "state/n", ""),
    (Method::DELETE, "state", ""),
    (Method::PUT, "agents/new", "{}"),
    (Method::PUT, "agents/A", r#"{"status":"PENDING"}"#),
    (Method::PATCH, "agents/A", r#"{"status":"PENDING"}"#),
    (Method::DELETE, "agents/A", ""),
    (Method::DELETE, "agents", ""),
    (Method::PUT, "requests/1/claim", ""),
    (Method::PUT, "requests/2/claim", r#"{"ttl":"2h"}"#),
    (Method::DELETE, "requests/2/claim", ""),
    (Method::PUT, "requests/2/done", r#"{"result":1E5}"#),
    (
        Method::POST,
        "transactions",
        r#"{"then":[{"add":"n","value":1},{"append":"requests","item":{}}]}"#,
    ),
    (Method::PUT, "blackboard", r#"{"requests":[{"r":1}],"state":{"b":1}}"#),
    (Method::DELETE, "blackboard?include=state", ""),
    (Method::PUT, "", r#"{"labels":{"a":"b"},"settings":{"max_items":3}}"#),
    (Method::DELETE, "", ""),
];

async fn filled(server: &Server, session: &str) -> Board {
    let board = server.board(session);
    board.post("requests", "[{},{},{}]").await.is(201);
    board.post("trajectories", r#"[{"step":1},{"step":2}]"#).await.is(201);
    board.post("agents/A/memory", "{}").await.is(201);
    board.put("state", r#"{"n":1,"l":[]}"#).await.succeeded();
    won(&board, "W", 2).await;
    board
}

fn keyed(request: RequestBuilder, key: &str) -> RequestBuilder {
    request.header("idempotency-key", key)
}

#[track_caller]
fn same(first: &Answer, repeat: &Answer) {
    assert_eq!(first.header("idempotency-replayed"), "", "{first}");
    assert_eq!(repeat.header("idempotency-replayed"), "true", "{repeat}");
    assert_eq!((repeat.status(), repeat.text()), (first.status(), first.text()), "{repeat}");
    for header in ["etag", "location", "blackboard-revision", "content-type"] {
        assert_eq!(repeat.header(header), first.header(header), "{header}: {repeat}");
    }
}

#[tokio::test]
async fn a_repeat_of_any_write_gets_the_first_answer() {
    let server = Server::start();
    for (index, (method, tail, body)) in WRITES.into_iter().enumerate() {
        let board = filled(&server, &format!("key-{index}")).await;
        let request = || keyed(board.by("W", method.clone(), tail, body), "key 1");
        let head = board.get("").await.revision();
        let first = ask(request()).await;
        assert_eq!(first.succeeded().revision(), head + 1, "{first}");
        if method != Method::DELETE || !tail.is_empty() {
            // The answer is the first one although the session has gone on.
            board.post("trajectories", r#"{"later":1}"#).await.is(201);
        }
        let before = Whole::of(&board).await;
        for _ in 0..2 {
            same(&first, &ask(request()).await);
        }
        assert_eq!(Whole::of(&board).await, before, "{method} {tail}");
    }
}

#[tokio::test]
async fn adding_appending_and_images_are_repeated_too() {
    let server = Server::start();
    let board = filled(&server, "s").await;
    let json_patch = "application/json-patch+json";
    let writes = [
        (Method::PATCH, "state/n", "application/json", br#"{"add":1}"#.to_vec()),
        (Method::PATCH, "state/l", "application/json", br#"{"append":[1]}"#.to_vec()),
        (
            Method::PATCH,
            "requests/1",
            json_patch,
            br#"[{"op":"add","path":"/x","value":1}]"#.to_vec(),
        ),
        (Method::POST, "requests", "application/x-ndjson", b"{}\n{}\n".to_vec()),
        (Method::POST, "screenshots", "image/png", png(3, 3, 1)),
    ];
    for (index, (method, tail, media_type, body)) in writes.into_iter().enumerate() {
        let request = || {
            let request = board.typed(method.clone(), tail, media_type, body.clone());
            keyed(request, &format!("key-{index}"))
        };
        let first = ask(request()).await;
        first.succeeded();
        let before = Whole::of(&board).await;
        same(&first, &ask(request()).await);
        assert_eq!(Whole::of(&board).await, before, "{method} {tail}");
    }
    assert_eq!(board.get("state").await.text(), "{\"n\":2,\"l\":[1]}\n");
    assert_eq!(board.get("screenshots").await.json()["count"], 1);
}

#[tokio::test]
async fn the_write_that_makes_a_session_is_repeated_too() {
    let server = Server::start();
    for (index, (method, tail, body)) in [
        (Method::PUT, "", r#"{"qa_pairs":[{"question":"q"}]}"#),
        (Method::POST, "requests", "{}"),
        (Method::PUT, "state/a", "1"),
        (Method::PUT, "agents/A", "{}"),
        (Method::PUT, "blackboard", r#"{"requests":[{}]}"#),
        (Method::POST, "transactions", r#"{"then":[{"put":"a","value":1}]}"#),
    ]
    .into_iter()
    .enumerate()
    {
        let board = server.board(&format!("first-{index}"));
        let request = || keyed(board.request(method.clone(), tail, body), "make");
        let first = ask(request()).await;
        assert_eq!(first.succeeded().revision(), 1);
        same(&first, &ask(request()).await);
        assert_eq!(board.get("").await.revision(), 1);
    }
}

#[tokio::test]
async fn a_key_serves_for_one_request_only() {
    let server = Server::start();
    let board = filled(&server, "s").await;
    let tag = board.get("requests/1").await.etag();
    let entry =
        |method: Method, tail: &str, body: &str| keyed(board.by("A", method, tail, body), "key");
    let first = ask(
        entry(Method::PUT, "requests/1?claim=2&fence=5", r#"{"x":1}"#).header("if-match", &tag)
    )
    .await;
    first.is(200);
    let url = "requests/1?claim=2&fence=5";
    let typed = board.typed(Method::PUT, url, "application/json; charset=utf-8", r#"{"x":1}"#);
    let changed = [
        entry(Method::PUT, url, r#"{"x":2}"#).header("if-match", &tag),
        entry(Method::PUT, url, r#"{"x":1 }"#).header("if-match", &tag),
        entry(Method::PUT, url, r#"{"x":1}"#),
        entry(Method::PUT, url, r#"{"x":1}"#).header("if-match", "\"other\""),
        entry(Method::PUT, url, r#"{"x":1}"#).header("if-match", &tag).header("if-none-match", "*"),
        entry(Method::PUT, "requests/1", r#"{"x":1}"#).header("if-match", &tag),
        entry(Method::PUT, "requests/1?claim=2&fence=6", r#"{"x":1}"#).header("if-match", &tag),
        entry(Method::PUT, "requests/3?claim=2&fence=5", r#"{"x":1}"#).header("if-match", &tag),
        entry(Method::PATCH, url, r#"{"x":1}"#).header("if-match", &tag),
        entry(Method::POST, "requests", r#"{"x":1}"#),
        entry(Method::DELETE, "", ""),
        keyed(typed.header("x-agent-id", "A"), "key").header("if-match", &tag),
        keyed(board.by("B", Method::PUT, url, r#"{"x":1}"#), "key").header("if-match", &tag),
        keyed(board.request(Method::PUT, url, r#"{"x":1}"#), "key").header("if-match", &tag),
    ];
    for request in changed {
        refuses(&board, request, 422, "idempotency-key-reused").await;
    }
    // The tag is stale by now, and the first answer is still the answer.
    let repeat = entry(Method::PUT, url, r#"{"x":1}"#).header("if-match", &tag);
    same(&first, &ask(repeat).await);
}

#[tokio::test]
async fn another_key_and_another_session_are_another_write() {
    let server = Server::start();
    let (one, two) = (server.board("one"), server.board("two"));
    for (board, key, seq) in
        [(&one, "k", 1), (&one, "K", 2), (&one, "k ", 1), (&two, "k", 1), (&one, "k k", 3)]
    {
        let answer = ask(keyed(board.json(Method::POST, "requests", "{}"), key)).await;
        assert_eq!(answer.is(201).seqs(), [seq], "{key}");
    }
    assert_eq!(one.get("requests").await.json()["count"], 3);
    // Without a key nothing is remembered.
    for seq in [4, 5] {
        assert_eq!(one.post("requests", "{}").await.is(201).seqs(), [seq]);
    }
}

#[tokio::test]
async fn a_key_is_visible_text_of_at_most_255_characters() {
    let server = Server::start();
    let (absent, there) = (server.board("absent"), server.made("there").await);
    let long = "k".repeat(256);
    let keys: [&[u8]; 6] = [b"", b"  ", b"a\tb", "ä".as_bytes(), b"\xff", long.as_bytes()];
    for key in keys {
        for board in [&absent, &there] {
            let request = board.json(Method::POST, "requests", "{}").header("idempotency-key", key);
            refuses(board, request, 400, "invalid-parameter").await;
            let request = board.json(Method::PUT, "state/a", "1").header("idempotency-key", key);
            refuses(board, request, 400, "invalid-parameter").await;
        }
    }
    absent.get("").await.problem(404, "session-not-found");
    for key in ["k", "~!\"#$%&'()*+,-./:;<=>?@[]^_`{|}", "two words", &long[1..]] {
        let post = || keyed(there.json(Method::POST, "requests", "{}"), key);
        let first = ask(post()).await;
        same(first.is(201), &ask(post()).await);
    }
    // A read has nothing to repeat.
    let read = keyed(there.to(Method::GET, "requests"), "k");
    assert_eq!(ask(read).await.is(200).header("idempotency-replayed"), "");
}

#[tokio::test]
async fn a_refusal_is_not_kept_and_may_be_tried_again() {
    let server = Server::start();
    let board = filled(&server, "s").await;
    let bad = keyed(board.json(Method::POST, "requests", "5"), "k1");
    refuses(&board, bad, 422, "unsupported-item").await;
    let good = ask(keyed(board.json(Method::POST, "requests", "{}"), "k1")).await;
    assert_eq!(good.is(201).header("idempotency-replayed"), "");

    let claim = || keyed(board.by("B", Method::PUT, "requests/2/claim", ""), "k2");
    refuses(&board, claim(), 409, "already-claimed").await;
    ask(board.by("W", Method::DELETE, "requests/2/claim", "")).await.is(200);
    let won = ask(claim()).await;
    same(won.is(201), &ask(claim()).await);

    let put = || keyed(board.json(Method::PUT, "state/fresh", "2").header("if-match", "*"), "k3");
    refuses(&board, put(), 412, "precondition-failed").await;
    board.put("state/fresh", "1").await.is(201);
    let written = ask(put()).await;
    same(written.is(200), &ask(put()).await);

    let absent = server.board("absent");
    let patch = || keyed(absent.request(Method::PATCH, "agents/A", r#"{"x":1}"#), "k4");
    refuses(&absent, patch(), 404, "session-not-found").await;
    absent.put("agents/A", "{}").await.is(201);
    ask(patch()).await.is(200);
}

#[tokio::test]
async fn a_success_that_changes_nothing_is_kept_by_a_commit() {
    let server = Server::start();
    let writes: [(Method, &str, &str); 9] = [
        (Method::PUT, "state/n", "1"),
        (Method::PATCH, "state", "{}"),
        (Method::PUT, "agents/A", "{}"),
        (Method::PATCH, "agents/A", r#"{"status":"CONTINUE"}"#),
        (Method::DELETE, "questions", ""),
        (Method::DELETE, "requests/1/claim", ""),
        (Method::POST, "transactions", r#"{"if":[{"path":"n","absent":true}],"then":[]}"#),
        (Method::PUT, "", "{}"),
        (Method::POST, "questions", "[]"),
    ];
    for (index, (method, tail, body)) in writes.into_iter().enumerate() {
        let board = filled(&server, &format!("same-{index}")).await;
        let head = board.get("").await.revision();
        let plain = ask(board.by("W", method.clone(), tail, body)).await;
        assert_eq!(plain.is(200).revision(), head, "{plain}");
        let write = || keyed(board.by("W", method.clone(), tail, body), "k");
        let first = ask(write()).await;
        assert_eq!(first.is(200).revision(), head + 1, "{first}");
        same(&first, &ask(write()).await);
        assert_eq!(board.get("").await.revision(), head + 1);
        // What it would do now is not what it did.
        board.put("state/n", "2").await.is(200);
        let before = Whole::of(&board).await;
        same(&first, &ask(write()).await);
        assert_eq!(Whole::of(&board).await, before);
    }
}
