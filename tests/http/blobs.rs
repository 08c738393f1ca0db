//! Blobs: uploads, reads and references.

use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::postgres;

/// The digest of bytes, as the name of their blob.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn named(bytes: &[u8]) -> String {
    json!({"$blob": digest(bytes)}).to_string()
}

pub(crate) async fn upload(board: &Board, bytes: &[u8]) -> Answer {
    let tail = format!("blobs/{}", digest(bytes));
    ask(board.typed(Method::PUT, &tail, "text/plain;charset=utf-8", bytes.to_vec())).await
}

#[tokio::test]
async fn a_blob_is_read_as_it_was_uploaded() {
    let server = Server::start();
    let board = server.board("a b");
    let bytes = "hé, blob".as_bytes();
    let posted = ask(board.typed(Method::POST, "blobs", "Text/Plain; charset=utf-8", bytes)).await;
    let address = format!("/v1/sessions/a%20b/blobs/{}", digest(bytes));
    assert_eq!(posted.is(201).header("location"), address);
    let told = posted.json();
    let expected = json!({"revision": 1, "etag": posted.etag(), "sha256": digest(bytes),
        "bytes": bytes.len(), "media_type": "Text/Plain; charset=utf-8"});
    assert_eq!(told, expected);
    let tail = format!("blobs/{}", digest(bytes));
    let read = board.get(&tail).await;
    assert_eq!(read.is(200).body(), bytes);
    assert_eq!(read.etag(), posted.etag());
    assert_eq!(read.header("content-type"), "Text/Plain; charset=utf-8");
    assert_eq!(read.header("cache-control"), "private, max-age=31536000, immutable, no-transform");
    assert_eq!(read.header("content-security-policy"), "sandbox; default-src 'none'");
    let upper = board.get(&format!("blobs/{}", digest(bytes).to_uppercase())).await;
    assert_eq!(upper.is(200).body(), bytes);
    let head = ask(board.to(Method::HEAD, &tail)).await;
    assert_eq!(head.is(200).header("content-length"), bytes.len().to_string());
    let part = ask(board.to(Method::GET, &tail).header("range", "bytes=4-5")).await;
    assert_eq!(part.is(206).header("content-range"), format!("bytes 4-5/{}", bytes.len()));
    assert_eq!(part.body(), &bytes[4..6]);
    let beyond = ask(board.to(Method::GET, &tail).header("range", "bytes=99-")).await;
    beyond.problem(416, "range-not-satisfiable");
    let known = ask(board.to(Method::GET, &tail).header("if-none-match", posted.etag())).await;
    assert_eq!(
        known.is(304).header("cache-control"),
        "private, max-age=31536000, immutable, no-transform"
    );
    // Nothing is committed again, and the first type stays.
    let again = upload(&board, bytes).await;
    assert_eq!(again.is(200).json(), told);
    let other = ask(board.to(Method::PUT, &tail).header("if-none-match", "*").body("hé, blob"));
    other.await.problem(412, "precondition-failed");
    ask(board.typed(Method::POST, "blobs", "text/html", "<p>")).await.is(201);
    let page = board.get(&format!("blobs/{}", digest(b"<p>"))).await;
    assert_eq!(page.is(200).header("content-disposition"), "attachment");
    let bare = ask(board.to(Method::POST, "blobs").body("?")).await;
    assert_eq!(bare.is(201).json()["media_type"], "application/octet-stream");
}

