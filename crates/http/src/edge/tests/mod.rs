//! Tests of the edge: admission of requests and form of responses.

mod access_log;
mod coding;
mod cors;
mod response_headers;

use std::{error::Error, io, net::SocketAddr};

use axum::extract::State;
use axum::{
    Json,
    body::Bytes,
    extract::{DefaultBodyLimit, rejection::BytesRejection},
    http::{HeaderValue, StatusCode, header},
    routing::{get, post},
};
use reqwest::{Client, Method, RequestBuilder, Response as Answer};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::access::methods::{Methods, method_not_allowed};
use crate::{ConnectionLimits, Problem, serve};
use blackboard_board::Code;

pub(super) const LONG: &str =
    "one two three four five six seven eight nine ten one two three four five six";

/// Headers set by a handler.
const OWN: [(&str, &str); 3] = [
    ("content-security-policy", "sandbox"),
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-site"),
];

fn router() -> Router {
    Router::new()
        .route("/long", get(async || LONG))
        .route("/echo", post(async |body: Bytes| body))
        .route("/read", post(read))
        .route("/panic", get(panicking))
        .route("/teapot", get(async || StatusCode::IM_A_TEAPOT))
        .route("/rpc", get(rpc))
        .route("/image", get(async || typed("image/png")))
        .route("/events", get(async || typed("text/event-stream")))
        .route("/failed", get(failed))
        .route("/v1/own", get(async || OWN))
        .route("/v1/sessions/{session}", get(missing))
        .layer(DefaultBodyLimit::max(1000))
        .method_not_allowed_fallback(|path, request| {
            method_not_allowed(State(Methods::default()), path, request)
        })
}

async fn read(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    body.map_err(|rejection| {
        let rejection: &(dyn Error + 'static) = &rejection;
        match (is_late(rejection), is_corrupt(rejection)) {
            (true, _) => Problem::new(Code::RequestTimeout, "late"),
            (_, true) => Problem::new(Code::InvalidEncoding, "damaged"),
            _ => Problem::new(Code::BodyTooLarge, "too large"),
        }
    })
}

async fn panicking() -> &'static str {
    panic!("secret words");
}

async fn rpc() -> impl IntoResponse {
    (StatusCode::BAD_REQUEST, Json("deliberate"))
}

fn typed(media_type: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, media_type)], LONG)
}

async fn failed() -> Problem {
    Problem::new(Code::StoreUnavailable, "Later.").cause(io::Error::other("secret words"))
}

async fn missing() -> Problem {
    let tag = HeaderValue::from_static("\"t\"");
    Problem::new(Code::SessionNotFound, "There is none.").header(header::ETAG, tag)
}

pub(super) struct Edge {
    addr: SocketAddr,
    client: Client,
}

impl Edge {
    pub(super) async fn start() -> Self {
        Self::start_for("").await
    }

    /// Starts a server that pages of these sites may call.
    pub(super) async fn start_for(sites: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let cors_origins = sites.parse().expect("sites");
        let options = EdgeOptions { cors_origins, ..EdgeOptions::default() };
        let body_silence_max = Duration::from_millis(200);
        let gate = Gate { body_silence_max, ..Gate::new(options, None) };
        let router = layered(router(), &Arc::new(gate));
        let limits = ConnectionLimits::default();
        tokio::spawn(serve(listener, router, limits, CancellationToken::new()));
        let client = Client::new();
        Self { addr, client }
    }

    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.addr);
        self.client.request(method, url)
    }

    async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    pub(super) async fn post(&self, path: &str, coding: &str, body: Vec<u8>) -> Answer {
        let request = self.request(Method::POST, path).body(body);
        send(request.header(header::CONTENT_ENCODING, coding)).await
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.expect("connect")
    }

    /// Sends a raw request, which must have `Connection: close`, and reads the answer to its end.
    pub(super) async fn raw(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.expect("write");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }
}

pub(super) async fn send(request: RequestBuilder) -> Answer {
    request.send().await.expect("an answer")
}

/// Checks that an answer is a complete problem, and returns its document.
pub(super) async fn problem(answer: Answer, status: u16, code: &str) -> Value {
    assert_eq!(answer.status(), status);
    let media_type = &answer.headers()[header::CONTENT_TYPE];
    assert_eq!(media_type, "application/problem+json");
    let id = answer.headers()["x-request-id"].to_str().expect("text");
    let instance = format!("urn:uuid:{id}");
    let text = answer.text().await.expect("a body");
    assert!(text.ends_with("}\n"), "{text}");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["code"], code);
    assert_eq!(json["status"], status);
    assert_eq!(json["instance"], instance);
    json
}

