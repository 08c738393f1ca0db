//! Multipart forms: bounded by the image's own limit.

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::json;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::images::png;

const MIB: usize = 1 << 20;

/// An image of so many bytes: what stands behind its end does not make it less of one.
fn padded(bytes: usize) -> Vec<u8> {
    let mut image = png(2, 3, 1);
    image.resize(bytes, b'p');
    image
}

async fn sent(board: &Board, image: Vec<u8>) -> Answer {
    let part = Part::bytes(image).file_name("large.png").mime_str("image/png").unwrap();
    let form = Form::new().part("image", part).text("metadata", "1");
    ask(board.to(Method::POST, "screenshots").multipart(form)).await
}

#[tokio::test]
async fn a_form_may_carry_the_largest_image_and_none_larger() {
    let server = Server::start();
    let board = server.board("s");
    for (seq, bytes) in (1..).zip([3 * MIB, 20 * MIB - 1, 20 * MIB]) {
        let image = padded(bytes);
        assert_eq!(sent(&board, image.clone()).await.is(201).seqs(), [seq]);
        let stored = board.get(&format!("screenshots/{seq}/image")).await;
        assert!(stored.is(200).body() == image, "{bytes} bytes came back as others");
    }
    for bytes in [20 * MIB + 1, 25 * MIB] {
        sent(&board, padded(bytes)).await.problem(413, "item-too-large");
    }
    sent(&board, padded(32 * MIB)).await.problem(413, "body-too-large");
    let page = board.get("screenshots").await.json();
    assert_eq!(
        (&page["count"], &page["entries"][1]["image"]["bytes"]),
        (&json!(3), &json!(20 * MIB - 1))
    );
}
