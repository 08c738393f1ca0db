//! Sessions: created, described, listed, deleted, created again.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Server, encoded};

/// The names in a page of the list, in its order.
fn names(page: &Answer) -> Vec<String> {
    let body = page.is(200).json();
    let sessions = body["sessions"].as_array().expect("sessions");
    let names = sessions.iter().map(|session| session["session"].as_str().expect("a name"));
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_session_is_made_by_name() {
    let server = Server::start();
    let board = server.board("sess_12345");
    board.get("").await.problem(404, "session-not-found");
    let made = board.put("", "{}").await;
    made.is(201);
    assert!(made.header("location").ends_with("/v1/sessions/sess_12345"), "{made}");
    board.put("", "{}").await.is(200);

    let described = board.get("").await.is(200).json();
    assert_eq!(described["session"], "sess_12345");
    assert_eq!(described["is_empty"], true);
    assert_eq!(described["revision"], 1);
    for log in ["questions", "requests", "trajectories", "screenshots"] {
        assert_eq!(described["counts"][log], 0, "{described}");
    }
    for member in ["oldest_revision", "bytes", "history_bytes"] {
        assert!(described[member].is_u64(), "{member}: {described}");
    }
    for member in ["created_at", "updated_at"] {
        assert!(described[member].is_string(), "{member}: {described}");
    }
    for member in ["settings", "labels"] {
        assert!(described[member].is_object(), "{member}: {described}");
    }
    assert!(!described["agents"].is_null(), "{described}");
}

#[tokio::test]
async fn a_session_without_entries_says_what_it_holds() {
    let server = Server::start();
    let board = server.board("s");
    board.put("", "{}").await.is(201);
    let listed = async || server.get("/v1/sessions").await.is(200).json()["sessions"][0].clone();
    let held = |session: &Value| {
        ["state_bytes", "memory_entries", "blobs"].map(|member| session[member].clone())
    };
    assert_eq!(held(&listed().await), [json!(0), json!(0), json!(0)]);
    board.put("state/a", "1").await.is(201);
    board.post("agents/A/memory", "[{},{}]").await.is(201);
    ask(board.typed(Method::POST, "blobs", "text/plain", "b")).await.is(201);
    for session in [listed().await, board.get("").await.is(200).json()] {
        assert_eq!(held(&session), [json!(r#"{"a":1}"#.len()), json!(2), json!(1)]);
        assert_eq!(session["is_empty"], true, "{session}");
    }
    board.delete("state").await.is(200);
    assert_eq!(held(&listed().await)[0], 0);
}

#[tokio::test]
async fn the_first_write_makes_the_session_in_the_same_commit() {
    let server = Server::start();
    for (index, (method, tail, body)) in [
        (Method::POST, "requests", "{}"),
        (Method::POST, "agents/A/memory", "{}"),
        (Method::PUT, "trajectories", "[{}]"),
        (Method::PUT, "blackboard", r#"{"questions":[{}]}"#),
    ]
    .into_iter()
    .enumerate()
    {
        let board = server.board(&format!("first-{index}"));
        let written = ask(board.json(method, tail, body)).await;
        assert_eq!(written.succeeded().revision(), 1, "{written}");
        assert_eq!(board.get("").await.is(200).json()["revision"], 1);
    }
}

#[tokio::test]
async fn a_description_counts_what_is_there() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "[{},{},{}]").await.is(201);
    board.post("questions", "{}").await.is(201);
    board.delete("requests/2").await.is(200);
    let described = board.get("").await.json();
    assert_eq!(described["counts"]["requests"], 2);
    assert_eq!(described["counts"]["questions"], 1);
    assert_eq!((&described["is_empty"], &described["revision"]), (&json!(false), &json!(3)));
    board.delete("blackboard").await.is(200);
    assert_eq!(board.get("").await.json()["is_empty"], true);
}

#[tokio::test]
async fn any_string_that_the_contract_allows_is_a_name() {
    let server = Server::start();
    let longest = "x".repeat(256);
    let names = [
        "a b",
        "ö",
        "日本語",
        "🛸",
        "...",
        "a%b",
        "a+b",
        "?q=1#f",
        "a,b",
        "\"quoted\"",
        "back\\slash",
        longest.as_str(),
    ];
    for name in names {
        let board = server.board(name);
        board.post("requests", "{}").await.is(201);
        assert_eq!(board.get("").await.is(200).json()["session"], name);
        board.get("prompt").await.is(200);
    }
    let listed = self::names(&server.get("/v1/sessions").await);
    for name in names {
        assert!(listed.iter().any(|known| known == name), "{name}: {listed:?}");
    }
}

#[tokio::test]
async fn sessions_are_listed_in_pages_by_prefix_and_by_label() {
    let server = Server::start();
    for n in 0..12 {
        let team = if n % 3 == 0 { "red, green" } else { "blue" };
        let body = json!({"labels":{"team":team,"n":n.to_string()}});
        server.board(&format!("list-{n:02}")).put("", &body.to_string()).await.is(201);
    }
    server.made("other").await;
    let all = names(&server.get("/v1/sessions?prefix=list-").await);
    let expected: Vec<String> = (0..12).map(|n| format!("list-{n:02}")).collect();
    assert_eq!(all, expected);
    assert_eq!(names(&server.get("/v1/sessions").await).len(), 13);

    let mut paged = Vec::new();
    let mut query = "prefix=list-&limit=5".to_owned();
    loop {
        let page = server.get(&format!("/v1/sessions?{query}")).await;
        let found = names(&page);
        assert!(found.len() <= 5, "{page}");
        if found.is_empty() {
            break;
        }
        paged.extend(found);
        match page.json()["next"].as_str() {
            Some(next) => query = format!("prefix=list-&limit=5&after={}", encoded(next)),
            None => break,
        }
    }
    assert_eq!(paged, expected);

    let red = format!("/v1/sessions?label={}", encoded(r#"["team:red, green"]"#));
    assert_eq!(names(&server.get(&red).await).len(), 4);
    assert_eq!(names(&server.get("/v1/sessions?label=team:none").await).len(), 0);
    for query in ["limit=x", "limit=1001", "label=nocolon"] {
        server.get(&format!("/v1/sessions?{query}")).await.problem(400, "invalid-parameter");
    }
}

#[tokio::test]
async fn labels_stay_when_absent_and_null_resets_them() {
    let server = Server::start();
    let board = server.board("s");
    board.put("", r#"{"labels":{"team":"a"}}"#).await.is(201);
    board.put("", r#"{"settings":{"history_keys":["x"]}}"#).await.is(200);
    let described = board.get("").await.json();
    assert_eq!(described["labels"], json!({"team":"a"}));
    assert_eq!(described["settings"]["history_keys"], json!(["x"]));
    board.put("", r#"{"labels":null}"#).await.is(200);
    let described = board.get("").await.json();
    assert_eq!(described["labels"], json!({}));
    assert_eq!(described["settings"]["history_keys"], json!(["x"]));
}

#[tokio::test]
async fn a_deleted_session_is_gone_and_one_made_again_goes_on() {
    let mut server = Server::start();
    let board = server.board("s");
    board.post("requests", "[{},{}]").await.is(201);
    board.post("agents/A/memory", "{}").await.is(201);
    let deleted = board.delete("").await.is(200).json()["revision"].as_u64().unwrap();
    assert!(deleted >= 2, "{deleted}");
    for tail in ["", "requests", "requests/1", "blackboard", "prompt", "agents/A/memory"] {
        board.get(tail).await.problem(404, "session-not-found");
    }
    board.delete("").await.problem(404, "session-not-found");
    assert!(names(&server.get("/v1/sessions").await).is_empty());

    server.kill();
    server.start_again();
    let board = server.board("s");
    board.get("").await.problem(404, "session-not-found");
    let again = board.post("requests", r#"{"new":1}"#).await;
    assert!(again.is(201).revision() > deleted, "{again}");
    assert_eq!(board.lines("requests").await, [r#"{"new":1}"#]);
    assert!(board.lines("agents/A/memory").await.is_empty());
    let described = board.get("").await.json();
    assert!(described["oldest_revision"].as_u64() > Some(1), "{described}");
}

#[tokio::test]
async fn without_auto_create_a_session_must_be_made_by_name() {
    let server = Server::start_with(&["--auto-create", "false"]);
    let board = server.board("s");
    board.post("requests", "{}").await.problem(404, "session-not-found");
    board.put("requests", "[{}]").await.problem(404, "session-not-found");
    board.put("blackboard", "{}").await.problem(404, "session-not-found");
    board.post("agents/A/memory", "{}").await.problem(404, "session-not-found");
    board.get("").await.problem(404, "session-not-found");
    board.put("", "{}").await.is(201);
    board.post("requests", "{}").await.is(201);
}

#[tokio::test]
async fn a_restart_shows_what_was_there() {
    let mut server = Server::start();
    let body =
        r#"{"labels":{"a":"b"},"settings":{"history_keys":["k"]},"qa_pairs":[{"question":"q"}]}"#;
    server.board("s").put("", body).await.is(201);
    server.board("s").post("trajectories", r#"{"k":1,"l":2}"#).await.is(201);
    let mut shown: Vec<Value> = Vec::new();
    for round in 0..2 {
        let board = server.board("s");
        let views = json!([
            board.get("").await.json(),
            board.get("questions").await.json(),
            board.get("prompt").await.json(),
            board.get("blackboard").await.json(),
        ]);
        shown.push(views);
        if round == 0 {
            assert!(server.stop().success(), "SIGTERM ends it well");
            server.start_again();
        }
    }
    assert_eq!(shown[0], shown[1]);
}
