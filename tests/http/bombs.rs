//! Hostile images: stored and returned unchanged, and scaled within bounds or refused.

use std::fs;
use std::io::{Cursor, Write as _};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use image::{DynamicImage, ImageFormat, RgbImage};
use reqwest::Method;
use serde_json::json;

use crate::answer::ask;
use crate::harness::{Board, Server};
use crate::images::{BMP, GIF, JPEG, WEBP, data_url, decoded, png};

/// How much more memory the server may take than before.
const GROWTH_MAX: u64 = 100 << 20;

/// How many ask at once.
const CLIENTS: usize = 16;

fn packed(length: usize) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    for at in (0..length).step_by(zeros.len()) {
        packed.write_all(&zeros[..zeros.len().min(length - at)]).unwrap();
    }
    packed.finish().unwrap()
}

/// A PNG of that size with these chunks between header and end; 8 bits a sample.
fn png_with(size: (u32, u32), colour: u8, depth: u8, chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut header = [size.0.to_be_bytes(), size.1.to_be_bytes()].concat();
    header.extend([depth, colour, 0, 0, 0]);
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let ends = [(b"IHDR", header.as_slice())].into_iter();
    for (kind, body) in ends.chain(chunks.iter().copied()).chain([(b"IEND", &[][..])]) {
        let chunk = [kind.as_slice(), body].concat();
        bytes.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        bytes.extend(&chunk);
        bytes.extend(crc32fast::hash(&chunk).to_be_bytes());
    }
    bytes
}

/// An image of each kind with the sides in its header put to these bytes.
fn claiming(mut bytes: Vec<u8>, at: usize, sides: &[u8]) -> Vec<u8> {
    bytes.splice(at..at + sides.len(), sides.iter().copied());
    bytes
}

fn of_kind(kind: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let shade = |at: u32| u8::try_from(at * 4).unwrap();
    let drawn = RgbImage::from_fn(64, 64, |x, y| image::Rgb([shade(x), shade(y), 9]));
    let drawn = DynamicImage::from(drawn);
    let drawn = if kind == ImageFormat::Gif { drawn.to_rgba8().into() } else { drawn };
    drawn.write_to(&mut bytes, kind).unwrap();
    bytes.into_inner()
}

fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// The first frame of a WebP is larger than its canvas: the decoder would make room for it.
fn webp_of_a_large_frame() -> Vec<u8> {
    let mut frame = vec![0x10, 0, 0, 0x9d, 0x01, 0x2a];
    frame.extend([16_383_u16.to_le_bytes(), 16_383_u16.to_le_bytes()].concat());
    frame.resize(4096, 0);
    let chunk = |name: &[u8; 4], body: &[u8]| {
        [name.as_slice(), &u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat()
    };
    let chunks =
        [chunk(b"VP8X", &[0, 0, 0, 0, 231, 3, 0, 231, 3, 0]), chunk(b"VP8 ", &frame)].concat();
    chunk(b"RIFF", &[b"WEBP".as_slice(), &chunks].concat())
}

fn animated() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut bytes);
    let frame = |shade| {
        image::Frame::new(image::RgbaImage::from_pixel(300, 200, image::Rgba([shade, 0, 0, 255])))
    };
    encoder.encode_frames((0..20).map(|n| frame(n * 12))).unwrap();
    drop(encoder);
    bytes
}

/// A palette of two, one of them transparent.
fn palette() -> Vec<u8> {
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::fast());
    for row in 0..16_u8 {
        rows.write_all(&[0, row, 0x0f]).unwrap();
    }
    let rows = rows.finish().unwrap();
    let chunks: [(&[u8; 4], &[u8]); 3] =
        [(b"PLTE", &[255, 0, 0, 0, 0, 255]), (b"tRNS", &[0, 255]), (b"IDAT", &rows)];
    png_with((16, 16), 3, 1, &chunks)
}

/// A profile or a text of 200 MiB, packed.
fn inflating(kind: &[u8; 4]) -> Vec<u8> {
    let unpacked = packed(200 << 20);
    let chunk = [b"name\0\0".as_slice(), &unpacked].concat();
    let rows = packed(16 * 17);
    png_with((16, 16), 0, 8, &[(kind, &chunk), (b"IDAT", &rows)])
}

