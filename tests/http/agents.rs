//! Agents: registered, shown, changed, changed on a condition, and refused.

use reqwest::Method;
use serde_json::json;

use crate::agent_lists::names;
use crate::answer::ask;
use crate::harness::{Server, encoded};
use crate::whole::{Whole, made_at, pointer, receipt, refuses};

#[tokio::test]
async fn an_agent_is_registered_and_shown_flat() {
    let server = Server::start();
    let board = server.board("s");
    let body = r#"{"zeta":1E5,"type":"AppAgent","status":"PENDING","platform":"windows","host":"HostAgent","list":[1.50]}"#;
    let made = board.put("agents/AppAgent", body).await;
    assert_eq!(receipt(made.is(201)), json!({"revision":1}));
    assert!(made.header("location").ends_with("/v1/sessions/s/agents/AppAgent"), "{made}");
    let shown = made_at(&server, &made).await;
    assert_eq!(shown.is(200).etag(), made.etag());
    let members = body.trim_start_matches('{').trim_end_matches('}');
    let start = format!("{{\"agent\":\"AppAgent\",{members},\"revision\":1,\"registered_at\":\"");
    assert!(shown.text().starts_with(&start), "{shown}");
    let agent = shown.json();
    assert_eq!(agent["registered_at"], agent["updated_at"]);
    assert_eq!(agent.get("last_seen"), None);
    assert_eq!(board.get("").await.json()["agents"], 1);

    let body = r#"{"platform":"linux","type":"AppAgent"}"#;
    let changed = board.put("agents/AppAgent", body).await;
    assert_eq!((receipt(changed.is(200)), changed.header("location")), (json!({"revision":2}), ""));
    let agent = board.get("agents/AppAgent").await;
    assert_ne!(agent.etag(), made.etag());
    let agent = agent.json();
    // Replaced, but for the status, which stays where none is sent.
    assert_eq!((&agent["status"], &agent["platform"]), (&json!("PENDING"), &json!("linux")));
    assert_eq!((agent.get("host"), agent.get("zeta")), (None, None));
    assert_eq!(
        (&agent["revision"], &agent["registered_at"]),
        (&json!(2), &shown.json()["registered_at"])
    );
}

