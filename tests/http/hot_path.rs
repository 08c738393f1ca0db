//! The hot path beside the router: the same requests both ways, compared to the byte.
//!
//! An empty query changes nothing but the way: the router takes the request. Each way has a session of its own, whose names
//! have the same length, and in which the same happens. What must differ is named by the order in which it appears: ids,
//! times, tags.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::harness::Server;
use crate::linear::choice::Chance;
use crate::matrix::token;
use crate::raw::connect;

/// How many requests each client sends, each of them both ways.
const REQUESTS: usize = 2_500;

/// The clients of each server.
const CLIENTS: u64 = 2;

/// The length of a tag's first part, in hexadecimal digits.
const TAG_DIGITS: usize = 16;

const ITEM: &str = r#"{"step":1,"subtask":"open Excel","n":1.0}"#;

/// A request as both ways send it.
struct Sent {
    method: &'static str,
    before: &'static str,
    after: &'static str,
    version: &'static str,
    headers: Vec<(&'static str, Said)>,
    body: Vec<u8>,
    /// The client closes its side after the request, of which a part may be missing.
    ends: bool,
}

/// The value of a header: a text, or a tag that this way has seen, by its number.
enum Said {
    Text(String),
    Tag(&'static str, usize),
}

fn text(text: &str) -> Said {
    Said::Text(text.to_owned())
}

/// Makes requests from numbers that are the same for the same seed.
struct Client {
    chance: Chance,
    /// Tokens that the server knows, or none if it asks for none.
    tokens: Vec<String>,
}

impl Client {
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.chance.place(all.len())]
    }

    fn percent(&mut self, share: u64) -> bool {
        self.chance.below(100) < share
    }

    fn request(&mut self, tags: usize) -> Sent {
        let method = match self.chance.below(20) {
            0..11 => "POST",
            11..18 => "GET",
            _ => self.one_of(&["HEAD", "PUT", "PATCH", "OPTIONS", "DELETE", "BREW", "post"]),
        };
        let part = self.one_of(&["trajectories", "requests", "questions", "screenshots", "prompt"]);
        let odd = [
            "",
            "blackboard",
            "state",
            "nosuch",
            "requests/",
            "requests/1",
            "Requests",
            "%72equests",
            "requests%2F",
            "prompt/",
            "prompt%FF",
            "agents/a/memory",
            "search",
            "requests?limit=2",
        ];
        let after = if self.percent(12) { self.one_of(&odd) } else { part };
        let before = if self.percent(94) {
            "/v1/sessions/"
        } else {
            self.one_of(&[
                "/v1/sessions//",
                "//v1/sessions/",
                "/V1/sessions/",
                "/v1/sessions/%20",
                "/v1/sessions/%",
                "http://localhost/v1/sessions/",
                "http://evil.example/v1/sessions/",
                "/v1/sessions/a%2F",
            ])
        };
        let version =
            if self.percent(98) { "HTTP/1.1" } else { self.one_of(&["HTTP/1.0", "HTTP/2.0"]) };
        let mut sent = Sent {
            method,
            before,
            after,
            version,
            headers: Vec::new(),
            body: Vec::new(),
            ends: version != "HTTP/1.1",
        };
        self.address(&mut sent);
        self.identify(&mut sent);
        self.condition(&mut sent, tags);
        self.annotate(&mut sent);
        if matches!(method, "POST" | "PUT" | "PATCH" | "post") {
            self.fill(&mut sent);
        }
        sent
    }

    fn address(&mut self, sent: &mut Sent) {
        let hosts: &[&str] = match self.chance.below(100) {
            0 => &[],
            1 => &["evil.example"],
            2 => &["localhost", "evil.example"],
            3 => &["localhost:port"],
            _ => &["127.0.0.1:8733"],
        };
        sent.headers.extend(hosts.iter().map(|host| ("Host", text(host))));
        if self.percent(4) {
            let origin = self.one_of(&[
                "https://evil.example",
                "http://127.0.0.1",
                "null",
                "https://app.example",
            ]);
            sent.headers.push(("Origin", text(origin)));
        }
        if self.percent(2) {
            sent.headers.push(("Access-Control-Request-Method", text("POST")));
        }
    }

