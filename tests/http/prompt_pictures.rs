//! Pictures that a provider rejects or cannot read: scaled, converted, or replaced by a line.

use std::io::Cursor;

use image::ImageReader;
use serde_json::{Value, json};

use crate::harness::{Board, Server};
use crate::images::{BMP, GIF, data_url, decoded, noise, png};

/// Anthropic's limits: the longer side of few and of many images, their number, and the bytes of base64 of one.
const SIDE_MAX: u32 = 8_000;
const SIDE_OF_MANY_MAX: u32 = 2_000;
const IMAGES_MAX: usize = 100;
const BASE64_MAX: usize = 5_000_000;

async fn post(board: &Board, name: &str, image: &str) {
    let item = json!({"metadata":name,"image_str":image}).to_string();
    board.post("screenshots", &item).await.is(201);
}

/// A picture of a prompt: the text before it, its media type, the length of its base64, and its size after all of it was
/// decoded.
struct Shown {
    name: String,
    media_type: String,
    base64: usize,
    size: (u32, u32),
}

/// The pictures of a prompt, and the texts that have none behind them.
async fn pictures(board: &Board, query: &str) -> (Vec<Shown>, Vec<String>) {
    let answer = board.get(&format!("prompt?include=screenshots&{query}")).await;
    let parts = answer.is(200).json();
    let (mut shown, mut texts): (Vec<Shown>, Vec<String>) = (Vec::new(), Vec::new());
    for part in parts.as_array().unwrap() {
        if let Some(text) = part["text"].as_str() {
            texts.push(text.to_owned());
            continue;
        }
        let (media_type, data) = image_of(part);
        let bytes = decoded(&data);
        let reader = ImageReader::new(Cursor::new(&bytes)).with_guessed_format().unwrap();
        assert_eq!(reader.format().unwrap().to_mime_type(), media_type);
        let picture = reader.decode().unwrap();
        let name = texts.pop().unwrap();
        let size = (picture.width(), picture.height());
        shown.push(Shown { name, media_type, base64: data.len(), size });
    }
    (shown, texts)
}

fn image_of(part: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    if part["source"].is_object() {
        return (text(&part["source"]["media_type"]), text(&part["source"]["data"]));
    }
    if part["inlineData"].is_object() {
        return (text(&part["inlineData"]["mimeType"]), text(&part["inlineData"]["data"]));
    }
    let url = text(&part["image_url"]);
    let (head, data) = url.split_once(";base64,").unwrap();
    (head.trim_start_matches("data:").to_owned(), data.to_owned())
}

#[tokio::test]
async fn no_provider_gets_a_picture_that_it_rejects() {
    let server = Server::start();
    let board = server.board("s");
    let half = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    post(&board, "long", &data_url("image/png", &png(9_000, 40, 7))).await;
    post(&board, "half", &data_url("image/png", &half(png(400, 300, 7)))).await;
    post(&board, "large", &data_url("image/png", &noise(2_600, 1_700))).await;
    post(&board, "bmp", &data_url("image/bmp", &decoded(BMP))).await;
    post(&board, "heic", "data:image/heic;base64,AAAAGGZ0eXBoZWlj").await;
    post(&board, "upper", &format!("data:IMAGE/GIF;BASE64,{GIF}")).await;
    post(&board, "lines", &format!("data:image/gif;base64,{}\n{}", &GIF[..20], &GIF[20..])).await;
    for format in ["anthropic", "responses", "gemini"] {
        let (shown, lines) = pictures(&board, &format!("format={format}")).await;
        let names: Vec<&str> = shown.iter().map(|shown| shown.name.as_str()).collect();
        assert_eq!(
            names,
            ["\"long\"", "\"large\"", "\"bmp\"", "\"upper\"", "\"lines\""],
            "{format}"
        );
        for name in ["half", "heic"] {
            assert!(
                lines.iter().any(|line| line.starts_with(&format!("\"{name}\" ["))),
                "{lines:?}"
            );
        }
        for Shown { name, media_type, base64, size } in &shown {
            let accepted = ["image/png", "image/jpeg", "image/webp", "image/gif"];
            assert!(accepted.contains(&media_type.as_str()), "{format} {name}: {media_type}");
            assert!(format != "anthropic" || size.0.max(size.1) <= SIDE_MAX, "{name}: {size:?}");
            assert!(format != "anthropic" || *base64 <= BASE64_MAX, "{name}: {base64}");
        }
    }
    // What was sent stays as it was sent.
    let last = board.get("screenshots/6?images=inline").await.json();
    assert_eq!(last["item"]["image_str"], format!("data:IMAGE/GIF;BASE64,{GIF}"));
}

#[tokio::test]
async fn many_pictures_are_smaller_and_the_oldest_are_lines() {
    let server = Server::start();
    let board = server.board("s");
    for shade in 0..20 {
        post(&board, &format!("wide {shade}"), &data_url("image/png", &png(2_100, 3, shade))).await;
    }
    let sides = async |query: &str| {
        let (shown, _) = pictures(&board, query).await;
        shown.iter().map(|shown| shown.size.0).collect::<Vec<_>>()
    };
    assert_eq!(sides("format=anthropic").await, [2_100; 20]);
    for shade in 20..101 {
        post(&board, &format!("wide {shade}"), &data_url("image/png", &png(2_100, 3, shade))).await;
    }
    assert_eq!(sides("format=anthropic").await, [SIDE_OF_MANY_MAX; IMAGES_MAX]);
    assert_eq!(sides("format=anthropic&screenshots=20").await, [2_100; 20]);
    assert_eq!(sides("format=anthropic&screenshots=30&max_px=500").await, [500; 30]);
    assert_eq!(sides("format=responses").await, [2_100; 101]);
    let (_, lines) = pictures(&board, "format=anthropic").await;
    assert!(lines[1].starts_with("\"wide 0\" [image not shown"), "{lines:?}");
}
