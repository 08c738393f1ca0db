//! Answers before a body is read: the connection continues or announces its end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::harness::Server;
use crate::raw::{RawAnswer, connect, next_answer};

/// More than the server reads of a connection at once, and little enough to be read for nothing.
const SMALL: usize = 60 << 10;
const LARGE: usize = 3 << 20;

/// Requests that are answered without their bodies.
const UNREAD: [(&str, u16); 7] = [
    ("POST /v1/sessions", 405),
    ("PATCH /healthz", 405),
    ("POST /v1/nothing", 404),
    ("POST /v1/sessions/s/requests?color=red", 400),
    ("PUT /v1/sessions/a%2Fb", 400),
    ("GET /v1/sessions/s", 200),
    ("POST /v1/sessions/s/purge", 200),
];

fn head(line: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\r\n")
}

fn with_length(line: &str, length: usize) -> String {
    head(line, &format!("Content-Length: {length}\r\n"))
}

fn asked(stream: &mut TcpStream, head: &str, body: &[u8]) -> RawAnswer {
    stream.write_all(head.as_bytes()).unwrap();
    // A server that has already refused may have closed; what counts is its answer.
    stream.write_all(body).ok();
    next_answer(stream)
}

#[track_caller]
fn goes_on(stream: &mut TcpStream, line: &str) {
    let next = asked(stream, &head("GET /healthz", ""), b"");
    assert_eq!(next.status, 200, "after {line}: {}", next.head);
}

#[track_caller]
fn is_closed(mut stream: TcpStream, answer: &RawAnswer) {
    assert!(answer.closes(), "{}", answer.head);
    // A reset closes as well as an end does.
    assert!(!stream.read(&mut [0]).is_ok_and(|n| n > 0), "something follows: {}", answer.head);
}

#[tokio::test]
async fn after_a_small_unread_body_the_connection_goes_on() {
    let server = Server::start();
    server.made("s").await;
    let body = vec![b' '; SMALL];
    let mut chunked = format!("{SMALL:x}\r\n").into_bytes();
    chunked.extend_from_slice(&body);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    for (line, status) in UNREAD {
        let mut stream = connect(&server);
        let whole = asked(&mut stream, &with_length(line, SMALL), &body);
        assert_eq!(whole.status, status, "{line}: {}", whole.head);
        assert!(!whole.closes(), "{line}: {}", whole.head);
        goes_on(&mut stream, line);
        let chunks = asked(&mut stream, &head(line, "Transfer-Encoding: chunked\r\n"), &chunked);
        assert_eq!(chunks.status, status, "{line} in chunks: {}", chunks.head);
        goes_on(&mut stream, line);
    }
}

#[tokio::test]
async fn after_a_large_unread_body_the_answer_closes_the_connection() {
    let server = Server::start();
    server.made("s").await;
    let body = vec![b' '; LARGE];
    for (line, status) in UNREAD {
        let mut stream = connect(&server);
        let refused = asked(&mut stream, &with_length(line, LARGE), &body);
        assert_eq!(refused.status, status, "{line}: {}", refused.head);
        is_closed(stream, &refused);
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_holds_up_no_answer() {
    let server = Server::start();
    server.made("s").await;
    for (line, status) in UNREAD {
        let mut stream = connect(&server);
        let refused = asked(&mut stream, &with_length(line, SMALL), b"{");
        assert_eq!(refused.status, status, "{line}: {}", refused.head);
        is_closed(stream, &refused);
    }
}

#[tokio::test]
async fn expect_continue_gets_no_100_for_an_unread_body() {
    let server = Server::start();
    server.made("s").await;
    for (line, status) in UNREAD {
        let mut stream = connect(&server);
        let headers = format!("Content-Length: {SMALL}\r\nExpect: 100-continue\r\n");
        let refused = asked(&mut stream, &head(line, &headers), b"");
        assert_eq!(refused.status, status, "{line}: {}", refused.head);
        is_closed(stream, &refused);
    }
}

#[tokio::test]
async fn a_body_that_was_read_leaves_its_connection_open() {
    let server = Server::start();
    let mut stream = connect(&server);
    for n in 1..=3 {
        let line = "POST /v1/sessions/s/requests";
        let made = asked(&mut stream, &with_length(line, 2), b"{}");
        assert_eq!(made.status, 201, "{n}: {}", made.head);
        assert!(!made.closes(), "{n}: {}", made.head);
    }
}