/// What is sent, and whether a thumbnail of it can be made, where that is known.
fn bombs() -> Vec<(&'static str, Vec<u8>, Option<bool>)> {
    let long = |size: (u32, u32)| {
        let rows = packed((size.0 as usize + 1) * size.1 as usize);
        png_with(size, 0, 8, &[(b"IDAT", &rows)])
    };
    let large = (50_000, 50_000);
    let mut cut = packed(10_000_000);
    cut.truncate(10_000);
    let rows = packed(17 * 17 * 8);
    let sides = [0xff; 4];
    let mut bombs = vec![
        ("a large png", png_with(large, 6, 8, &[(b"IDAT", &cut)]), Some(false)),
        ("a large grey png", png_with(large, 0, 1, &[(b"IDAT", &cut)]), Some(false)),
        ("a large jpeg", claiming(decoded(JPEG), jpeg_sides(), &sides), Some(false)),
        ("a large gif", claiming(decoded(GIF), 6, &sides), Some(false)),
        ("a large webp", claiming(decoded(WEBP), 21, &[0xff, 0xff, 0xff, 0x0f]), Some(false)),
        (
            "a large bmp",
            claiming(decoded(BMP), 18, &[0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0]),
            Some(false),
        ),
        ("a large frame", webp_of_a_large_frame(), Some(false)),
        ("an animation", animated(), Some(true)),
        ("noise", noise(20 << 20), Some(false)),
        ("a profile", inflating(b"iCCP"), None),
        ("a text", inflating(b"zTXt"), Some(true)),
        ("a column", long((1, 60_000)), Some(true)),
        ("a row", long((60_000, 1)), Some(true)),
        ("nothing", png_with((0, 0), 0, 8, &[(b"IDAT", &rows)]), Some(false)),
        ("sixteen bits", png_with((16, 16), 6, 16, &[(b"IDAT", &rows)]), Some(true)),
        ("a palette", palette(), Some(true)),
        ("too many rows", png_with((4, 4), 0, 8, &[(b"IDAT", &packed(300 << 20))]), None),
        ("a screenshot", png(3840, 2160, 7), Some(true)),
    ];
    for (_, kind) in blackboard_thumbnail::IMAGE_TYPES {
        let whole = of_kind(kind);
        for parts in [1, 4, 9] {
            bombs.push(("a part", whole[..whole.len() * parts / 10].to_vec(), None));
        }
    }
    bombs
}

/// Where the height and the width of the JPEG stand: in its frame's header.
fn jpeg_sides() -> usize {
    let bytes = decoded(JPEG);
    let frame = bytes.windows(2).position(|pair| pair == [0xff, 0xc0] || pair == [0xff, 0xc1]);
    frame.expect("a frame") + 5
}

fn resident(server: &Server, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

async fn shown(board: &Board, seq: usize, max_px: u32) -> u16 {
    let tail = format!("screenshots/{seq}/image?max_px={max_px}");
    let answer = ask(board.to(Method::GET, &tail)).await;
    assert!(matches!(answer.status(), 200 | 422), "{answer}");
    if answer.status() == 422 {
        answer.problem(422, "not-an-image");
    }
    answer.status()
}

#[tokio::test]
async fn bombs_are_answered_within_bounds() {
    let server = Server::start();
    let board = server.made("s").await;
    let bombs = bombs();
    // What is sent is in memory while it is taken in; what is made of it is looked at afterwards.
    for (what, bytes, _) in &bombs {
        let item = json!({"image_str":data_url("image/png", bytes)});
        let posted = board.post("screenshots", &item.to_string()).await;
        assert_eq!(posted.status(), 201, "{what}: {posted}");
    }
    let before = resident(&server, "VmRSS:");
    // The peak is forgotten.
    fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").unwrap();
    for (seq, (what, bytes, makes)) in (1..).zip(&bombs) {
        let mut asked = Vec::new();
        for client in 0..CLIENTS {
            let board = board.clone();
            // Small enough to be decoded whatever it is, or as large as it may be sent as it is.
            let max_px = [1, 2, 3, 256][client % 4];
            asked.push(tokio::spawn(async move { (max_px, shown(&board, seq, max_px).await) }));
        }
        for asked in asked {
            let (max_px, status) = asked.await.unwrap();
            if let Some(makes) = makes
                && max_px < 4
            {
                assert_eq!(status == 200, *makes, "{what}: {status}");
            }
        }
        let stored = board.get(&format!("screenshots/{seq}/image")).await;
        assert_eq!(stored.is(200).body(), bytes, "{what}");
        let grown = resident(&server, "VmHWM:").saturating_sub(before);
        assert!(grown < GROWTH_MAX, "{} MiB more for {what}", grown >> 20);
    }
    board.get("prompt").await.is(200);
    let said = server.said("answered");
    assert!(!said.contains("panic"), "a decoder panicked");
}
