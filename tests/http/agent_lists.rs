//! Lists of agents: registered, last seen, deleted; and their memories.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::whole::{receipt, refuses};

/// The names of a page of agents, in its order.
pub(crate) fn names(page: &Answer) -> Vec<String> {
    let body = page.is(200).json();
    let agents = body["agents"].as_array().expect("agents").iter();
    agents.map(|agent| agent["agent"].as_str().expect("a name").to_owned()).collect()
}

async fn last_seen(board: &Board, agent: &str) -> Value {
    board.get(&format!("agents/{agent}?seen=true")).await.is(200).json()["last_seen"].clone()
}

#[tokio::test]
async fn agents_are_listed_by_name_in_pages_and_by_status() {
    let server = Server::start();
    let board = server.made("s").await;
    let empty = board.get("agents").await.is(200).json();
    assert_eq!(
        (&empty["agents"], &empty["more"], &empty["count"]),
        (&json!([]), &json!(false), &json!(0))
    );
    for n in (0..12).rev() {
        let status = if n % 3 == 0 { "PENDING" } else { "CONTINUE" };
        let body = json!({"n":n,"status":status}).to_string();
        board.put(&format!("agents/a{n:02}"), &body).await.is(201);
    }
    let all: Vec<String> = (0..12).map(|n| format!("a{n:02}")).collect();
    let page = board.get("agents").await;
    assert_eq!(names(&page), all);
    let body = page.json();
    assert_eq!((&body["more"], &body["count"]), (&json!(false), &json!(12)));
    assert_eq!(body["revision"], page.revision());
    // An agent in a list is the agent.
    assert_eq!(body["agents"][3], board.get("agents/a03").await.json());

    let (mut paged, mut tail) = (Vec::new(), "agents?limit=5".to_owned());
    loop {
        let page = board.get(&tail).await;
        paged.extend(names(&page));
        let body = page.json();
        assert_eq!(body["count"], 12);
        assert_eq!(body["more"], paged.len() < 12, "{page}");
        if body["more"] == false {
            break;
        }
        tail = format!("agents?limit=5&after={}", body["next"].as_str().expect("a name"));
    }
    assert_eq!(paged, all);
    assert_eq!(names(&board.get("agents?status=PENDING").await), ["a00", "a03", "a06", "a09"]);
    assert_eq!(names(&board.get("agents?status=PENDING&after=a03&limit=1").await), ["a06"]);
    assert!(names(&board.get("agents?status=FAIL").await).is_empty());
    assert!(names(&board.get("agents?after=zzz").await).is_empty());
    let head = board.get("").await.revision();
    board.get(&format!("agents?min_revision={head}&seen=true")).await.is(200);
    for query in ["limit=1001", "limit=x", "seen=yes"] {
        board.get(&format!("agents?{query}")).await.is(400);
    }
    for tail in ["agents?lmit=1", "agents/a00?limit=1", "agents/a00?sen=true"] {
        board.get(tail).await.problem(400, "unknown-parameter");
    }
}

