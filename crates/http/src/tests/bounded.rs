//! Tests of the piece sizes of response bodies, and of the threads that render them.

use std::io::Cursor;
use std::sync::Arc;
use std::thread;

use axum::body::Body;
use axum::http::{Request, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blackboard_thumbnail::Bounds;
use http_body_util::BodyExt as _;
use image::{DynamicImage, ImageFormat, RgbImage};
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use crate::request::query::params;
use crate::response::chunked;
use crate::response::segments;
use blackboard_api::log_page::LogQuery;
use blackboard_api::pieces::Pieces;
use blackboard_api::segments::Segments;
use blackboard_api::yielding::{TURN_BYTES_MAX, Turns};
use blackboard_auth::Caller;
use blackboard_board::{
    Board, Command, Image, Item, LogCommand, LogName, Policy, Screenshot, SessionName, Terms,
};
use blackboard_clock::Clock;
use blackboard_service::{ImageBytes, Reply, Service, SessionHandle};
use blackboard_store::{SqliteOptions, SqliteStore, Store, SyncLevel};

/// A piece of an image, and a piece of what stands before it.
const PIECE_BYTES_MAX: usize = 256 << 10;

pub(super) struct World {
    pub(super) service: Service,
    pub(super) store: Arc<dyn Store>,
    _home: TempDir,
}

impl World {
    pub(super) fn new() -> Self {
        let home = TempDir::new().unwrap();
        let options = SqliteOptions { sync: SyncLevel::Normal, free_bytes_min: 0, free_part: 1 };
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(home.path(), options).unwrap());
        let policy = Policy {
            auto_create: true,
            session_bytes_max: 1 << 30,
            session_blob_bytes_max: 1 << 30,
            session_items_max: 1 << 30,
            sessions_max: 1 << 30,
            qa_pairs: Vec::new(),
        };
        let service = Service::start(Arc::clone(&store), policy, Clock::system()).unwrap();
        Self { service, store, _home: home }
    }

    async fn session(&self) -> SessionHandle {
        self.service.session(&Caller::owner(), &name()).await.unwrap()
    }

    async fn append(&self, log: LogName, item: Item, images: Vec<ImageBytes>) -> Arc<Board> {
        let command = Command::Log(log, LogCommand::Append { items: vec![item] });
        let session = self.session().await;
        let reply = session.write(Terms::default(), command, images, None).await.unwrap();
        let Reply::Now(receipt) = reply else { panic!("{reply:?}") };
        receipt.board
    }

    /// A board with a screenshot of these bytes.
    async fn screenshot(&self, bytes: Vec<u8>) -> (Arc<Board>, Image) {
        let screenshot = Screenshot::from_bytes("image/png", bytes, None, "\"é\"").unwrap();
        let (item, images) = ImageBytes::split(screenshot);
        let board = self.append(LogName::Screenshots, item, images).await;
        let image = board.log(&LogName::Screenshots).unwrap().at(0).unwrap().item.image().cloned();
        (board, image.unwrap())
    }
}

fn name() -> SessionName {
    "s".parse().unwrap()
}

/// An answer, of which no piece is longer than it may be.
async fn bounded(mut pieces: impl Pieces) -> String {
    let (mut all, mut more) = (String::new(), true);
    while more {
        let mut piece = String::new();
        more = pieces.write(&mut piece).await.unwrap();
        assert!(piece.len() <= PIECE_BYTES_MAX, "a piece of {} bytes", piece.len());
        all.push_str(&piece);
    }
    all
}

/// The same of a body.
async fn bounded_body(mut body: Body, frame_bytes_max: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() <= frame_bytes_max, "a frame of {} bytes", data.len());
        all.extend_from_slice(&data);
    }
    all
}

