//! Prompt bodies: exact `Content-Length`, and an aborted response on a damaged image.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use reqwest::Method;
use serde_json::Value;

use crate::answer::ask;
use crate::harness::{Board, Server};
use crate::images::{data_url, noise, png};

/// So many items that the log has several chunks.
const ITEMS: usize = 700;

async fn filled(server: &Server) -> Board {
    let board = server.board("s");
    let step = |n: usize| format!("{{\"step\":{n},\"x\":\"{}é\"}}", "y".repeat(n % 900));
    let steps = (0..ITEMS).map(step).collect::<Vec<_>>().join(",");
    board.post("trajectories", &format!("[{steps}]")).await.is(201);
    board.post("requests", r#"["one"]"#).await.is(201);
    for image in [png(2, 2, 1), noise(400, 300), noise(60, 50)] {
        ask(board.typed(Method::POST, "screenshots", "image/png", image)).await.is(201);
    }
    board.post("screenshots", r#"{"image_str":["no","image"],"metadata":{"n":1}}"#).await.is(201);
    board
}

fn text_of(parts: &Value, heading: &str) -> String {
    let texts = parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
    texts.into_iter().find(|text| text.starts_with(heading)).expect("the part").to_owned()
}

#[tokio::test]
async fn a_prompt_has_its_length_with_images_and_without() {
    let server = Server::start();
    let board = filled(&server).await;
    let tails = ["prompt", "prompt?images=none", "prompt?images=url", "prompt?latest=300"];
    let short = ["prompt?include=requests", "prompt?include=state", "prompt?keys=step&images=none"];
    for tail in tails.into_iter().chain(short) {
        let answer = board.get(tail).await;
        assert_eq!(answer.is(200).header("content-length"), answer.body().len().to_string());
        assert!(answer.text().ends_with("]\n"), "{tail}");
        let head = ask(board.to(Method::HEAD, tail)).await;
        assert_eq!(head.is(200).header("content-length"), answer.header("content-length"));
        assert_eq!(head.etag(), answer.etag());
        assert_eq!(board.get(tail).await.body(), answer.body(), "{tail}");
    }
    let parts = board.get("prompt").await.json();
    let url = |at: usize| parts[at]["image_url"]["url"].clone();
    let first = parts.as_array().unwrap().len() - 8;
    assert_eq!(url(first + 1), data_url("image/png", &png(2, 2, 1)));
    assert_eq!(url(first + 3), data_url("image/png", &noise(400, 300)));
    assert_eq!(url(first + 5), data_url("image/png", &noise(60, 50)));
    assert_eq!(url(first + 7), serde_json::json!(["no", "image"]));
}

#[tokio::test]
async fn the_last_items_are_the_end_of_all_of_them() {
    let server = Server::start();
    let board = filled(&server).await;
    let steps = async |tail: &str| {
        let text = text_of(&board.get(tail).await.json(), "[Step");
        let (_, list) = text.split_once("\n ").expect("a list");
        serde_json::from_str::<Vec<Value>>(list).unwrap()
    };
    let all = steps("prompt").await;
    assert_eq!(all.len(), ITEMS);
    for latest in [1, 2, 299, ITEMS - 1, ITEMS, ITEMS + 1] {
        let last = steps(&format!("prompt?latest={latest}")).await;
        assert_eq!(last, all[ITEMS.saturating_sub(latest)..]);
        let chosen = steps(&format!("prompt?latest={latest}&keys=step")).await;
        assert_eq!(chosen.len(), last.len());
        assert!(chosen.iter().zip(&last).all(|(a, b)| a["step"] == b["step"] && a["x"].is_null()));
    }
}

#[tokio::test]
async fn the_sessions_keys_and_those_of_the_query_give_one_text() {
    let server = Server::start();
    let board = filled(&server).await;
    let by_query = board.get("prompt?keys=step").await.json();
    board.put("", r#"{"settings":{"history_keys":["step"]}}"#).await.succeeded();
    for _ in 0..2 {
        let set = board.get("prompt").await;
        assert_eq!(set.json(), by_query);
        assert_eq!(set.header("content-length"), set.body().len().to_string());
        assert_eq!(board.get("prompt?keys=step").await.body(), set.body());
        assert_ne!(board.get("prompt?keys=x").await.body(), set.body());
    }
    board.put("", r#"{"settings":{"history_keys":["x"]}}"#).await.succeeded();
    assert_eq!(board.get("prompt").await.body(), board.get("prompt?keys=x").await.body());
}

#[tokio::test]
async fn a_prompt_is_compressed_for_who_wants_it() {
    let server = Server::start();
    let board = filled(&server).await;
    // Short, of ready texts alone, and with an image that is read piece by piece.
    for tail in ["prompt?latest=1&images=none", "prompt?images=none", "prompt"] {
        let plain = board.get(tail).await;
        for coding in ["gzip", "zstd"] {
            let coded = ask(board.to(Method::GET, tail).header("accept-encoding", coding)).await;
            assert_eq!(coded.is(200).header("content-encoding"), coding);
            let mut text = Vec::new();
            let read = match coding {
                "gzip" => GzDecoder::new(coded.body()).read_to_end(&mut text),
                _ => zstd::Decoder::new(coded.body()).unwrap().read_to_end(&mut text),
            };
            read.unwrap();
            assert!(text == plain.body(), "{tail} as {coding}");
        }
    }
}

#[tokio::test]
async fn an_image_that_is_not_what_was_stored_is_never_shown_whole() {
    let server = Server::start();
    let board = filled(&server).await;
    let path = blob(&server.data(), &noise(400, 300));
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).unwrap();
    // Either it fails before the answer begins, or the body ends before its length.
    for tail in ["prompt", "prompt?include=screenshots"] {
        match board.to(Method::GET, tail).send().await.unwrap() {
            begun if begun.status() == 200 => assert!(begun.bytes().await.is_err(), "{tail}"),
            refused => assert_eq!(refused.status(), 500, "{tail}"),
        }
    }
    board.get("prompt?images=url").await.is(200);
}

/// The file that has these bytes.
fn blob(folder: &Path, bytes: &[u8]) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() && fs::read(&path).unwrap() == bytes {
                return path;
            }
        }
    }
    panic!("the image's bytes are in no file");
}
