//! Malformed bodies and headers: refused by the contract's code, with the board unchanged.

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::logs::LOGS;
use crate::raw::exchange;

/// A board with something on it, and how it looked before anything bad was sent.
pub(crate) struct Unmoved {
    pub(crate) server: Server,
    pub(crate) board: Board,
    dictionary: String,
    revision: u64,
}

impl Unmoved {
    pub(crate) async fn new() -> Self {
        let server = Server::start();
        let board = server.board("s");
        for log in LOGS {
            board.post(log, r#"{"before":1.0}"#).await.is(201);
        }
        let dictionary = board.dictionary().await;
        let revision = board.get("").await.revision();
        Self { server, board, dictionary, revision }
    }

    pub(crate) async fn check(&self) {
        assert_eq!(self.board.dictionary().await, self.dictionary);
        assert_eq!(self.board.get("").await.revision(), self.revision);
        self.server.get("/healthz").await.is(200);
    }

    async fn refuses(&self, request: RequestBuilder, status: u16, code: &str) -> Value {
        let problem = ask(request).await.problem(status, code);
        self.check().await;
        problem
    }

    /// Bad as an item in every place that takes items.
    async fn refuses_item(&self, item: &[u8], status: u16, code: &str) {
        let list = [b"[", item, b"]"].concat();
        let board = [b"{\"requests\":[", item, b"]}"].concat();
        for log in LOGS {
            let entry = format!("{log}/1");
            for (method, tail, body) in [
                (Method::POST, log, item),
                (Method::POST, log, &list),
                (Method::PUT, log, &list),
                (Method::PUT, entry.as_str(), item),
            ] {
                let request = self.board.typed(method, tail, "application/json", body.to_vec());
                ask(request).await.problem(status, code);
            }
            let lines = self.board.typed(Method::POST, log, "application/x-ndjson", item.to_vec());
            ask(lines).await.problem(status, code);
        }
        let whole = self.board.typed(Method::PUT, "blackboard", "application/json", board);
        self.refuses(whole, status, code).await;
    }
}

/// An object that many levels deep, itself level 1.
fn deep(levels: usize) -> String {
    format!("{{\"v\":{}1{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1))
}

#[tokio::test]
async fn what_is_no_json_is_refused_everywhere() {
    let board = Unmoved::new().await;
    let bad: [&[u8]; 14] = [
        b"{\"a\": \"b",
        b"{'a': 1}",
        b"{\"a\": 01}",
        b"{\"a\": NaN}",
        b"{\"a\": -Infinity}",
        b"{\"a\":1,}",
        b"{a:1}",
        b"{\"a\":1}x",
        b"{\"a\":\"\t\"}",
        b"\xef\xbb\xbf{\"a\":1}x",
        b"{\"a\": \"\xff\"}",
        b"{\"a\": \"\xed\xa0\x80\"}",
        b"{\"\xc3\":1}",
        b"{\"a\": \"\\x\"}",
    ];
    for item in bad {
        board.refuses_item(item, 400, "invalid-json").await;
    }
    for (log, body) in LOGS.iter().flat_map(|log| [(log, ""), (log, "  \n ")]) {
        ask(board.board.json(Method::POST, log, body)).await.problem(400, "invalid-json");
    }
    board.check().await;
}

#[tokio::test]
async fn a_syntax_error_names_its_place() {
    let board = Unmoved::new().await;
    let request = board.board.json(Method::POST, "requests", "{\"a\": 1,\n \"b\": oops}");
    let problem = board.refuses(request, 400, "invalid-json").await;
    let text = problem.to_string();
    assert!(text.contains("line 2") || text.contains("\"line\":2"), "{problem}");
    assert!(text.contains("column"), "{problem}");
}

#[tokio::test]
async fn what_is_no_item_is_refused_everywhere() {
    let board = Unmoved::new().await;
    for item in ["5", "-0.0", "true", "null"] {
        for log in LOGS {
            ask(board.board.json(Method::POST, log, item)).await.problem(422, "unsupported-item");
        }
    }
    for body in ["[[]]", "[[null,null]]", "[\"ok\",{},7]"] {
        board
            .refuses(board.board.json(Method::POST, "requests", body), 422, "unsupported-item")
            .await;
    }
    for body in [
        r#"{"questions":5}"#,
        r#"{"questions":null}"#,
        r#"{"questions":{}}"#,
        r#"{"requests":[null]}"#,
        r#"{"trajectories":[[["a",1]]]}"#,
        r#"{"questions":[{"n":1}],"requests":[5]}"#,
        "null",
        "\"x\"",
        "[]",
        "[null,null]",
        "[[],[],[],[]]",
        "5",
    ] {
        let request = board.board.json(Method::PUT, "blackboard", body);
        ask(request).await.is(422);
        board.check().await;
    }
}

#[tokio::test]
async fn what_python_could_not_read_again_is_refused_everywhere() {
    let board = Unmoved::new().await;
    let digits = format!("{{\"v\":-{}}}", "7".repeat(4301));
    let bad: [&[u8]; 8] = [
        br#"{"v":1e400}"#,
        br#"{"v":[{"w":-1.8e308}]}"#,
        br#"{"v":"a\ud83dz"}"#,
        br#"{"v":"\ude00"}"#,
        br#"{"v":"\ude00\ud83d"}"#,
        br#"{"\ud83d":1}"#,
        br#"{"v":"\ud83d\ud83d\ude00"}"#,
        digits.as_bytes(),
    ];
    for item in bad {
        board.refuses_item(item, 422, "unsupported-value").await;
    }
    let request = board.board.json(Method::POST, "requests", r#"[{},{"a":[0,{"b/c":1e400}]}]"#);
    let problem = board.refuses(request, 422, "unsupported-value").await;
    assert_eq!(problem["errors"][0]["pointer"], "/1/a/1/b~1c", "{problem}");
    let longest = format!("{{\"v\":{}}}", "7".repeat(4300));
    board.board.post("requests", &longest).await.is(201);
}

#[tokio::test]
async fn an_item_of_128_levels_is_taken_and_none_deeper() {
    let board = Unmoved::new().await;
    for levels in [129, 1_000, 100_000] {
        board.refuses_item(deep(levels).as_bytes(), 422, "too-deep").await;
    }
    let other = board.server.board("deepest");
    for log in LOGS {
        other.post(log, &deep(128)).await.is(201);
        other.post(log, &format!("[{}]", deep(128))).await.is(201);
        other.put(&format!("{log}/1"), &deep(128)).await.is(200);
    }
    other.put("blackboard", &format!("{{\"requests\":[{}]}}", deep(128))).await.succeeded();
    other.get("prompt").await.is(200);
    // Unclosed, it is no JSON; which of the two is seen first is the server's affair.
    let open = "[".repeat(100_000);
    let request = board.board.json(Method::POST, "requests", &open);
    ask(request).await.refused();
    board.check().await;
}

#[tokio::test]
async fn a_wrong_content_type_is_told_what_to_send() {
    let board = Unmoved::new().await;
    for log in LOGS {
        for media_type in
            ["text/plain", "application/xml", "application/x-www-form-urlencoded", "json", ""]
        {
            let request = board.board.typed(Method::POST, log, media_type, "{}");
            let answer = ask(request).await;
            let problem = answer.problem(415, "unsupported-media-type");
            assert!(answer.header("accept-post").contains("application/json"), "{answer}");
            assert!(problem.to_string().contains("--json"), "{problem}");
        }
        ask(board.board.to(Method::POST, log).body("{}"))
            .await
            .problem(415, "unsupported-media-type");
    }
    board.check().await;
    let other = board.server.board("typed");
    for media_type in
        ["application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"]
    {
        ask(other.typed(Method::POST, "requests", media_type, "{}")).await.is(201);
    }
}

#[tokio::test]
async fn an_agent_must_have_a_name_that_can_be() {
    let board = Unmoved::new().await;
    let long = "x".repeat(257);
    let no_name = ["a%2Fb", "a/b", "%00", "%0A", "..", ".", "", long.as_str()];
    let no_utf8 = ["%FF", "%C3"];
    let named = no_name.map(|agent| (agent, "invalid-name"));
    let encoded = no_utf8.map(|agent| (agent, "invalid-encoding"));
    for (agent, code) in named.into_iter().chain(encoded) {
        let request = board.board.json(Method::POST, "requests", "{}");
        let answer = ask(request.header("x-agent-id", agent)).await;
        answer.problem(400, code);
    }
    for agent in ["a%2Fb", "%FF", "%00", "%2e%2e", "..", long.as_str()] {
        let head = format!(
            "POST /v1/sessions/s/agents/{agent}/memory HTTP/1.1\nContent-Type: application/json\nContent-Length: 2"
        );
        let code = if agent == "%FF" { "invalid-encoding" } else { "invalid-name" };
        exchange(&board.server, &head, b"{}").problem(400, code);
    }
    board.check().await;
}

#[tokio::test]
async fn a_body_must_be_in_the_coding_it_names() {
    let board = Unmoved::new().await;
    let coded = |coding: &str, body: &'static [u8]| {
        let request = board.board.typed(Method::POST, "requests", "application/json", body);
        request.header("content-encoding", coding.to_owned())
    };
    for (coding, body) in [
        ("gzip", b"not gzip at all".as_slice()),
        ("zstd", b"not zstd at all"),
        ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xab"),
        ("gzip", b""),
    ] {
        ask(coded(coding, body)).await.refused();
        board.check().await;
    }
    for coding in ["br", "compress", "x-own", "deflate, x-own"] {
        let answer: Answer = ask(coded(coding, b"{}")).await;
        assert!(matches!(answer.status(), 400 | 415), "{answer}");
    }
    board.check().await;
    ask(coded("identity", b"{}")).await.is(201);
}
