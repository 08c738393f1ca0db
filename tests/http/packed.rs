//! Compressed bodies of several members, as from `cat a.gz b.gz`: complete or refused.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Method, RequestBuilder};

use crate::answer::ask;
use crate::bad_input::Unmoved;
use crate::harness::{Board, Server};

fn gzip(text: &str) -> Vec<u8> {
    let mut stream = GzEncoder::new(Vec::new(), Compression::default());
    stream.write_all(text.as_bytes()).unwrap();
    stream.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 3).unwrap()
}

type Pack = fn(&str) -> Vec<u8>;

const CODINGS: [(&str, Pack); 2] = [("gzip", gzip), ("zstd", zstd)];

fn packed_lines(board: &Board, coding: &str, body: Vec<u8>) -> RequestBuilder {
    let request = board.typed(Method::POST, "requests", "application/x-ndjson", body);
    request.header("content-encoding", coding.to_owned())
}

#[tokio::test]
async fn every_stream_of_a_packed_body_counts() {
    let server = Server::start();
    for (coding, pack) in CODINGS {
        let board = server.board(coding);
        // The second line begins in one stream and ends in another; an empty stream is one too.
        let streams = ["{\"n\":1}\n{\"n\"", "", ":2}\n", "{\"n\":3}\n{\"n\":4}\n"];
        let body = streams.map(pack).concat();
        let posted = ask(packed_lines(&board, coding, body)).await;
        assert_eq!(posted.is(201).seqs(), [1, 2, 3, 4], "{coding}");
        let lines = board.lines("requests").await;
        assert_eq!(lines, [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#, r#"{"n":4}"#], "{coding}");
    }
}

#[tokio::test]
async fn streams_that_are_longer_than_any_buffer_count_too() {
    let server = Server::start();
    let streams: Vec<String> = (0..20)
        .map(|stream| {
            let line = |n| format!("{{\"stream\":{stream},\"n\":{n}}}\n");
            (0..2000).map(line).collect()
        })
        .collect();
    for (coding, pack) in CODINGS {
        let board = server.board(coding);
        let body = streams.iter().flat_map(|stream| pack(stream)).collect();
        ask(packed_lines(&board, coding, body)).await.is(201);
        assert!(board.lines("requests").await.iter().eq(streams.concat().lines()), "{coding}");
    }
}

#[tokio::test]
async fn what_follows_the_last_stream_is_damage() {
    let board = Unmoved::new().await;
    for (coding, pack) in CODINGS {
        let whole = pack("{\"n\":1}\n");
        let cut = &whole[..whole.len() - 3];
        for rest in [b"x".as_slice(), b"{\"n\":2}\n", b"garbage that is no stream of any kind", cut]
        {
            let body = [whole.as_slice(), rest].concat();
            let answer = ask(packed_lines(&board.board, coding, body)).await;
            answer.problem(400, "invalid-encoding");
        }
        board.check().await;
    }
}

#[tokio::test]
async fn a_body_that_inflates_too_far_is_refused_while_it_is_read() {
    let unmoved = Unmoved::new().await;
    for (coding, pack) in CODINGS {
        let put = |board: &Board, length: usize| {
            let text = format!(r#"{{"questions":["{}"]}}"#, "x".repeat(length));
            let request = board.typed(Method::PUT, "blackboard", "application/json", pack(&text));
            request.header("content-encoding", coding)
        };
        let problem = ask(put(&unmoved.board, 60 << 20)).await.problem(413, "body-too-large");
        assert!(
            problem["detail"].as_str().unwrap().contains("200 times its compressed size"),
            "{problem}"
        );
        unmoved.check().await;
        // What is no larger than an ordinary body may be as even as it likes.
        let even = unmoved.server.board(coding);
        ask(put(&even, 1_000_000)).await.is(201);
    }
}
