//! Attention: one wait for all that should wake an agent.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::waiting::{LONG, unless_known, waiting, woken};

const ATTENTION: &str = "agents/A/attention";

/// The seqs of a list, whose count is their number.
fn seqs(answer: &Answer, list: &str) -> Vec<u64> {
    let list = &answer.is(200).json()[list];
    let newest = list["newest"].as_array().expect("a list");
    assert_eq!(list["count"], newest.len());
    newest.iter().map(|entry| entry["seq"].as_u64().expect("a seq")).collect()
}

fn next(answer: &Answer) -> u64 {
    answer.is(200).json()["next"].as_u64().expect("a revision")
}

async fn by(agent: &str, board: &Board, method: Method, tail: &str, body: &str) -> Answer {
    ask(board.by(agent, method, tail, body)).await
}

/// Waits after the present attention, and returns what comes of this change.
async fn after_change(board: &Board, change: impl Future<Output = Answer>) -> Answer {
    let now = next(&board.get(ATTENTION).await);
    let reader = waiting(board, &format!("{ATTENTION}?after={now}&{LONG}"));
    change.await.succeeded();
    woken(reader).await
}

#[tokio::test]
async fn each_kind_wakes_the_agent() {
    let server = Server::start();
    let board = server.made("s").await;
    let empty = board.get(ATTENTION).await;
    for list in ["messages", "claimable", "answers", "cancels", "reviews"] {
        assert_eq!(seqs(&empty, list), [0; 0]);
    }
    let asked = by("A", &board, Method::POST, "questions", r#"{"question":"?"}"#).await;
    asked.is(201);
    let answered =
        after_change(&board, board.put("questions/1/answer", r#"{"answer":"yes"}"#)).await;
    assert_eq!(seqs(&answered, "answers"), [1]);
    assert_eq!(answered.json()["answers"]["newest"][0]["item"]["answer"], "yes");
    let claimable = after_change(&board, board.post("requests", "{}")).await;
    assert_eq!((seqs(&claimable, "claimable"), seqs(&claimable, "answers")), (vec![1], vec![]));
    by("A", &board, Method::PUT, "requests/1/claim", "").await.is(201);
    let cancelled = after_change(&board, board.put("requests/1/cancelled", "")).await;
    assert_eq!(seqs(&cancelled, "cancels"), [1]);
    by("A", &board, Method::DELETE, "requests/1/claim", "").await.is(200);
    board.post("requests?review=true", "{}").await.is(201);
    by("B", &board, Method::PUT, "requests/2/claim", "").await.is(201);
    let finish = by("B", &board, Method::PUT, "requests/2/done", "");
    let in_review = after_change(&board, finish).await;
    assert_eq!(seqs(&in_review, "reviews"), [2]);
    let of_b = board.get("agents/B/attention").await;
    assert_eq!(seqs(&of_b, "reviews"), [0; 0], "nobody judges his own result");
    by("A", &board, Method::PUT, "requests/2/verdict", r#"{"accept":true,"fence":null}"#).await;
    let verdict = format!(
        r#"{{"accept":true,"fence":{}}}"#,
        in_review.json()["reviews"]["newest"][0]["in_review"]["fence"]
    );
    by("A", &board, Method::PUT, "requests/2/verdict", &verdict).await.is(200);
    let sent = after_change(&board, board.post("agents/A/messages", "{}")).await;
    assert_eq!((seqs(&sent, "messages"), seqs(&sent, "reviews")), (vec![1], vec![]));
}

#[tokio::test]
async fn a_message_stays_until_it_is_acknowledged() {
    let server = Server::start();
    let board = server.made("s").await;
    board.post("agents/A/messages", "{}").await.is(201);
    let first = board.get(ATTENTION).await;
    let again = board.get(&format!("{ATTENTION}?after={}&{LONG}", next(&first))).await;
    assert_eq!((seqs(&first, "messages"), seqs(&again, "messages")), (vec![1], vec![1]));
    // With a tag the wait is for another content.
    let tail = format!("{ATTENTION}?{LONG}");
    let tag = board.get(ATTENTION).await.etag();
    let reader = {
        let board = board.clone();
        tokio::spawn(async move { unless_known(&board, &tail, &tag).await })
    };
    board.post("trajectories", "{}").await.is(201);
    board.post("agents/B/messages", "{}").await.is(201);
    board.post("agents/A/messages", "{}").await.is(201);
    assert_eq!(seqs(&woken(reader).await, "messages"), [1, 2]);
    let still = board.get(ATTENTION).await.etag();
    board.post("trajectories", "{}").await.is(201);
    unless_known(&board, ATTENTION, &still).await.is(304);
    board.put("agents/A/messages/1/ack", "").await.is(200);
    assert_eq!(seqs(&unless_known(&board, ATTENTION, &still).await, "messages"), [2]);
}

#[tokio::test]
async fn only_wanted_requests_and_lists_are_shown() {
    let server = Server::start();
    let board = server.made("s").await;
    board.post("requests", r#"[{"device":"linux"},{"device":"windows"}]"#).await.is(201);
    board.post("agents/A/messages", "{}").await.is(201);
    let linux = "match=%7B%22device%22:%22linux%22%7D";
    let found = board.get(&format!("{ATTENTION}?{linux}&include=claimable,cancels")).await;
    assert_eq!(seqs(&found, "claimable"), [1]);
    assert_eq!(found.json().get("messages"), None);
    let query = format!("{ATTENTION}?{linux}&include=claimable&after={}&{LONG}", next(&found));
    let reader = waiting(&board, &query);
    board.post("requests", r#"{"device":"windows"}"#).await.is(201);
    board.post("requests", r#"{"device":"linux"}"#).await.is(201);
    assert_eq!(seqs(&woken(reader).await, "claimable"), [4]);
}

#[tokio::test]
async fn a_claimed_request_that_is_free_again_wakes() {
    let server = Server::start();
    let board = server.made("s").await;
    board.post("requests", "{}").await.is(201);
    by("B", &board, Method::PUT, "requests/1/claim", "").await.is(201);
    let free = after_change(&board, by("B", &board, Method::DELETE, "requests/1/claim", "")).await;
    assert_eq!(seqs(&free, "claimable"), [1]);
    let settings = r#"{"settings":{"running_max":[{"max":1}]}}"#;
    ask(board.json(Method::PUT, "", settings)).await.is(200);
    board.post("requests", "{}").await.is(201);
    by("B", &board, Method::PUT, "requests/1/claim", "").await.is(201);
    let done = after_change(&board, by("B", &board, Method::PUT, "requests/1/done", "")).await;
    assert_eq!(seqs(&done, "claimable"), [2], "what a cap held back");
}

#[tokio::test]
async fn a_paused_agent_is_told_so() {
    let server = Server::start();
    let board = server.made("s").await;
    let paused = |answer: Answer| answer.is(200).json()["paused"].clone();
    assert_eq!(paused(board.get(ATTENTION).await), false);
    let tag = board.get(ATTENTION).await.etag();
    board.put("state/agents/A/paused", r#"{"request":1}"#).await.is(201);
    assert_eq!(paused(board.get(ATTENTION).await), false, "one request alone");
    board.put("state/agents/A/paused", "true").await.is(200);
    assert_eq!(paused(unless_known(&board, ATTENTION, &tag).await), true);
    // With a cursor too, a client that knows the present answer waits for another one.
    let tail = format!("{ATTENTION}?after=1");
    let tag = board.get(&tail).await.etag();
    let reader = {
        let (board, tail) = (board.clone(), format!("{tail}&{LONG}"));
        tokio::spawn(async move { unless_known(&board, &tail, &tag).await })
    };
    board.delete("state/agents/A/paused").await.is(200);
    assert_eq!(paused(woken(reader).await), false);
    assert_eq!(paused(board.get(ATTENTION).await), false);
}

#[tokio::test]
async fn long_lists_and_items_are_cut() {
    let server = Server::start();
    let board = server.made("s").await;
    let many = json!(vec![json!({}); 25]).to_string();
    board.post("agents/A/messages", &many).await.is(201);
    let shown = board.get(ATTENTION).await.json();
    let newest: Vec<&Value> = shown["messages"]["newest"].as_array().unwrap().iter().collect();
    assert_eq!((&shown["messages"]["count"], newest.len()), (&json!(25), 20));
    assert_eq!((&newest[0]["seq"], &newest[19]["seq"]), (&json!(6), &json!(25)));
    let long = json!({ "text": "x".repeat(150_000) }).to_string();
    for _ in 0..4 {
        board.post("agents/B/messages", &long).await.is(201);
    }
    let shown = board.get("agents/B/attention").await.json();
    assert_eq!(shown["messages"]["newest"].as_array().unwrap().len(), 2);
    assert_eq!(shown["messages"]["count"], 4);
}

#[tokio::test]
async fn a_wrong_query_is_refused() {
    let server = Server::start();
    let board = server.made("s").await;
    for query in [
        "match=1",
        "match=[]",
        "match={",
        "match=%7B%22a%22:1e999%7D",
        "include=",
        "include=memory",
        "after=x",
        "wait=1s",
        "after=1&after=2",
    ] {
        let answer = board.get(&format!("{ATTENTION}?{query}")).await;
        answer.problem(400, "invalid-parameter");
    }
    let members: Vec<String> = (0..17).map(|n| format!("%22{n}%22:{n}")).collect();
    let query = format!("{ATTENTION}?match=%7B{}%7D", members.join(","));
    board.get(&query).await.problem(400, "invalid-parameter");
    board.get(&format!("{ATTENTION}?at=1")).await.problem(400, "unknown-parameter");
    server.board("none").get(ATTENTION).await.problem(404, "session-not-found");
    assert_eq!(seqs(&board.get("agents/nobody/attention").await, "messages"), [0; 0]);
}
