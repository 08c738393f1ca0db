//! Retention: `max_items` by number and by log, `ttl`, and forms of durations.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::{Board, Server, encoded};
use crate::logs::LOGS;
use crate::whole::{Whole, pointer, receipt, refuses};

async fn set(board: &Board, setting: &str, value: &str) -> u64 {
    let body = format!("{{\"settings\":{{\"{setting}\":{value}}}}}");
    board.put("", &body).await.succeeded().revision()
}

fn items(count: usize) -> String {
    Value::from((1..=count).map(|n| json!({"n":n})).collect::<Vec<_>>()).to_string()
}

#[tokio::test]
async fn the_oldest_go_in_the_commit_that_made_them_too_many() {
    let server = Server::start();
    let board = server.board("s");
    set(&board, "max_items", "3").await;
    assert_eq!(board.get("").await.json()["settings"]["max_items"], 3);
    for log in LOGS {
        let head = board.get("").await.revision();
        let posted = board.post(log, &items(5)).await;
        assert_eq!((posted.is(201).revision(), posted.seqs()), (head + 1, vec![1, 2, 3, 4, 5]));
        let page = board.get(log).await;
        assert_eq!((page.seqs(), &page.json()["count"]), (vec![3, 4, 5], &json!(3)), "{log}");
        board.get(&format!("{log}/2")).await.problem(404, "entry-not-found");
        board.post(log, "{}").await.is(201);
        assert_eq!(board.get(log).await.seqs(), [4, 5, 6], "{log}");
        let replaced = board.put(log, &items(4)).await;
        assert_eq!(replaced.is(200).revision(), head + 3, "{log}");
        assert_eq!(board.get(log).await.seqs(), [8, 9, 10], "{log}");
        assert_eq!(board.get(log).await.items()[0]["n"], 2, "{log}");
        // What goes by itself makes room like what is deleted.
        board.delete(&format!("{log}/10")).await.is(200);
        board.post(log, "{}").await.is(201);
        assert_eq!(board.get(log).await.seqs(), [8, 9, 11], "{log}");
    }
}

