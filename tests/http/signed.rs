//! Signed image addresses: reach, expiry, and forgery. The tests compute signatures themselves.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use reqwest::Method;
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest as _, Sha256};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server, finished};
use crate::images::{data_url, png};
use crate::postgres;

const HOUR_S: u64 = 3600;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// What a server signs with, and its only session.
struct Signer {
    key: Vec<u8>,
    epoch: Vec<u8>,
    session: Vec<u8>,
}

impl Signer {
    fn of(server: &Server) -> Self {
        if let Some(schema) = server.schema() {
            let session: uuid::Uuid = postgres::value(schema, "SELECT id FROM session");
            return Self {
                key: postgres::value(schema, "SELECT signing_key FROM meta"),
                epoch: postgres::value(schema, "SELECT epoch FROM meta"),
                session: session.as_bytes().to_vec(),
            };
        }
        let path = server.data().join("blackboard.db");
        let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let read = |sql: &str| database.query_row(sql, [], |row| row.get(0)).unwrap();
        Self {
            key: read("SELECT signing_key FROM meta"),
            epoch: read("SELECT epoch FROM meta"),
            session: read("SELECT session FROM journal UNION SELECT session FROM segment"),
        }
    }

    /// The end of the address of an image in full size.
    fn query(&self, seq: u64, image: &[u8], expires: u64) -> String {
        let mut mac: Hmac<Sha256> = Hmac::new_from_slice(&self.key).unwrap();
        mac.update(b"blackboard image 1\n");
        mac.update(&self.epoch);
        mac.update(&self.session);
        mac.update(&seq.to_be_bytes());
        mac.update(&Sha256::digest(image));
        mac.update(&0_u32.to_be_bytes());
        mac.update(&expires.to_be_bytes());
        let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
        format!("expires={expires}&signature={signature}")
    }
}

async fn post(board: &Board, image: &[u8]) {
    ask(board.typed(Method::POST, "screenshots", "image/png", image.to_vec())).await.is(201);
}

#[tokio::test]
async fn a_signed_address_has_one_spelling() {
    let server = Server::start();
    let image = png(2, 3, 200);
    let board = server.board("s");
    post(&board, &image).await;
    let good = Signer::of(&server).query(1, &image, now() + HOUR_S);
    for zero in ["0", "000", "%30"] {
        let other = good.replace("expires=", &format!("expires={zero}"));
        open(&board, 1, &other).await.problem(403, "forbidden");
    }
    open(&board, 1, &good).await.is(200);
}

async fn open(board: &Board, seq: u64, query: &str) -> Answer {
    board.get(&format!("screenshots/{seq}/image?{query}")).await
}

#[tokio::test]
async fn a_signed_address_opens_its_image_before_and_after_a_restart() {
    let mut server = Server::start();
    let image = png(2, 3, 200);
    post(&server.board("s"), &image).await;
    let query = Signer::of(&server).query(1, &image, now() + HOUR_S);
    for _ in 0..2 {
        let answer = open(&server.board("s"), 1, &query).await;
        assert_eq!(answer.is(200).body(), image);
        let cached = answer.header("cache-control");
        let left = cached.strip_prefix("private, max-age=").unwrap();
        let left: u64 = left.strip_suffix(", immutable, no-transform").unwrap().parse().unwrap();
        assert!((1..=HOUR_S).contains(&left), "{cached}");
        server.kill();
        server.start_again();
    }
}

#[tokio::test]
async fn a_signed_address_opens_nothing_else_and_not_for_ever() {
    let server = Server::start();
    let (board, image) = (server.board("s"), png(2, 3, 200));
    post(&board, &image).await;
    // The same image, and another one.
    post(&board, &image).await;
    post(&board, &png(2, 3, 100)).await;
    let signer = Signer::of(&server);
    let good = signer.query(1, &image, now() + HOUR_S);
    open(&board, 1, &good).await.is(200);
    for seq in [2, 3] {
        open(&board, seq, &good).await.problem(403, "forbidden");
    }
    post(&server.board("other"), &image).await;
    open(&server.board("other"), 1, &good).await.problem(403, "forbidden");
    for expires in [0, now() - 1, now() + 49 * HOUR_S, u64::MAX] {
        let query = signer.query(1, &image, expires);
        open(&board, 1, &query).await.problem(403, "forbidden");
    }
    let (expires, signature) = good.split_once('&').unwrap();
    let mut refused = Vec::new();
    for query in [
        format!("{expires}&signature="),
        format!("{expires}&signature=%FF").replace("%FF", "%C3%A9"),
        format!("{expires}0&{signature}"),
        format!("{good}A"),
    ] {
        refused.push(open(&board, 1, &query).await.problem(403, "forbidden")["detail"].clone());
    }
    refused.dedup();
    assert_eq!(refused.len(), 1, "each reason is told alike: {refused:?}");
    for query in [
        expires.to_owned(),
        signature.to_owned(),
        format!("expires=soon&{signature}"),
        format!("{good}&at=1"),
        format!("{good}&wait=1s"),
        format!("{good}&min_revision=1"),
    ] {
        open(&board, 1, &query).await.problem(400, "invalid-parameter");
    }
    // A tag that is known opens nothing either.
    let tag = open(&board, 1, &good).await.etag();
    let known = |query: &str| {
        let request = board.to(Method::GET, &format!("screenshots/1/image?{query}"));
        request.header("if-none-match", &tag)
    };
    ask(known(&good)).await.is(304);
    ask(known(&signer.query(1, &image, now() - 1))).await.problem(403, "forbidden");
}