#[tokio::test]
async fn an_image_in_its_place_comes_in_pieces() {
    let world = World::new();
    let (board, image) = world.screenshot(vec![7; 3 << 20]).await;
    let session = world.session().await;
    let url = image.data_url(&session.image(&board, &image).await.unwrap());
    for (query, lines) in [
        ("images=inline", true),
        ("images=inline", false),
        ("images=inline&keys=image_str", true),
        ("images=inline&keys=image_str,metadata", false),
    ] {
        let accept = if lines { "application/x-ndjson" } else { "application/json" };
        let request = Request::get(format!("/?{query}")).header(header::ACCEPT, accept);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let mut params = params(&parts).unwrap();
        let query_of = LogQuery::params(&name(), lines, &mut params).unwrap();
        let (of, now) = (session.clone(), Arc::clone(&board));
        let pieces = query_of.pieces(of, now, LogName::Screenshots).await;
        let answer = bounded(pieces).await;
        let shown: Value = serde_json::from_str(&answer).unwrap();
        let item = if lines { &shown } else { &shown["entries"][0]["item"] };
        assert_eq!(item["image_str"], *url, "{query}");
        assert_eq!(item.get("metadata").is_some(), !query.ends_with("image_str"), "{query}");
    }
}

#[tokio::test]
async fn a_thumbnail_comes_in_pieces() {
    let world = World::new();
    let mut seed = 1_u32;
    let noise = RgbImage::from_fn(400, 400, |_, _| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        image::Rgb(seed.to_be_bytes()[..3].try_into().unwrap())
    });
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::from(noise).write_to(&mut bytes, ImageFormat::Png).unwrap();
    let (board, image) = world.screenshot(bytes.into_inner()).await;
    let bounds = Bounds::px(Some(399));
    let made = world.session().await.thumbnail(&board, &image, bounds).await.unwrap();
    assert!(made.bytes.len() > 2 * TURN_BYTES_MAX);
    let mut segments = Segments::default();
    segments.push_thumbnail(&image, bounds, made.bytes.len() as u64);
    let body = segments::body(segments, world.session().await, board).await.unwrap();
    let shown = bounded_body(body, TURN_BYTES_MAX).await;
    assert_eq!(shown, STANDARD.encode(&made.bytes).into_bytes());
}

#[tokio::test]
async fn long_answers_are_made_on_another_thread() {
    let here = thread::current().id();
    let mut turns = Turns::default();
    let made_at = |bytes: usize| (bytes as u64, move || thread::current().id());
    for (bytes, is_here) in [(0, true), (TURN_BYTES_MAX, true), (TURN_BYTES_MAX + 1, false)] {
        let (bytes, make) = made_at(bytes);
        assert_eq!(turns.make(bytes, make).await.unwrap() == here, is_here, "{bytes}");
    }
    // Texts of a prompt that are kept nowhere are made so.
    let (world, threads) = (World::new(), Arc::new(Mutex::new(Vec::new())));
    let board = world.append(LogName::Requests, Item::from_json("{}").unwrap(), vec![]).await;
    let mut segments = Segments::default();
    for bytes in [TURN_BYTES_MAX + 1, TURN_BYTES_MAX] {
        let threads = Arc::clone(&threads);
        segments.push_made(bytes as u64, move || {
            threads.lock().push(thread::current().id());
            "x".repeat(bytes)
        });
    }
    let body = segments::body(segments, world.session().await, board).await.unwrap();
    assert_eq!(bounded_body(body, TURN_BYTES_MAX + 1).await.len(), 2 * TURN_BYTES_MAX + 1);
    let is_here: Vec<_> = threads.lock().iter().map(|thread| *thread == here).collect();
    assert_eq!(is_here, [false, true]);
}

#[tokio::test]
async fn an_archive_comes_in_pieces_whatever_its_lines() {
    let world = World::new();
    world.screenshot(vec![7; 1 << 20]).await;
    let long = Item::from_json(&format!("{{\"text\":\"{}\"}}", "é中".repeat(100_000))).unwrap();
    let board = world.append(LogName::Requests, long, Vec::new()).await;
    let export = world.session().await.export(board).await.unwrap();
    let body = chunked::body(export).await.unwrap();
    // The head is made whole before the first byte is sent.
    let archive = bounded_body(body, PIECE_BYTES_MAX + TURN_BYTES_MAX).await;
    let lines = archive.split(|byte| *byte == b'\n').map(<[u8]>::len).collect::<Vec<_>>();
    assert!(lines.iter().any(|line| *line > 1 << 20) && lines.last() == Some(&0), "{lines:?}");
}
