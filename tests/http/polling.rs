//! Long polls for events.

use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};

fn poll(board: &Board, query: &str) -> RequestBuilder {
    board.to(Method::GET, &format!("events{query}")).header("accept", "application/json")
}

fn revisions(page: &Answer) -> Vec<u64> {
    let body = page.is(200).json();
    let events = body["events"].as_array().expect("events").iter();
    events.map(|event| event["revision"].as_u64().expect("a revision")).collect()
}

#[tokio::test]
async fn a_poll_gives_what_is_there() {
    let server = Server::start();
    let board = server.made("s").await;
    for _ in 0..300 {
        board.post("requests", "{}").await.is(201);
    }
    let (mut all, mut query) = (Vec::new(), "?after=0".to_owned());
    loop {
        let page = ask(poll(&board, &query)).await;
        all.extend(revisions(&page));
        let body = page.json();
        assert_eq!(body["next"], page.revision());
        query = format!("?after={}", body["next"]);
        if body["more"] == false {
            break;
        }
    }
    assert_eq!(all, (1..=301).collect::<Vec<_>>());
    let none = ask(poll(&board, "")).await.is(200).json();
    assert_eq!(none, json!({"events":[],"next":301,"more":false}));
    let one = ask(poll(&board, "?after=300")).await.is(200).json();
    assert_eq!(one["events"][0]["kind"], "appended");
    assert_eq!(one["events"][0]["changes"][0]["log"], "requests");
    let other = ask(poll(&board, "?after=0&on=questions")).await.is(200).json();
    assert_eq!(other, json!({"events":[],"next":301,"more":false}));
    let far = ask(poll(&board, "?after=302&wait=60s")).await.is(200).json();
    let resync = json!({"revision":301,"oldest_revision":0});
    assert_eq!(far, json!({"resync":resync,"next":301,"more":false}));
}

#[tokio::test]
async fn a_poll_waits_for_what_is_wanted() {
    let server = Server::start();
    let board = server.board("s");
    let waiting = tokio::spawn(ask(poll(&board, "?on=questions&wait=60s&after=0")));
    board.put("", "{}").await.is(201);
    board.post("requests", "{}").await.is(201);
    board.post("questions", "{}").await.is(201);
    let page = waiting.await.unwrap();
    assert_eq!(revisions(&page), [3]);
    let early = ask(poll(&board, "?after=3&wait=10ms")).await;
    assert_eq!(early.is(200).json(), json!({"events":[],"next":3,"more":false}));
    ask(poll(&board, "?after=3&wait=0s")).await.is(200);
    for wrong in ["61s", "2m", "1", "s", "-1s", "1h"] {
        let refused = ask(poll(&board, &format!("?wait={wrong}"))).await;
        refused.problem(400, "invalid-parameter");
    }
}

#[tokio::test]
async fn a_poll_ends_when_the_server_does() {
    let mut server = Server::start();
    let board = server.made("s").await;
    // The connection is there once this is answered, and stays for the next request.
    let waiting = tokio::spawn(ask(poll(&board, "?after=1&wait=60s")));
    let begun = ask(poll(&board, "?after=0")).await;
    assert_eq!(revisions(&begun), [1]);
    server.signal(rustix::process::Signal::TERM);
    let exit = tokio::task::spawn_blocking(move || server.wait());
    drop(waiting);
    assert!(exit.await.unwrap().success());
}

#[tokio::test]
async fn json_is_given_to_whom_it_is_dearer() {
    let server = Server::start();
    let board = server.made("s").await;
    for (accept, media_type) in [
        ("application/json", "application/json"),
        ("application/json, text/event-stream;q=0.5", "application/json"),
        ("application/json, text/event-stream", "text/event-stream"),
        ("text/event-stream", "text/event-stream"),
        ("*/*", "text/event-stream"),
    ] {
        let request = board.to(Method::GET, "events").header("accept", accept);
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], media_type, "{accept}");
    }
}