    fn identify(&mut self, sent: &mut Sent) {
        if !self.tokens.is_empty() && !self.percent(3) {
            // Mostly the one that may do everything.
            let number = if self.percent(80) { 0 } else { self.chance.place(self.tokens.len()) };
            let token = &self.tokens[number];
            let bearer = ("Authorization", Said::Text(format!("Bearer {token}")));
            let key = ("X-API-Key", text(token));
            match self.chance.below(50) {
                0 => sent.headers.extend([bearer, key]),
                1..10 => sent.headers.push(key),
                _ => sent.headers.push(bearer),
            }
        }
        if self.percent(20) {
            let agent = self.one_of(&["Host", "H%20ost", "%FF", "", "a/b", "HostAgent"]);
            sent.headers.push(("X-Agent-ID", text(agent)));
        }
        if self.percent(1) {
            sent.headers.extend([("X-Agent-ID", text("Two")), ("X-Agent-ID", text("Three"))]);
        }
    }

    fn condition(&mut self, sent: &mut Sent, tags: usize) {
        let share = if sent.method == "GET" { 85 } else { 8 };
        for (name, share) in [("If-None-Match", share), ("If-Match", 6)] {
            if !self.percent(share) {
                continue;
            }
            // Mostly one of the newest tags.
            let newest = tags.saturating_sub(1 + self.chance.place(4));
            let number = if self.percent(80) { newest } else { self.chance.place(tags.max(1)) };
            let value = match self.chance.below(20) {
                0 => text("*"),
                1 => Said::Tag("W/", number),
                2 => Said::Tag("\"other\", ", number),
                3 => text("unquoted"),
                4 => text("\"open"),
                _ => Said::Tag("", number),
            };
            sent.headers.push((name, value));
        }
    }

    fn annotate(&mut self, sent: &mut Sent) {
        const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let optional: [(&str, u64, &[&str]); 8] = [
            ("traceparent", 12, &[TRACE, TRACE, "00-0af7-1-01", ""]),
            (
                "Accept",
                15,
                &["*/*", "application/x-ndjson", "text/markdown", "application/json;q=0"],
            ),
            ("Accept-Encoding", 15, &["gzip", "gzip;q=0.5, br", "identity;q=0", "br", "*"]),
            ("Content-Range", 1, &["bytes 0-1/2"]),
            ("Expect", 1, &["100-continue", "100-Continue"]),
            ("X-Forwarded-For", 5, &["198.51.100.7", "unknown", "198.51.100.7, 127.0.0.2"]),
            ("Connection", 3, &["close", "keep-alive"]),
            ("X-Request-Id", 3, &["mine"]),
        ];
        for (name, share, values) in optional {
            if self.percent(share) {
                let value = self.one_of(values);
                sent.headers.push((name, text(value)));
            }
        }
        if sent.method == "POST" && self.percent(10) {
            let key = self.one_of(&["k1", "k2", "k3", "k4", "", "\u{1}"]);
            sent.headers.push(("Idempotency-Key", text(key)));
            sent.ends |= key == "\u{1}";
        }
    }

