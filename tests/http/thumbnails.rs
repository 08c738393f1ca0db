//! Thumbnails: size, type, equality, caching, and deletion with their session.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use image::{DynamicImage, GenericImageView as _, ImageFormat, Rgb, RgbImage};
use reqwest::Method;
use serde_json::json;

use crate::answer::{Answer, ask};
use crate::harness::{Board, DEADLINE, Server};
use crate::images::{data_url, noise, png};

/// A picture with edges and slopes, in one of the kinds.
fn picture(kind: ImageFormat, width: u32, height: u32) -> Vec<u8> {
    let shade = |at: u32| u8::try_from(at % 256).unwrap();
    let drawn = RgbImage::from_fn(width, height, |x, y| {
        Rgb([shade(x), shade(y), if (x / 8 + y / 8) % 2 == 0 { 240 } else { 30 }])
    });
    let drawn = DynamicImage::from(drawn);
    let drawn = if kind == ImageFormat::Gif { drawn.to_rgba8().into() } else { drawn };
    let mut bytes = Cursor::new(Vec::new());
    drawn.write_to(&mut bytes, kind).unwrap();
    bytes.into_inner()
}

const KINDS: [(&str, ImageFormat); 5] = [
    ("image/png", ImageFormat::Png),
    ("image/jpeg", ImageFormat::Jpeg),
    ("image/webp", ImageFormat::WebP),
    ("image/gif", ImageFormat::Gif),
    ("image/bmp", ImageFormat::Bmp),
];

async fn post(board: &Board, media_type: &str, bytes: &[u8]) {
    let item = json!({"image_str":data_url(media_type, bytes)});
    board.post("screenshots", &item.to_string()).await.is(201);
}

fn size(answer: &Answer) -> (u32, u32) {
    image::load_from_memory(answer.is(200).body()).unwrap().dimensions()
}

fn cached(data: &Path) -> Vec<PathBuf> {
    let homes = fs::read_dir(data.join("cache/thumbnails")).into_iter().flatten();
    // A directory may go meanwhile.
    let files = homes.flat_map(|home| fs::read_dir(home.unwrap().path()).into_iter().flatten());
    files.map(|file| file.unwrap().path()).collect()
}

#[tokio::test]
async fn every_kind_is_scaled_to_the_longest_side_that_is_asked_for() {
    let server = Server::start();
    let board = server.board("s");
    for (seq, (media_type, kind)) in (1..).zip(KINDS) {
        post(&board, media_type, &picture(kind, 200, 100)).await;
        for (max_px, to) in [(64, (64, 32)), (1, (1, 1)), (199, (199, 100))] {
            let answer = board.get(&format!("screenshots/{seq}/image?max_px={max_px}")).await;
            assert_eq!(size(&answer), to, "{media_type}");
            assert!(["image/png", "image/jpeg"].contains(&answer.header("content-type")));
        }
    }
}

#[tokio::test]
async fn an_image_that_is_small_enough_is_sent_as_it_is_stored() {
    let server = Server::start();
    let board = server.board("s");
    for (seq, (media_type, kind)) in (1..).zip(KINDS) {
        let bytes = picture(kind, 200, 100);
        // What it is declared to be does not matter where it is shown as an image.
        post(&board, if seq % 2 == 0 { "image/x-other" } else { "text/html" }, &bytes).await;
        for max_px in [200, 16_384] {
            let answer = board.get(&format!("screenshots/{seq}/image?max_px={max_px}")).await;
            if ["image/gif", "image/bmp"].contains(&media_type) {
                // Not every provider takes them.
                assert_eq!(size(answer.is(200)), (200, 100), "{media_type}");
                assert!(["image/png", "image/jpeg"].contains(&answer.header("content-type")));
                continue;
            }
            assert_eq!(answer.is(200).body(), bytes);
            assert_eq!(answer.header("content-type"), media_type);
            assert_eq!(answer.header("content-disposition"), "");
        }
    }
}

#[tokio::test]
async fn max_px_is_a_whole_number_within_its_bounds() {
    let server = Server::start();
    let board = server.board("s");
    post(&board, "image/png", &png(20, 20, 1)).await;
    for wrong in ["0", "-1", "16385", "1.5", "", "many"] {
        let answer = board.get(&format!("screenshots/1/image?max_px={wrong}")).await;
        answer.problem(400, "invalid-parameter");
    }
}

