//! U+0000 in every text that a client stores or filters by, which PostgreSQL cannot hold.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::Server;

/// Characters at the edges of Unicode and of control characters, which a text of PostgreSQL holds.
const ODD: &str = "\u{1}\u{7f}\u{85}\u{feff}\u{ffff}\u{10ffff}";

fn sessions(page: &Value) -> Vec<&str> {
    let sessions = page["sessions"].as_array().expect("sessions");
    sessions.iter().map(|session| session["session"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn a_label_with_u0000_is_refused_by_its_pointer() {
    let server = Server::start();
    for (labels, pointer) in [
        (json!({"a": "1", "b": "x\0y"}), "/labels/b"),
        (json!({"a\0": "1"}), "/labels/a\0"),
        (json!({"a\0": null}), "/labels/a\0"),
    ] {
        let refused = server.board("s").put("", &json!({"labels": labels}).to_string()).await;
        let problem = refused.problem(422, "invalid-field");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    server.board("s").get("").await.problem(404, "session-not-found");
    let board = server.board("s");
    board.put("", &json!({"labels": {"a": ODD}}).to_string()).await.is(201);
    assert_eq!(board.get("").await.json()["labels"]["a"], ODD);
}

#[tokio::test]
async fn a_filter_with_u0000_is_refused() {
    let server = Server::start();
    server.board("s").put("", &json!({"labels": {"a": ODD}}).to_string()).await.is(201);
    for route in ["sessions", "questions", "requests"] {
        for label in ["a:%00", "a%00:b", "a:b,c:%00"] {
            let refused = server.get(&format!("/v1/{route}?label={label}")).await;
            refused.problem(400, "invalid-parameter");
        }
        server.get(&format!("/v1/{route}?prefix=%00&after=")).await.not_a_fault();
        server.get(&format!("/v1/{route}?prefix=%00")).await.is(200);
        server.get(&format!("/v1/{route}?after=%00")).await.not_a_fault();
    }
    let odd = crate::harness::encoded(ODD);
    let page = server.get(&format!("/v1/sessions?label=a:{odd}")).await.is(200).json();
    assert_eq!(sessions(&page), ["s"]);
}

#[tokio::test]
async fn labels_that_differ_by_a_line_feed_are_told_apart() {
    let server = Server::start();
    server.board("s").put("", &json!({"labels": {"a\nb": "c"}}).to_string()).await.is(201);
    server.board("t").put("", &json!({"labels": {"a": "b\nc"}}).to_string()).await.is(201);
    for (label, session) in [("a%0Ab:c", "s"), ("a:b%0Ac", "t")] {
        let page = server.get(&format!("/v1/sessions?label={label}")).await.is(200).json();
        assert_eq!(sessions(&page), [session], "{label}");
    }
}

/// Texts that are stored as they are, in bytes.
#[tokio::test]
async fn u0000_in_an_item_or_a_value_is_stored_and_found() {
    let server = Server::start();
    let board = server.board("s");
    let text = r#"{"text":"before\u0000after"}"#;
    for log in ["questions", "requests", "trajectories", "agents/A/memory"] {
        board.post(log, text).await.is(201);
        assert_eq!(board.lines(log).await, [text], "{log}");
    }
    board.put("state/a", text).await.succeeded();
    board.put("state/b%00c", "1").await.succeeded();
    board.put("agents/A", r#"{"note":"\u0000"}"#).await.succeeded();
    board.put("questions/1/answer", r#"{"answer":"\u0000"}"#).await.succeeded();
    let claim = board.by("A", Method::PUT, "requests/1/claim", "{}");
    let claimed = ask(claim).await.succeeded().json();
    let fence = claimed["claim"]["fence"].as_u64().expect("a fence");
    let failed = json!({"fence": fence, "reason": "\0"}).to_string();
    ask(board.by("A", Method::PUT, "requests/1/failed", &failed)).await.succeeded();
    let settings = json!({"settings": {"history_keys": ["\0"]}}).to_string();
    board.put("", &settings).await.succeeded();
    let last = board.post("trajectories", text).await;
    let wait = format!("session=s&min_revision={}&wait=30s", last.revision());
    for query in ["after", "before%00after", "%22before%00after%22", "bef*%00"] {
        let page = server.get(&format!("/v1/search?q={query}&{wait}")).await.not_a_fault().json();
        assert!(page["hits"].as_array().is_none_or(|hits| !hits.is_empty()), "{query}: {page}");
    }
}

/// Names have no control characters; what else is a text of the request is taken or refused, and never a fault.
#[tokio::test]
async fn u0000_in_a_name_or_a_header_is_no_fault() {
    let server = Server::start();
    let board = server.made("s").await;
    let made = board.post("requests", "{}").await.is(201).revision();
    // Until the index of a new server is there, searches are 503.
    let indexed = format!("/v1/search?q=a&session=s&min_revision={made}&wait=30s");
    server.get(&indexed).await.is(200);
    for path in [
        "/v1/sessions/%00",
        "/v1/sessions/s/agents/%00",
        "/v1/sessions/s/agents/%00/memory",
        "/v1/sessions/s/checkpoints/%00",
        "/v1/sessions/s/agents?status=%00",
        "/v1/sessions/s/audit?trace=%00",
        "/v1/sessions/s/trajectories?keys=%00",
        "/v1/sessions/s/trajectories?steps=%00",
        "/v1/sessions/s/events?wait=1ms&on=state/%00",
        "/v1/sessions/s/state/%00",
        "/v1/search?q=a&agent=%00",
        "/v1/search?q=a&session=%00",
        "/v1/search?q=a&prefix=%00",
        "/v1/search?q=%00",
    ] {
        let asked = server.to(Method::GET, path).header("accept", "application/json");
        ask(asked).await.not_a_fault();
    }
    for (method, tail, body) in [
        (Method::POST, "fork", r#"{"to":"\u0000"}"#),
        (Method::POST, "checkpoints", r#"{"name":"\u0000"}"#),
        (Method::POST, "requests/claim", r#"{"match":{"\u0000":"\u0000"}}"#),
        (Method::POST, "transactions", r#"{"then":[{"put":"a\u0000","value":"\u0000"}]}"#),
        (Method::PUT, "agents/A", r#"{"host":"\u0000"}"#),
        (Method::PUT, "agents/A", r#"{"status":"\u0000"}"#),
        (Method::PUT, "", r#"{"settings":{"profiles":{"\u0000":{}}}}"#),
        (Method::PUT, "", r#"{"settings":{"agent_states":{"\u0000":{"from":[],"to":[]}}}}"#),
    ] {
        ask(board.request(method, tail, body)).await.not_a_fault();
    }
    for (name, value) in
        [("x-agent-id", "%00"), ("idempotency-key", "%00"), ("if-match", "\"%00\"")]
    {
        ask(board.json(Method::POST, "requests", "{}").header(name, value)).await.not_a_fault();
    }
    board.post("requests", "{}").await.is(201);
}

/// Older stores took such labels, and their archives are still taken in.
#[tokio::test]
async fn an_archive_with_u0000_in_a_label_is_taken_in() {
    let server = Server::start();
    let board = server.board("s");
    board.put("", r#"{"labels":{"a":"b"}}"#).await.is(201);
    let archive = board.get("archive").await.is(200).text().to_owned();
    let older = archive.replace(r#"{"a":"b"}"#, r#"{"a":"b\u0000"}"#);
    assert_ne!(older, archive);
    let other = server.board("t");
    let put = |text: String| ask(other.typed(Method::PUT, "archive", "application/x-ndjson", text));
    // The line's checksum is now another one; the answer has both.
    let problem = put(older.clone()).await.problem(422, "invalid-field");
    let detail = problem["detail"].as_str().unwrap();
    let (found, stated) = detail.rsplit_once(" instead of ").unwrap();
    let found = found.rsplit_once(' ').unwrap().1;
    put(older.replace(stated, found)).await.is(201);
    assert_eq!(other.get("").await.json()["labels"]["a"], "b\0");
    other.post("requests", "{}").await.is(201);
}
