//! Recipe for information discovery: a main agent posts requests without an assignee, and agents volunteer.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::{Board, Server};

/// Answers the first request about this kind of source, whenever it comes.
async fn volunteer(board: Board, kind: &str) {
    let can = json!({"match": {"source": kind}}).to_string();
    let request = ask(board.by(kind, Method::POST, "requests/claim?wait=30s", &can)).await;
    let request = request.is(200).json();
    let found = json!({"found": format!("{} in {kind}", request["item"]["ask"].as_str().unwrap())});
    let done = json!({"fence": request["claim"]["fence"], "result": found}).to_string();
    let tail = format!("requests/{}/done", request["seq"]);
    ask(board.by(kind, Method::PUT, &tail, &done)).await.is(200);
}

#[tokio::test]
async fn agents_volunteer_for_what_they_can_find() {
    let server = Server::start();
    let main = server.made("lake").await;
    let sources = ["tables", "papers", "web"];
    let helpers = sources.map(|kind| {
        let board = server.board("lake");
        tokio::spawn(async move { volunteer(board, kind).await })
    });
    for kind in sources.into_iter().rev() {
        let request = json!({"source": kind, "ask": "rainfall of 2024"}).to_string();
        ask(main.by("main", Method::POST, "requests", &request)).await.is(201);
    }
    let mut found: Vec<Value> = Vec::new();
    for seq in 1..=3 {
        let answered =
            main.get(&format!("requests/{seq}?wait=30s&until=done")).await.is(200).json();
        found.push(answered["done"]["result"]["found"].clone());
    }
    assert_eq!(
        found,
        ["rainfall of 2024 in web", "rainfall of 2024 in papers", "rainfall of 2024 in tables"]
    );
    for helper in helpers {
        helper.await.unwrap();
    }
}