#[tokio::test]
async fn what_is_no_blob_is_refused_and_leaves_no_file() {
    let server = Server::start();
    let board = server.made("s").await;
    let tail = format!("blobs/{}", digest(b"other"));
    let wrong = ask(board.to(Method::PUT, &tail).body("bytes")).await;
    let told = wrong.problem(422, "digest-mismatch");
    assert_eq!(told["sha256"], digest(b"bytes"));
    board.get(&tail).await.problem(404, "blob-not-found");
    for name in ["x", &digest(b"")[1..]] {
        let tail = format!("blobs/{name}");
        ask(board.to(Method::PUT, &tail).body("b")).await.problem(400, "invalid-name");
        board.get(&tail).await.problem(400, "invalid-name");
    }
    ask(board.typed(Method::POST, "blobs", "nonsense", "b"))
        .await
        .problem(415, "unsupported-media-type");
    ask(board.to(Method::POST, "blobs?x=1").body("b")).await.problem(400, "unknown-parameter");
    let large = vec![0; (32 << 20) + 1];
    let large = ask(board.to(Method::POST, "blobs").body(large)).await;
    large.problem(413, "body-too-large");
    ask(board.to(Method::POST, "blobs").header("if-match", "\"x\"").body("b"))
        .await
        .problem(412, "precondition-failed");
    let largest = vec![7; 32 << 20];
    ask(board.to(Method::POST, "blobs").body(largest.clone())).await.is(201);
    assert_eq!(board.get(&format!("blobs/{}", digest(&largest))).await.is(200).body(), largest);
    crate::collection::until_there_are(&server, 1).await;
    server.board("none").get(&tail).await.problem(404, "session-not-found");
}

#[tokio::test]
async fn first_uploads_at_once_make_one_session() {
    let server = Server::start();
    for round in 0..20 {
        let board = server.board(&format!("s{round}"));
        let uploads = (0..8).map(|n| {
            let bytes = format!("blob {n}").into_bytes();
            ask(board.typed(Method::POST, "blobs", "text/plain", bytes))
        });
        for posted in futures_util::future::join_all(uploads).await {
            assert_eq!(posted.is(201).json()["bytes"], 6);
        }
        for n in 0..8 {
            let bytes = format!("blob {n}").into_bytes();
            let read = board.get(&format!("blobs/{}", digest(&bytes))).await;
            assert_eq!(read.is(200).body(), bytes);
        }
    }
    until_there_are_homes(&server, 20).await;
}

#[tokio::test]
async fn a_refused_first_upload_leaves_no_directory() {
    let server = Server::start();
    let board = server.board("none");
    let tail = format!("blobs/{}", digest(b"other"));
    for _ in 0..3 {
        ask(board.to(Method::PUT, &tail).body("bytes")).await.problem(422, "digest-mismatch");
    }
    let large = vec![0; (32 << 20) + 1];
    ask(board.to(Method::POST, "blobs").body(large)).await.problem(413, "body-too-large");
    until_there_are_homes(&server, 0).await;
}