    fn fill(&mut self, sent: &mut Sent) {
        let media_type = match self.chance.below(20) {
            0 => self.one_of(&[
                "text/plain",
                "image/png",
                "application/json; charset=utf-8",
                "",
                "application/jsonl",
            ]),
            1..3 => "application/x-ndjson",
            3 => "Application/JSON",
            _ => "application/json",
        };
        if !self.percent(2) {
            sent.headers.push(("Content-Type", text(media_type)));
        }
        let long = format!("{{\"text\":\"{}\"}}", "x".repeat(70_000));
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let body = match self.chance.below(30) {
            0 => "",
            1 => "[]",
            2 => "{",
            3 => &deep,
            4 if self.percent(25) && !sent.ends => &long,
            5 => "\"words\"",
            6 => "[{\"a\":1},{\"b\":[2,\"é\"]}]",
            7 => "{\"a\":1}\n{\"b\":2}\n",
            8 => "{\"a\":1,\"a\":2}",
            9 => "{\"a\":1e400}",
            10 => "{\"a\":\"\\ud800\"}",
            11 => "[1,{\"a\":2}]",
            12 => "{\"request\":\"r\",\"needs\":[9]}",
            _ => ITEM,
        };
        sent.body = body.as_bytes().to_vec();
        if self.percent(2) {
            let coding = self.one_of(&["gzip", "br", "identity", "zstd, gzip"]);
            sent.headers.push(("Content-Encoding", text(coding)));
        }
        self.frame(sent);
    }

    fn frame(&mut self, sent: &mut Sent) {
        let form = self.chance.below(100);
        if (5..9).contains(&form) {
            // More than a server reads with a head that it refuses would reset the connection.
            sent.body.truncate(ITEM.len());
        }
        let length = sent.body.len();
        match form {
            0..5 => {
                sent.headers.push(("Transfer-Encoding", text("chunked")));
                let head = format!("{length:x}\r\n").into_bytes();
                sent.body = [&head, &sent.body[..], b"\r\n0\r\n\r\n"].concat();
                sent.ends |= length == 0;
            }
            5 => {
                let coding = self.one_of(&["gzip, chunked", "identity", "chunked, chunked"]);
                sent.headers.push(("Transfer-Encoding", text(coding)));
                sent.ends = true;
            }
            6 => {
                let wrong =
                    self.one_of(&["-1", "+1", "1, 1", "x", "100000000", "18446744073709551616"]);
                sent.headers.push(("Content-Length", text(wrong)));
                sent.ends = true;
            }
            7 => {
                sent.headers.push(("Content-Length", Said::Text((length + 5).to_string())));
                sent.ends = true;
            }
            8 => {
                let both = [text(&length.to_string()), text("chunked")];
                sent.headers.extend(["Content-Length", "Transfer-Encoding"].into_iter().zip(both));
                sent.ends = true;
            }
            _ => sent.headers.push(("Content-Length", Said::Text(length.to_string()))),
        }
    }
}

/// One of the two ways.
struct Way<'a> {
    server: &'a Server,
    session: String,
    query: &'static str,
    stream: Option<BufReader<TcpStream>>,
    tags: Vec<String>,
    ids: Vec<String>,
}

impl<'a> Way<'a> {
    fn new(server: &'a Server, session: String, query: &'static str) -> Self {
        Self { server, session, query, stream: None, tags: Vec::new(), ids: Vec::new() }
    }

    fn bytes(&self, sent: &Sent) -> Vec<u8> {
        let Sent { method, before, after, version, headers, body, .. } = sent;
        let query = if after.contains('?') { "" } else { self.query };
        let mut head = format!("{method} {before}{}/{after}{query} {version}\r\n", self.session);
        for (name, value) in headers {
            let value = match value {
                Said::Text(text) => text.clone(),
                Said::Tag(prefix, number) => {
                    let tag = self.tags.get(*number).map_or("none", String::as_str);
                    format!("{prefix}\"{tag}\"")
                }
            };
            head += &format!("{name}: {value}\r\n");
        }
        [head.as_bytes(), b"\r\n", body].concat()
    }

    /// Sends a request, and returns its answer without what must differ.
    fn exchange(&mut self, sent: &Sent) -> String {
        let bytes = self.bytes(sent);
        let mut stream = self.stream.take().unwrap_or_else(|| BufReader::new(connect(self.server)));
        stream.get_mut().write_all(&bytes).expect("the request is sent");
        let mut answer = String::new();
        if sent.ends {
            // A server that has refused may have closed; what counts is its answer.
            stream.get_mut().shutdown(Shutdown::Write).ok();
            while read_answer(&mut stream, sent.method, &mut answer) {}
        } else if read_answer(&mut stream, sent.method, &mut answer) {
            self.stream = Some(stream);
        }
        self.alike(&answer)
    }

