//! Requests as tasks: plans, failures, retries, and the next request to claim.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::answer::{Answer, ask};
use crate::claims::{requested, won};
use crate::harness::{Board, Server};
use crate::metrics::{in_progress, sample};
use crate::whole::refuses;

async fn entry(board: &Board, seq: u64) -> Value {
    board.get(&format!("requests/{seq}")).await.is(200).json()
}

async fn by(board: &Board, agent: &str, method: Method, tail: &str, body: &str) -> Answer {
    ask(board.by(agent, method, tail, body)).await
}

async fn done(board: &Board, seq: u64) -> Answer {
    by(board, "A", Method::PUT, &format!("requests/{seq}/done"), "{}").await
}

async fn pending(board: &Board) -> Vec<u64> {
    let page = board.get("requests?pending=true").await.is(200).json();
    let entries = page["entries"].as_array().expect("entries").clone();
    entries.iter().map(|entry| entry["seq"].as_u64().expect("a seq")).collect()
}

fn claim_next(board: &Board, agent: &str, query: &str, body: &str) -> reqwest::RequestBuilder {
    board.by(agent, Method::POST, &format!("requests/claim{query}"), body)
}

#[tokio::test]
async fn a_request_waits_for_others() {
    let server = Server::start();
    let board = requested(&server, 2).await;
    let posted = board.post("requests?after=2,1&after=1", r#"{"text":"after both"}"#).await;
    posted.is(201);
    let waiting = board.get("requests/3").await;
    let shown = waiting.json();
    assert_eq!((&shown["after"], &shown["blocked_by"]), (&json!([1, 2]), &json!([1, 2])));
    assert_eq!(shown.get("updated_at"), None, "{shown}");
    assert_eq!(pending(&board).await, [1, 2]);
    let code = "illegal-transition";
    refuses(&board, board.by("A", Method::PUT, "requests/3/claim", ""), 409, code).await;
    refuses(&board, board.by("A", Method::PUT, "requests/3/done", ""), 409, code).await;
    done(&board, 1).await.is(200);
    let now = board.get("requests/3").await;
    assert_eq!(now.json()["blocked_by"], json!([2]));
    assert_ne!(now.etag(), waiting.etag());
    won(&board, "A", 2).await;
    assert_eq!(pending(&board).await, [0_u64; 0]);
    done(&board, 2).await.is(200);
    assert_eq!(pending(&board).await, [3]);
    let free = entry(&board, 3).await;
    assert_eq!((free.get("blocked_by"), &free["after"]), (None, &json!([1, 2])));
    won(&board, "A", 3).await;
    // A request that waits only for ended ones is free from the start.
    board.post("requests?after=1", r#"{"text":"free"}"#).await.is(201);
    assert_eq!(pending(&board).await, [4]);
}

#[tokio::test]
async fn attempts_end_by_failures_and_lapses() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests?attempts=2", r#"{"text":"hard"}"#).await.is(201);
    assert_eq!(
        (&entry(&board, 1).await["attempts"], &entry(&board, 1).await["failures"]),
        (&json!(2), &json!(0))
    );
    refuses(&board, board.by("A", Method::PUT, "requests/1/failed", ""), 409, "illegal-transition")
        .await;
    let fence = won(&board, "A", 1).await;
    refuses(&board, board.by("B", Method::PUT, "requests/1/failed", ""), 409, "already-claimed")
        .await;
    let body = json!({"fence":fence,"reason":{"why":"no paper"}}).to_string();
    by(&board, "A", Method::PUT, "requests/1/failed", &body).await.is(200);
    let after = entry(&board, 1).await;
    assert_eq!(
        (after.get("claim"), after.get("failed"), &after["failures"]),
        (None, None, &json!(1))
    );
    refuses(&board, board.by("A", Method::PUT, "requests/1/failed", &body), 409, "stale-fence")
        .await;
    // The second claim lapses, which ends the request.
    by(&board, "B", Method::PUT, "requests/1/claim", r#"{"ttl":"50ms"}"#).await.is(201);
    let failed = board.get("requests/1?wait=20s&until=failed").await;
    let failed = failed.is(200).json();
    assert_eq!((&failed["failed"]["agent"], &failed["failures"]), (&json!("B"), &json!(2)));
    assert_eq!(failed["failed"].get("reason"), None);
    assert_eq!(pending(&board).await, [0_u64; 0]);
    refuses(&board, board.by("A", Method::PUT, "requests/1/claim", ""), 409, "illegal-transition")
        .await;
    refuses(&board, board.by("A", Method::PUT, "requests/1/done", ""), 409, "illegal-transition")
        .await;
    // Its dependants wait on, and a retry begins anew.
    board.post("requests?after=1", r#"{"text":"next"}"#).await.is(201);
    assert_eq!(entry(&board, 2).await["blocked_by"], json!([1]));
    board.post("requests/1/retry", "").await.is(200);
    let again = board.post("requests/1/retry", "").await.is(200).json();
    assert_eq!(
        again["revision"],
        entry(&board, 1).await["revision"],
        "a retry of nothing changes nothing"
    );
    assert_eq!((entry(&board, 1).await.get("failed"), pending(&board).await), (None, vec![1]));
    for reason in ["1", "\"2\""] {
        won(&board, "A", 1).await;
        let body = format!("{{\"reason\":{reason}}}");
        by(&board, "A", Method::PUT, "requests/1/failed", &body).await.is(200);
    }
    assert_eq!(entry(&board, 1).await["failed"]["reason"], "2");
}

#[tokio::test]
async fn the_oldest_that_matches_is_claimed() {
    let server = Server::start();
    let board = server.board("s");
    let items = json!([
        {"device":"linux","n":1}, {"device":"windows","n":2.0}, {"device":"linux","n":3,"in":{"a":1,"b":[2]}},
    ]);
    board.post("requests", &items.to_string()).await.is(201);
    let next = |agent: &'static str, body: &'static str| ask(claim_next(&board, agent, "", body));
    let claimed = next("A", r#"{"match":{"n":2,"device":"windows"},"ttl":"90s"}"#).await;
    let shown = claimed.is(200).json();
    assert_eq!((&shown["seq"], &shown["claim"]["agent"]), (&json!(2), &json!("A")));
    assert_eq!((&shown["item"], &shown["revision"]), (&items[1], &shown["claim"]["fence"]));
    assert_eq!(claimed.header("location"), "/v1/sessions/s/requests/2");
    let read = board.get("requests/2").await;
    assert_eq!(read.etag(), claimed.etag());
    assert_eq!(shown["etag"], claimed.etag());
    let nested = next("A", r#"{"match":{"in":{"b":[2],"a":1.0}}}"#).await.is(200).json();
    assert_eq!(nested["seq"], 3);
    assert_eq!(next("A", r#"{"match":{"device":"mac"}}"#).await.is(204).text(), "");
    assert_eq!(next("A", "").await.is(200).json()["seq"], 1);
    assert_eq!(next("A", "{}").await.is(204).header("blackboard-revision"), "4");
    refuses(&board, board.json(Method::POST, "requests/claim", "{}"), 400, "agent-required").await;
    for (body, code) in [
        (r#"{"match":[]}"#, "invalid-field"),
        (r#"{"match":{"a":1e999}}"#, "unsupported-value"),
        (r#"{"mach":{}}"#, "unknown-field"),
        (r#"{"ttl":"soon"}"#, "invalid-field"),
    ] {
        refuses(&board, claim_next(&board, "A", "", body), 422, code).await;
    }
    let many: Value =
        (0..17).map(|n| (n.to_string(), json!(n))).collect::<serde_json::Map<_, _>>().into();
    let many = json!({"match":many}).to_string();
    refuses(&board, claim_next(&board, "A", "", &many), 422, "invalid-field").await;
    // No item has a member of 128 levels.
    let deep =
        |levels| format!(r#"{{"match":{{"a":{}{}}}}}"#, "[".repeat(levels), "]".repeat(levels));
    assert_eq!(ask(claim_next(&board, "A", "", &deep(127))).await.is(204).text(), "");
    refuses(&board, claim_next(&board, "A", "", &deep(128)), 422, "too-deep").await;
    let nowhere = server.board("nowhere");
    ask(claim_next(&nowhere, "A", "?wait=1s", "")).await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_waiting_worker_gets_what_comes() {
    let server = Server::start();
    let board = server.made("s").await;
    assert_eq!(ask(claim_next(&board, "A", "?wait=50ms", "")).await.is(204).text(), "");
    let waits = |agent: &str, device: &str| {
        let body = json!({"match":{"device":device}}).to_string();
        tokio::spawn(ask(claim_next(&board, agent, "?wait=30s", &body)))
    };
    let linux: Vec<_> = (0..4).map(|n| waits(&format!("linux {n}"), "linux")).collect();
    let windows = waits("windows", "windows");
    in_progress(&server, 5).await;
    sleep(Duration::from_millis(300)).await;
    for n in 1..=4 {
        let item = json!({"device":"linux","n":n}).to_string();
        board.post("requests", &item).await.is(201);
    }
    let mut seqs = Vec::new();
    for worker in linux {
        seqs.push(worker.await.unwrap().is(200).json()["seq"].as_u64().unwrap());
    }
    seqs.sort_unstable();
    assert_eq!(seqs, [1, 2, 3, 4]);
    assert!(!windows.is_finished());
    board.post("requests?after=1", r#"{"device":"windows"}"#).await.is(201);
    sleep(Duration::from_millis(100)).await;
    assert!(!windows.is_finished(), "it waits for request 1");
    by(&board, "linux 0", Method::PUT, "requests/1/done", "").await;
    for agent in 0..4 {
        by(&board, &format!("linux {agent}"), Method::PUT, "requests/1/done", "").await;
    }
    assert_eq!(windows.await.unwrap().is(200).json()["seq"], 5);
    // One worker was woken for each request.
    assert_eq!(sample(&server, "blackboard_claim_offers_total").await, 5.0);
}

#[tokio::test]
async fn an_awaited_request_stays() {
    let server = Server::start();
    let board = requested(&server, 2).await;
    board.post("requests?after=1", r#"{"text":"next"}"#).await.is(201);
    for tail in ["requests/1", "requests?keep=2", "requests?keep=1"] {
        refuses(&board, board.to(Method::DELETE, tail), 409, "has-dependants").await;
    }
    board.delete("requests/2").await.is(200);
    done(&board, 1).await.is(200);
    board.delete("requests/1").await.is(200);
    board.delete("requests").await.is(200);
    // A limit of the session takes the oldest, and nobody waits for what is gone.
    board.post("requests", r#"{"text":"old"}"#).await.is(201);
    board.post("requests?after=4", r#"{"text":"new"}"#).await.is(201);
    assert_eq!(pending(&board).await, [4]);
    board.put("", r#"{"settings":{"max_items":{"requests":1}}}"#).await.is(200);
    assert_eq!(pending(&board).await, [5]);
}

#[tokio::test]
async fn a_plan_names_earlier_requests() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    let post =
        |query: &str| board.json(Method::POST, &format!("requests{query}"), r#"{"text":"x"}"#);
    for query in ["?after=2", "?after=1,9"] {
        refuses(&board, post(query), 422, "invalid-field").await;
    }
    for query in ["?after=x", "?after=0", "?after=", "?after=-1", "?attempts=0", "?attempts=1001"] {
        refuses(&board, post(query), 400, "invalid-parameter").await;
    }
    let append = |more: &str| {
        let text = format!("{{\"then\":[{{\"append\":\"requests\",\"item\":{{}},{more}}}]}}");
        board.json(Method::POST, "transactions", &text)
    };
    for more in
        ["\"after\":[2]", "\"after\":1", "\"after\":[0]", "\"attempts\":0", "\"attempts\":\"1\""]
    {
        refuses(&board, append(more), 422, "invalid-field").await;
    }
    let text = r#"{"then":[{"append":"trajectories","item":{},"after":[1]}]}"#;
    // They have no effect elsewhere.
    board.post("transactions", text).await.is(200);
    board.post("trajectories?after=9&attempts=3", "{}").await.is(201);
}

#[tokio::test]
async fn a_transaction_plans_and_claims() {
    let server = Server::start();
    let board = server.board("s");
    let text = json!({"then":[
        {"append":"requests","item":{"kind":"a"},"attempts":3},
        {"append":"requests","item":{"kind":"b"},"after":[1]},
        {"claim_next":{"kind":"b"}},
        {"claim_next":{},"ttl":"5m"},
    ]});
    let done =
        by(&board, "A", Method::POST, "transactions", &text.to_string()).await.is(200).json();
    let results = &done["results"];
    assert_eq!(results[2], json!({"claim_next":{"kind":"b"}}));
    assert_eq!((&results[3]["seq"], &results[3]["fence"]), (&json!(1), &json!(1)));
    let test = r#"{"if":[{"request":2,"claimable":false}],"then":[{"done":1,"fence":1}]}"#;
    let tested = by(&board, "A", Method::POST, "transactions", test).await.is(200).json();
    assert_eq!(tested["succeeded"], true);
    let test = r#"{"if":[{"request":2,"claimable":true}]}"#;
    let tested = by(&board, "A", Method::POST, "transactions", test).await.is(200).json();
    assert_eq!(tested["succeeded"], true);
}

/// A board with a request in each state: done, failed, claimed, blocked, free.
async fn of_all_states(server: &Server) -> Board {
    let board = server.board("s");
    board.post("requests", r#"{"n":1}"#).await.is(201);
    board.post("requests?attempts=1", r#"{"n":2}"#).await.is(201);
    board.post("requests?attempts=3", r#"{"n":3}"#).await.is(201);
    board.post("requests?after=1,2&attempts=2", r#"{"n":4}"#).await.is(201);
    board.post("requests?after=1", r#"{"n":5}"#).await.is(201);
    done(&board, 1).await.is(200);
    for seq in [2, 3] {
        won(&board, "A", seq).await;
        let body = r#"{"reason":["why"]}"#;
        by(&board, "A", Method::PUT, &format!("requests/{seq}/failed"), body).await.is(200);
    }
    board
}

#[tokio::test]
async fn tasks_are_kept_and_restored() {
    let mut server = Server::start();
    let board = of_all_states(&server).await;
    let before = board.get("requests").await.is(200).json();
    server.kill();
    server.start_again();
    let board = server.board("s");
    assert_eq!(board.get("requests").await.json(), before);
    assert_eq!(pending(&board).await, [3, 5]);
    board.post("checkpoints", r#"{"name":"then"}"#).await.is(201);
    board.post("fork", r#"{"to":"f"}"#).await.is(201);
    let archive = board.get("archive").await;
    let imported = ask(server.board("i").typed(
        Method::PUT,
        "archive",
        "application/x-ndjson",
        archive.text().to_owned(),
    ));
    imported.await.is(201);
    for copy in ["f", "i"] {
        assert_eq!(pending(&server.board(copy)).await, [3, 5], "{copy}");
        assert_eq!(
            server.board(copy).get("requests").await.json()["entries"],
            before["entries"],
            "{copy}"
        );
    }
    board.post("requests/2/retry", "").await.is(200);
    done(&board, 2).await.is(200);
    assert_eq!(pending(&board).await, [3, 4, 5]);
    board.post("restore", r#"{"at":"then"}"#).await.is(200);
    assert_eq!(pending(&board).await, [3, 5]);
    let restored = entry(&board, 4).await;
    assert_eq!(
        (&restored["blocked_by"], &entry(&board, 2).await["failed"]["reason"]),
        (&json!([2]), &json!(["why"]))
    );
    board.post("requests/2/retry", "").await.is(200);
    done(&board, 2).await.is(200);
    assert_eq!(pending(&board).await, [3, 4, 5]);
}

#[tokio::test]
async fn a_repeated_claim_gets_the_same_request() {
    let server = Server::start();
    let board = server.made("s").await;
    let keyed = |key: &str| claim_next(&board, "A", "", "{}").header("idempotency-key", key);
    // Nothing to claim is not kept with the key.
    ask(keyed("k")).await.is(204);
    board.post("requests", r#"[{"n":1},{"n":2}]"#).await.is(201);
    let first = ask(keyed("k")).await;
    assert_eq!(first.is(200).json()["seq"], 1);
    let again = ask(keyed("k")).await;
    assert_eq!(
        (again.is(200).text(), again.header("idempotency-replayed")),
        (first.text(), "true")
    );
    assert_eq!(ask(keyed("l")).await.is(200).json()["seq"], 2);
    done(&board, 1).await.is(200);
    done(&board, 2).await.is(200);
    assert_eq!(ask(keyed("k")).await.is(200).text(), first.text());
}

#[tokio::test]
async fn a_waiting_worker_hears_of_the_end() {
    let mut server = Server::start();
    let board = server.made("s").await;
    let waits = || tokio::spawn(ask(claim_next(&board, "A", "?wait=30s", "")));
    let worker = waits();
    in_progress(&server, 1).await;
    sleep(Duration::from_millis(200)).await;
    board.delete("").await.is(200);
    worker.await.unwrap().problem(404, "session-not-found");
    server.made("s").await;
    let worker = waits();
    in_progress(&server, 1).await;
    sleep(Duration::from_millis(200)).await;
    assert!(server.stop().success());
    worker.await.unwrap().is(204);
}

#[tokio::test]
async fn a_worker_that_leaves_takes_no_request() {
    let server = Server::start();
    let board = server.made("s").await;
    let post = "POST /v1/sessions/s/requests/claim?wait=30s HTTP/1.1\r\nhost: localhost\r\n\
                content-length: 0\r\nx-agent-id: A\r\n\r\n";
    let mut gone = TcpStream::connect(server.authority()).await.unwrap();
    gone.write_all(post.as_bytes()).await.unwrap();
    let mut half = TcpStream::connect(server.authority()).await.unwrap();
    half.write_all(post.as_bytes()).await.unwrap();
    in_progress(&server, 2).await;
    sleep(Duration::from_millis(200)).await;
    let worker = tokio::spawn(ask(claim_next(&board, "B", "?wait=30s", "")));
    in_progress(&server, 3).await;
    sleep(Duration::from_millis(200)).await;
    drop(gone);
    half.shutdown().await.unwrap();
    // It may still read its answer, and hears that it has nothing.
    let mut answer = [0; 12];
    half.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 204");
    in_progress(&server, 1).await;
    board.post("requests", "{}").await.is(201);
    let got = worker.await.unwrap();
    assert_eq!(got.is(200).json()["claim"]["agent"], "B");
}

#[tokio::test]
async fn pending_requests_of_all_sessions_are_listed() {
    let server = Server::start();
    let (a, b) = (server.board("a"), server.board("b"));
    let list = async |query: &str| {
        let page = server.get(&format!("/v1/requests{query}")).await;
        let page = page.is(200).json();
        let requests = page["requests"].as_array().expect("requests").clone();
        let place =
            |entry: &Value| format!("{}/{}", entry["session"].as_str().unwrap(), entry["seq"]);
        (requests.iter().map(place).collect::<Vec<_>>(), page)
    };
    assert_eq!(list("").await.0, [""; 0]);
    let empty = server.get("/v1/requests").await;
    let waits =
        server.to(Method::GET, "/v1/requests?wait=20s").header("if-none-match", empty.etag());
    let waits = tokio::spawn(ask(waits));
    sleep(Duration::from_millis(100)).await;
    a.post("requests", r#"[{"n":1},{"n":2}]"#).await.is(201);
    assert_eq!(waits.await.unwrap().is(200).json()["requests"][0]["item"], json!({"n":1}));
    a.post("requests?after=1", r#"{"n":3}"#).await.is(201);
    b.post("requests?attempts=1", r#"{"n":1}"#).await.is(201);
    assert_eq!(list("?pending=true").await.0, ["a/1", "a/2", "b/1"]);
    let (first, page) = list("?limit=2").await;
    assert_eq!(
        (first, &page["next"], &page["more"]),
        (vec!["a/1".into(), "a/2".into()], &json!("a/2"), &json!(true))
    );
    assert_eq!(list("?after=a/2").await.0, ["b/1"]);
    assert_eq!(list("?prefix=b").await.0, ["b/1"]);
    won(&a, "A", 2).await;
    won(&b, "A", 1).await;
    assert_eq!(list("").await.0, ["a/1"]);
    by(&b, "A", Method::PUT, "requests/1/failed", "{}").await.is(200);
    done(&a, 1).await.is(200);
    assert_eq!(list("").await.0, ["a/3"]);
    b.post("requests/1/retry", "").await.is(200);
    assert_eq!(list("").await.0, ["a/3", "b/1"]);
    a.delete("").await.is(200);
    assert_eq!(list("").await.0, ["b/1"]);
    for query in ["?pending=false", "?limit=0", "?after=a"] {
        server.get(&format!("/v1/requests{query}")).await.problem(400, "invalid-parameter");
    }
}
