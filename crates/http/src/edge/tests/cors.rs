//! Tests of CORS: browser requests from listed sites and from others.

use axum::http::header;
use reqwest::{Method, Response as Answer};

use super::{Edge, problem, send};
use crate::edge::cors::{CorsOrigins, InvalidOrigin};

const SITES: &str = "https://app.example, HTTP://Localhost:5173,https://default.example:443";

async fn preflight(edge: &Edge, path: &str, origin: &str) -> Answer {
    let request = edge.request(Method::OPTIONS, path).header(header::ORIGIN, origin);
    let request = request.header("access-control-request-headers", "authorization");
    send(request.header(header::ACCESS_CONTROL_REQUEST_METHOD, "PATCH")).await
}

async fn get(edge: &Edge, origin: &str) -> Answer {
    send(edge.request(Method::GET, "/long").header(header::ORIGIN, origin)).await
}

#[tokio::test]
async fn a_listed_site_is_told_what_it_may_send() {
    let edge = Edge::start_for(SITES).await;
    for path in ["/long", "/nowhere", "/v1/sessions/a"] {
        let answer = preflight(&edge, path, "https://app.example").await;
        assert_eq!(answer.status(), 204, "{path}");
        let of = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
        assert_eq!(of("access-control-allow-origin"), "https://app.example");
        assert!(of("access-control-allow-methods").contains("PATCH"), "{path}");
        assert!(of("access-control-allow-headers").contains("authorization"), "{path}");
        assert_eq!(of("access-control-max-age"), "600");
        assert_eq!(of("vary"), "Accept, Accept-Encoding, Origin");
        assert!(!answer.headers().contains_key("access-control-allow-credentials"));
    }
}

#[tokio::test]
async fn the_pages_of_a_listed_site_may_read_answers() {
    let edge = Edge::start_for(SITES).await;
    for site in ["https://app.example", "http://localhost:5173", "https://default.example"] {
        let answer = get(&edge, site).await;
        assert_eq!(answer.status(), 200, "{site}");
        assert_eq!(answer.headers()["access-control-allow-origin"], site);
        assert_eq!(answer.headers()["cross-origin-resource-policy"], "cross-origin");
        let shown = answer.headers()["access-control-expose-headers"].to_str().expect("text");
        assert!(shown.contains("etag") && shown.contains("blackboard-revision"), "{shown}");
    }
}

#[tokio::test]
async fn every_other_site_is_refused_as_before() {
    let edge = Edge::start_for(SITES).await;
    for origin in [
        "https://evil.example",
        "http://app.example",
        "https://app.example:8443",
        "https://app.example.evil.example",
        "https://APP.example",
        "null",
    ] {
        for answer in [preflight(&edge, "/long", origin).await, get(&edge, origin).await] {
            assert!(!answer.headers().contains_key("access-control-allow-origin"), "{origin}");
            assert_eq!(answer.headers()["vary"], "Accept, Accept-Encoding, Origin");
            problem(answer, 403, "forbidden").await;
        }
    }
}

#[tokio::test]
async fn its_own_pages_need_no_listing() {
    let edge = Edge::start_for(SITES).await;
    let answer = get(&edge, "http://127.0.0.1:8733").await;
    assert_eq!(answer.status(), 200);
    assert!(!answer.headers().contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn without_a_list_a_preflight_is_a_request_like_any_other() {
    let edge = Edge::start().await;
    let own = preflight(&edge, "/long", "http://localhost").await;
    assert_eq!(
        (own.status().as_u16(), &own.headers()[header::ALLOW]),
        (204, &"GET,HEAD".parse().unwrap())
    );
    assert!(!own.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
    problem(preflight(&edge, "/long", "https://app.example").await, 403, "forbidden").await;
    let answer = get(&edge, "http://localhost").await;
    assert_eq!(answer.headers()["vary"], "Accept, Accept-Encoding");
}

#[tokio::test]
async fn options_that_are_no_preflight_stay_what_they_are() {
    let edge = Edge::start_for(SITES).await;
    let request = edge.request(Method::OPTIONS, "/long");
    let answer = send(request.header(header::ORIGIN, "https://app.example")).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()[header::ALLOW]),
        (204, &"GET,HEAD".parse().unwrap())
    );
    assert!(!answer.headers().contains_key(header::ACCESS_CONTROL_ALLOW_METHODS));
}

#[tokio::test]
async fn a_preflight_is_for_our_hosts_only() {
    let edge = Edge::start_for(SITES).await;
    let request = edge.request(Method::OPTIONS, "/long").header(header::HOST, "evil.example");
    let request = request.header(header::ORIGIN, "https://app.example");
    let answer = send(request.header(header::ACCESS_CONTROL_REQUEST_METHOD, "GET")).await;
    problem(answer, 421, "unknown-host").await;
}

#[test]
fn what_is_no_site_is_refused_with_a_reason() {
    let refused = |text: &str| text.parse::<CorsOrigins>().err();
    assert_eq!(refused("https://a.example,*"), Some(InvalidOrigin::Any));
    assert_eq!(refused("null"), Some(InvalidOrigin::Null));
    for text in ["a.example", "ftp://a.example", "file://", "//a.example"] {
        assert_eq!(refused(text), Some(InvalidOrigin::Scheme(text.to_owned())));
    }
    for text in [
        "https://",
        "https://a.example/",
        "https://a.example/path",
        "https://user@a.example",
        "https://a.example:",
        "https://a.example:port",
        "https://*.example",
        "https://a.example?x",
    ] {
        assert_eq!(refused(text), Some(InvalidOrigin::Malformed(text.to_owned())));
    }
    for text in ["", " , ", "https://a.example", "http://[::1]:3000,http://10.0.0.1"] {
        assert_eq!(refused(text), None, "{text}");
    }
}
