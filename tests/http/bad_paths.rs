//! Bad addresses: invalid names, unknown routes and methods, unknown parameters.

use reqwest::Method;

use crate::answer::ask;
use crate::bad_input::Unmoved;
use crate::harness::Server;
use crate::raw::exchange;

/// Every route of this version with the methods it answers to.
const ROUTES: [(&str, &[&str]); 13] = [
    ("/v1/sessions", &["GET"]),
    ("/v1/sessions/s", &["GET", "PUT", "DELETE"]),
    ("/v1/sessions/s/blackboard", &["GET", "PUT", "DELETE"]),
    ("/v1/sessions/s/prompt", &["GET"]),
    ("/v1/sessions/s/questions", &["GET", "POST", "PUT", "DELETE"]),
    ("/v1/sessions/s/requests", &["GET", "POST", "PUT", "DELETE"]),
    ("/v1/sessions/s/trajectories", &["GET", "POST", "PUT", "DELETE"]),
    ("/v1/sessions/s/screenshots", &["GET", "POST", "PUT", "DELETE"]),
    ("/v1/sessions/s/agents/A/memory", &["GET", "POST", "PUT", "DELETE"]),
    ("/v1/sessions/s/requests/1", &["GET", "PUT", "PATCH", "DELETE"]),
    ("/v1/sessions/s/agents/HostAgent/memory/1", &["GET", "PUT", "PATCH", "DELETE"]),
    ("/v1/sessions/s/agents/HostAgent/memory/cost", &["GET"]),
    ("/v1/sessions/s/screenshots/1/image", &["GET"]),
];

fn body_of(method: &str, path: &str) -> (&'static str, &'static str) {
    let is_log = ["questions", "requests", "trajectories", "screenshots", "memory"]
        .iter()
        .any(|log| path.ends_with(log));
    match method {
        "PATCH" => ("application/merge-patch+json", "{}"),
        "PUT" if is_log => ("application/json", "[]"),
        "PUT" | "POST" => ("application/json", "{}"),
        _ => ("", ""),
    }
}

#[tokio::test]
async fn an_unknown_parameter_is_refused_by_every_route_by_name() {
    let board = Unmoved::new().await;
    for (path, methods) in ROUTES {
        for method in methods {
            let (media_type, body) = body_of(method, path);
            for query in ["lmit=5", "unknown", "Limit=5"] {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                let mut request = board.server.to(method, &format!("{path}?{query}"));
                if !media_type.is_empty() {
                    request = request.header("content-type", media_type).body(body);
                }
                let problem = ask(request).await.problem(400, "unknown-parameter");
                let name = query.split('=').next().unwrap();
                assert!(problem.to_string().contains(name), "{problem}");
            }
        }
        board.check().await;
    }
}

#[tokio::test]
async fn a_parameter_given_twice_is_refused() {
    let board = Unmoved::new().await;
    for tail in [
        "requests?limit=1&limit=2",
        "requests?after=1&after=1",
        "requests?order=asc&order=asc",
        "prompt?latest=1&latest=2",
        "requests?min_revision=1&min_revision=1",
    ] {
        board.board.get(tail).await.problem(400, "invalid-parameter");
    }
    board.board.delete("requests?keep=1&keep=2").await.problem(400, "invalid-parameter");
    board.check().await;
}