#[tokio::test]
async fn every_answer_has_its_id_and_the_common_headers_once() {
    let edge = Edge::start().await;
    for path in ["/long", "/nowhere", "/panic", "/v1/sessions/a"] {
        let request = edge.request(Method::GET, path);
        let request = request.header(header::ACCEPT_ENCODING, "gzip");
        let answer = send(request.header("x-request-id", "mine")).await;
        let of = |name: &str| -> Vec<HeaderValue> {
            answer.headers().get_all(name).iter().cloned().collect()
        };
        assert_eq!(of("vary"), ["Accept, Accept-Encoding"], "{path}");
        assert_eq!(of("x-content-type-options"), ["nosniff"], "{path}");
        assert_eq!(of("x-request-id").len(), 1, "{path}");
        assert_eq!(of("x-request-id")[0].len(), 36, "{path}");
    }
}

#[tokio::test]
async fn the_routers_refusals_are_problems() {
    let edge = Edge::start().await;
    problem(edge.get("/nowhere").await, 404, "route-not-found").await;
    let answer = send(edge.request(Method::DELETE, "/long")).await;
    assert_eq!(answer.headers()[header::ALLOW], "GET,HEAD");
    problem(answer, 405, "method-not-allowed").await;
}

#[tokio::test]
async fn a_handlers_problem_keeps_its_headers() {
    let edge = Edge::start().await;
    let answer = edge.get("/v1/sessions/a").await;
    assert_eq!(answer.headers()[header::ETAG], "\"t\"");
    let json = problem(answer, 404, "session-not-found").await;
    assert_eq!(json["detail"], "There is none.");
}

#[tokio::test]
async fn a_layers_own_refusal_becomes_a_problem() {
    let edge = Edge::start().await;
    let answer = edge.post("/echo", "identity", vec![b'x'; 2000]).await;
    let json = problem(answer, 413, "body-too-large").await;
    assert_eq!(json["detail"], "Failed to buffer the request body: length limit exceeded");
    let teapot = edge.get("/teapot").await;
    problem(teapot, 418, "invalid-parameter").await;
}

#[tokio::test]
async fn a_deliberate_error_in_another_media_type_stays_as_it_is() {
    let edge = Edge::start().await;
    let answer = edge.get("/rpc").await;
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.text().await.expect("a body"), "\"deliberate\"");
}

#[tokio::test]
async fn a_failure_tells_no_cause_and_the_server_goes_on() {
    let edge = Edge::start().await;
    let json = problem(edge.get("/panic").await, 500, "internal").await;
    assert!(!json.to_string().contains("secret"));
    let answer = edge.get("/failed").await;
    assert_eq!(answer.headers()[header::RETRY_AFTER], "1");
    let json = problem(answer, 503, "store-unavailable").await;
    assert!(!json.to_string().contains("secret"));
    assert_eq!(json["retryable"], true);
    assert_eq!(edge.get("/long").await.status(), 200);
}

#[tokio::test]
async fn a_path_that_is_not_percent_encoded_utf8_is_refused() {
    let edge = Edge::start().await;
    for path in ["a%", "a%2", "a%zz", "%FF", "%C3%28", "a%+1"] {
        for prefix in ["/v1/sessions/", "/nowhere/"] {
            let answer = edge
                .raw(&format!(
                    "GET {prefix}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                ))
                .await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
            assert!(answer.contains(r#""code":"invalid-encoding""#), "{path}");
        }
    }
    let json = problem(edge.get("/v1/sessions/%C3%A9%2F%25").await, 404, "session-not-found");
    json.await;
}

#[tokio::test]
async fn a_request_for_a_foreign_host_is_refused() {
    let edge = Edge::start().await;
    for head in [
        "GET /long HTTP/1.1\r\nHost: evil.example",
        "GET http://evil.example/long HTTP/1.1\r\nHost: localhost",
        "GET /long HTTP/1.0",
    ] {
        let answer = edge.raw(&format!("{head}\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.contains(" 421 "), "{answer}");
        assert!(answer.contains(r#""code":"unknown-host""#), "{answer}");
    }
    let foreign = edge.request(Method::GET, "/long");
    let foreign = send(foreign.header(header::ORIGIN, "https://evil.example")).await;
    problem(foreign, 403, "forbidden").await;
}

#[tokio::test]
async fn head_answers_as_get_does_but_for_the_body() {
    let edge = Edge::start().await;
    let raw = async |path: &str, more: &str| {
        edge.raw(&format!(
            "HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n"
        ))
        .await
    };
    let plain = raw("/long", "").await;
    assert!(plain.starts_with("HTTP/1.1 200 "), "{plain}");
    assert!(plain.contains(&format!("content-length: {}\r\n", LONG.len())));
    assert!(plain.ends_with("\r\n\r\n"), "{plain}");
    let zipped = raw("/long", "Accept-Encoding: gzip\r\n").await;
    assert!(zipped.contains("content-encoding: gzip\r\n"), "{zipped}");
    assert!(zipped.ends_with("\r\n\r\n"), "{zipped}");
    let missing = raw("/v1/sessions/a", "").await;
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
    assert!(missing.contains("content-type: application/problem+json"));
    assert!(!missing.contains("content-length: 0"), "{missing}");
    assert!(missing.ends_with("\r\n\r\n"), "{missing}");
}

#[tokio::test]
async fn two_hosts_are_not_played_against_each_other() {
    let edge = Edge::start().await;
    let answer = edge
        .raw("GET /long HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}
