//! Screenshots: three forms in, three forms out, equal bytes; paths are labels.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::answer::ask;
use crate::harness::{Board, Server, encoded};
use crate::images::{BMP, GIF, JPEG, WEBP, data_url, decoded, noise, png};

fn kinds() -> [(&'static str, Vec<u8>); 5] {
    [
        ("image/png", png(2, 3, 200)),
        ("image/jpeg", decoded(JPEG)),
        ("image/webp", decoded(WEBP)),
        ("image/gif", decoded(GIF)),
        ("image/bmp", decoded(BMP)),
    ]
}

/// The last screenshot's item as text, its image inline.
async fn last_item(board: &Board) -> String {
    let lines = board.lines("screenshots?images=inline").await;
    lines.last().expect("a screenshot").clone()
}

async fn check_image(board: &Board, seq: u64, media_type: &str, bytes: &[u8]) {
    let answer = board.get(&format!("screenshots/{seq}/image")).await;
    assert_eq!(answer.is(200).header("content-type"), media_type);
    assert_eq!(answer.body(), bytes);
    let page = board.get(&format!("screenshots?after={}&limit=1", seq - 1)).await;
    let entry = page.is(200).json()["entries"][0].clone();
    assert_eq!(entry["item"].get("image_str"), None, "{entry}");
    let hash = Sha256::digest(bytes);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let image = &entry["image"];
    assert_eq!(image["media_type"], media_type);
    assert_eq!((&image["bytes"], &image["sha256"]), (&json!(bytes.len()), &json!(hash)));
    assert_eq!((&image["width"], &image["height"]), (&json!(2), &json!(3)), "{image}");
    let url = image["url"].as_str().expect("url");
    assert!(url.ends_with(&format!("/screenshots/{seq}/image")), "{url}");
}

#[tokio::test]
async fn raw_bytes_of_each_kind_come_back_as_they_were() {
    let mut server = Server::start();
    for round in 0..2 {
        let board = server.board("s");
        for (seq, (media_type, bytes)) in (1..).zip(kinds()) {
            if round == 0 {
                let metadata = encoded(r#"{"app":"Excel","n":1.0}"#);
                let tail = format!("screenshots?metadata={metadata}&image_path=C%3A%5Ca.png");
                let posted = ask(board.typed(Method::POST, &tail, media_type, bytes.clone())).await;
                assert_eq!(posted.is(201).seqs(), [seq]);
                let url = data_url(media_type, &bytes);
                let item = format!(
                    r#"{{"metadata":{{"app":"Excel","n":1.0}},"image_path":"C:\\a.png","image_str":"{url}"}}"#
                );
                assert_eq!(last_item(&board).await, item);
            }
            check_image(&board, seq, media_type, &bytes).await;
        }
        server.kill();
        server.start_again();
    }
}

#[tokio::test]
async fn a_raw_image_alone_has_no_metadata_and_no_path() {
    let server = Server::start();
    let board = server.board("s");
    let bytes = png(2, 3, 1);
    ask(board.typed(Method::POST, "screenshots", "image/png", bytes.clone())).await.is(201);
    let url = data_url("image/png", &bytes);
    let item = format!(r#"{{"metadata":null,"image_path":"","image_str":"{url}"}}"#);
    assert_eq!(last_item(&board).await, item);
    for metadata in ["%7Bbad", "NaN", ""] {
        let tail = format!("screenshots?metadata={metadata}");
        ask(board.typed(Method::POST, &tail, "image/png", bytes.clone())).await.is(400);
    }
    assert_eq!(board.get("screenshots").await.json()["count"], 1);
}

#[tokio::test]
async fn a_form_carries_image_metadata_and_path() {
    let server = Server::start();
    let board = server.board("s");
    for (seq, (media_type, bytes)) in (1..).zip(kinds()) {
        let typed = Part::bytes(bytes.clone()).mime_str(media_type).unwrap();
        let form = Form::new().part("image", typed.file_name("../../shot 1"));
        let form = form.text("metadata", r#"{"n":1E2}"#);
        ask(board.to(Method::POST, "screenshots").multipart(form)).await.is(201);
        let url = data_url(media_type, &bytes);
        let item = format!(
            r#"{{"metadata":{{"n":1E2}},"image_path":"../../shot 1","image_str":"{url}"}}"#
        );
        assert_eq!(last_item(&board).await, item);
        check_image(&board, 2 * seq - 1, media_type, &bytes).await;

        let form = Form::new()
            .text("image_path", "mine.png")
            .part("image", Part::bytes(bytes.clone()).file_name("theirs.png"));
        ask(board.to(Method::POST, "screenshots").multipart(form)).await.is(201);
        let item = format!(r#"{{"metadata":null,"image_path":"mine.png","image_str":"{url}"}}"#);
        assert_eq!(last_item(&board).await, item);
        check_image(&board, 2 * seq, media_type, &bytes).await;
    }
}

#[tokio::test]
async fn a_form_without_an_image_or_with_unknown_parts_is_refused() {
    let server = Server::start();
    let board = server.made("s").await;
    let image = || Part::bytes(png(2, 3, 1));
    for form in [
        Form::new().text("metadata", "1"),
        Form::new().part("image", image()).text("metdata", "1"),
        Form::new().part("image", image()).text("metadata", "{bad"),
        Form::new().part("image", image()).part("image", image()),
        Form::new().part("image", Part::bytes(b"hello".to_vec())),
    ] {
        ask(board.to(Method::POST, "screenshots").multipart(form)).await.refused();
    }
    assert_eq!(board.get("screenshots").await.json()["count"], 0);
}

#[tokio::test]
async fn bytes_that_are_no_image_of_their_declared_kind_are_refused() {
    let server = Server::start();
    let board = server.made("s").await;
    let mut cut = png(2, 3, 1);
    cut.truncate(20);
    for (media_type, bytes) in [
        ("image/png", b"hello".to_vec()),
        ("image/png", Vec::new()),
        ("image/png", cut),
        ("image/jpeg", png(2, 3, 1)),
        ("image/png", decoded(JPEG)),
        ("image/gif", decoded(WEBP)),
    ] {
        let answer = ask(board.typed(Method::POST, "screenshots", media_type, bytes)).await;
        answer.problem(422, "not-an-image");
    }
    let svg = board.typed(Method::POST, "screenshots", "image/svg+xml", "<svg/>");
    ask(svg).await.problem(415, "unsupported-media-type");
    let elsewhere = board.typed(Method::POST, "requests", "image/png", png(2, 3, 1));
    ask(elsewhere).await.problem(415, "unsupported-media-type");
    assert_eq!(board.get("").await.revision(), 1);
}

#[tokio::test]
async fn any_image_str_in_json_is_made_again_exactly() {
    let mut server = Server::start();
    let png_url = data_url("image/png", &png(2, 3, 9));
    let values = [
        json!(png_url),
        json!(data_url("image/svg+xml", b"<svg/>")),
        json!(png_url.replace("image/png", "image/png;charset=utf-8")),
        json!(png_url.replace("image/png", "IMAGE/PNG")),
        json!(png_url.replace("data:", "DATA:")),
        json!("data:image/png;base64,"),
        json!("data:image/png;base64,AAAA"),
        json!("data:image/png;base64,AAA"),
        json!("data:image/png;base64,AA=="),
        json!("data:image/png;base64,AB=="),
        json!("data:image/png;base64,-_-_"),
        json!("data:image/png;base64,AA AA"),
        json!("data:image/png,plain"),
        json!("data:,x"),
        json!(";base64,AAAA"),
        json!("http://example.org/a.png"),
        json!(""),
        json!(null),
        json!(5),
        json!({"u":[1]}),
    ];
    let items: Vec<String> = values
        .iter()
        .map(|value| format!(r#"{{"image_str":{value},"id":1.50,"metadata":"m"}}"#))
        .collect();
    server.board("s").post("screenshots", &format!("[{}]", items.join(","))).await.is(201);
    for _ in 0..2 {
        let board = server.board("s");
        assert_eq!(board.lines("screenshots?images=inline").await, items);
        let dictionary = board.dictionary().await;
        assert!(dictionary.contains(&items.join(",")), "{dictionary}");
        let urls: Vec<Value> = board
            .get("prompt")
            .await
            .json()
            .as_array()
            .expect("parts")
            .iter()
            .filter_map(|part| part.get("image_url").map(|image| image["url"].clone()))
            .collect();
        assert_eq!(urls, values);
        server.kill();
        server.start_again();
    }
}

#[tokio::test]
async fn images_are_shown_inline_by_address_or_not_at_all() {
    let server = Server::start();
    let board = server.board("s");
    let url = data_url("image/png", &png(2, 3, 1));
    let item = json!({"metadata":"m","image_path":"p","image_str":url});
    board.post("screenshots", &item.to_string()).await.is(201);
    for page in ["screenshots", "screenshots/1"] {
        let entry = async |query: &str| {
            let shown = board.get(&format!("{page}{query}")).await.is(200).json();
            if page == "screenshots" { shown["entries"][0].clone() } else { shown }
        };
        let bare = json!({"metadata":"m","image_path":"p"});
        let default = entry("").await;
        assert_eq!(default["item"], bare);
        assert_eq!(default["image"]["media_type"], "image/png");
        assert_eq!(entry("?images=url").await, default);
        assert_eq!(entry("?images=inline").await["item"], item);
        let wrong = board.get(&format!("{page}?images=maybe")).await;
        wrong.problem(400, "invalid-parameter");
        let none = entry("?images=none").await;
        assert_eq!((&none["item"], none.get("image")), (&bare, None));
    }
}

#[tokio::test]
async fn an_entry_without_an_image_says_so() {
    let server = Server::start();
    let board = server.board("s");
    board.post("screenshots", r#"[{"image_str":""},{},{"image_str":"http://x/"}]"#).await.is(201);
    for seq in 1..=3 {
        board.get(&format!("screenshots/{seq}/image")).await.problem(404, "no-image");
    }
    board.get("screenshots/4/image").await.problem(404, "entry-not-found");
}

#[tokio::test]
async fn bytes_that_a_browser_could_run_are_kept_from_running() {
    let server = Server::start();
    let board = server.board("s");
    for (seq, media_type, bytes, disposition) in [
        (1, "text/html", b"<script>alert(1)</script>".to_vec(), "attachment"),
        (2, "image/svg+xml", b"<svg/>".to_vec(), "attachment"),
        (3, "image/png", png(2, 3, 1), ""),
    ] {
        let item = json!({"image_str":data_url(media_type, &bytes)});
        board.post("screenshots", &item.to_string()).await.is(201);
        let image = board.get(&format!("screenshots/{seq}/image")).await;
        assert_eq!(image.is(200).body(), bytes);
        assert_eq!(image.header("content-type"), media_type);
        assert_eq!(image.header("x-content-type-options"), "nosniff");
        let policy = image.header("content-security-policy");
        assert_eq!(policy, "sandbox; default-src 'none'");
        assert_eq!(image.header("content-disposition"), disposition, "{image}");
    }
}

#[tokio::test]
async fn an_image_may_be_replaced_and_its_entry_deleted() {
    let server = Server::start();
    let board = server.board("s");
    let (first, second) = (png(2, 3, 1), png(2, 3, 2));
    ask(board.typed(Method::POST, "screenshots", "image/png", first)).await.is(201);
    let item = json!({"image_str":data_url("image/png", &second)});
    board.put("screenshots/1", &item.to_string()).await.is(200);
    check_image(&board, 1, "image/png", &second).await;
    board.merge("screenshots/1", r#"{"metadata":"kept image"}"#).await.is(200);
    check_image(&board, 1, "image/png", &second).await;
    board.delete("screenshots/1").await.is(200);
    board.get("screenshots/1/image").await.problem(404, "entry-not-found");
}

#[tokio::test]
async fn the_same_image_is_stored_once_a_session() {
    let mut server = Server::start();
    let board = server.board("s");
    let bytes = noise(400, 500);
    let url = data_url("image/png", &bytes);
    for n in 0..10 {
        if n % 2 == 0 {
            ask(board.typed(Method::POST, "screenshots", "image/png", bytes.clone())).await.is(201);
        } else {
            let item = json!({"n":n,"image_str":url}).to_string();
            board.post("screenshots", &item).await.is(201);
        }
    }
    assert!(server.stop().success());
    let stored = size(&server.data());
    assert!(stored < 4 * bytes.len() as u64, "{stored} bytes for one image of {}", bytes.len());
}

fn size(path: &Path) -> u64 {
    let metadata = fs::symlink_metadata(path).unwrap();
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).unwrap();
    entries.map(|entry| size(&entry.unwrap().path())).sum()
}

#[tokio::test]
async fn labels_are_never_opened() {
    let server = Server::start();
    let board = server.board("s");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let trap = format!("http://{}/image.png", listener.local_addr().unwrap());
    for label in ["/etc/hostname", "../../../etc/hostname", "file:///etc/hostname", &trap] {
        let item = json!({"metadata":null,"image_path":label,"image_str":label}).to_string();
        board.post("screenshots", &item).await.is(201);
        let tail = format!("screenshots?image_path={}", encoded(label));
        ask(board.typed(Method::POST, &tail, "image/png", png(2, 3, 1))).await.is(201);
    }
    for tail in
        ["screenshots?images=inline", "screenshots", "prompt", "prompt?images=url", "blackboard"]
    {
        board.get(tail).await.is(200);
    }
    let labels = board.get("screenshots").await.items();
    assert_eq!(labels[0]["image_path"], "/etc/hostname");
    assert_eq!(labels[0]["image_str"], "/etc/hostname");
    assert!(listener.accept().is_err(), "the server fetched a label");
}
