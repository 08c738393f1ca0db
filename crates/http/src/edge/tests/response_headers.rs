//! Tests of security headers, and of handlers that set their own.

use reqwest::Method;

use super::{Edge, send};

#[tokio::test]
async fn every_answer_tells_a_browser_to_be_careful() {
    let edge = Edge::start().await;
    for path in ["/long", "/nowhere", "/panic", "/v1/sessions/a", "/events", "/image"] {
        let answer = send(edge.request(Method::GET, path)).await;
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("x-frame-options", "DENY"),
            ("cross-origin-resource-policy", "same-origin"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ] {
            let found: Vec<_> = answer.headers().get_all(name).iter().collect();
            assert_eq!(found, [value], "{path}: {name}");
        }
    }
}

#[tokio::test]
async fn a_tag_and_a_stream_are_kept_from_proxies() {
    let edge = Edge::start().await;
    for (path, caching, tag) in [
        ("/long", None, None),
        ("/v1/nowhere", Some("private, no-cache"), None),
        // It has a tag.
        ("/v1/sessions/a", Some("private, no-cache, no-transform"), Some("\"t\"")),
        ("/events", Some("private, no-cache, no-transform"), None),
    ] {
        let answer = send(edge.request(Method::GET, path)).await;
        let header = |name| answer.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!((header("cache-control"), header("blackboard-etag")), (caching, tag), "{path}");
    }
}

#[tokio::test]
async fn what_a_handler_says_itself_stands() {
    let edge = Edge::start_for("https://app.example").await;
    let request = edge.request(Method::GET, "/v1/own");
    let answer = send(request.header("origin", "https://app.example")).await;
    for (name, value) in [
        ("content-security-policy", "sandbox"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-site"),
    ] {
        let found: Vec<_> = answer.headers().get_all(name).iter().collect();
        assert_eq!(found, [value], "{name}");
    }
}