#[tokio::test]
async fn what_cannot_be_shown_is_refused_with_the_reason() {
    let server = Server::start();
    let board = server.board("s");
    let mut cut = noise(300, 300);
    cut.truncate(50_000);
    let parts: [(&str, &[u8], &str); 4] = [
        ("text/plain", b"no image at all", "not a PNG"),
        ("image/png", b"\x89PNG\r\n\x1a\n and then nothing", "damaged"),
        ("image/png", &cut, "damaged"),
        ("image/svg+xml", b"<svg/>", "not a PNG"),
    ];
    for (seq, (media_type, bytes, why)) in (1..).zip(parts) {
        post(&board, media_type, bytes).await;
        for _ in 0..2 {
            let answer = board.get(&format!("screenshots/{seq}/image?max_px=64")).await;
            let detail = answer.problem(422, "not-an-image")["detail"].clone();
            assert!(detail.as_str().unwrap().contains(why), "{detail}");
        }
        assert_eq!(board.get(&format!("screenshots/{seq}/image")).await.is(200).body(), bytes);
    }
}

#[tokio::test]
async fn a_thumbnail_is_equal_from_sound_damaged_and_no_cache() {
    let mut server = Server::start();
    let board = server.board("s");
    post(&board, "image/png", &picture(ImageFormat::Png, 400, 300)).await;
    let tail = "screenshots/1/image?max_px=100";
    let first = board.get(tail).await.is(200).body().to_vec();
    let [file] = cached(&server.data()).try_into().unwrap();
    assert!(file.to_str().unwrap().ends_with("-s100"), "{file:?}");
    for change in 0..4 {
        match change {
            0 => {}
            1 => fs::write(&file, "half of one").unwrap(),
            2 => fs::remove_file(&file).unwrap(),
            _ => {
                assert!(server.stop().success());
                fs::remove_dir_all(server.data().join("cache")).unwrap();
                server.start_again();
            }
        }
        let again = server.board("s").get(tail).await;
        assert_eq!(again.is(200).body(), first);
        assert_eq!(cached(&server.data()), std::slice::from_ref(&file), "change {change}");
    }
    server.kill();
    server.start_again();
    assert_eq!(server.board("s").get(tail).await.is(200).body(), first);
}

#[tokio::test]
async fn thumbnails_go_with_their_session_and_are_in_no_archive() {
    let mut server = Server::start();
    for session in ["a", "b"] {
        let board = server.board(session);
        post(&board, "image/png", &picture(ImageFormat::Png, 400, 300)).await;
        board.get("screenshots/1/image?max_px=100").await.is(200);
        board.get("screenshots/1/image?max_px=50").await.is(200);
    }
    assert_eq!(cached(&server.data()).len(), 4);
    server.board("a").delete("").await.is(200);
    // Nobody waits for them to go.
    let begin = Instant::now();
    while cached(&server.data()).len() != 2 {
        assert!(begin.elapsed() < DEADLINE, "{:?}", cached(&server.data()));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let board = server.board("a");
    board.get("screenshots/1/image?max_px=100").await.problem(404, "session-not-found");
    assert!(server.stop().success());
    fs::remove_dir_all(server.data().join("cache/thumbnails")).unwrap();
    fs::write(server.data().join("cache/thumbnails"), "in the way").unwrap();
    server.start_again();
    assert_eq!(size(&server.board("b").get("screenshots/1/image?max_px=50").await), (50, 38));
}

#[tokio::test]
async fn many_who_ask_at_once_get_the_same() {
    let server = Server::start();
    let board = server.board("s");
    post(&board, "image/png", &picture(ImageFormat::Png, 900, 600)).await;
    let asked = (0..24).map(|n| {
        let board = board.clone();
        tokio::spawn(async move {
            let tail = format!("screenshots/1/image?max_px={}", 100 + n % 3);
            ask(board.to(Method::GET, &tail)).await.is(200).body().to_vec()
        })
    });
    let mut bodies = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        bodies.push(asked.await.unwrap());
    }
    for (n, body) in bodies.iter().enumerate() {
        assert_eq!(*body, bodies[n % 3]);
    }
    assert_eq!(cached(&server.data()).len(), 3);
}
