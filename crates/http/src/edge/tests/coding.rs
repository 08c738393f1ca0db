//! Tests of compressed responses and requests, through the whole edge.

use std::io::{self, Write};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use futures_util::future::poll_immediate;
use http_body_util::BodyExt as _;
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Edge, LONG, problem, send};
use crate::edge::encoding::Coding;
use crate::edge::{decompress, encoding};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 0).expect("memory")
}

#[tokio::test]
async fn answers_are_compressed_as_the_client_likes() {
    let edge = Edge::start().await;
    for (accept, coding) in [
        ("gzip", Some("gzip")),
        ("gzip, zstd", Some("zstd")),
        ("zstd;q=0.1, gzip;q=0.9", Some("gzip")),
        ("br", None),
        ("gzip;q=0", None),
        ("*;q=0", None),
        ("identity;q=0", None),
    ] {
        let request = edge.request(Method::GET, "/long");
        let answer = send(request.header(header::ACCEPT_ENCODING, accept)).await;
        assert_eq!(answer.status(), 200, "{accept}");
        let found = answer.headers().get(header::CONTENT_ENCODING).cloned();
        assert_eq!(found, coding.map(HeaderValue::from_static), "{accept}");
        let bytes = answer.bytes().await.expect("a body");
        let text = match coding {
            Some("gzip") => io::read_to_string(flate2::read::GzDecoder::new(&*bytes)),
            Some(_) => zstd::decode_all(&*bytes).map(|b| String::from_utf8(b).expect("text")),
            None => Ok(String::from_utf8(bytes.to_vec()).expect("text")),
        };
        assert_eq!(text.expect("well coded"), LONG, "{accept}");
    }
}

#[tokio::test]
async fn problems_are_compressed_but_images_and_events_are_not() {
    let edge = Edge::start().await;
    for (path, zipped) in [("/nowhere", true), ("/image", false), ("/events", false)] {
        let request = edge.request(Method::GET, path);
        let answer = send(request.header(header::ACCEPT_ENCODING, "gzip")).await;
        let found = answer.headers().contains_key(header::CONTENT_ENCODING);
        assert_eq!(found, zipped, "{path}");
    }
}

#[tokio::test]
async fn compressed_bodies_are_read_and_limited_by_their_full_size() {
    let edge = Edge::start().await;
    for (coding, body) in [
        ("gzip", gzip(LONG.as_bytes())),
        ("X-GZip", gzip(LONG.as_bytes())),
        ("zstd", zstd(LONG.as_bytes())),
        ("identity, zstd", zstd(LONG.as_bytes())),
        ("identity", LONG.into()),
    ] {
        let answer = edge.post("/echo", coding, body).await;
        assert_eq!(answer.text().await.expect("a body"), LONG, "{coding}");
    }
    let bomb = edge.post("/read", "gzip", gzip(&[0; 100_000])).await;
    problem(bomb, 413, "body-too-large").await;
}

#[tokio::test]
async fn another_content_encoding_is_refused_with_what_is_accepted() {
    let edge = Edge::start().await;
    for coding in ["br", "deflate", "gzip, gzip", "gzip, br"] {
        let answer = edge.post("/echo", coding, LONG.into()).await;
        assert_eq!(answer.headers()[header::ACCEPT_ENCODING], "gzip, zstd");
        problem(answer, 415, "unsupported-media-type").await;
    }
}

#[tokio::test]
async fn a_damaged_body_is_told_from_one_too_large() {
    let edge = Edge::start().await;
    for (coding, whole) in [("gzip", gzip(LONG.as_bytes())), ("zstd", zstd(LONG.as_bytes()))] {
        for cut in 1..whole.len() {
            let answer = edge.post("/read", coding, whole[..cut].to_vec()).await;
            assert_eq!(answer.status(), 400, "{coding} cut at {cut}");
        }
        let noise = edge.post("/read", coding, b"neither of them".to_vec());
        problem(noise.await, 400, "invalid-encoding").await;
    }
    let large = edge.post("/read", "identity", vec![0; 2000]).await;
    problem(large, 413, "body-too-large").await;
}

#[tokio::test]
async fn a_body_that_stops_coming_is_not_waited_for() {
    let edge = Edge::start().await;
    for (coding, begun) in [("identity", "half"), ("gzip", "\x1f"), ("zstd", "")] {
        let head = format!("POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: {coding}");
        let answer = edge.raw(&format!("{head}\r\nContent-Length: 100\r\n\r\n{begun}")).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains(r#""retryable":true"#), "{answer}");
    }
}

#[tokio::test]
async fn a_body_that_dawdles_is_not_waited_for() {
    let edge = Edge::start().await;
    let mut stream = edge.connect().await;
    let head = "POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("write");
    let (mut reads, mut writes) = stream.split();
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let drip = async {
        while writes.write_all(b"x").await.is_ok() {
            ticks.tick().await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = [0; 13];
    tokio::select! {
        read = reads.read_exact(&mut answer) => assert!(read.is_ok(), "no answer"),
        () = drip => {}
    }
    assert_eq!(&answer, b"HTTP/1.1 408 ");
}

#[test]
fn only_codings_that_we_have_are_kept() {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("br, GZIP;q=0.5, *;q=0, identity;q=0"),
    );
    let accepted = encoding::accepted(&headers);
    assert_eq!(accepted, Some(HeaderValue::from_static("GZIP;q=0.5")));
}

#[tokio::test]
async fn a_small_body_that_inflates_yields_to_others() {
    const BYTES: usize = 4 << 20;
    let zeros = vec![0; BYTES];
    for (coding, sent) in [(Coding::Gzip, gzip(&zeros)), (Coding::Zstd, zstd(&zeros))] {
        let mut body = decompress::decompress(Request::new(Body::from(sent)), coding).into_body();
        let (mut come, mut turns) = (0, 0);
        while come < BYTES {
            match poll_immediate(body.frame()).await {
                Some(frame) => come += frame.unwrap().unwrap().into_data().unwrap().len(),
                None => turns += 1,
            }
        }
        assert!(turns >= BYTES / (64 << 10) - 1, "{turns} turns");
    }
}
