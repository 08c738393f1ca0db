//! Archives: sessions exported, imported under other names, and refused.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::oversize::peak;
use crate::raw::{connect, exchange};

const NDJSON: &str = "application/x-ndjson";

fn put(board: &Board, archive: impl Into<reqwest::Body>) -> RequestBuilder {
    board.typed(Method::PUT, "archive", NDJSON, archive)
}

/// A session with an image, and its archive.
async fn archived(server: &Server, session: &str) -> (Board, Answer) {
    let board = server.board(session);
    board.post("requests", r#"[{"n":1E5},{"text" : "é"}]"#).await.is(201);
    board.post("screenshots", r#"{"image_str":"data:image/png;base64,YWJj"}"#).await.is(201);
    board.put("state/a", "{\"b\":1.50}").await.succeeded();
    board.post("agents/A/memory", r#"{"cost":0.5}"#).await.is(201);
    let archive = board.get("archive").await;
    assert_eq!(archive.is(200).header("content-type"), NDJSON);
    (board, archive)
}

#[tokio::test]
async fn an_archive_has_a_base_of_any_length() {
    let server = Server::start();
    let board = server.board("s");
    let text = "x".repeat(20_000);
    for n in 0..8 {
        board.post("requests", &json!({"n": n, "text": text}).to_string()).await.is(201);
    }
    board.post("purge", "").await.succeeded();
    board.post("requests", r#"{"n":8}"#).await.is(201);
    let archive = board.get("archive").await;
    let copy = server.board("copy");
    ask(put(&copy, archive.is(200).text().to_owned())).await.is(201);
    assert_eq!(copy.dictionary().await, board.dictionary().await);
}

#[tokio::test]
async fn an_archive_makes_the_same_session_under_another_name() {
    let server = Server::start();
    let (board, archive) = archived(&server, "s").await;
    let text = archive.text().to_owned();
    assert!(text.starts_with("{\"blackboard_archive\":1,"), "{text}");
    assert!(text.ends_with("}}\n") && text.lines().last().unwrap().starts_with("{\"end\":"));
    let copy = server.board("copy of s");
    let made = ask(put(&copy, text.clone())).await;
    assert_eq!(made.is(201).header("location"), "/v1/sessions/copy%20of%20s");
    assert_eq!(made.json()["revision"], 5);
    let described = copy.get("").await.etag();
    assert!(described.starts_with(made.etag().trim_end_matches('"')), "{made}{described}");
    for tail in ["blackboard?images=inline", "state", "agents/A/memory/cost", "prompt"] {
        let (one, other) = (board.get(tail).await, copy.get(tail).await);
        assert_eq!(one.is(200).text(), other.is(200).text(), "{tail}");
    }
    assert_eq!(copy.get("archive").await.is(200).text(), text);
    assert_eq!(copy.get("screenshots/1/image").await.is(200).text(), "abc");
}

#[tokio::test]
async fn an_archives_tag_changes_with_commits_and_deleted_history() {
    let server = Server::start();
    let (board, archive) = archived(&server, "s").await;
    let known =
        async |tag: &str| ask(board.to(Method::GET, "archive").header("if-none-match", tag)).await;
    let tag = archive.etag().to_owned();
    known(&tag).await.is(304);
    ask(board.to(Method::POST, "purge")).await.is(200);
    let purged = known(&tag).await;
    assert_ne!(purged.is(200).text(), archive.text());
    board.post("requests", "{}").await.is(201);
    known(&purged.etag()).await.is(200);
    board.delete("").await.is(200);
    board.get("archive").await.problem(404, "session-not-found");
    // The old tags are none of what comes back.
    ask(put(&board, archive.text().to_owned())).await.is(201);
    assert_eq!(known(&tag).await.is(200).text(), archive.text());
}

#[tokio::test]
async fn a_taken_name_and_a_body_that_is_no_archive_are_refused() {
    let server = Server::start();
    let (board, archive) = archived(&server, "s").await;
    let text = archive.text();
    ask(put(&board, text.to_owned())).await.problem(409, "session-exists");
    let other = server.board("other");
    let json = ask(other.json(Method::PUT, "archive", text)).await;
    let problem = json.problem(415, "unsupported-media-type");
    assert!(problem["detail"].as_str().unwrap().contains(NDJSON), "{problem}");
    ask(put(&other, "")).await.problem(422, "invalid-field");
    ask(put(&other, "nonsense\n")).await.problem(400, "invalid-json");
    let cut: String = text.lines().take(3).map(|line| format!("{line}\n")).collect();
    let problem = ask(put(&other, cut)).await.problem(422, "invalid-field");
    assert_eq!(problem["errors"][0]["line"], 4, "{problem}");
    let changed = text.replace("1E5", "1E6");
    let problem = ask(put(&other, changed)).await.problem(422, "invalid-field");
    assert_eq!(problem["errors"][0]["line"], 3, "{problem}");
    other.get("").await.problem(404, "session-not-found");
    let asked = other.typed(Method::PUT, "archive?a=b", NDJSON, text.to_owned());
    ask(asked).await.problem(400, "unknown-parameter");
}

#[tokio::test]
async fn an_archive_may_be_coded_and_repeated_with_its_key() {
    let server = Server::start();
    let (board, archive) = archived(&server, "s").await;
    let text = archive.text().to_owned();
    let mut coder = GzEncoder::new(Vec::new(), Compression::default());
    coder.write_all(text.as_bytes()).unwrap();
    let coded = coder.finish().unwrap();
    let copy = server.board("copy");
    let keyed = |body: Vec<u8>| {
        put(&copy, body).header("content-encoding", "gzip").header("idempotency-key", "k")
    };
    let first = ask(keyed(coded.clone())).await;
    first.is(201);
    let again = ask(keyed(coded.clone())).await;
    assert_eq!(again.is(201).header("idempotency-replayed"), "true");
    assert_eq!((again.text(), again.etag()), (first.text(), first.etag()));
    let other = put(&copy, text.replace("1E5", "1E6")).header("idempotency-key", "k");
    ask(other).await.problem(422, "idempotency-key-reused");
    ask(put(&copy, text.clone()).header("idempotency-key", "new"))
        .await
        .problem(409, "session-exists");
    let cut = &coded[..coded.len() / 2];
    let cut = put(&server.board("cut"), cut.to_vec()).header("content-encoding", "gzip");
    ask(cut).await.problem(400, "invalid-encoding");
    server.board("cut").get("").await.problem(404, "session-not-found");
    assert_eq!(copy.get("archive").await.text(), board.get("archive").await.text());
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused_and_leaves_nothing() {
    let server = Server::start();
    let (_, archive) = archived(&server, "s").await;
    let board = server.board("t");
    let bytes = (256_u64 << 20) + 1;
    let head = format!(
        "PUT /v1/sessions/t/archive HTTP/1.1\nContent-Type: {NDJSON}\nContent-Length: {bytes}"
    );
    exchange(&server, &head, b"").problem(413, "body-too-large");
    // More than is announced is cut off with its connection.
    let head =
        format!("PUT /v1/sessions/t/archive HTTP/1.1\nContent-Type: {NDJSON}\nContent-Length: 100");
    let mut stream = connect(&server);
    stream.write_all(head.replace('\n', "\r\n").as_bytes()).unwrap();
    let host = format!("\r\nHost: {}\r\n\r\n", server.authority());
    stream.write_all(host.as_bytes()).unwrap();
    stream.write_all(&archive.text().as_bytes()[..50]).unwrap();
    drop(stream);
    let line = archive.text().lines().next().unwrap().to_owned() + "\n";
    let long = line + &"x".repeat(65 << 20);
    ask(put(&board, long)).await.problem(413, "commit-too-large");
    board.get("").await.problem(404, "session-not-found");
    ask(put(&board, archive.text().to_owned())).await.is(201);
}

#[tokio::test]
async fn a_hundred_mebibytes_go_out_and_in_with_flat_memory() {
    const MIB: usize = 1 << 20;
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    let text = "x".repeat(MIB / 2);
    for n in 0..200 {
        board.put("requests/1", &format!("{{\"n\":{n},\"text\":\"{text}\"}}")).await.is(200);
    }
    let before = peak(&server);
    let archive = board.get("archive").await;
    assert!(archive.is(200).text().len() > 100 * MIB);
    let grown = (peak(&server) - before) / MIB;
    assert!(grown < 32, "{grown} MiB more for an archive that goes out");
    let copy = server.board("copy");
    ask(put(&copy, archive.text().to_owned())).await.is(201);
    let grown = (peak(&server) - before) / MIB;
    assert!(grown < 64, "{grown} MiB more for one that comes in");
    assert!(copy.get("archive").await.is(200).text() == archive.text());
}
