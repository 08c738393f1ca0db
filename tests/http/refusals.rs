//! Refusals: their details beyond the code.

use reqwest::{Method, RequestBuilder};

use crate::answer::ask;
use crate::bad_input::Unmoved;
use crate::raw::exchange;

#[tokio::test]
async fn a_refusal_about_a_session_names_its_revision_too() {
    let board = Unmoved::new().await;
    let json = |method: Method, tail: &str, text: &str| board.board.json(method, tail, text);
    let get = |tail: &str| board.board.to(Method::GET, tail);
    let refused: [(RequestBuilder, u16, &str); 14] = [
        (get("requests/99"), 404, "entry-not-found"),
        (get("requests/x"), 404, "entry-not-found"),
        (get("screenshots/1/image"), 404, "no-image"),
        (get("screenshots/99/image"), 404, "entry-not-found"),
        (get("nothing"), 404, "route-not-found"),
        (get("requests?limt=1"), 400, "unknown-parameter"),
        (get("requests?limit=x"), 400, "invalid-parameter"),
        (get("prompt?include=nothing"), 400, "invalid-parameter"),
        (get("requests").header("if-none-match", "x"), 400, "invalid-parameter"),
        (json(Method::POST, "requests", "{"), 400, "invalid-json"),
        (json(Method::POST, "requests", "5"), 422, "unsupported-item"),
        (json(Method::PUT, "", r#"{"setings":{}}"#), 422, "unknown-field"),
        (
            board.board.typed(Method::POST, "requests", "text/plain", "{}"),
            415,
            "unsupported-media-type",
        ),
        (board.board.to(Method::PATCH, "requests"), 405, "method-not-allowed"),
    ];
    let revision = board.board.get("").await.revision();
    for (request, status, code) in refused {
        let answer = ask(request).await;
        answer.problem(status, code);
        assert_eq!(answer.revision(), revision, "{answer}");
    }
    board.check().await;
    let absent = board.server.get("/v1/sessions/absent/requests").await;
    absent.problem(404, "session-not-found");
    assert_eq!(absent.header("blackboard-revision"), "");
}

#[tokio::test]
async fn a_percent_sign_without_two_digits_is_refused() {
    let board = Unmoved::new().await;
    for bad in ["a%", "a%2", "%zz", "%2", "%", "%%", "%+1", "%4%31"] {
        for tail in [
            format!("requests?keys={bad}"),
            format!("requests?keys=a,{bad}"),
            format!("requests?{bad}=1"),
        ] {
            board.board.get(&tail).await.problem(400, "invalid-encoding");
        }
        let listed = board.server.get(&format!("/v1/sessions?prefix={bad}")).await;
        listed.problem(400, "invalid-encoding");
        let head = format!("GET /v1/sessions/{bad}/requests HTTP/1.1");
        exchange(&board.server, &head, b"").problem(400, "invalid-encoding");
    }
    for agent in ["H%2", "H%", "%zz"] {
        let request = board.board.json(Method::POST, "requests", "{}");
        ask(request.header("x-agent-id", agent)).await.problem(400, "invalid-encoding");
    }
    board.check().await;
}

#[tokio::test]
async fn two_agents_cannot_write_one_item() {
    let board = Unmoved::new().await;
    for second in ["a", "b"] {
        let request = board.board.json(Method::POST, "requests", "{}");
        let request = request.header("x-agent-id", "a").header("x-agent-id", second);
        ask(request).await.problem(400, "invalid-name");
    }
    board.check().await;
}

#[tokio::test]
async fn a_seq_has_one_spelling() {
    let board = Unmoved::new().await;
    for seq in ["01", "0", "00", "+1", "1.0", "%201", "-1", "1e0", "18446744073709551616"] {
        let tail = format!("questions/{seq}");
        board.board.get(&tail).await.problem(404, "entry-not-found");
        board.board.put(&tail, "{}").await.problem(404, "entry-not-found");
        board.board.merge(&tail, "{}").await.problem(404, "entry-not-found");
        board.board.delete(&tail).await.problem(404, "entry-not-found");
    }
    board.check().await;
}

#[tokio::test]
async fn too_many_tags_are_told_how_many_may_be() {
    let board = Unmoved::new().await;
    let named = |count: usize| vec!["\"x\""; count].join(", ");
    let read = |tags: String| board.board.to(Method::GET, "requests").header("if-none-match", tags);
    let write =
        |tags: String| board.board.json(Method::PUT, "requests/1", "{}").header("if-match", tags);
    for request in [read(named(65)), write(named(65))] {
        let problem = ask(request).await.problem(400, "invalid-parameter");
        assert!(problem["detail"].as_str().unwrap().contains("at most 64"), "{problem}");
    }
    ask(read(named(64))).await.is(200);
    ask(write(named(64))).await.is(412);
    board.check().await;
}
