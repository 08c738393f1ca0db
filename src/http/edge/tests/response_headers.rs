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
        let caching = answer.headers().get("cache-control");
        assert_eq!(caching.is_some(), path.starts_with("/v1/"), "{path}");
        if let Some(caching) = caching {
            assert_eq!(caching, "private, no-cache", "{path}");
        }
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