#[tokio::test]
async fn without_a_status_a_new_agent_continues() {
    let server = Server::start();
    let board = server.board("s");
    board.put("agents/A", "{}").await.is(201);
    let shown = board.get("agents/A").await;
    assert!(
        shown.text().starts_with(r#"{"agent":"A","status":"CONTINUE","revision":1,"#),
        "{shown}"
    );
    for status in ["ERROR", "FINISH", "CONTINUE", "FAIL", "PENDING", "CONFIRM", "SCREENSHOT"] {
        let tail = format!("agents/first-{status}");
        board.put(&tail, &json!({"status":status}).to_string()).await.is(201);
        assert_eq!(board.get(&tail).await.json()["status"], status);
    }
}

#[tokio::test]
async fn what_no_agent_can_be_is_refused_by_name() {
    let server = Server::start();
    let (absent, there) = (server.board("absent"), server.board("there"));
    there.put("agents/A", r#"{"type":"x"}"#).await.is(201);
    let fields = [
        (r#"{"type":1}"#, "/type"),
        (r#"{"platform":null}"#, "/platform"),
        (r#"{"host":["a"]}"#, "/host"),
        (r#"{"status":"WAITING"}"#, "/status"),
        (r#"{"status":"continue"}"#, "/status"),
        (r#"{"status":""}"#, "/status"),
        (r#"{"status":5}"#, "/status"),
        (r#"{"status":null}"#, "/status"),
        (r#"{"agent":"A"}"#, "/agent"),
        (r#"{"revision":1}"#, "/revision"),
        (r#"{"registered_at":"2026-01-01T00:00:00.000Z"}"#, "/registered_at"),
        (r#"{"x":1,"updated_at":null}"#, "/updated_at"),
        (r#"{"last_seen":null}"#, "/last_seen"),
    ];
    for (body, place) in fields {
        for board in [&absent, &there] {
            let put = board.json(Method::PUT, "agents/A", body);
            let refused = refuses(board, put, 422, "invalid-field").await;
            assert_eq!(pointer(&refused), place, "{body}");
        }
    }
    // A patch's null takes a member away; only the status must be there.
    for (body, place) in fields.into_iter().filter(|(body, _)| !body.contains("null")) {
        let patch = there.request(Method::PATCH, "agents/A", body);
        assert_eq!(pointer(&refuses(&there, patch, 422, "invalid-field").await), place, "{body}");
    }
    let patch = there.request(Method::PATCH, "agents/A", r#"{"status":null}"#);
    refuses(&there, patch, 422, "invalid-field").await;
    for body in ["5", "null", "[]", "\"x\"", "[[\"status\",\"FAIL\"]]"] {
        for board in [&absent, &there] {
            ask(board.json(Method::PUT, "agents/A", body)).await.is(422);
        }
        ask(there.request(Method::PATCH, "agents/A", body)).await.is(422);
    }
    for board in [&absent, &there] {
        for (body, status, code) in [
            ("{", 400, "invalid-json"),
            ("", 400, "invalid-json"),
            (r#"{"n":1e400}"#, 422, "unsupported-value"),
        ] {
            refuses(board, board.json(Method::PUT, "agents/A", body), status, code).await;
        }
        let text = board.typed(Method::PUT, "agents/A", "text/plain", "{}");
        refuses(board, text, 415, "unsupported-media-type").await;
    }
    absent.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_patch_changes_members_and_null_removes_them() {
    let server = Server::start();
    let board = server.board("s");
    board.put("agents/A", r#"{"b":{"x":1,"y":2},"type":"AppAgent","a":1E5}"#).await.is(201);
    let patches = [
        ("application/merge-patch+json", r#"{"b":{"x":null},"c":[1]}"#),
        ("application/json", r#"{"type":null,"status":"PENDING"}"#),
    ];
    for ((media_type, patch), revision) in patches.into_iter().zip(2..) {
        let patched = ask(board.typed(Method::PATCH, "agents/A", media_type, patch)).await;
        assert_eq!(receipt(patched.is(200)), json!({"revision":revision}));
        assert_eq!(patched.etag(), board.get("agents/A").await.etag());
    }
    let agent = board.get("agents/A").await;
    assert!(agent.text().contains(r#""b":{"y":2},"a":1E5"#), "{agent}");
    assert!(agent.text().contains(r#""c":[1]"#), "{agent}");
    let agent = agent.json();
    assert_eq!((&agent["status"], agent.get("type")), (&json!("PENDING"), None));
    for patch in ["{}", r#"{"status":"PENDING"}"#, r#"{"a":1E5,"gone":null}"#] {
        let same = board.merge("agents/A", patch).await;
        assert_eq!(receipt(same.is(200)), json!({"revision":3}), "{patch}");
    }
    let other = board.typed(Method::PATCH, "agents/A", "application/json-patch+json", "[]");
    let refused = refuses(&board, other, 415, "unsupported-media-type").await;
    assert!(refused.header("accept-patch").contains("application/merge-patch+json"), "{refused}");
}

#[tokio::test]
async fn an_agent_that_is_not_registered_is_404() {
    let server = Server::start();
    let (absent, there) = (server.board("absent"), server.made("there").await);
    for tail in ["agents/A", "agents/B%20%C3%A9"] {
        for (board, code) in [(&absent, "session-not-found"), (&there, "agent-not-found")] {
            board.get(tail).await.problem(404, code);
            refuses(board, board.request(Method::PATCH, tail, "{}"), 404, code).await;
            refuses(board, board.to(Method::DELETE, tail), 404, code).await;
        }
    }
    absent.get("agents").await.problem(404, "session-not-found");
    refuses(&absent, absent.to(Method::DELETE, "agents"), 404, "session-not-found").await;
}

#[tokio::test]
async fn an_agent_may_have_any_name_that_can_be() {
    let server = Server::start();
    let board = server.board("s");
    let long = "x".repeat(256);
    let odd = [
        "a b",
        "ö",
        "日本語",
        "🛸",
        "...",
        "a%b",
        "a+b",
        "?q=1#f",
        "a,b",
        "\"q\"",
        "~",
        "memory",
        &long,
    ];
    for name in odd {
        let tail = format!("agents/{}", encoded(name));
        let made = board.put(&tail, "{}").await;
        assert_eq!(made_at(&server, &made).await.is(200).json()["agent"], name);
    }
    let mut sorted = odd.map(str::to_owned).to_vec();
    sorted.sort_unstable();
    assert_eq!(names(&board.get("agents").await), sorted);
    for name in ["a%2Fb", "%00", &format!("{long}x")] {
        let put = board.json(Method::PUT, &format!("agents/{name}"), "{}");
        refuses(&board, put, 400, "invalid-name").await;
    }
}

#[tokio::test]
async fn a_writer_may_insist_on_the_agents_tag() {
    let server = Server::start();
    let board = server.board("s");
    for (method, body) in
        [(Method::PUT, r#"{"n":1}"#), (Method::PATCH, r#"{"n":2}"#), (Method::DELETE, "")]
    {
        let stale = board.put("agents/A", r#"{"n":"stale"}"#).await.succeeded().etag();
        board.merge("agents/A", r#"{"n":"present"}"#).await.is(200);
        board.put("agents/B", &json!({"m":method.as_str()}).to_string()).await.succeeded();
        let tag = board.get("agents/A").await.etag();
        let write = |header: &'static str, tags: &str| {
            board.request(method.clone(), "agents/A", body).header(header, tags)
        };
        for (header, tags) in [("if-match", stale.as_str()), ("if-none-match", "*")] {
            let refused = refuses(&board, write(header, tags), 412, "precondition-failed").await;
            assert_eq!(refused.etag(), tag);
            assert_eq!(refused.json()["current"]["n"], "present", "{refused}");
        }
        ask(write("if-match", &tag)).await.is(200);
    }
    let only_there = board.json(Method::PUT, "agents/new", "{}").header("if-match", "*");
    refuses(&board, only_there, 412, "precondition-failed").await;
    ask(board.json(Method::PUT, "agents/new", "{}").header("if-none-match", "*")).await.is(201);
}

#[tokio::test]
async fn the_first_agent_makes_the_session_and_outlives_a_kill() {
    let mut server = Server::start();
    let board = server.board("s");
    assert_eq!(board.put("agents/A", r#"{"n":1E5}"#).await.is(201).revision(), 1);
    ask(board.by("A", Method::POST, "requests", "{}")).await.is(201);
    board.delete("agents/A").await.is(200);
    ask(board.by("B", Method::PUT, "agents/B", r#"{"status":"CONFIRM"}"#)).await.is(201);
    let before = Whole::of(&board).await;
    server.kill();
    server.start_again();
    assert_eq!(Whole::of(&server.board("s")).await, before);
}
