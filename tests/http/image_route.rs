//! Images of screenshots: ranges, conditions, caching, unchanged bytes.

use reqwest::Method;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::images::{data_url, noise, png};

const ROUTE: &str = "screenshots/1/image";

async fn with_image(server: &Server, bytes: &[u8]) -> Board {
    let board = server.board("s");
    ask(board.typed(Method::POST, "screenshots", "image/png", bytes.to_vec())).await.is(201);
    board
}

async fn ranged(board: &Board, tail: &str, range: &str) -> Answer {
    ask(board.to(Method::GET, tail).header("range", range)).await
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_part_is_these_very_bytes_of_the_whole() {
    let server = Server::start();
    let bytes = noise(1200, 900);
    let board = with_image(&server, &bytes).await;
    let thumbnail = board.get(&format!("{ROUTE}?max_px=300")).await.is(200).body().to_vec();
    for (tail, bytes) in [(ROUTE.to_owned(), bytes), (format!("{ROUTE}?max_px=300"), thumbnail)] {
        let length = bytes.len();
        let whole = board.get(&tail).await;
        assert_eq!(whole.is(200).header("accept-ranges"), "bytes");
        assert_eq!((whole.header("content-length"), whole.body()), (&*length.to_string(), &*bytes));
        let last = length - 1;
        for (range, from, to) in [
            ("bytes=0-0".to_owned(), 0, 0),
            ("bytes=100-70099".to_owned(), 100, 70_099.min(last)),
            ("bytes=500-".to_owned(), 500, last),
            ("bytes=-7".to_owned(), length - 7, last),
            (format!("bytes={last}-{}", length + 50), last, last),
        ] {
            let part = ranged(&board, &tail, &range).await;
            assert_eq!(part.is(206).body(), &bytes[from..=to], "{range}");
            assert_eq!(part.header("content-range"), format!("bytes {from}-{to}/{length}"));
            assert_eq!(part.header("content-length"), (to - from + 1).to_string());
            assert_eq!((part.etag(), part.header("accept-ranges")), (whole.etag(), "bytes"));
            assert_eq!(part.header("content-type"), whole.header("content-type"));
        }
    }
}

#[tokio::test]
async fn a_range_beyond_the_image_is_refused_and_no_range_ignored() {
    let server = Server::start();
    let bytes = png(20, 20, 1);
    let board = with_image(&server, &bytes).await;
    for range in [format!("bytes={}-", bytes.len()), "bytes=-0".to_owned()] {
        let answer = ranged(&board, ROUTE, &range).await;
        answer.problem(416, "range-not-satisfiable");
        assert_eq!(answer.header("content-range"), format!("bytes */{}", bytes.len()));
    }
    for range in ["bytes=0-1,4-5", "bytes=5-2", "items=0-1", "bytes", "bytes=x-"] {
        let answer = ranged(&board, ROUTE, range).await;
        assert_eq!((answer.is(200).body(), answer.header("content-range")), (&*bytes, ""));
    }
}

#[tokio::test]
async fn if_range_holds_for_the_present_tag_alone() {
    let server = Server::start();
    let (first, second) = (png(20, 20, 1), png(20, 20, 2));
    let board = with_image(&server, &first).await;
    let tag = board.get(ROUTE).await.etag();
    let asked = async |condition: &str| {
        let request = board.to(Method::GET, ROUTE).header("range", "bytes=0-3");
        ask(request.header("if-range", condition)).await
    };
    assert_eq!(asked(&tag).await.is(206).body(), &first[..4]);
    for other in ["\"another\"", &format!("W/{tag}"), "Sat, 21 Nov 2026 07:03:11 GMT"] {
        asked(other).await.is(200);
    }
    let item = json!({"image_str":data_url("image/png", &second)}).to_string();
    board.put("screenshots/1", &item).await.is(200);
    assert_eq!(asked(&tag).await.is(200).body(), second);
    let known = board.get(ROUTE).await.etag();
    let request = board.to(Method::GET, ROUTE).header("range", "bytes=0-3");
    ask(request.header("if-none-match", known)).await.is(304);
}

#[tokio::test]
async fn head_says_what_get_sends() {
    let server = Server::start();
    let board = with_image(&server, &noise(900, 600)).await;
    for tail in [ROUTE.to_owned(), format!("{ROUTE}?max_px=100")] {
        let get = board.get(&tail).await;
        let head = ask(board.to(Method::HEAD, &tail).header("range", "bytes=0-3")).await;
        assert!(head.is(200).body().is_empty());
        for name in ["content-length", "content-type", "etag", "accept-ranges", "cache-control"] {
            assert_eq!(head.header(name), get.header(name), "{name}");
            assert_ne!(get.header(name), "", "{name}");
        }
    }
}

#[tokio::test]
async fn an_address_without_the_digest_is_asked_for_again() {
    let server = Server::start();
    let (first, second) = (png(200, 200, 1), png(200, 200, 2));
    let board = with_image(&server, &first).await;
    let plain = board.get(ROUTE).await;
    assert_eq!(plain.header("cache-control"), "private, no-cache, no-transform");
    assert_eq!(plain.header("x-content-type-options"), "nosniff");
    assert_eq!(plain.header("content-security-policy"), "sandbox; default-src 'none'");
    let request = board.to(Method::GET, ROUTE).header("if-none-match", plain.etag());
    let known = ask(request).await;
    assert_eq!(known.is(304).header("cache-control"), "private, no-cache, no-transform");

    let immutable = "private, max-age=31536000, immutable, no-transform";
    let exact = format!("{ROUTE}?sha256={}", digest(&first));
    let small = format!("{exact}&max_px=20");
    for tail in [&exact, &small] {
        let answer = board.get(tail).await;
        assert_eq!(answer.is(200).header("cache-control"), immutable);
        let request = board.to(Method::GET, tail).header("if-none-match", answer.etag());
        assert_eq!(ask(request).await.is(304).header("cache-control"), immutable);
    }
    let revision = plain.revision();
    let item = json!({"image_str":data_url("image/png", &second)}).to_string();
    board.put("screenshots/1", &item).await.is(200);
    for tail in [&exact, &small] {
        board.get(tail).await.problem(404, "no-image");
    }
    let past = board.get(&format!("{exact}&at={revision}")).await;
    assert_eq!(past.is(200).body(), first);
    assert_eq!(past.header("cache-control"), "private, no-cache, no-transform");
    for wrong in ["", "abc", &digest(&first).to_uppercase(), &format!("{}0", digest(&first))] {
        board.get(&format!("{ROUTE}?sha256={wrong}")).await.problem(400, "invalid-parameter");
    }
}

#[tokio::test]
async fn an_image_is_never_compressed_whatever_it_is_declared_to_be() {
    let server = Server::start();
    let board = server.board("s");
    let bytes = b"<p>the same again and again</p>".repeat(1000);
    let item = json!({"image_str":data_url("text/html", &bytes)});
    board.post("screenshots", &item.to_string()).await.is(201);
    for range in ["", "bytes=0-999"] {
        let request = board.to(Method::GET, ROUTE).header("accept-encoding", "gzip, zstd");
        let answer = ask(request.header("range", range)).await;
        answer.is(if range.is_empty() { 200 } else { 206 });
        assert_eq!(answer.header("content-encoding"), "");
        assert!(bytes.starts_with(answer.body()));
        assert_eq!(answer.header("content-length"), answer.body().len().to_string());
    }
}

#[tokio::test]
async fn tags_differ_by_size() {
    let server = Server::start();
    let board = with_image(&server, &png(200, 200, 1)).await;
    let mut tags = Vec::new();
    for query in ["", "?max_px=10", "?max_px=11"] {
        tags.push(board.get(&format!("{ROUTE}{query}")).await.etag());
    }
    tags.dedup();
    assert_eq!(tags.len(), 3);
}
