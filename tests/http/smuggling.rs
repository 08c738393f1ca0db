//! Requests with ambiguous ends: refused, the connection closed, nothing behind them carried out.
//!
//! A line that ends with a bare LF is read as one that ends with CR LF (RFC 9112 section 2.2 allows it), in the
//! one parser that there is; together with a length that says otherwise it is refused like any other contradiction.

use std::io::Write as _;
use std::net::Shutdown;

use crate::harness::Server;
use crate::raw::{RawAnswer, answer, connect};

/// What would be carried out if a server took the end of the first request to be somewhere else.
const SECOND: &str = "POST /v1/sessions/smuggled/requests HTTP/1.1\r\nHost: localhost\r\n\
    Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

const FIRST: &str = "POST /v1/sessions/s/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\n";
const ONE_CHUNK: &str = "2\r\n{}\r\n0\r\n\r\n";

/// Sends all of it at once, and reads to the connection's end.
fn sent(server: &Server, text: &str) -> RawAnswer {
    let mut stream = connect(server);
    // A server that has already refused may have closed; what counts is its answer.
    stream.write_all(text.as_bytes()).ok();
    answer(stream)
}

async fn is_refused(server: &Server, headers_and_body: &str) {
    let refused = sent(server, &format!("{FIRST}{headers_and_body}{SECOND}"));
    assert_eq!(refused.status, 400, "{headers_and_body:?}: {}", refused.head);
    let statuses = format!("{}{}", refused.head, refused.body).matches("HTTP/1.").count();
    assert_eq!(statuses, 1, "{headers_and_body:?}");
    for session in ["smuggled", "s"] {
        let found = server.get(&format!("/v1/sessions/{session}")).await;
        assert_eq!(found.status(), 404, "{headers_and_body:?} made {session}");
    }
}

#[tokio::test]
async fn two_lengths_that_contradict_each_other_are_refused() {
    let server = Server::start();
    for headers in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n",
        "Content-Length: 2\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n{}",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "Content-Length: 2, 3\r\n\r\n{}",
        "Content-Length: 2, 2\r\n\r\n{}",
    ] {
        is_refused(&server, headers).await;
    }
}

#[tokio::test]
async fn a_length_that_is_no_number_is_refused() {
    let server = Server::start();
    for length in ["+2", "-2", "0x2", "", "2 2", "2.0", "99999999999999999999999", "two"] {
        is_refused(&server, &format!("Content-Length: {length}\r\n\r\n{{}}")).await;
    }
}

#[tokio::test]
async fn a_transfer_coding_that_is_not_chunked_alone_is_refused() {
    let server = Server::start();
    for coding in [
        "xchunked",
        "identity",
        "chunked, identity",
        "gzip, chunked",
        "chunked, chunked",
        "identity, chunked",
        "\"chunked\"",
        "chunked;q=1",
        "\u{b}chunked",
        "",
        "chunked\r\nTransfer-Encoding: chunked",
        "chunked\r\nTransfer-Encoding: identity",
        "identity\r\nTransfer-Encoding: chunked",
    ] {
        is_refused(&server, &format!("Transfer-Encoding: {coding}\r\n\r\n{ONE_CHUNK}")).await;
    }
    let old = FIRST.replace("HTTP/1.1", "HTTP/1.0");
    let refused = sent(&server, &format!("{old}{CHUNKED}{ONE_CHUNK}{SECOND}"));
    assert_eq!(refused.status, 400, "{}", refused.head);
}

#[tokio::test]
async fn a_chunk_of_uncertain_size_is_refused() {
    let server = Server::start();
    for chunks in [
        "2x\r\n{}\r\n0\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "-2\r\n{}\r\n0\r\n\r\n",
        "+2\r\n{}\r\n0\r\n\r\n",
        " 2\r\n{}\r\n0\r\n\r\n",
        "\r\n{}\r\n0\r\n\r\n",
        "10000000000000002\r\n{}\r\n0\r\n\r\n",
        "2\n{}\n0\n\n",
        "2\r\n{}\n0\r\n\r\n",
        "2;a\nb\r\n{}\r\n0\r\n\r\n",
        "2;a\rb\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}xx\r\n0\r\n\r\n",
    ] {
        is_refused(&server, &format!("{CHUNKED}{chunks}")).await;
    }
}

#[tokio::test]
async fn the_two_loose_forms_that_are_taken_have_one_end() {
    let server = Server::start();
    let chunked = format!("{FIRST}{CHUNKED}2 \t\r\n{{}}\r\n0 \r\n\r\n");
    let line_feeds = format!("{FIRST}Content-Length: 2\r\n\r\n").replace('\r', "") + "{}";
    for (n, first) in [chunked, line_feeds].into_iter().enumerate() {
        let second = SECOND.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let both = sent(&server, &format!("{first}{second}"));
        let statuses = format!("{}{}", both.head, both.body).matches("HTTP/1.1 201").count();
        assert_eq!(statuses, 2, "{first:?}: {} {}", both.head, both.body);
        for session in ["s", "smuggled"] {
            let found = server.get(&format!("/v1/sessions/{session}")).await.is(200).json();
            assert_eq!(found["counts"]["requests"], n + 1, "{first:?}");
        }
    }
}

#[tokio::test]
async fn a_head_that_is_malformed_is_refused() {
    let server = Server::start();
    for headers in [
        "X-A: a\r\n Content-Length: 2\r\n\r\n{}",
        "Transfer-Encoding:\r\n chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "Content-Length : 2\r\n\r\n{}",
        "Transfer-Encoding\t: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "X: y\rContent-Length: 2\r\n\r\n{}",
        "X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
        "X\0: ab\r\nContent-Length: 2\r\n\r\n{}",
        "Xabc\r\nContent-Length: 2\r\n\r\n{}",
        ": abc\r\nContent-Length: 2\r\n\r\n{}",
    ] {
        is_refused(&server, headers).await;
    }
    for (from, to) in [("HTTP/1.1", "HTTP/1.2"), ("HTTP/1.1", "http/1.1"), (" /v1", "  /v1")] {
        let first = FIRST.replacen(from, to, 1);
        let refused = sent(&server, &format!("{first}Content-Length: 2\r\n\r\n{{}}{SECOND}"));
        assert_eq!(refused.status, 400, "{first}: {}", refused.head);
    }
}

#[tokio::test]
async fn a_body_that_nobody_asked_for_is_no_request() {
    let server = Server::start();
    let length = SECOND.len();
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
    for framed in [
        format!("Content-Length: {length}\r\n\r\n{SECOND}"),
        format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{SECOND}\r\n0\r\n\r\n"),
    ] {
        let mut stream = connect(&server);
        stream.write_all(format!("{head}{framed}").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let said = answer(stream);
        assert_eq!(said.status, 200, "{}", said.head);
        assert!(!said.body.contains("HTTP/1.1"), "{}", said.body);
        server.get("/v1/sessions/smuggled").await.problem(404, "session-not-found");
    }
}

#[tokio::test]
async fn what_is_well_framed_is_taken_in_any_writing() {
    let server = Server::start();
    for headers in [
        "Content-Length: 2\r\n\r\n{}",
        "Transfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n2;name=value\r\n{}\r\n0\r\nX-Trailer: x\r\n\r\n",
    ] {
        let mut stream = connect(&server);
        stream.write_all(format!("{FIRST}{headers}{SECOND}").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let said = answer(stream);
        assert_eq!(said.status, 201, "{headers:?}: {}", said.head);
        assert!(said.body.contains("HTTP/1.1 201 "), "{headers:?}: {}", said.body);
    }
}
