//! Oversized requests: refused early, with flat memory.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::json;

use crate::answer::ask;
use crate::bad_input::Unmoved;
use crate::harness::Server;
use crate::images::png;
use crate::raw::{answer, connect, exchange};

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

/// The most memory that the server ever held, in bytes.
pub(crate) fn peak(server: &Server) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    let kib: usize = line.split_whitespace().nth(1).expect("kB").parse().expect("a number");
    kib * 1024
}

fn check_flat(server: &Server, before: usize, allowed: usize) {
    let grown = peak(server).saturating_sub(before);
    assert!(grown < allowed, "memory grew by {} MiB", grown / MIB);
}

#[tokio::test]
async fn a_gibibyte_announced_is_refused_before_it_is_sent() {
    let board = Unmoved::new().await;
    let before = peak(&board.server);
    for (line, media_type) in [
        ("POST /v1/sessions/s/requests", "application/json"),
        ("PUT /v1/sessions/s/requests", "application/x-ndjson"),
        ("PUT /v1/sessions/s/requests/1", "application/json"),
        ("PATCH /v1/sessions/s/requests/1", "application/merge-patch+json"),
        ("POST /v1/sessions/s/screenshots", "image/png"),
        ("PUT /v1/sessions/s/blackboard", "application/json"),
        ("PUT /v1/sessions/s", "application/json"),
    ] {
        let head = format!("{line} HTTP/1.1\nContent-Type: {media_type}\nContent-Length: {GIB}");
        exchange(&board.server, &head, b"").problem(413, "body-too-large");
    }
    check_flat(&board.server, before, 32 * MIB);
    board.check().await;
}

#[tokio::test]
async fn a_gibibyte_in_chunks_is_refused_early() {
    let board = Unmoved::new().await;
    let before = peak(&board.server);
    for (line, media_type, limit) in [
        ("POST /v1/sessions/s/requests", "application/json", 8 * MIB),
        ("POST /v1/sessions/s/requests", "application/x-ndjson", 8 * MIB),
        ("POST /v1/sessions/s/screenshots", "image/png", 32 * MIB),
    ] {
        let mut stream = connect(&board.server);
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
            board.server.authority()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let piece =
            [format!("{MIB:x}\r\n").into_bytes(), vec![b' '; MIB], b"\r\n".to_vec()].concat();
        let mut sent = 0;
        while sent < GIB && stream.write_all(&piece).is_ok() {
            sent += MIB;
        }
        assert!(sent < limit + 64 * MIB, "{sent} bytes were taken of {line}");
        // The answer may be lost to the reset of a connection that still had bytes under way.
        let refused = answer(stream);
        assert!(matches!(refused.status, 0 | 413), "{}", refused.head);
    }
    check_flat(&board.server, before, 128 * MIB);
    board.check().await;
}

fn gzipped(bytes: usize) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(b"{\"a\":\"").unwrap();
    for _ in 0..bytes / MIB {
        gzip.write_all(&vec![b' '; MIB]).unwrap();
    }
    gzip.write_all(b"\"}").unwrap();
    gzip.finish().unwrap()
}

fn zstd_of(bytes: usize) -> Vec<u8> {
    let mut frame = zstd::Encoder::new(Vec::new(), 1).unwrap();
    frame.write_all(b"{\"a\":\"").unwrap();
    for _ in 0..bytes / MIB {
        frame.write_all(&vec![b' '; MIB]).unwrap();
    }
    frame.write_all(b"\"}").unwrap();
    frame.finish().unwrap()
}

#[tokio::test]
async fn a_bomb_is_refused_when_it_has_unpacked_to_the_limit() {
    let board = Unmoved::new().await;
    let before = peak(&board.server);
    for (coding, bomb) in [("gzip", gzipped(64 * MIB)), ("zstd", zstd_of(256 * MIB))] {
        assert!(bomb.len() < MIB, "{coding}: {}", bomb.len());
        for (method, tail, media_type) in [
            (Method::POST, "requests", "application/json"),
            (Method::POST, "requests", "application/x-ndjson"),
            (Method::PUT, "requests/1", "application/json"),
            (Method::POST, "screenshots", "application/json"),
            (Method::POST, "screenshots", "image/png"),
        ] {
            let request = board.board.typed(method, tail, media_type, bomb.clone());
            let answer = ask(request.header("content-encoding", coding)).await;
            // A line may be too long for an item before the body is for its limit.
            answer.is(413);
        }
    }
    check_flat(&board.server, before, 160 * MIB);
    board.check().await;
}

