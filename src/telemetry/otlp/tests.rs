//! Tests of exported spans: one per exchange, under the client's span, if the client records it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use tracing_subscriber::layer::SubscriberExt as _;

use super::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const OTHER: &str = "1111111111111111aaaaaaaaaaaaaaaa";

/// One request to the collector: its head and its body.
fn received(listener: &TcpListener) -> (String, Vec<u8>) {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).unwrap();
    }
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    reader.into_inner().write_all(answer).unwrap();
    (head, body)
}

fn has(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_collector_gets_the_spans_of_what_is_recorded() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/", listener.local_addr().unwrap());
    let collector = thread::spawn(move || received(&listener));
    let (spans, sending) = Spans::to(&endpoint).unwrap();
    let spans = tracing_subscriber::registry().with(spans);
    tracing::subscriber::with_default(spans, || {
        for (trace_id, sampled) in [(TRACE, true), (OTHER, false)] {
            tracing::info!(
                target: ANSWERED,
                method = "GET",
                route = "/v1/sessions/{session}",
                status = 503_u16,
                ms = 12.5,
                session = "secret-session",
                trace_id,
                span_id = "b7ad6b7169203331",
                parent_id = "00f067aa0ba902b7",
                sampled,
                "answered"
            );
        }
        tracing::info!(text = "secret-text", "something else");
    });
    drop(sending);
    let (head, body) = collector.join().unwrap();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    for part in [
        &TraceId::from_hex(TRACE).unwrap().to_bytes()[..],
        &SpanId::from_hex("b7ad6b7169203331").unwrap().to_bytes(),
        &SpanId::from_hex("00f067aa0ba902b7").unwrap().to_bytes(),
        b"GET /v1/sessions/{session}",
        b"http.response.status_code",
        b"service.name",
    ] {
        assert!(has(&body, part), "{part:?}");
    }
    assert!(!has(&body, &TraceId::from_hex(OTHER).unwrap().to_bytes()));
    assert!(!has(&body, b"secret"));
}