#[tokio::test]
async fn a_log_may_have_a_bound_of_its_own() {
    let server = Server::start();
    let board = server.board("s");
    set(&board, "max_items", r#"{"requests":2,"memory":1}"#).await;
    for log in LOGS {
        board.post(log, &items(3)).await.is(201);
        let kept = match log {
            "requests" => 2,
            log if log.ends_with("memory") => 1,
            _ => 3,
        };
        assert_eq!(board.get(log).await.json()["count"], kept, "{log}");
    }
    board.post("agents/another/memory", &items(2)).await.is(201);
    assert_eq!(board.get("agents/another/memory").await.seqs(), [2]);
    set(&board, "max_items", "null").await;
    assert_eq!(board.get("").await.json()["settings"].get("max_items"), None);
    board.post("requests", &items(3)).await.is(201);
    assert_eq!(board.get("requests").await.seqs(), [2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_bound_holds_at_once_where_there_is_more() {
    let server = Server::start();
    let board = server.board("s");
    for log in LOGS {
        board.post(log, &items(4)).await.is(201);
    }
    let head = board.get("").await.revision();
    let untouched = board.get("trajectories").await.etag();
    assert_eq!(set(&board, "max_items", r#"{"questions":2,"memory":3}"#).await, head + 1);
    assert_eq!(board.get("questions").await.seqs(), [3, 4]);
    assert_eq!(board.get("trajectories").await.etag(), untouched);
    assert_eq!(set(&board, "max_items", "1").await, head + 2);
    for log in LOGS {
        assert_eq!(board.get(log).await.seqs(), [4], "{log}");
    }
    assert_eq!(set(&board, "max_items", "1").await, head + 2);
}

#[tokio::test]
async fn every_way_to_append_obeys_the_bound() {
    let server = Server::start();
    let board = server.board("s");
    let body = r#"{"settings":{"max_items":2},"qa_pairs":[{"question":"1"},{"question":"2"},{"question":"3"}]}"#;
    assert_eq!(board.put("", body).await.is(201).revision(), 1);
    assert_eq!(board.get("questions").await.seqs(), [2, 3]);
    let append = json!({"append":"requests","item":{}});
    let body = json!({"then":[append, append, append]}).to_string();
    board.post("transactions", &body).await.is(200);
    assert_eq!(board.get("requests").await.seqs(), [2, 3]);
    let lines = board.typed(Method::POST, "trajectories", "application/x-ndjson", "{}\n{}\n{}\n");
    ask(lines).await.is(201);
    assert_eq!(board.get("trajectories").await.seqs(), [2, 3]);
    board
        .put("blackboard", &format!("{{\"requests\":{},\"questions\":[{{}}]}}", items(4)))
        .await
        .is(200);
    let kept: Vec<Value> = board.get("requests").await.items();
    assert_eq!(kept, [json!({"n":3}), json!({"n":4})]);
    assert_eq!(board.get("").await.revision(), 4);
}

#[tokio::test]
async fn a_bound_that_is_none_is_refused() {
    let server = Server::start();
    let (absent, there) = (server.board("absent"), server.board("there"));
    there.post("requests", &items(3)).await.is(201);
    for value in [
        "0",
        "-1",
        "1.5",
        "\"3\"",
        "true",
        "[]",
        "[3]",
        r#"{"requests":0}"#,
        r#"{"requests":"3"}"#,
        r#"{"requests":1,"memory":-1}"#,
    ] {
        for board in [&absent, &there] {
            let body = format!("{{\"settings\":{{\"max_items\":{value}}}}}");
            let refused =
                refuses(board, board.json(Method::PUT, "", &body), 422, "invalid-field").await;
            assert!(pointer(&refused).starts_with("/settings/max_items"), "{refused}");
        }
    }
    for body in
        [r#"{"settings":{"max_items":{"state":1}}}"#, r#"{"settings":{"max_items":{"request":1}}}"#]
    {
        ask(there.json(Method::PUT, "", body)).await.is(422);
    }
    assert_eq!(there.get("requests").await.json()["count"], 3);
}

#[tokio::test]
async fn what_was_dropped_stays_dropped_after_a_kill() {
    let mut server = Server::start();
    let board = server.board("s");
    set(&board, "max_items", r#"{"requests":2}"#).await;
    board.post("requests", &items(5)).await.is(201);
    set(&board, "ttl", "\"30d\"").await;
    let before = Whole::of(&board).await;
    server.kill();
    server.start_again();
    let board = server.board("s");
    assert_eq!(Whole::of(&board).await, before);
    assert_eq!(board.post("requests", "{}").await.is(201).seqs(), [6]);
    assert_eq!(board.get("requests").await.seqs(), [5, 6]);
}

const DURATIONS: [&str; 8] =
    ["3600000ms", "3600s", "60m", "1h", "1d", "36500d", "876000h", "3153600000s"];

const NO_DURATIONS: [&str; 22] = [
    "",
    "5",
    "s",
    "0s",
    "0ms",
    "0d",
    "-1s",
    "+1s",
    "1.5s",
    "1e3s",
    "1 s",
    " 1s",
    "1s ",
    "1S",
    "1w",
    "1y",
    "1h30m",
    "36501d",
    "876001h",
    "99999999999999999999d",
    "PT1S",
    "１s",
];

#[tokio::test]
async fn a_duration_has_the_same_form_everywhere() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "[{},{}]").await.is(201);
    for duration in DURATIONS {
        board.put(&format!("state/a?ttl={duration}"), "1").await.succeeded();
        board.put("", &json!({"settings":{"ttl":duration}}).to_string()).await.is(200);
        let claim = json!({"ttl":duration}).to_string();
        ask(board.by("A", Method::PUT, "requests/1/claim", &claim)).await.succeeded();
        let body =
            json!({"then":[{"put":"b","value":1,"ttl":duration},{"claim":2,"ttl":duration}]});
        ask(board.by("A", Method::POST, "transactions", &body.to_string())).await.is(200);
    }
    assert!(board.get("").await.json()["settings"]["ttl"].is_string());
}

#[tokio::test]
async fn what_is_no_duration_is_refused_everywhere() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "[{},{}]").await.is(201);
    for duration in NO_DURATIONS {
        let put = board.json(Method::PUT, &format!("state/a?ttl={}", encoded(duration)), "1");
        refuses(&board, put, 400, "invalid-parameter").await;
        let then = |operation: Value| json!({"then":[operation]}).to_string();
        for (method, tail, body, place) in [
            (Method::PUT, "", json!({"settings":{"ttl":duration}}).to_string(), "/settings/ttl"),
            (Method::PUT, "requests/1/claim", json!({"ttl":duration}).to_string(), "/ttl"),
            (
                Method::POST,
                "transactions",
                then(json!({"put":"b","value":1,"ttl":duration})),
                "/then/0",
            ),
            (Method::POST, "transactions", then(json!({"claim":2,"ttl":duration})), "/then/0"),
        ] {
            let request = board.by("A", method, tail, &body);
            let refused = refuses(&board, request, 422, "invalid-field").await;
            assert!(pointer(&refused).starts_with(place), "{duration}: {refused}");
        }
    }
    for body in [r#"{"settings":{"ttl":5}}"#, r#"{"settings":{"ttl":["30d"]}}"#] {
        refuses(&board, board.json(Method::PUT, "", body), 422, "invalid-field").await;
    }
}

#[tokio::test]
async fn a_sessions_ttl_is_a_setting_that_null_takes_away() {
    let server = Server::start();
    let board = server.board("s");
    set(&board, "ttl", "\"30d\"").await;
    assert_eq!(board.get("").await.json()["settings"]["ttl"], "30d");
    let same = board.put("", r#"{"settings":{"ttl":"30d"}}"#).await;
    // It begins the time anew, which is a commit.
    assert_eq!(receipt(same.is(200))["revision"], 2);
    board.put("", r#"{"settings":{"max_items":5}}"#).await.is(200);
    assert_eq!(board.get("").await.json()["settings"]["ttl"], "30d");
    set(&board, "ttl", "null").await;
    assert_eq!(board.get("").await.json()["settings"], json!({"max_items":5}));
}