#[tokio::test]
async fn a_list_is_304_until_an_agent_changes() {
    let server = Server::start();
    let board = server.board("s");
    board.put("agents/A", "{}").await.is(201);
    let list = board.get("agents").await.etag();
    let same = async || {
        let read = board.to(Method::GET, "agents").header("if-none-match", list.clone());
        ask(read).await.status()
    };
    board.post("requests", "{}").await.is(201);
    assert_eq!(same().await, 304);
    board.merge("agents/A", r#"{"x":1}"#).await.is(200);
    assert_eq!(same().await, 200);
}

#[tokio::test]
async fn when_an_agent_last_wrote_is_shown_and_changes_no_tag() {
    let server = Server::start();
    let board = server.board("s");
    board.put("agents/A", "{}").await.is(201);
    board.put("agents/B", "{}").await.is(201);
    // Registering it was nobody's write.
    assert_eq!(last_seen(&board, "A").await, Value::Null);
    let tags = [board.get("agents/A").await.etag(), board.get("agents").await.etag()];
    let writes: [(Method, &str, &str); 5] = [
        (Method::POST, "requests", "{}"),
        (Method::PUT, "state/a", "1"),
        (Method::PUT, "requests/1", r#"{"x":1}"#),
        (Method::POST, "transactions", r#"{"then":[{"put":"b","value":1}]}"#),
        (Method::PUT, "requests/1/claim", "{}"),
    ];
    let mut seen = Vec::new();
    for (method, tail, body) in writes {
        ask(board.by("A", method, tail, body)).await.succeeded();
        let when = last_seen(&board, "A").await;
        seen.push(when.as_str().expect("a time").to_owned());
    }
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(last_seen(&board, "B").await, Value::Null);
    assert_eq!([board.get("agents/A").await.etag(), board.get("agents").await.etag()], tags);
    assert_eq!(board.get("agents/A").await.json().get("last_seen"), None);
    let listed = board.get("agents?seen=true").await.json();
    assert_eq!(listed["agents"][0]["last_seen"], json!(seen[4]));
    assert_eq!(listed["agents"][1]["last_seen"], Value::Null);
    assert_eq!(board.get("agents").await.json()["agents"][0].get("last_seen"), None);
}

#[tokio::test]
async fn the_first_write_to_a_memory_registers_its_agent() {
    let server = Server::start();
    for (session, method, body) in
        [("post", Method::POST, r#"{"step":1}"#), ("put", Method::PUT, r#"[{"step":1}]"#)]
    {
        let board = server.board(session);
        let written = ask(board.json(method.clone(), "agents/A%20b/memory", body)).await;
        assert_eq!(written.succeeded().revision(), 1);
        let agent = board.get("agents/A%20b").await.is(200).json();
        assert_eq!((&agent["status"], &agent["revision"]), (&json!("CONTINUE"), &json!(1)));
        let tag = board.get("agents/A%20b").await.etag();
        ask(board.json(method, "agents/A%20b/memory", body)).await.succeeded();
        assert_eq!(board.get("agents/A%20b").await.etag(), tag);
        assert_eq!(board.get("").await.json()["agents"], 1);
    }
    let board = server.made("reads").await;
    board.get("agents/A/memory").await.is(200);
    refuses(&board, board.json(Method::POST, "agents/A/memory", "5"), 422, "unsupported-item")
        .await;
    board.get("agents/A").await.problem(404, "agent-not-found");
    // One that stands elsewhere stays there.
    board.put("agents/B", r#"{"status":"PENDING"}"#).await.is(201);
    board.post("agents/B/memory", "{}").await.is(201);
    assert_eq!(board.get("agents/B").await.json()["status"], "PENDING");
}

#[tokio::test]
async fn an_agent_goes_with_its_memory_and_never_with_the_board() {
    let server = Server::start();
    let board = server.board("s");
    for agent in ["A", "B"] {
        let body = "[{},{},{}]";
        ask(board.by(agent, Method::POST, &format!("agents/{agent}/memory"), body)).await.is(201);
    }
    ask(board.by("A", Method::POST, "requests", r#"{"of":"A"}"#)).await.is(201);
    board.put("state/a", "1").await.is(201);
    let deleted = board.delete("agents/A").await;
    assert_eq!(receipt(deleted.is(200))["revision"], 5);
    board.get("agents/A").await.problem(404, "agent-not-found");
    assert!(board.lines("agents/A/memory").await.is_empty());
    assert_eq!(names(&board.get("agents").await), ["B"]);
    assert_eq!(board.lines("agents/B/memory").await.len(), 3);
    assert_eq!(board.lines("requests").await, [r#"{"of":"A"}"#]);
    assert_eq!(board.get("state").await.text(), "{\"a\":1}\n");
    let again = board.post("agents/A/memory", "{}").await;
    assert_eq!(again.is(201).seqs(), [4]);
    assert_eq!(board.get("agents/A").await.json()["status"], "CONTINUE");

    board.put("agents/C", r#"{"status":"FAIL"}"#).await.is(201);
    let ended = board.delete("agents").await;
    assert_eq!(receipt(ended.is(200)), json!({"revision":8,"deleted":3}));
    assert!(names(&board.get("agents").await).is_empty());
    assert!(board.lines("agents/B/memory").await.is_empty());
    assert_eq!(board.lines("requests").await, [r#"{"of":"A"}"#]);
    let nothing = board.delete("agents").await;
    assert_eq!(receipt(nothing.is(200)), json!({"revision":8,"deleted":0}));
}