#[tokio::test]
async fn packed_bodies_within_the_limit_are_taken() {
    let server = Server::start();
    let board = server.board("s");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(b"{\"a\":1.0}").unwrap();
    let zstd = zstd::encode_all(b"{\"a\":1.0}".as_slice(), 3).unwrap();
    for (coding, body) in [("gzip", gzip.finish().unwrap()), ("zstd", zstd)] {
        let request = board.typed(Method::POST, "requests", "application/json", body);
        ask(request.header("content-encoding", coding)).await.is(201);
    }
    assert_eq!(board.lines("requests").await, [r#"{"a":1.0}"#; 2]);
}

#[tokio::test]
async fn too_many_items_of_a_write_are_refused_before_they_wait() {
    let server = Server::start();
    let board = server.board("s");
    let many = format!("[{}{{}}]", "{},".repeat(500_000));
    board.post("trajectories", &many).await.problem(413, "commit-too-large");
    let lines = "{}\n".repeat(500_001);
    let lines = board.typed(Method::POST, "trajectories", "application/x-ndjson", lines);
    ask(lines).await.problem(413, "commit-too-large");
    board.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn an_item_has_its_own_limit() {
    let board = Unmoved::new().await;
    let big = format!("{{\"a\":\"{}\"}}", "x".repeat(MIB));
    board.board.post("requests", &big).await.problem(413, "item-too-large");
    board.board.post("requests", &format!("[{{}},{big}]")).await.problem(413, "item-too-large");
    board.board.put("requests/1", &big).await.problem(413, "item-too-large");
    let half = format!("{{\"b\":\"{}\"}}", "x".repeat(MIB * 2 / 3));
    let other = board.server.board("patched");
    other.post("requests", &half.replace("\"b\"", "\"c\"")).await.is(201);
    other.merge("requests/1", &half).await.problem(413, "item-too-large");
    board.check().await;
}

#[tokio::test]
async fn a_screenshot_may_be_larger_than_an_item_but_not_boundless() {
    let server = Server::start();
    let board = server.board("s");
    let large = crate::images::noise(2000, 1500);
    let posted = ask(board.typed(Method::POST, "screenshots", "image/png", large.clone())).await;
    posted.is(201);
    let url = crate::images::data_url("image/png", &large);
    board.post("screenshots", &json!({"image_str":url}).to_string()).await.is(201);
    assert_eq!(board.get("screenshots/2/image").await.body(), large);
    // Bytes after the image's end do not make it less of one; over 20 MiB it is too large.
    let mut bytes = png(2, 2, 1);
    bytes.resize(21 * MIB, 0);
    let answer = ask(board.typed(Method::POST, "screenshots", "image/png", bytes)).await;
    assert_eq!(answer.refused().status(), 413, "{answer}");
    // A picture that would unpack to gigabytes is not unpacked.
    let before = peak(&server);
    let vast = png_header(60_000, 60_000);
    let request = board.typed(Method::POST, "screenshots", "image/png", vast);
    let answer = ask(request).await;
    assert!(matches!(answer.status(), 201 | 413 | 422), "{answer}");
    check_flat(&server, before, 64 * MIB);
}

fn png_header(width: u32, height: u32) -> Vec<u8> {
    let small = png(1, 1, 0);
    let mut header = b"IHDR".to_vec();
    header.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
    header.extend([8, 0, 0, 0, 0]);
    let crc = crc32fast::hash(&header).to_be_bytes();
    [&small[..12], &header, &crc, &small[33..]].concat()
}

#[tokio::test]
async fn huge_headers_and_addresses_are_refused() {
    let board = Unmoved::new().await;
    let before = peak(&board.server);
    let long = "x".repeat(2 * MIB);
    for head in [
        format!("GET /v1/sessions/s HTTP/1.1\nX-Long: {long}"),
        format!("GET /v1/sessions/s?contains={long} HTTP/1.1"),
        format!("GET /v1/sessions/s HTTP/1.1\n{}", "X-Many: 1\n".repeat(5000)),
    ] {
        let mut stream = connect(&board.server);
        let head = head.trim_end().replace('\n', "\r\n");
        let host = board.server.authority();
        // The server may close while the rest is still being sent.
        write!(stream, "{head}\r\nHost: {host}\r\nConnection: close\r\n\r\n").ok();
        let refused = answer(stream);
        assert!(matches!(refused.status, 0 | 400..=499), "{}", refused.head);
    }
    check_flat(&board.server, before, 32 * MIB);
    board.check().await;
}

#[tokio::test]
async fn what_is_not_http_is_ended() {
    let board = Unmoved::new().await;
    for bytes in [
        b"hello\r\n\r\n".as_slice(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/sessions/s/requests HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"GET /v1/sessions HTTP/1.1\r\n\r\n",
    ] {
        let mut stream = connect(&board.server);
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).ok();
        let refused = answer(stream);
        assert!(matches!(refused.status, 0 | 400..=499), "{}", refused.head);
    }
    board.check().await;
}
