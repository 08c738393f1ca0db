//! Fences, `?claim=SEQ&fence=N`: writes bound to a claim, refused once it is lost.

use reqwest::Method;

use crate::answer::ask;
use crate::claims::{requested, won};
use crate::harness::{Board, Server};
use crate::whole::{Whole, refuses};

/// Every kind of write, on the board that `filled` makes.
const WRITES: [(Method, &str, &str); 25] = [
    (Method::POST, "requests", "{}"),
    (Method::POST, "questions", "[{},{}]"),
    (Method::POST, "agents/A/memory", "{}"),
    (Method::POST, "agents/new/memory", "{}"),
    (Method::PUT, "trajectories", "[{}]"),
    (Method::PUT, "requests", "[{}]"),
    (Method::PUT, "requests/2", r#"{"x":1}"#),
    (Method::PATCH, "requests/1", r#"{"x":1}"#),
    (Method::DELETE, "requests/2", ""),
    (Method::DELETE, "questions", ""),
    (Method::PUT, "state/a", "2"),
    (Method::PUT, "state", "{}"),
    (Method::PATCH, "state/a", r#"{"x":1}"#),
    (Method::DELETE, "state/a", ""),
    (Method::POST, "transactions", r#"{"then":[{"add":"a","value":1}]}"#),
    (Method::PUT, "agents/A", r#"{"x":1}"#),
    (Method::PATCH, "agents/A", r#"{"x":1}"#),
    (Method::DELETE, "agents/A", ""),
    (Method::DELETE, "agents", ""),
    (Method::PUT, "requests/2/claim", "{}"),
    (Method::PUT, "requests/2/done", "{}"),
    (Method::PUT, "blackboard", r#"{"questions":[{}]}"#),
    (Method::DELETE, "blackboard", ""),
    (Method::PUT, "", r#"{"labels":{"a":"b"}}"#),
    (Method::DELETE, "", ""),
];

/// Two requests, of which A won the first and gave it back, and B has it: both fences.
async fn filled(server: &Server, session: &str) -> (Board, u64, u64) {
    let board = server.board(session);
    board.post("requests", "[{},{}]").await.is(201);
    board.post("questions", "{}").await.is(201);
    board.post("agents/A/memory", "{}").await.is(201);
    board.put("state/a", "1").await.is(201);
    let lost = won(&board, "A", 1).await;
    ask(board.by("A", Method::DELETE, "requests/1/claim", "")).await.is(200);
    let held = won(&board, "B", 1).await;
    (board, lost, held)
}

fn bound(tail: &str, seq: u64, fence: u64) -> String {
    format!("{tail}?claim={seq}&fence={fence}")
}

#[tokio::test]
async fn every_kind_of_write_is_bound_by_a_fence() {
    let server = Server::start();
    for (index, (method, tail, body)) in WRITES.into_iter().enumerate() {
        let (board, lost, held) = filled(&server, &format!("fence-{index}")).await;
        let before = Whole::of(&board).await;
        let stale =
            [(1, lost), (1, held + 1), (1, held - 1), (1, 0), (2, held), (2, 1), (99, held)];
        for (seq, fence) in stale {
            let write = board.by("B", method.clone(), &bound(tail, seq, fence), body);
            let refused = ask(write).await;
            refused.problem(409, "stale-fence");
        }
        for query in [
            format!("claim=1&fence={held}x"),
            format!("claim=x&fence={held}"),
            format!("claim=-1&fence={held}"),
            "claim=1".to_owned(),
            format!("fence={held}"),
            format!("claim=1&fence={held}&fence={held}"),
        ] {
            let write = board.by("B", method.clone(), &format!("{tail}?{query}"), body);
            ask(write).await.problem(400, "invalid-parameter");
        }
        assert_eq!(Whole::of(&board).await, before, "{method} {tail}");
        let head = board.get("").await.revision();
        let written = ask(board.by("B", method.clone(), &bound(tail, 1, held), body)).await;
        assert_eq!(written.succeeded().revision(), head + 1, "{method} {tail}");
    }
}

#[tokio::test]
async fn a_fence_outlives_renewal_and_ends_with_the_claim() {
    let server = Server::start();
    let board = requested(&server, 2).await;
    let passes = async |seq: u64, fence: u64| {
        ask(board.by("A", Method::POST, &bound("trajectories", seq, fence), "{}")).await.is(201);
    };
    let stale = async |seq: u64, fence: u64| {
        let write = board.by("A", Method::POST, &bound("trajectories", seq, fence), "{}");
        refuses(&board, write, 409, "stale-fence").await;
    };
    let first = won(&board, "A", 1).await;
    passes(1, first).await;
    ask(board.by("A", Method::PUT, "requests/1/claim", r#"{"ttl":"5m"}"#)).await.is(200);
    passes(1, first).await;
    board.put("requests/1", r#"{"text":"else"}"#).await.is(200);
    passes(1, first).await;
    ask(board.by("A", Method::DELETE, "requests/1/claim", "")).await.is(200);
    stale(1, first).await;
    // The same agent's next claim is another.
    let second = won(&board, "A", 1).await;
    stale(1, first).await;
    passes(1, second).await;
    ask(board.by("A", Method::PUT, "requests/1/done", &format!("{{\"fence\":{second}}}")))
        .await
        .is(200);
    passes(1, second).await;
    stale(1, first).await;

    // Ended by whoever did not claim it, there was never a fence.
    ask(board.by("A", Method::PUT, "requests/2/done", "{}")).await.is(200);
    let head = board.get("").await.revision();
    stale(2, head).await;
}

#[tokio::test]
async fn a_fence_goes_with_its_request() {
    let server = Server::start();
    for (index, (method, tail, body)) in [
        (Method::DELETE, "requests/1", ""),
        (Method::DELETE, "requests", ""),
        (Method::PUT, "requests", r#"[{"text":"do"}]"#),
        (Method::PUT, "blackboard", r#"{"requests":[{"text":"do"}]}"#),
        (Method::DELETE, "blackboard", ""),
        (Method::PUT, "", r#"{"settings":{"max_items":{"requests":1}}}"#),
    ]
    .into_iter()
    .enumerate()
    {
        let board = server.board(&format!("gone-{index}"));
        board.post("requests", r#"[{"text":"do"},{"text":"do"}]"#).await.is(201);
        let fence = won(&board, "A", 1).await;
        ask(board.request(method.clone(), tail, body)).await.succeeded();
        let write = board.by("A", Method::PUT, &bound("state/a", 1, fence), "1");
        refuses(&board, write, 409, "stale-fence").await;
        // What has come since is nobody's.
        for entry in board.get("requests").await.json()["entries"].as_array().unwrap() {
            assert_eq!(entry.get("claim"), None, "{method} {tail}");
        }
    }
}

#[tokio::test]
async fn a_fence_in_a_session_that_is_not_there_makes_none() {
    let server = Server::start();
    let board = server.board("s");
    for tail in ["requests", "transactions"] {
        let write = board.by("A", Method::POST, &bound(tail, 1, 1), "{}");
        ask(write).await.refused();
    }
    ask(board.by("A", Method::PUT, &bound("state/a", 1, 1), "1")).await.refused();
    board.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_read_knows_no_fence() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    let fence = won(&board, "A", 1).await;
    board.put("state/a", "1").await.is(201);
    board.put("agents/A", "{}").await.is(201);
    for tail in
        ["requests", "requests/1", "state/a", "agents", "agents/A", "blackboard", "prompt", ""]
    {
        board.get(&bound(tail, 1, fence)).await.problem(400, "unknown-parameter");
    }
}

#[tokio::test]
async fn a_fence_outlives_a_kill() {
    let mut server = Server::start();
    let (_, lost, held) = filled(&server, "s").await;
    server.kill();
    server.start_again();
    let board = server.board("s");
    let write = |fence: u64| board.by("B", Method::PUT, &bound("state/a", 1, fence), "2");
    refuses(&board, write(lost), 409, "stale-fence").await;
    ask(write(held)).await.is(200);
}