#[tokio::test]
async fn a_signed_address_ends_with_image_entry_or_session() {
    let server = Server::start();
    let (board, image, other) = (server.board("s"), png(2, 3, 200), png(2, 3, 100));
    post(&board, &image).await;
    post(&board, &image).await;
    let signer = Signer::of(&server);
    let [first, second] = [1, 2].map(|seq| signer.query(seq, &image, now() + HOUR_S));
    let with = |image: &[u8]| format!(r#"{{"image_str":"{}"}}"#, data_url("image/png", image));
    board.put("screenshots/1", &with(&other)).await.is(200);
    open(&board, 1, &first).await.problem(403, "forbidden");
    board.put("screenshots/1", &with(&image)).await.is(200);
    open(&board, 1, &first).await.is(200);
    board.put("screenshots/1", "{}").await.is(200);
    open(&board, 1, &first).await.problem(404, "no-image");

    open(&board, 2, &second).await.is(200);
    board.delete("screenshots/2").await.succeeded();
    open(&board, 2, &second).await.problem(404, "entry-not-found");
    board.delete("").await.succeeded();
    open(&board, 1, &first).await.problem(404, "session-not-found");
    post(&board, &image).await;
    open(&board, 1, &first).await.problem(403, "forbidden");
}

#[tokio::test]
async fn the_log_has_nothing_of_a_signature() {
    let mut server = Server::start_with(&["--log", "trace"]);
    let (board, image) = (server.board("s"), png(2, 3, 200));
    post(&board, &image).await;
    let expires = now() + HOUR_S;
    let query = Signer::of(&server).query(1, &image, expires);
    let signature = query.split_once("signature=").unwrap().1.to_owned();
    open(&board, 1, &query).await.is(200);
    open(&board, 2, &query).await.problem(404, "entry-not-found");
    open(&board, 1, &format!("{query}A")).await.problem(403, "forbidden");
    open(&board, 1, &format!("{query}&at=1")).await.problem(400, "invalid-parameter");
    board.get(&format!("nowhere?{query}")).await.problem(404, "route-not-found");
    server.stop();
    let said = server.said("stopped");
    assert!(said.contains("forbidden"), "{said}");
    assert!(!said.contains(&signature) && !said.contains(&expires.to_string()), "{said}");
}

#[test]
fn a_public_address_that_is_none_is_refused_at_the_start() {
    for (url, why) in [
        ("ftp://board.example.org", "must begin with http:// or https://"),
        ("https://me@board.example.org", "a user name or a password"),
        ("https://board.example.org/?a=b", "a query or a fragment"),
    ] {
        let refused = finished(&["serve", "--public-url", url]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && said.contains(why), "{said}");
    }
}

#[tokio::test]
async fn a_prompts_addresses_open_its_images_in_the_size_asked_for() {
    let server = Server::start_with(&["--public-url", "https://board.example.org/team/"]);
    let board = server.board("ä s");
    post(&board, &png(600, 300, 1)).await;
    for (format, place) in [
        ("parts", "/2/image_url/url"),
        ("responses", "/2/image_url"),
        ("anthropic", "/2/source/url"),
        ("gemini", "/2/fileData/fileUri"),
    ] {
        let tail = format!("prompt?include=screenshots&images=url&max_px=200&format={format}");
        let answer = board.get(&tail).await;
        let parts = answer.is(200).json();
        let url =
            parts.pointer(place).and_then(|url| url.as_str()).unwrap_or_else(|| panic!("{parts}"));
        let path = url.strip_prefix("https://board.example.org/team/v1/sessions/%C3%A4%20s/");
        let path = path.unwrap_or_else(|| panic!("{url}"));
        let opened = board.get(path).await;
        assert!(opened.is(200).header("cache-control").contains("immutable"), "{opened}");
        assert!(opened.body().len() < 2000 && opened.header("content-type") == "image/png");
        for (part, other) in [("max_px=200", "max_px=201"), ("max_px=200&", "")] {
            board.get(&path.replace(part, other)).await.problem(403, "forbidden");
        }
        assert_eq!(board.get(&tail).await.body(), answer.body());
        let known = board.to(Method::GET, &tail).header("If-None-Match", answer.etag());
        ask(known).await.is(304);
    }
}
