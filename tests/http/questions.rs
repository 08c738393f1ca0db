//! Questions: answered once, skipped, expired, and listed in the inbox.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::clock::{Clocked, reached};
use crate::harness::{Board, Server};
use crate::whole::{pointer, receipt, refuses};

/// A board with these questions.
async fn asked(server: &Server, session: &str, questions: &Value) -> Board {
    let board = server.board(session);
    board.post("questions", &questions.to_string()).await.is(201);
    board
}

async fn pending(board: &Board) -> Vec<u64> {
    board.get("questions?pending=true").await.is(200).seqs()
}

#[tokio::test]
async fn an_answer_becomes_the_last_member_of_its_question() {
    let server = Server::start();
    let board = server.board("s");
    board.post("questions", r#"[{"question":"a?","z":1E5},"b?"]"#).await.is(201);
    let before = board.get("questions/1").await.etag();
    let answer = board.by("Ann", Method::PUT, "questions/1/answer", r#"{"answer":"yes\n"}"#);
    let answer = ask(answer).await;
    assert_eq!(receipt(answer.is(200)), json!({"revision":2}));
    let entry = board.get("questions/1").await;
    assert_eq!((entry.etag(), entry.etag() == before), (answer.etag(), false));
    assert_eq!(entry.json()["updated_by"], "Ann");
    let lines = board.lines("questions").await;
    assert_eq!(lines, [r#"{"question":"a?","z":1E5,"answer":"yes\n"}"#, r#"{"text":"b?"}"#]);
    assert_eq!(pending(&board).await, [2]);
}

#[tokio::test]
async fn a_question_may_be_skipped() {
    let server = Server::start();
    let board = asked(&server, "s", &json!(["a?", {"x":1}])).await;
    board.put("questions/1/answer", r#"{"skip":true}"#).await.is(200);
    assert_eq!(board.lines("questions").await[0], r#"{"text":"a?","answer":null,"skipped":true}"#);
    assert_eq!(pending(&board).await, [0_u64; 0]);
}

#[tokio::test]
async fn of_many_answers_at_once_one_wins() {
    let server = Server::start();
    let board = asked(&server, "s", &json!(["a?"])).await;
    let answers = join_all((0..16).map(|n| {
        let body = if n % 4 == 3 { json!({"skip":true}) } else { json!({"answer":n.to_string()}) };
        let request = board.json(Method::PUT, "questions/1/answer", &body.to_string());
        async move { (body, ask(request).await) }
    }))
    .await;
    let (won, lost): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|(_, answer)| answer.status() == 200);
    assert_eq!((won.len(), lost.len()), (1, 15));
    lost.iter().for_each(|(_, answer)| drop(answer.problem(409, "already-answered")));
    let item = board.get("questions/1").await.json()["item"].clone();
    assert_eq!(item["answer"], won[0].0.get("answer").cloned().unwrap_or(Value::Null));
    assert_eq!(board.get("").await.revision(), 2);
}

#[tokio::test]
async fn what_has_an_answer_takes_no_other() {
    let server = Server::start();
    let questions = json!(["a?", "b?", {"text":"c?","answer":"c"}, {"text":"d?","answer":null}]);
    let board = asked(&server, "s", &questions).await;
    board.put("questions/1/answer", r#"{"answer":"a"}"#).await.is(200);
    board.put("questions/2/answer", r#"{"skip":true}"#).await.is(200);
    for seq in 1..=4 {
        for body in [r#"{"answer":"x"}"#, r#"{"skip":true}"#] {
            let request = board.json(Method::PUT, &format!("questions/{seq}/answer"), body);
            refuses(&board, request, 409, "already-answered").await;
        }
    }
    // Whoever takes the answer away asks again.
    board.merge("questions/1", r#"{"answer":null}"#).await.is(200);
    assert_eq!(pending(&board).await, [1]);
    board.put("questions/1/answer", r#"{"answer":"b"}"#).await.is(200);
}

#[tokio::test]
async fn what_is_no_answer_is_refused_with_its_place() {
    let server = Server::start();
    let board = asked(&server, "s", &json!(["a?"])).await;
    for (body, code, place) in [
        ("{}", "invalid-field", ""),
        ("[]", "invalid-field", ""),
        (r#""yes""#, "invalid-field", ""),
        (r#"{"answer":""}"#, "invalid-field", "/answer"),
        (r#"{"answer":" \t\n\u00a0"}"#, "invalid-field", "/answer"),
        (r#"{"answer":null}"#, "invalid-field", "/answer"),
        (r#"{"answer":5}"#, "invalid-field", "/answer"),
        (r#"{"answer":"\ud800"}"#, "unsupported-value", "/answer"),
        (r#"{"skip":false}"#, "invalid-field", "/skip"),
        (r#"{"skip":"true"}"#, "invalid-field", "/skip"),
        (r#"{"answer":"a","skip":true}"#, "invalid-field", "/skip"),
        (r#"{"answer":"a","answer":"b"}"#, "invalid-field", "/answer"),
        (r#"{"answer":"a","by":"me"}"#, "unknown-field", "/by"),
        (r#"{"Answer":"a"}"#, "unknown-field", "/Answer"),
    ] {
        let request = board.json(Method::PUT, "questions/1/answer", body);
        let refused = refuses(&board, request, 422, code).await;
        assert_eq!(pointer(&refused), place, "{body}");
    }
    let untyped = board.to(Method::PUT, "questions/1/answer").body(r#"{"answer":"a"}"#);
    refuses(&board, untyped, 415, "unsupported-media-type").await;
    for (tail, code) in [
        ("questions/2/answer", "entry-not-found"),
        ("questions/x/answer", "entry-not-found"),
        ("requests/1/answer", "route-not-found"),
    ] {
        let request = board.json(Method::PUT, tail, r#"{"answer":"a"}"#);
        refuses(&board, request, 404, code).await;
    }
    let absent = server.board("absent").put("questions/1/answer", r#"{"answer":"a"}"#).await;
    absent.problem(404, "session-not-found");
    board.get("questions/1/answer").await.problem(405, "method-not-allowed");
}

#[tokio::test]
async fn an_answer_has_terms_as_every_write() {
    let server = Server::start();
    let board = asked(&server, "s", &json!(["a?", "b?"])).await;
    let tag = board.get("questions/1").await.etag();
    let put =
        |seq: u64| board.json(Method::PUT, &format!("questions/{seq}/answer"), r#"{"answer":"a"}"#);
    let stale = refuses(&board, put(2).header("if-match", &tag), 412, "precondition-failed").await;
    assert_eq!(stale.json()["current"]["item"], json!({"text":"b?"}));
    let first = ask(put(1).header("if-match", &tag).header("idempotency-key", "k")).await;
    first.is(200);
    let again = ask(put(1).header("if-match", &tag).header("idempotency-key", "k")).await;
    assert_eq!((again.is(200).text(), again.etag()), (first.text(), first.etag()));
    assert_eq!(again.header("idempotency-replayed"), "true");
}

#[tokio::test]
async fn how_long_questions_wait_means_something_to_questions_only() {
    let server = Server::start();
    let board = asked(&server, "s", &json!(["a?"])).await;
    for wrong in [
        "default=x",
        "expires=",
        "expires=10",
        "expires=0s",
        "expires=1w",
        "expires=10m&default=",
        "expires=10m&default=%20",
    ] {
        let request = board.json(Method::POST, &format!("questions?{wrong}"), r#""b?""#);
        refuses(&board, request, 400, "invalid-parameter").await;
    }
    for tail in ["requests?expires=1ms&default=x", "trajectories?default=x"] {
        board.post(tail, r#"{"text":"t"}"#).await.is(201);
    }
    let entry = board.get("requests/1").await.json();
    assert_eq!(entry.get("expires_at"), None);
    // An entry of another log may have the seq of a question that waits.
    board.post("questions?expires=1d", r#""b?""#).await.is(201);
    board.post("requests", r#"{"text":"t"}"#).await.is(201);
    assert!(board.get("questions/2").await.json()["expires_at"].is_string());
    assert_eq!(board.get("requests/2").await.json().get("expires_at"), None);
    assert_eq!(board.get("questions/1").await.json().get("expires_at"), None);
    let nothing = board.post("questions?expires=1d", "[]").await;
    assert_eq!(nothing.is(200).json()["entries"], json!([]));
}

#[tokio::test]
async fn a_question_that_nobody_answers_gets_its_default() {
    let server = Clocked::start().await;
    let board = server.board("s");
    let made = board.post("questions?expires=10s&default=go%20on", r#"["a?",{"question":"b?"}]"#);
    let made = made.await;
    assert_eq!((made.is(201).seqs(), made.revision()), (vec![1, 2], 1));
    board.post("questions?expires=10s", r#"[{"question":"c?"},{"text":"d?","answer":"d"}]"#).await;
    let entry = board.get("questions/1").await;
    assert_eq!(entry.json()["expires_at"], "2026-11-21T07:03:21.123Z");
    assert!(entry.text().find("expires_at") < entry.text().find("\"item\""), "{entry}");
    assert_eq!(board.get("questions/4").await.json().get("expires_at"), None);
    board.put("questions/2/answer", r#"{"answer":"b"}"#).await.is(200);
    assert_eq!(board.get("questions/2").await.json().get("expires_at"), None);
    server.set(9_999);
    assert_eq!(pending(&board).await, [1, 3]);

    server.set(10_000);
    let over = reached(&board, "questions", 4).await;
    let expected = [
        json!({"text":"a?","answer":"go on","expired":true}),
        json!({"question":"b?","answer":"b"}),
        json!({"question":"c?","answer":null,"expired":true}),
        json!({"text":"d?","answer":"d"}),
    ];
    assert_eq!((over.items(), over.revision()), (expected.to_vec(), 4));
    let entry = board.get("questions/1").await.json();
    assert_eq!(
        (&entry["updated_at"], &entry["revision"]),
        (&json!("2026-11-21T07:03:21.123Z"), &json!(4))
    );
    assert_eq!((entry.get("updated_by"), entry.get("expires_at")), (None, None));
    let late = board.put("questions/1/answer", r#"{"answer":"late"}"#).await;
    late.problem(409, "already-answered");
    server.stop().await;
}

#[tokio::test]
async fn no_answer_comes_after_the_end_although_no_sweep_was_there() {
    let server = Clocked::start().await;
    let board = server.board("s");
    board.post("questions?expires=10s", r#""a?""#).await.is(201);
    server.set(10_000);
    let late = board.put("questions/1/answer", r#"{"answer":"late"}"#).await;
    late.problem(409, "already-answered");
    let server = server.restart_at(20_000).await;
    let item = server.board("s").get("questions/1").await.json()["item"].clone();
    assert_eq!(item, json!({"text":"a?","answer":null,"expired":true}));
    server.stop().await;
}

/// Sessions and seqs of a page of the inbox.
fn listed(page: &Answer) -> Vec<(String, u64)> {
    let body = page.is(200).json();
    let questions = body["questions"].as_array().expect("questions");
    let place = |question: &Value| {
        let session = question["session"].as_str().expect("a session").to_owned();
        (session, question["seq"].as_u64().expect("a seq"))
    };
    questions.iter().map(place).collect()
}

fn places(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(session, seq)| ((*session).to_owned(), *seq)).collect()
}

#[tokio::test]
async fn the_inbox_has_what_waits_in_all_sessions() {
    let mut server = Server::start();
    let empty = server.get("/v1/questions").await;
    assert_eq!(empty.is(200).json(), json!({"questions":[],"next":null,"more":false}));
    let b =
        asked(&server, "b", &json!(["1?", {"question":"2?","answer":"x"}, {"no":1}, "4?"])).await;
    let a = asked(&server, "a é", &json!(["1?"])).await;
    server.board("c").post("requests", r#""1?""#).await.is(201);

    let all = server.get("/v1/questions").await;
    assert_eq!(listed(&all), places(&[("a é", 1), ("b", 1), ("b", 4)]));
    assert_ne!(all.etag(), empty.etag());
    let mut first = a.get("questions/1").await.json();
    first.as_object_mut().unwrap().insert("session".to_owned(), json!("a é"));
    assert_eq!(all.json()["questions"][0], first);
    let known = |tag: String| server.to(Method::GET, "/v1/questions").header("if-none-match", tag);
    ask(known(all.etag())).await.is(304);

    b.put("questions/1/answer", r#"{"answer":"x"}"#).await.is(200);
    ask(known(all.etag())).await.is(200);
    assert_eq!(listed(&server.get("/v1/questions").await), places(&[("a é", 1), ("b", 4)]));
    b.delete("questions/4").await.is(200);
    a.delete("").await.is(200);
    assert_eq!(listed(&server.get("/v1/questions").await), []);
    b.merge("questions/2", r#"{"answer":null}"#).await.is(200);
    a.post("questions", r#""2?""#).await.is(201);
    server.kill();
    server.start_again();
    let again = server.get("/v1/questions").await;
    assert_eq!(listed(&again), places(&[("a é", 1), ("b", 2)]));
}

#[tokio::test]
async fn the_inbox_goes_on_where_a_page_ended() {
    let server = Server::start();
    for session in ["a", "b", "ba", "c"] {
        asked(&server, session, &json!(["1?", {"no":1}, "3?"])).await;
    }
    server.board("b").put("", r#"{"labels":{"team":"blue"}}"#).await.is(200);
    let expected =
        places(&[("a", 1), ("a", 3), ("b", 1), ("b", 3), ("ba", 1), ("ba", 3), ("c", 1), ("c", 3)]);
    for limit in 1..=9 {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("/v1/questions?limit={limit}{after}")).await;
            found.extend(listed(&page));
            let body = page.json();
            let next = body["next"].as_str().expect("a place");
            after = format!("&after={}", crate::harness::encoded(next));
            if body["more"] == false {
                break;
            }
            assert_eq!(body["questions"].as_array().map(Vec::len), Some(limit), "{page}");
        }
        assert_eq!(found, expected, "{limit}");
        let end = server.get(&format!("/v1/questions?limit=1{after}")).await.json();
        assert_eq!((&end["questions"], &end["more"]), (&json!([]), &json!(false)));
    }
    for (query, expected) in [
        ("prefix=b", places(&[("b", 1), ("b", 3), ("ba", 1), ("ba", 3)])),
        ("prefix=b&after=a/9", places(&[("b", 1), ("b", 3), ("ba", 1), ("ba", 3)])),
        ("prefix=b&after=b/1", places(&[("b", 3), ("ba", 1), ("ba", 3)])),
        ("prefix=b&after=c/1", vec![]),
        ("label=team:blue", places(&[("b", 1), ("b", 3)])),
        ("label=team:red", vec![]),
        ("after=b/2&limit=2", places(&[("b", 3), ("ba", 1)])),
    ] {
        let page = server.get(&format!("/v1/questions?{query}")).await;
        assert_eq!(listed(&page), expected, "{query}");
    }
}

#[tokio::test]
async fn the_inbox_takes_its_own_parameters_only() {
    let server = Server::start();
    for wrong in [
        "limit=0",
        "limit=1001",
        "after=",
        "after=a",
        "after=a/b",
        "after=/1",
        "after=a/%2B1",
        "label=x",
    ] {
        let refused = server.get(&format!("/v1/questions?{wrong}")).await;
        refused.problem(400, "invalid-parameter");
    }
    server.get("/v1/questions?pending=true").await.problem(400, "unknown-parameter");
    server.get("/v1/questions/1").await.problem(404, "route-not-found");
    let posted = ask(server.to(Method::POST, "/v1/questions")).await;
    assert_eq!(posted.is(405).header("allow"), "GET,HEAD");
}

#[tokio::test]
async fn strict_options_are_the_only_answers() {
    let server = Server::start();
    let strict = json!({"question":"a?","options":["yes","n\u{e4}"],"strict_options":true});
    let offered = json!({"question":"b?","options":["yes"]});
    let board =
        asked(&server, "s", &json!([strict, offered, {"question":"c?","strict_options":true}]))
            .await;
    let answer = |seq: u64, answer: &str| {
        let body = json!({"answer":answer}).to_string();
        board.json(Method::PUT, &format!("questions/{seq}/answer"), &body)
    };
    let refused = refuses(&board, answer(1, "no"), 422, "invalid-field").await;
    assert_eq!(pointer(&refused), "/answer");
    assert!(refused.json()["detail"].as_str().unwrap().contains("'yes', 'n\u{e4}'"));
    ask(answer(1, "n\u{e4}")).await.is(200);
    ask(answer(2, "perhaps")).await.is(200);
    ask(answer(3, "anything")).await.is(200);
    let post = |query: &str| {
        board.json(
            Method::POST,
            &format!("questions?expires=1h&default={query}"),
            &strict.to_string(),
        )
    };
    refuses(&board, post("no"), 422, "invalid-field").await;
    ask(post("yes")).await.is(201);
    ask(board.json(Method::PUT, "questions/4/answer", r#"{"skip":true}"#)).await.is(200);
}
