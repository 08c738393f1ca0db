//! Finished requests: by the claimant or anybody allowed, once, with a lasting result.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::claims::{requested, won};
use crate::harness::{Board, Server};
use crate::whole::{pointer, receipt, refuses};

async fn done(board: &Board, agent: &str, seq: u64, body: &str) -> Answer {
    ask(board.by(agent, Method::PUT, &format!("requests/{seq}/done"), body)).await
}

fn fenced(fence: u64, result: &str) -> String {
    format!("{{\"fence\":{fence},\"result\":{result}}}")
}

#[tokio::test]
async fn the_claimant_ends_a_request_with_its_result() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    let fence = won(&board, "A", 1).await;
    let before = board.get("requests/1").await.etag();
    let ended = done(&board, "A", 1, &fenced(fence, r#"{"z":1E5,"a":[-0]}"#)).await;
    assert_eq!(receipt(ended.is(200)), json!({"revision":3}));
    let entry = board.get("requests/1").await;
    assert_eq!(entry.etag(), ended.etag());
    assert_ne!(entry.etag(), before);
    let shown = entry.json();
    assert_eq!(
        (shown.get("claim"), &shown["revision"], &shown["updated_by"]),
        (None, &json!(3), &json!("A"))
    );
    let done = &shown["done"];
    assert_eq!(
        (&done["agent"], &done["fence"], &done["at"]),
        (&json!("A"), &json!(fence), &shown["updated_at"])
    );
    assert!(entry.text().contains(r#""result":{"z":1E5,"a":[-0]}"#), "{entry}");
    let places = ["\"updated_by\"", "\"done\"", "\"item\""].map(|name| entry.text().find(name));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{entry}");
    assert!(!board.dictionary().await.contains("done"));
}

#[tokio::test]
async fn a_request_that_nobody_holds_may_be_ended_by_anyone() {
    let server = Server::start();
    let board = requested(&server, 5).await;
    for (seq, agent, body) in [(1, "A", "{}"), (2, "A", r#"{"result":null}"#)] {
        done(&board, agent, seq, body).await.is(200);
        let entry = board.get(&format!("requests/{seq}")).await.json();
        let shown = &entry["done"];
        assert_eq!((&shown["agent"], shown.get("fence")), (&json!(agent), None), "{entry}");
        assert_eq!(shown.get("result"), (seq == 2).then_some(&Value::Null), "{entry}");
    }
    board.put("requests/3/done", "{}").await.is(200);
    let entry = board.get("requests/3").await.json();
    assert!(entry["done"]["at"].is_string() && entry["done"].get("agent").is_none(), "{entry}");
    // Given back, it is nobody's again; held by oneself, it needs no fence.
    won(&board, "A", 4).await;
    ask(board.by("A", Method::DELETE, "requests/4/claim", "")).await.is(200);
    done(&board, "B", 4, "{}").await.is(200);
    won(&board, "A", 5).await;
    done(&board, "A", 5, r#"{"result":1}"#).await.is(200);
    assert!(board.get("requests?pending=true").await.seqs().is_empty());
}

#[tokio::test]
async fn without_a_fence_what_another_holds_is_not_ended() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    won(&board, "A", 1).await;
    let others = [
        board.by("B", Method::PUT, "requests/1/done", "{}"),
        board.json(Method::PUT, "requests/1/done", r#"{"result":1}"#),
    ];
    for request in others {
        refuses(&board, request, 409, "already-claimed").await;
    }
}

#[tokio::test]
async fn a_fence_that_is_not_the_last_is_stale() {
    let server = Server::start();
    let board = requested(&server, 2).await;
    let refused = async |seq: u64, fence: u64| {
        let request =
            board.by("A", Method::PUT, &format!("requests/{seq}/done"), &fenced(fence, "1"));
        refuses(&board, request, 409, "stale-fence").await;
    };
    refused(1, 1).await;
    let first = won(&board, "A", 1).await;
    refused(1, first + 1).await;
    refused(1, first - 1).await;
    // Another request's fence is none of this one's.
    let other = won(&board, "A", 2).await;
    refused(1, other).await;
    ask(board.by("A", Method::DELETE, "requests/1/claim", "")).await.is(200);
    refused(1, first).await;
    let second = won(&board, "B", 1).await;
    refused(1, first).await;
    done(&board, "B", 1, &fenced(second, "1")).await.is(200);
    refused(1, first).await;
}

#[tokio::test]
async fn the_same_result_in_another_order_is_the_same_result() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    let first = done(&board, "A", 1, r#"{"result":{"a":1.0,"b":[2]}}"#).await;
    let again = done(&board, "A", 1, r#"{"result":{"b":[2.0],"a":1}}"#).await;
    assert_eq!(again.is(200).revision(), first.is(200).revision());
}

#[tokio::test]
async fn ending_it_again_the_same_way_changes_nothing() {
    let server = Server::start();
    let board = requested(&server, 2).await;
    let fence = won(&board, "A", 1).await;
    let body = fenced(fence, r#"{"a":1,"b":[2]}"#);
    let first = done(&board, "A", 1, &body).await;
    let again = done(&board, "A", 1, &body).await;
    assert_eq!((receipt(again.is(200)), again.etag()), (receipt(first.is(200)), first.etag()));
    let other = board.by("A", Method::PUT, "requests/1/done", &fenced(fence, "2"));
    refuses(&board, other, 409, "stale-fence").await;
    let other = board.by("A", Method::PUT, "requests/1/done", &json!({"fence":fence}).to_string());
    refuses(&board, other, 409, "stale-fence").await;
    let other = board.by("A", Method::PUT, "requests/1/done", r#"{"result":2}"#);
    refuses(&board, other, 409, "already-claimed").await;

    let first = done(&board, "A", 2, r#"{"result":"x"}"#).await;
    let again = done(&board, "A", 2, r#"{"result":"x"}"#).await;
    assert_eq!((receipt(again.is(200)), again.etag()), (receipt(first.is(200)), first.etag()));
    for body in [r#"{"result":"y"}"#, "{}"] {
        let other = board.by("A", Method::PUT, "requests/2/done", body);
        refuses(&board, other, 409, "already-claimed").await;
    }
}

#[tokio::test]
async fn what_is_done_is_not_claimed_any_more() {
    let server = Server::start();
    let board = requested(&server, 2).await;
    let fence = won(&board, "A", 1).await;
    done(&board, "A", 1, &fenced(fence, "1")).await.is(200);
    done(&board, "A", 2, "{}").await.is(200);
    for seq in [1, 2] {
        for agent in ["A", "B"] {
            let claim = board.by(agent, Method::PUT, &format!("requests/{seq}/claim"), "");
            refuses(&board, claim, 409, "already-claimed").await;
        }
        // There is no claim to give back.
        let before = board.get("").await.revision();
        let nothing =
            ask(board.by("A", Method::DELETE, &format!("requests/{seq}/claim"), "")).await;
        assert_eq!(receipt(nothing.is(200))["revision"], before);
    }
    board.put("requests/1", r#"{"text":"else"}"#).await.is(200);
    assert!(board.get("requests/1").await.json()["done"].is_object());
}

#[tokio::test]
async fn an_end_that_cannot_be_is_refused_by_name() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    let put = |body: &str| board.by("A", Method::PUT, "requests/1/done", body);
    for (body, code, place) in [
        (r#"{"fence":"1"}"#, "invalid-field", "/fence"),
        (r#"{"fence":1.5}"#, "invalid-field", "/fence"),
        (r#"{"fence":-1}"#, "invalid-field", "/fence"),
        (r#"{"fnce":1}"#, "unknown-field", "/fnce"),
        (r#"{"result":1,"agent":"B"}"#, "unknown-field", "/agent"),
        (r#"{"result":[1e400]}"#, "unsupported-value", "/result/0"),
    ] {
        assert_eq!(pointer(&refuses(&board, put(body), 422, code).await), place, "{body}");
    }
    for body in ["5", "[]", "null"] {
        ask(put(body)).await.is(422);
    }
    let deep = format!("{{\"result\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    refuses(&board, put(&deep), 422, "too-deep").await;
    let large = json!({"result":"x".repeat(1 << 20)}).to_string();
    ask(put(&large)).await.is(413);
    refuses(&board, put("{"), 400, "invalid-json").await;
    let parameter = board.by("A", Method::PUT, "requests/1/done?fense=1", "{}");
    refuses(&board, parameter, 400, "unknown-parameter").await;
    assert_eq!(board.get("requests/1").await.json().get("done"), None);
    done(&board, "A", 1, &json!({"result":"x".repeat(1000)}).to_string()).await.is(200);
}

#[tokio::test]
async fn the_end_outlives_a_kill() {
    let mut server = Server::start();
    let board = requested(&server, 1).await;
    let fence = won(&board, "A", 1).await;
    done(&board, "A", 1, &fenced(fence, "1E5")).await.is(200);
    let before = board.get("requests/1").await.text().to_owned();
    server.kill();
    server.start_again();
    let board = server.board("s");
    assert_eq!(board.get("requests/1").await.text(), before);
    done(&board, "A", 1, &fenced(fence, "1E5")).await.is(200);
    assert_eq!(board.get("").await.revision(), 3);
}