    /// Names what must differ by the order in which it appears.
    fn alike(&mut self, answer: &str) -> String {
        let mut answer = answer.replace(&self.session, "SESSION");
        while let Some(id) = after(&answer, "x-request-id: ").map(str::to_owned) {
            answer = answer.replace(&format!("x-request-id: {id}"), "x-request-id ID");
            answer = answer.replace(&id, "ID");
            self.ids.push(id);
        }
        if let Some(date) = after(&answer, "\r\ndate: ").map(str::to_owned) {
            answer = answer.replace(&date, "DATE");
        }
        if let Some(trace) = after(&answer, "traceparent: ").map(str::to_owned) {
            let parts: Vec<_> = trace.split('-').collect();
            answer = answer.replace(parts[2], "SPAN");
        }
        self.without_tags(&without_times(&answer))
    }

    fn without_tags(&mut self, answer: &str) -> String {
        let mut shown = String::new();
        let mut rest = answer;
        while let Some((before, quoted)) = rest.split_once('"') {
            let digits =
                quoted.bytes().take_while(|byte| b"0123456789abcdef.-".contains(byte)).count();
            let (tag, others) = quoted.split_at(digits);
            shown.push_str(before);
            shown.push('"');
            let state = tag.split('-').next().and_then(|state| state.rsplit('.').next());
            if state.is_some_and(|state| state.len() == TAG_DIGITS) {
                let number = self.tags.iter().position(|seen| seen == tag).unwrap_or_else(|| {
                    self.tags.push(tag.to_owned());
                    self.tags.len() - 1
                });
                shown += &format!("TAG {number} of {digits}");
            } else {
                shown.push_str(tag);
            }
            rest = others;
        }
        shown + rest
    }
}

/// Returns the rest of the line after the first of these words.
fn after<'t>(answer: &'t str, words: &str) -> Option<&'t str> {
    let (_, rest) = answer.split_once(words)?;
    rest.split("\r\n").next().filter(|value| !value.is_empty())
}

fn without_times(answer: &str) -> String {
    let mut shown = String::new();
    let mut rest = answer;
    while let Some((before, at)) = rest.split_once("\"at\":\"") {
        let (time, others) = at.split_once('"').expect("a time has an end");
        shown += &format!("{before}\"at\":\"{}\"", "T".repeat(time.len()));
        rest = others;
    }
    shown + rest
}

/// Reads one answer, with those that only say that it comes. Returns true if the connection may go on.
fn read_answer(stream: &mut BufReader<TcpStream>, method: &str, answer: &mut String) -> bool {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).unwrap_or(0) == 0 {
            *answer += &head;
            return false;
        }
    }
    *answer += &head;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status == "100" {
        return read_answer(stream, method, answer);
    }
    let closes = head.contains("\r\nconnection: close\r\n");
    let length = after(&head, "content-length: ").and_then(|length| length.parse().ok());
    let mut body = Vec::new();
    if method == "HEAD" || matches!(status, "204" | "304") {
    } else if head.contains("\r\ntransfer-encoding: chunked\r\n") {
        body = chunks(stream);
    } else if let Some(length) = length {
        body.resize(length, 0);
        stream.read_exact(&mut body).expect("a whole body");
    } else {
        stream.read_to_end(&mut body).expect("a body");
    }
    if head.contains("\r\ncontent-encoding: gzip\r\n") && !body.is_empty() {
        let mut plain = Vec::new();
        GzDecoder::new(&body[..]).read_to_end(&mut plain).expect("gzip");
        body = plain;
    }
    *answer += &String::from_utf8_lossy(&body);
    !closes
}