#[tokio::test]
async fn an_unknown_name_comes_with_the_known_ones() {
    let board = Unmoved::new().await;
    let (put, post) = (Method::PUT, Method::POST);
    let refusals = [
        (
            board.board.get("requests?last=5").await,
            "did you mean 'latest'? Known here: after, agent, ",
        ),
        (
            board.board.get("requests?zzz=5").await,
            "unknown parameter 'zzz'; known here: after, agent, ",
        ),
        (board.board.get("prompt?format=Anthropic").await, "did you mean 'anthropic'?"),
        (board.board.get("prompt?format=xml").await, "must be one of parts, "),
        (
            ask(board.board.json(post.clone(), "transactions", r#"{"than":[]}"#)).await,
            "/than: unknown member; did you mean 'then'? Known here: else, if, then",
        ),
        (
            ask(board.board.json(post, "transactions", r#"{"then":[{"put":"a","valeu":1}]}"#))
                .await,
            "expected the member 'value'",
        ),
        (
            ask(board.board.json(put, "", r#"{"settings":{"historyKeys":["a"]}}"#)).await,
            "did you mean 'history_keys'?",
        ),
    ];
    for (refused, expected) in refusals {
        let problem = refused.refused().json();
        assert!(problem["detail"].as_str().unwrap().contains(expected), "{expected}: {refused}");
    }
    board.check().await;
}

#[tokio::test]
async fn a_query_must_be_utf_8() {
    let board = Unmoved::new().await;
    for tail in ["requests?contains=%FF", "requests?agent=%C3%28", "prompt?keys=%ED%A0%80"] {
        board.board.get(tail).await.is(400);
    }
    board.check().await;
}

#[tokio::test]
async fn options_has_the_methods_of_a_route() {
    let board = Unmoved::new().await;
    for (path, methods) in ROUTES {
        let answer = ask(board.server.to(Method::OPTIONS, path)).await;
        assert_eq!(answer.is(204).text(), "", "{answer}");
        let allow = answer.header("allow");
        assert!(
            methods.iter().all(|known| allow.split(',').any(|name| name == *known)),
            "{answer}"
        );
    }
    let posted = ask(board.server.to(Method::POST, "/v1/sessions")).await;
    let problem = posted.problem(405, "method-not-allowed");
    assert!(problem["detail"].as_str().unwrap().contains("PUT /v1/sessions/{session}"), "{posted}");
    board.check().await;
}

#[tokio::test]
async fn a_method_that_a_route_does_not_know_is_405_with_allow() {
    let board = Unmoved::new().await;
    for (path, methods) in ROUTES {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            if methods.contains(&method) {
                continue;
            }
            let request = board.server.to(Method::from_bytes(method.as_bytes()).unwrap(), path);
            let answer = ask(request).await;
            let problem = answer.problem(405, "method-not-allowed");
            let allow = answer.header("allow");
            let detail = problem["detail"].as_str().unwrap_or_default();
            for known in methods {
                assert!(path.starts_with("/docs/") || detail.contains(known), "{known}: {answer}");
                assert!(allow.split(',').any(|name| name.trim() == *known), "{allow}: {answer}");
            }
            assert!(!allow.split(',').any(|name| name.trim() == method), "{allow}: {answer}");
        }
    }
    board.check().await;
}

#[tokio::test]
async fn an_unknown_route_is_a_problem() {
    let board = Unmoved::new().await;
    for path in [
        "/v1",
        "/v2/sessions",
        "/v1/session",
        "/v1/sessions/s/answers",
        "/v1/sessions/s/requests/1/x",
        "/v1/sessions/a/b",
        "/v1/sessions/s/agents/A/memories",
        "/favicon.ico",
        "/v1/sessions/s/blackboard/",
    ] {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            ask(board.server.to(method, path)).await.problem(404, "route-not-found");
        }
    }
    board.check().await;
}

#[tokio::test]
async fn a_session_must_have_a_name_that_can_be() {
    let board = Unmoved::new().await;
    let long = "x".repeat(257);
    let wide = "%C3%A9".repeat(129);
    let names = [
        "a%2Fb",
        "a%2fb",
        "..",
        ".",
        "%2e%2e",
        "%2E",
        "%2e.",
        "%00",
        "a%0Ab",
        "%1F",
        "%7F",
        "%C2%85",
        "%FF",
        "%C3%28",
        "%ED%A0%80",
        long.as_str(),
        wide.as_str(),
    ];
    for name in names {
        for (method, tail, body) in [
            ("PUT", "", "{}"),
            ("GET", "", ""),
            ("DELETE", "", ""),
            ("GET", "/blackboard", ""),
            ("POST", "/requests", "{}"),
            ("PUT", "/blackboard", "{}"),
        ] {
            let length = body.len();
            let head = format!(
                "{method} /v1/sessions/{name}{tail} HTTP/1.1\nContent-Type: application/json\nContent-Length: {length}"
            );
            let utf8 = !["%FF", "%C3%28", "%ED%A0%80"].contains(&name);
            let code = if utf8 { "invalid-name" } else { "invalid-encoding" };
            exchange(&board.server, &head, body.as_bytes()).problem(400, code);
        }
    }
    for path in ["/v1/sessions//blackboard", "/v1/sessions/"] {
        let answer = exchange(&board.server, &format!("GET {path} HTTP/1.1"), b"");
        assert!(matches!(answer.status, 400 | 404), "{}", answer.head);
    }
    let list = board.server.get("/v1/sessions").await.json();
    assert_eq!(list["sessions"].as_array().map(Vec::len), Some(1), "{list}");
    board.check().await;
}

#[tokio::test]
async fn a_foreign_host_is_refused() {
    let board = Unmoved::new().await;
    let port = board.server.authority().rsplit(':').next().unwrap().to_owned();
    for host in
        ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example"]
    {
        for (line, body) in [
            ("GET /v1/sessions/s/blackboard", ""),
            ("POST /v1/sessions/s/requests", "{}"),
            ("GET /v1/sessions", ""),
        ] {
            let length = body.len();
            let head = format!(
                "{line} HTTP/1.1\nHost: {host}\nContent-Type: application/json\nContent-Length: {length}"
            );
            exchange(&board.server, &head, body.as_bytes()).problem(421, "unknown-host");
        }
    }
    for host in
        ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "192.0.2.7", &format!("localhost:{port}")]
    {
        let head = format!("GET /v1/sessions/s HTTP/1.1\nHost: {host}");
        assert_eq!(exchange(&board.server, &head, b"").status, 200, "{host}");
    }
    board.check().await;
}

#[tokio::test]
async fn a_named_host_may_be_allowed() {
    let server = Server::start_with(&["--allowed-hosts", "board.example"]);
    for (host, status) in
        [("board.example", 200), ("board.example:8733", 200), ("other.example", 421)]
    {
        let head = format!("GET /healthz HTTP/1.1\nHost: {host}");
        let answer = exchange(&server, &head, b"");
        // A probe of the container's own may ask by any name.
        assert!(answer.status == status || answer.status == 200, "{host}: {}", answer.head);
        let head = format!("GET /v1/sessions HTTP/1.1\nHost: {host}");
        assert_eq!(exchange(&server, &head, b"").status, status, "{host}");
    }
}

#[tokio::test]
async fn misspelt_parameters_and_values_are_refused_and_not_ignored() {
    let board = Unmoved::new().await;
    for tail in [
        "questions?pending=1",
        "prompt?max_token=5",
        "prompt?format=Markdown",
        "screenshots/1/image?max_px=0",
    ] {
        board.board.get(tail).await.is(400);
    }
    board.check().await;
}