/// Waits until so many sessions have a directory of blobs.
async fn until_there_are_homes(server: &Server, number: usize) {
    let homes = || {
        if let Some(schema) = server.schema() {
            let count: i64 =
                postgres::value(schema, "SELECT count(DISTINCT session) FROM blob_chunk");
            return usize::try_from(count).unwrap();
        }
        std::fs::read_dir(server.data().join("blobs")).map_or(0, |homes| {
            homes.filter(|home| home.as_ref().is_ok_and(|home| home.path().is_dir())).count()
        })
    };
    for _ in 0..300 {
        if homes() == number {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{} directories instead of {number}", homes());
}

#[tokio::test]
async fn a_repeat_of_an_upload_gets_its_first_answer() {
    let server = Server::start();
    let board = server.board("s");
    let send = |bytes: &'static str| {
        let request = board.to(Method::POST, "blobs").header("idempotency-key", "k");
        ask(request.header("content-type", "text/plain").body(bytes))
    };
    let first = send("a").await;
    let again = send("a").await;
    assert_eq!(again.is(201).text(), first.is(201).text());
    assert_eq!(again.header("idempotency-replayed"), "true");
    send("b").await.problem(422, "idempotency-key-reused");
}

/// Sends what refers to a blob that is not there, and returns the place that the refusal names.
async fn place(request: reqwest::RequestBuilder) -> (Value, Value) {
    let told = ask(request).await.problem(422, "no-blob");
    (told["errors"][0]["pointer"].clone(), told["errors"][0]["line"].clone())
}

#[tokio::test]
async fn answers_that_refer_to_a_blob_are_not_gathered() {
    let server = Server::start_with(&["--qa-session", "qa"]);
    let (board, gathered) = (server.board("s"), server.board("qa"));
    let item = |question: &str| format!(r#"{{"question":"{question}","file":{}}}"#, named(b"x"));
    upload(&board, b"x").await.is(201);
    upload(&gathered, b"x").await.is(201);
    let questions = format!(r#"[{},{{"question":"plain?"}}]"#, item("with a file?"));
    board.post("questions", &questions).await.is(201);
    for seq in 1..=2 {
        board.put(&format!("questions/{seq}/answer"), r#"{"answer":"yes"}"#).await.is(200);
    }
    let plain = r#"{"question":"plain?","answer":"yes"}"#;
    assert_eq!(gathered.lines("questions").await, [plain]);
    // One that was asked there begins no other session.
    gathered.post("questions", &item("here?")).await.is(201);
    gathered.put("questions/2/answer", r#"{"answer":"yes"}"#).await.is(200);
    let begun = server.board("new");
    begun.post("requests", "{}").await.is(201);
    assert_eq!(begun.lines("questions").await, [plain]);
}

#[tokio::test]
async fn a_reference_to_no_blob_is_refused_with_its_place() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    let name = named(b"x");
    let item = format!(r#"{{"a":[1,{name}]}}"#);
    let json = |method: Method, tail: &str, text: String| board.json(method, tail, &text);
    let post = |tail: &str, text: String| json(Method::POST, tail, text);
    let put = |tail: &str, text: String| json(Method::PUT, tail, text);
    let cases = [
        (post("trajectories", item.clone()), "/a/1/$blob"),
        (post("trajectories", format!("[{{}},{item}]")), "/1/a/1/$blob"),
        (post("agents/A/memory", format!("[{item}]")), "/0/a/1/$blob"),
        (post("requests?attempts=2", name.clone()), "/$blob"),
        (post("questions?expires=1h", name.clone()), "/$blob"),
        (put("trajectories", format!("[{item}]")), "/0/a/1/$blob"),
        (put("requests/1", name.clone()), "/$blob"),
        (board.request(Method::PATCH, "requests/1", &item), "/a/1/$blob"),
        (put("requests/1/done", format!(r#"{{"result":{item}}}"#)), "/result/a/1/$blob"),
        (put("blackboard", format!(r#"{{"requests":[{{}},{item}]}}"#)), "/requests/1/a/1/$blob"),
        (put("state/a/b", name.clone()), "/$blob"),
        (put("state/a/$blob", format!("\"{}\"", digest(b"x"))), ""),
        (put("state", format!(r#"{{"a":{name}}}"#)), "/a/$blob"),
        (board.request(Method::PATCH, "state/a", &name), "/$blob"),
        (json(Method::PATCH, "state/a", format!(r#"{{"append":[1,{name}]}}"#)), "/append/1/$blob"),
        (put("../t", format!(r#"{{"qa_pairs":[{name}]}}"#)), "/qa_pairs/0/$blob"),
        (
            post(
                "transactions",
                format!(
                    r#"{{"then":[{{"put":"a","value":1}},{{"append":"requests","item":{item}}}]}}"#
                ),
            ),
            "/then/1/item/a/1/$blob",
        ),
        (
            post(
                "transactions",
                format!(r#"{{"if":[{{"revision":0}}],"else":[{{"put":"a","value":{name}}}]}}"#),
            ),
            "/else/0/value/$blob",
        ),
    ];
    for (request, pointer) in cases {
        let (found, line) = place(request).await;
        assert_eq!((found, line), (json!(pointer), Value::Null));
    }
    let lines = format!("{{}}\nno\n\n{item}\n");
    let lines =
        board.typed(Method::POST, "trajectories?lenient=true", "application/x-ndjson", lines);
    assert_eq!(place(lines).await, (json!("/a/1/$blob"), json!(4)));
    assert_eq!(board.get("").await.json()["revision"], 1);
    // A session of its own has none of another's blobs.
    upload(&server.board("t"), b"x").await.is(201);
    board.post("trajectories", &item).await.problem(422, "no-blob");
    upload(&board, b"x").await.is(201);
    let upper = digest(b"x").to_uppercase();
    for text in [item.clone(), format!(r#"[{{"\u0024bl\u006fb":"{upper}","name":"x"}}]"#)] {
        board.post("trajectories", &text).await.is(201);
    }
    board.put("state/a/$blob", &format!("\"{upper}\"")).await.is(201);
    board.put("requests/1/done", &format!(r#"{{"result":{name}}}"#)).await.is(200);
}

#[tokio::test]
async fn anything_else_under_the_name_is_plain_data() {
    let server = Server::start();
    let board = server.board("s");
    let short = &digest(b"x")[1..];
    let plain = [
        r#"{"$blob":1}"#.to_owned(),
        r#"{"$blob":{"$blob":["x"]}}"#.to_owned(),
        format!(r#"{{"$blob":"{short}"}}"#),
        format!(r#"{{"$blob":"sha256:{}"}}"#, digest(b"x")),
        format!(r#"{{"blob":"{}"}}"#, digest(b"x")),
        format!(r#"{{"a":"{{\"$blob\":\"{}\"}}"}}"#, digest(b"x")),
    ];
    for text in plain {
        board.post("trajectories", &text).await.is(201);
        board.put("state/x", &text).await.succeeded();
    }
    board.put(&format!("state/y/$blob/{}", digest(b"x")), "1").await.is(201);
}

#[tokio::test]
async fn a_session_with_blobs_is_forked_exported_and_restored() {
    let server = Server::start();
    let board = server.board("s");
    for bytes in [&b"one"[..], b"two", b"three"] {
        upload(&board, bytes).await.is(201);
    }
    let item = format!(r#"{{"file":{}}}"#, named(b"one"));
    board.post("requests", &item).await.is(201);
    board.put("state/a", &named(b"two")).await.is(201);
    let archive = board.get("archive").await.is(200).text().to_owned();
    let copy = server.board("copy");
    let ndjson = "application/x-ndjson";
    ask(copy.typed(Method::PUT, "archive", ndjson, archive.clone())).await.is(201);
    assert_eq!(copy.get("archive").await.text(), archive);
    board.delete("state/a").await.is(200);
    ask(board.json(Method::POST, "fork", r#"{"to":"past","at":5}"#)).await.is(201);
    ask(board.json(Method::POST, "fork", r#"{"to":"now"}"#)).await.is(201);
    let reads = |session: &'static str, bytes: &'static [u8]| {
        let board = server.board(session);
        async move { board.get(&format!("blobs/{}", digest(bytes))).await.status() }
    };
    // A fork has those that its board names.
    for (session, found) in
        [("copy", [200, 200, 200]), ("past", [200, 200, 404]), ("now", [200, 404, 404])]
    {
        let all = [
            reads(session, b"one").await,
            reads(session, b"two").await,
            reads(session, b"three").await,
        ];
        assert_eq!(all, found, "{session}");
    }
    let now = server.board("now");
    let type_of = now.get(&format!("blobs/{}", digest(b"one"))).await;
    assert_eq!(type_of.header("content-type"), "text/plain;charset=utf-8");
    now.post("requests", &named(b"two")).await.problem(422, "no-blob");
    ask(board.json(Method::POST, "restore", r#"{"at":5}"#)).await.is(200);
    assert_eq!(board.get("state/a").await.is(200).json()["$blob"], digest(b"two"));
    // An archive without a blob that it names is no archive.
    let short: Vec<&str> = archive
        .lines()
        .filter(|line| !line.contains(&digest(b"two")[..]) || !line.starts_with("{\"image\""))
        .collect();
    let short = short.join("\n").replace("{\"images\":3,", "{\"images\":2,");
    let other = server.board("other");
    ask(other.typed(Method::PUT, "archive", ndjson, short)).await.problem(422, "invalid-field");
}