fn chunks(stream: &mut BufReader<TcpStream>) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a chunk's head");
        let length = usize::from_str_radix(line.trim(), 16).expect("a chunk's length");
        let from = body.len();
        body.resize(from + length + 2, 0);
        stream.read_exact(&mut body[from..]).expect("a chunk");
        body.truncate(from + length);
        if length == 0 {
            return body;
        }
    }
}

/// The lines of the log about these requests, without what must differ.
fn logged(said: &str, way: &Way<'_>) -> Vec<Vec<String>> {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in said.lines().filter(|line| line.contains("\"request_id\":")) {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        let fields = line.as_object_mut().expect("an object");
        let id = fields.remove("request_id").expect("an id");
        for name in ["timestamp", "ms", "span_id"] {
            fields.remove(name);
        }
        let shown = line.to_string().replace(&way.session, "SESSION");
        lines.entry(id.as_str().expect("a text").to_owned()).or_default().push(shown);
    }
    way.ids.iter().map(|id| lines.remove(id).unwrap_or_default()).collect()
}

/// Sends a client's requests both ways.
fn compare(server: &Server, seed: u64, tokens: Vec<String>) {
    eprintln!("the hot path beside the router: seed {seed}");
    let mut client = Client { chance: Chance::new(seed), tokens };
    let mut hot = Way::new(server, format!("hot-{seed}"), "");
    let mut routed = Way::new(server, format!("old-{seed}"), "?");
    let mut statuses: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..REQUESTS {
        let sent = client.request(hot.tags.len());
        let (one, other) = (hot.exchange(&sent), routed.exchange(&sent));
        let request = || String::from_utf8_lossy(&hot.bytes(&sent)).into_owned();
        assert_eq!(one, other, "seed {seed}, request {number}: {}", request());
        *statuses.entry(one.get(9..12).unwrap_or_default().to_owned()).or_default() += 1;
    }
    // The log has the lines of all requests once it has that of one more.
    let host = vec![("Host", text("localhost"))];
    routed.exchange(&Sent {
        method: "GET",
        before: "/v1/sessions/",
        after: "requests",
        version: "HTTP/1.1",
        headers: host,
        body: Vec::new(),
        ends: true,
    });
    let last = routed.ids.pop().expect("an id");
    let said = server.said(&format!("\"request_id\":\"{last}\""));
    let (one, other) = (logged(&said, &hot), logged(&said, &routed));
    assert!(one == other, "seed {seed}: {:?}", one.iter().zip(&other).find(|(a, b)| a != b));
    for status in ["200", "201", "304", "400", "404", "405", "412", "415", "421"] {
        assert!(statuses.get(status).is_some_and(|count| *count > 2), "{status}: {statuses:?}");
    }
}

#[test]
fn the_hot_path_answers_and_logs_as_the_router_does() {
    let seed = std::env::var("BLACKBOARD_TEST_SEED").ok();
    let seed: u64 = seed.map_or(60, |seed| seed.parse().expect("a number"));
    let proxies = ["--trusted-proxies", "127.0.0.2", "--cors-origins", "https://app.example"];
    let flags = [&proxies[..], &["--log", "info", "--token-rate", "0"]].concat();
    let (open, guarded) = (Server::start_with(&flags), Server::start_with(&flags));
    let made = |scopes: &str| token(&guarded, &["create", "--name", scopes, "--scopes", scopes]);
    let tokens: Vec<_> = ["admin", "write", "read", "read,write"]
        .map(|scopes| match scopes {
            "read,write" => {
                token(&guarded, &["create", "--name", "a", "--scopes", scopes, "--agent", "Host"])
            }
            scopes => made(scopes),
        })
        .into();
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (open, guarded, tokens) = (&open, &guarded, tokens.clone());
            scope.spawn(move || compare(open, seed + 100 + number, Vec::new()));
            scope.spawn(move || compare(guarded, seed + 200 + number, tokens));
        }
    });
}
