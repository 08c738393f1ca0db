//! Privacy: no log, metric or refusal repeats clients' data or tokens.
//!
//! One server is asked for one of everything, well and badly, with a secret wherever a client can put a text.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::answer::{Answer, ask};
use crate::canaries::{BISCUIT, TOKEN};
use crate::harness::{Server, encoded, finished};
use crate::matrix::token;
use crate::raw::exchange;

const SESSION: &str = "s";
const AGENT: &str = "AppAgent";

/// Within contents, as a value and as a member's name.
const CONTENT: &str = "secret-of-the-content";
const MEMBER: &str = "secret-of-the-member";

/// In a query, a header, a path that leads nowhere.
const QUERY: &str = "secret-of-the-query";
const HEADER: &str = "secret-of-the-header";
const PATH: &str = "secret-of-the-path";

const LOGGED_NEVER: [&str; 7] = [CONTENT, MEMBER, QUERY, HEADER, PATH, TOKEN, BISCUIT];

/// Headers that bring a text of the client's.
const HEADERS: [&str; 11] = [
    "accept",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "last-event-id",
    "origin",
    "range",
    "referer",
    "traceparent",
    "x-api-key",
    "x-request-id",
];

/// Bodies of all kinds: good, of the wrong form, cut off, too deep, of no text at all.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let good = format!(r#"{{"text":"{CONTENT}","{MEMBER}":1}}"#);
    let deep = format!("{}\"{CONTENT}\"{}", "[".repeat(200), "]".repeat(200));
    let long = "x".repeat(1 << 20);
    let json = [
        good.clone(),
        format!("[{good},7]"),
        format!(r#""{CONTENT}""#),
        format!(r#"{{"text":"{CONTENT}"#),
        format!(r#"{{"text":"{CONTENT}",}}"#),
        format!(r#"{{"text":"{CONTENT}","n":1e999}}"#),
        format!(r#"{{"text":"{CONTENT}\ud800"}}"#),
        format!(r#"{{"d":{deep}}}"#),
        format!(r#"{{"text":"{CONTENT}{long}"}}"#),
        format!(r#"{{"answer":"{CONTENT}"}}"#),
        format!(r#"{{"settings":{{"ttl":"{CONTENT}"}},"labels":{{"{MEMBER}":"{CONTENT}"}}}}"#),
        format!(r#"{{"labels":{{"a":{{"{MEMBER}":"{CONTENT}"}}}}}}"#),
        format!(r#"{{"to":7,"at":"{CONTENT}"}}"#),
        format!(r#"{{"fence":"{CONTENT}","result":"{CONTENT}"}}"#),
        format!(r#"{{"ttl":"{CONTENT}"}}"#),
        format!(r#"{{"append":"{CONTENT}"}}"#),
        format!(r#"{{"add":"{CONTENT}"}}"#),
        format!(
            r#"{{"if":[{{"path":"a","equals":"{CONTENT}"}}],"then":[{{"put":"a","value":"{CONTENT}"}}]}}"#
        ),
        format!(r#"{{"then":[{{"put":"a","value":"{CONTENT}","ttl":"{CONTENT}"}}]}}"#),
        format!(r#"{{"questions":["{CONTENT}"],"requests":"{CONTENT}"}}"#),
        format!(r#"{{"image_str":"data:image/png;base64,{CONTENT}"}}"#),
    ];
    let mut bodies: Vec<(&str, Vec<u8>)> =
        json.into_iter().map(|text| ("application/json", text.into_bytes())).collect();
    let not_utf8 = [b"{\"text\":\"".as_slice(), CONTENT.as_bytes(), b"\xff\"}"].concat();
    bodies.extend([
        ("application/json", not_utf8),
        ("application/json", Vec::new()),
        ("application/x-ndjson", format!("{good}\n{{\"text\":\"{CONTENT}\n").into_bytes()),
        ("application/merge-patch+json", good.clone().into_bytes()),
        (
            "application/json-patch+json",
            format!(r#"[{{"op":"test","path":"/text","value":"{CONTENT}"}}]"#).into_bytes(),
        ),
        (
            "application/json-patch+json",
            format!(r#"[{{"op":"{MEMBER}","path":"/{MEMBER}","value":"{CONTENT}"}}]"#).into_bytes(),
        ),
        ("image/png", CONTENT.as_bytes().to_vec()),
        ("multipart/form-data; boundary=b", format!("--b\r\n{CONTENT}").into_bytes()),
        ("text/plain", good.into_bytes()),
    ]);
    bodies
}

/// Of a longer body the client may still be sending the rest when an operation that takes none has answered, and then
/// loses its connection.
const UNREAD_BYTES_MAX: usize = 16 << 10;

/// One of the document's, with names in its path.
struct Operation {
    method: Method,
    path: String,
    takes_body: bool,
}

async fn operations(server: &Server) -> Vec<Operation> {
    let document = server.get("/openapi.json").await.json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let parts = path.split('/').map(|part| match part.trim_matches(['{', '}']) {
            "session" => SESSION,
            "agent" => AGENT,
            "log" => "requests",
            "seq" => "1",
            "path" => "plan/step",
            "checkpoint" => "before",
            name => name,
        });
        let path = parts.collect::<Vec<_>>().join("/");
        for (method, operation) in item.as_object().expect("methods") {
            if let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) {
                let takes_body = operation.get("requestBody").is_some();
                operations.push(Operation { method, path: path.clone(), takes_body });
            }
        }
    }
    assert!(operations.len() > 60, "{}", operations.len());
    // What deletes the session comes last.
    operations.sort_by_key(|asked| (asked.method == Method::DELETE, asked.path.len()));
    operations
}

/// A refusal may name what it refuses, but not repeat what was to be stored.
fn check(answer: &Answer) {
    if answer.status() < 400 {
        return;
    }
    let mut told = answer.text().to_owned();
    // By the contract it shows what is there, to whoever may read it.
    if answer.status() == 412 {
        let mut problem = answer.json();
        problem.as_object_mut().expect("a problem").remove("current");
        told = problem.to_string();
    }
    for secret in [CONTENT, HEADER, TOKEN, BISCUIT] {
        assert!(!told.contains(secret), "{secret} is repeated: {answer}");
    }
}

/// A server that asks for tokens.
struct Guarded {
    server: Server,
    /// The one that the server made for itself.
    admin: String,
    /// Of those who may do less, or nothing.
    others: [String; 5],
}

/// A token that is good for reading only.
const READER: &str = "name-of-the-reader";

impl Guarded {
    fn start() -> Self {
        let server = Server::start_with(&["--require-token", "--token-rate", "0"]);
        let admin = fs::read_to_string(server.data().join("admin-token")).expect("a token");
        let made =
            |name, more: &[&str]| token(&server, &[&["create", "--name", name], more].concat());
        let others = [
            made(READER, &["--scopes", "read"]),
            made("agent", &["--agent", AGENT]),
            made("foreign", &["--sessions", "other-*"]),
            made("expired", &["--scopes", "admin", "--expires", "1ms"]),
            made("revoked", &["--scopes", "admin"]),
        ];
        token(&server, &["revoke", "revoked"]);
        Self { admin: admin.trim().to_owned(), others, server }
    }

    fn tokens(&self) -> impl Iterator<Item = &str> {
        self.others.iter().chain([&self.admin]).map(String::as_str)
    }

    /// By whoever may do everything.
    async fn asked(&self, request: RequestBuilder) -> Answer {
        self.asked_by(&self.admin, request).await
    }

    async fn asked_by(&self, token: &str, request: RequestBuilder) -> Answer {
        let request = request.bearer_auth(token).header("x-agent-id", encoded(AGENT));
        let answer = ask(request).await;
        check(&answer);
        let told = format!("{answer}{}", String::from_utf8_lossy(answer.body()));
        assert!(!self.tokens().any(|token| told.contains(token)), "a token is told: {told}");
        answer
    }

    /// Entries, an image, an agent, a state and a checkpoint, so that routes find something.
    async fn fill(&self) {
        let board = self.server.board(SESSION);
        let item = format!(r#"{{"text":"{CONTENT}","{MEMBER}":["{CONTENT}"]}}"#);
        for tail in ["requests", "questions", "trajectories", "agents/AppAgent/memory"] {
            self.asked(board.json(Method::POST, tail, &item)).await.is(201);
        }
        let png = include_bytes!("../corpus/images/rgb.png");
        let picture = board.typed(Method::POST, "screenshots", "image/png", png.to_vec());
        self.asked(picture).await.is(201);
        let state = format!(r#"{{"step":"{CONTENT}"}}"#);
        self.asked(board.json(Method::PUT, "state/plan", &state)).await.succeeded();
        let checkpoint = board.json(Method::POST, "checkpoints", r#"{"name":"before"}"#);
        self.asked(checkpoint).await.succeeded();
    }

    /// One operation, well and badly, by everybody.
    async fn ask_all_of(&self, operation: &Operation) {
        let Operation { method, path, takes_body } = operation;
        let query = format!("?{QUERY}={QUERY}&wait={QUERY}");
        let request = |path: &str| self.server.to(method.clone(), path);
        // A stream of events would not end.
        let refused = if path.ends_with("/events") { query.as_str() } else { "" };
        self.asked(request(&format!("{path}{query}"))).await;
        for name in HEADERS {
            self.asked(request(&format!("{path}{refused}")).header(name, HEADER)).await;
        }
        for token in self.others.iter().map(String::as_str).chain([TOKEN, HEADER]) {
            self.asked_by(token, request(&format!("{path}{refused}"))).await;
        }
        if method != Method::GET {
            let bodies = bodies().into_iter();
            for (media_type, body) in
                bodies.filter(|(_, body)| *takes_body || body.len() < UNREAD_BYTES_MAX)
            {
                self.asked(request(path).header("content-type", media_type).body(body)).await;
            }
            let named = request(path).header("content-type", "application/json");
            self.asked(named.header("content-encoding", HEADER).body("{}")).await;
            self.fill().await;
        }
    }

    fn told_nothing(&self, text: &str) {
        told_nothing(text);
        told_none_of(text, self.tokens());
    }

    /// A backup knows tokens by name, and has none: not as it was shown, nor the bits that it stands for.
    fn backed_up_none(&self) {
        let data = self.server.data();
        let backup = data.with_file_name("backup");
        let (from, to) = (data.to_str().unwrap(), backup.to_str().unwrap());
        let made = finished(&["backup", "--data", from, "--to", to]);
        assert!(made.status.success(), "{made:?}");
        let bits = |token: &str| URL_SAFE_NO_PAD.decode(&token[3..]).map(|bits| latin(&bits));
        let mut tokens: Vec<String> = self.tokens().map(|token| bits(token).unwrap()).collect();
        tokens.extend(self.tokens().chain([TOKEN, BISCUIT]).map(str::to_owned));
        let mut is_named = false;
        for file in files(&backup) {
            assert_ne!(file.file_name().unwrap(), "admin-token");
            let text = latin(&fs::read(&file).expect("a file"));
            is_named |= text.contains(READER);
            let told = tokens.iter().position(|token| text.contains(token));
            assert_eq!(told, None, "a token is in {}", file.display());
        }
        assert!(is_named, "who may read is not in the backup");
        // What is packed there shows in an archive of it.
        let archive = finished(&["export", SESSION, "--data", to]);
        assert!(archive.status.success(), "{archive:?}");
        let archive = latin(&archive.stdout);
        assert!(archive.contains(CONTENT) && !tokens.iter().any(|token| archive.contains(token)));
    }
}

/// Each byte as a character, so that any can be searched for.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_logs_metrics_refusals_or_backups() {
    let mut guarded = Guarded::start();
    guarded.fill().await;
    for operation in operations(&guarded.server).await {
        guarded.ask_all_of(&operation).await;
    }
    for path in [format!("/{PATH}"), format!("/v1/sessions/s/requests/{PATH}")] {
        guarded.asked(guarded.server.to(Method::GET, &path)).await;
    }
    not_quite_http(&guarded);
    let metrics = guarded.asked(guarded.server.to(Method::GET, "/metrics")).await;
    guarded.told_nothing(metrics.is(200).text());
    guarded.backed_up_none();
    assert!(guarded.server.stop().success());
    guarded.told_nothing(&guarded.server.said("\"stopped\""));
}

/// What the connection itself refuses, or finds cut off.
fn not_quite_http(guarded: &Guarded) {
    let post = format!(
        "POST /v1/sessions/s/requests HTTP/1.1\nContent-Type: application/json\nAuthorization: Bearer {}",
        guarded.admin
    );
    for (head, body) in [
        (format!("GET /healthz?{QUERY} HTTP/1.1\nBad Header {HEADER}: 1"), String::new()),
        (format!("GET /healthz HTTP/9.9\nX: {HEADER}"), String::new()),
        (format!("GET /healthz HTTP/1.1\nHost: {HEADER}"), String::new()),
        (format!("GET /healthz HTTP/1.1\nX: {}", HEADER.repeat(4000)), String::new()),
        (format!("{post}\nContent-Length: 4"), format!("{CONTENT}{CONTENT}")),
        (format!("{post}\nTransfer-Encoding: chunked"), format!("{CONTENT}\r\n{CONTENT}")),
        (format!("{post}\nBad Header: 1"), String::new()),
    ] {
        let answer = exchange(&guarded.server, &head, body.as_bytes());
        told_none_of(&answer.body, guarded.tokens().chain([HEADER, CONTENT]));
    }
}

fn told_nothing(text: &str) {
    told_none_of(text, LOGGED_NEVER);
}

fn told_none_of<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>) {
    for secret in secrets {
        if let Some(line) = text.lines().find(|line| line.contains(secret)) {
            panic!("{secret} is told:\n{line}");
        }
    }
}

#[tokio::test]
async fn lines_of_the_qa_file_are_not_told_where_they_are_none() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("qa.jsonl");
    let lines = [
        format!(r#"{{"question":"{CONTENT}","answer":"{CONTENT}"}}"#),
        format!(r#"["{CONTENT}"]"#),
        format!(r#"{{"question":"{CONTENT}"#),
        format!(r#"{{"question":"{CONTENT}","{MEMBER}":1e999}}"#),
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let mut server = Server::start_with(&["--qa-file", file.to_str().unwrap()]);
    let board = server.made(SESSION).await;
    assert_eq!(board.get("questions").await.json()["count"], 1);
    assert!(server.stop().success());
    let said = server.said("\"stopped\"");
    assert_eq!(said.matches("skipped a line of the --qa-file").count(), 3, "{said}");
    told_nothing(&said);
}

#[tokio::test]
async fn names_that_would_turn_a_line_around_stand_in_it_as_numbers() {
    const HOSTILE: &str = "s\u{202e}\u{2028}\u{2066}e";
    let mut server = Server::start();
    let board = server.board(HOSTILE);
    ask(board.by(HOSTILE, Method::POST, "requests", "{}")).await.is(201);
    // Who asks for it is told by name, in a line of its own.
    ask(board.by(HOSTILE, Method::POST, "purge", "")).await.succeeded();
    assert!(server.stop().success());
    let said = server.said("\"stopped\"");
    assert!(said.is_ascii(), "{said}");
    let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let purged = lines.filter(|line| line["message"] == "purged the history");
    let purged: Vec<Value> = purged.collect();
    assert!(purged.iter().any(|line| line["session"] == HOSTILE), "{said}");
}
