//! Tokens on a running server: created, revoked, expired, and confined to their reach.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use reqwest::Method;

use crate::answer::{Answer, ask};
use crate::harness::{Server, finished};
use crate::matrix::token;
use crate::sse::Stream;

/// What B remembers, which nobody else is to know.
const SECRET: &str = "the-thought-of-b";

/// A server with a board on which A and B have memories, and their tokens with that of everybody.
pub(crate) struct House {
    pub(crate) server: Server,
    pub(crate) a: String,
    pub(crate) b: String,
    pub(crate) admin: String,
}

impl House {
    pub(crate) async fn new() -> Self {
        let server = Server::start_with(&["--token-rate", "0"]);
        let agent = |name: &str| {
            token(&server, &["create", "--name", name, "--agent", name, "--sessions", "s*"])
        };
        let (a, b) = (agent("A"), agent("B"));
        let admin = token(&server, &["create", "--name", "admin", "--scopes", "admin"]);
        let house = Self { server, a, b, admin };
        let secret = format!("{{\"step\":1,\"thought\":\"{SECRET}\",\"cost\":0.5}}");
        house.sent(&house.a, Method::POST, "agents/A/memory", "{\"step\":1}").await.is(201);
        house.sent(&house.b, Method::POST, "agents/B/memory", &secret).await.is(201);
        house.sent(&house.b, Method::POST, "requests", "{\"request\":\"open\"}").await.is(201);
        house
    }

    pub(crate) async fn sent(&self, token: &str, method: Method, tail: &str, body: &str) -> Answer {
        let slash = if tail.is_empty() { "" } else { "/" };
        let path = format!("/v1/sessions/s{slash}{tail}");
        let mut request = self.server.to(method, &path).bearer_auth(token);
        if !body.is_empty() {
            request = request.header("content-type", "application/json").body(body.to_owned());
        }
        ask(request).await
    }

    pub(crate) async fn got(&self, token: &str, tail: &str) -> Answer {
        self.sent(token, Method::GET, tail, "").await
    }
}

#[tokio::test]
async fn another_agents_memory_is_shown_by_no_route() {
    let house = House::new().await;
    house
        .sent(
            &house.admin,
            Method::PUT,
            "",
            r#"{"settings":{"profiles":{"p":{"include":["memory:B"]}}}}"#,
        )
        .await
        .is(200);
    for tail in [
        "agents/B/memory",
        "agents/B/memory/1",
        "agents/B/memory?at=2",
        "agents/B/memory/cost",
        "prompt?include=memory:B",
        "prompt?include=memory:A,memory:B",
        "prompt?profile=p",
        "archive",
    ] {
        house.got(&house.a, tail).await.problem(403, "forbidden");
        house.got(&house.b, tail).await.is(if tail.contains(":A") || tail == "archive" {
            403
        } else {
            200
        });
        house.got(&house.admin, tail).await.is(200);
    }
    for tail in [
        "",
        "blackboard?include=state",
        "audit",
        "diff?from=1",
        "diff?from=1&to=2",
        "agents?seen=true",
        "prompt",
    ] {
        let seen = house.got(&house.a, tail).await;
        assert!(!seen.is(200).text().contains(SECRET), "{seen}");
        assert!(!seen.text().contains("agents/B/memory"), "{seen}");
    }
    let audit = house.got(&house.a, "audit?kind=appended").await.json();
    assert_eq!(
        audit["commits"].as_array().map(Vec::len),
        Some(2),
        "A's own step, and the request: {audit}"
    );
    // A page may end before the last commit.
    let events = ask(house
        .server
        .to(Method::GET, "/v1/sessions/s/events?after=1")
        .bearer_auth(&house.a)
        .header("accept", "application/json"));
    let events = events.await;
    assert!(!events.is(200).text().contains(SECRET), "{events}");
    assert_eq!(events.json()["events"][0]["revision"], 2, "{events}");
    let changes = &events.json()["events"][0]["changes"];
    assert!(
        changes.as_array().is_some_and(|all| all.iter().all(|one| one["kind"] != "appended")),
        "{events}"
    );
    // Its own, and everything with the scope.
    assert!(house.got(&house.b, "agents/B/memory").await.text().contains(SECRET));
    let sees = token(
        &house.server,
        &["create", "--name", "c", "--agent", "C", "--scopes", "read,memory:read"],
    );
    assert!(house.got(&sees, "prompt?include=memory:B").await.is(200).text().contains(SECRET));
    assert!(house.got(&sees, "archive").await.is(200).text().contains(SECRET));
}

#[tokio::test]
async fn another_agents_memory_is_told_by_no_write() {
    let house = House::new().await;
    let count = r#"{"if":[{"log":"agents/B/memory","count":1}],"then":[]}"#;
    house.sent(&house.a, Method::POST, "transactions", count).await.problem(403, "forbidden");
    let append = r#"{"then":[{"append":"agents/B/memory","item":{}}]}"#;
    house.sent(&house.a, Method::POST, "transactions", append).await.problem(403, "forbidden");
    let conditional = house.server.to(Method::PUT, "/v1/sessions/s/agents/B/memory/1");
    let conditional = conditional
        .bearer_auth(&house.a)
        .header("if-match", "\"x\"")
        .header("content-type", "application/json")
        .body("{}");
    let refused = ask(conditional).await;
    refused.problem(403, "forbidden");
    assert!(!refused.text().contains(SECRET), "{refused}");
    for (method, tail, body) in [
        (Method::DELETE, "agents/B", ""),
        (Method::DELETE, "agents", ""),
        (Method::DELETE, "", ""),
        (Method::POST, "restore", "{\"at\":1}"),
    ] {
        house.sent(&house.a, method, tail, body).await.problem(403, "forbidden");
    }
    assert!(
        house.got(&house.b, "agents/B/memory").await.text().contains(SECRET),
        "it is all there"
    );
    // A fork has what its maker sees.
    house.sent(&house.a, Method::POST, "fork", "{\"to\":\"s2\"}").await.is(201);
    let forked = |token: &str| {
        let request = house.server.to(Method::GET, "/v1/sessions/s2/agents/B/memory");
        ask(request.bearer_auth(token))
    };
    assert_eq!(forked(&house.admin).await.is(200).json()["count"], 0);
    house
        .sent(&house.a, Method::POST, "fork", "{\"to\":\"elsewhere\"}")
        .await
        .problem(404, "session-not-found");
}

/// They are woken together, and share the texts of what all of them see.
#[tokio::test]
async fn watchers_in_step_see_what_their_own_tokens_show() {
    let house = House::new().await;
    let open = |token: &str, query: &str| {
        let path = format!("/v1/sessions/s/events{query}");
        Stream::open(house.server.to(Method::GET, &path).bearer_auth(token))
    };
    let mut all = [open(&house.admin, "").await, open(&house.admin, "").await];
    let mut limited = [open(&house.a, "").await, open(&house.a, "").await];
    let mut own = open(&house.b, "").await;
    let mut filtered = open(&house.admin, "?on=agents/B/memory").await;
    for n in 0..20 {
        let memory = format!("{{\"n\":{n},\"secret\":\"{SECRET}\"}}");
        house.sent(&house.b, Method::POST, "agents/B/memory", &memory).await.is(201);
        house.sent(&house.a, Method::POST, "requests", &format!("{{\"n\":{n}}}")).await.is(201);
        let whole = [own.event().await, own.event().await];
        assert!(whole[0].data.contains(&memory) && whole[1].data.contains("requests"));
        for stream in &mut all {
            assert_eq!([stream.event().await, stream.event().await], whole);
        }
        assert_eq!(filtered.event().await, whole[0]);
        for stream in &mut limited {
            let (hidden, seen) = (stream.event().await, stream.event().await);
            assert_eq!((hidden.revision(), &seen), (whole[0].revision(), &whole[1]));
            assert_eq!(hidden.json()["changes"], serde_json::json!([]), "{hidden:?}");
        }
    }
}

#[tokio::test]
async fn notices_of_another_agents_steps_tell_no_kind() {
    let house = House::new().await;
    let mut followed =
        house.server.to(Method::GET, "/v1/events").bearer_auth(&house.a).send().await.unwrap();
    house.sent(&house.b, Method::POST, "agents/B/memory", "{}").await.is(201);
    let elsewhere = house.server.to(Method::PUT, "/v1/sessions/other").bearer_auth(&house.admin);
    ask(elsewhere.header("content-type", "application/json").body("{}")).await.is(201);
    house.sent(&house.a, Method::POST, "requests", "{}").await.is(201);
    let mut text = String::new();
    while !text.contains("\"appended\"") {
        let chunk = followed.chunk().await.unwrap().expect("more notices");
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(text.contains("\"kinds\":[]"), "{text}");
    assert!(!text.contains("other"), "{text}");
}

#[tokio::test]
async fn sessions_that_a_token_does_not_reach_are_none() {
    let house = House::new().await;
    for name in ["other", "s3"] {
        let put = house.server.to(Method::PUT, &format!("/v1/sessions/{name}/blackboard"));
        let body = r#"{"questions":[{"question":"which?"}]}"#;
        ask(put.bearer_auth(&house.admin).header("content-type", "application/json").body(body))
            .await
            .is(201);
    }
    let list = |path: &str| ask(house.server.to(Method::GET, path).bearer_auth(&house.a));
    let sessions = list("/v1/sessions?limit=1&after=s").await.json();
    assert_eq!(sessions["sessions"][0]["session"], "s3");
    assert_eq!(sessions["more"], false);
    let questions = list("/v1/questions").await.json();
    assert_eq!(questions["questions"].as_array().map(Vec::len), Some(1), "{questions}");
    // What is there and what is not look the same.
    let there = list("/v1/sessions/other").await;
    let absent = list("/v1/sessions/otter").await;
    let told = |answer: &Answer| {
        answer.text().replace("other", "otter").split("\"instance\"").next().map(str::to_owned)
    };
    assert_eq!(told(&there), told(&absent));
    assert_eq!(there.header("blackboard-revision"), "");
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let house = House::new().await;
    for (name, path) in [("one", "/v1/sessions/s/events"), ("two", "/v1/events")] {
        let made = token(&house.server, &["create", "--name", name]);
        let request = house.server.to(Method::GET, path).bearer_auth(&made);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        token(&house.server, &["revoke", name]);
        // It comes to its end; the harness gives up if not.
        response.bytes().await.expect("a clean end");
    }
    let waiting = token(&house.server, &["create", "--name", "three"]);
    let poll = house.got(&waiting, "state/never?until=exists&wait=60s");
    let revoke = async { token(&house.server, &["revoke", "three"]) };
    let (answer, _) = tokio::join!(poll, revoke);
    answer.problem(401, "unauthorized");
}

/// By HTTP and by MCP, nothing is given to a worker whose token was revoked while it waited.
#[tokio::test]
async fn a_revoked_worker_that_waits_gets_no_request() {
    let house = House::new().await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claim_request","arguments":{"match":{"n":1},"wait_s":50}}}"#;
    let claim = r#"{"match":{"n":1}}"#;
    for (path, body) in
        [("/mcp?session=s", call), ("/v1/sessions/s/requests/claim?wait=50s", claim)]
    {
        let name = format!("worker-{}", path.len());
        let worker = token(&house.server, &["create", "--name", &name, "--agent", "W"]);
        let request = house.server.to(Method::POST, path).bearer_auth(worker);
        let waiting = request.header("content-type", "application/json").body(body).send();
        let waiting = tokio::spawn(waiting);
        // A worker that is refused while it comes is refused too.
        tokio::time::sleep(Duration::from_millis(300)).await;
        token(&house.server, &["revoke", &name]);
        let ended = waiting.await.unwrap().expect("an answer");
        let text = ended.text().await.unwrap();
        assert!(text.contains("the token was revoked"), "{path}: {text}");
        let posted = house.sent(&house.a, Method::POST, "requests", r#"{"n":1}"#).await;
        let location = posted.is(201).header("location").to_owned();
        let request = house.server.to(Method::GET, &location).bearer_auth(&house.a);
        assert!(ask(request).await.is(200).json().get("claim").is_none(), "{path}");
        let tail = location.replace("/v1/sessions/s/", "");
        house.sent(&house.a, Method::DELETE, &tail, "").await.succeeded();
    }
}

#[tokio::test]
async fn an_open_server_closes_with_its_first_token() {
    let server = Server::start();
    let board = server.made("demo").await;
    let mut stream = Stream::of(&board, "").await;
    token(&server, &["create", "--name", "first"]);
    stream.end().await;
    board.get("").await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_loop_that_posts_for_ever_meets_429() {
    let server = Server::start_with(&["--token-rate", "5"]);
    let made = token(&server, &["create", "--name", "a"]);
    let post = || {
        let request = server.to(Method::POST, "/v1/sessions/s/requests").bearer_auth(&made);
        ask(request.header("content-type", "application/json").body("{}"))
    };
    for _ in 0..1000 {
        let answer = post().await;
        if answer.status() == 429 {
            let problem = answer.problem(429, "rate-limited");
            assert_eq!(problem["retryable"], true);
            assert!(answer.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1));
            let other = token(&server, &["create", "--name", "b"]);
            ask(server.to(Method::GET, "/v1/sessions").bearer_auth(other)).await.is(200);
            return;
        }
        answer.is(201);
    }
    panic!("a thousand requests, and none was too many");
}

#[tokio::test]
async fn refused_tokens_count_against_a_rate_by_address() {
    let server = Server::start_with(&["--token-rate", "5", "--trusted-proxies", "127.0.0.1"]);
    let made = token(&server, &["create", "--name", "a"]);
    let list = |address: &str, token: &str| {
        let request = server.to(Method::GET, "/v1/sessions").bearer_auth(token);
        ask(request.header("x-forwarded-for", address))
    };
    let mut refused = 0;
    while list("198.51.100.7", "bb_unknown").await.status() == 401 {
        refused += 1;
        assert!(refused < 1000, "a thousand refused tokens, and none was too many");
    }
    let answer = list("198.51.100.7", "bb_unknown").await;
    answer.problem(429, "rate-limited");
    assert!(answer.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1));
    list("198.51.100.7", &made).await.is(200);
    list("198.51.100.8", "bb_unknown").await.problem(401, "unauthorized");
    let without =
        crate::harness::client().get(format!("http://{}/v1/sessions", server.authority()));
    ask(without.header("x-forwarded-for", "198.51.100.7")).await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_token_without_its_scheme_is_told_so() {
    let server = Server::start();
    let list = |authorization: String| {
        ask(server.to(Method::GET, "/v1/sessions").header("authorization", authorization))
    };
    list("bb_x".to_owned()).await.is(200);
    let made = token(&server, &["create", "--name", "a"]);
    let told = list(made.clone()).await.problem(401, "unauthorized");
    assert!(told["detail"].as_str().is_some_and(|text| text.contains("Bearer")), "{told}");
    let told = list(format!("Basic {made}")).await.problem(401, "unauthorized");
    assert!(told["detail"].as_str().is_some_and(|text| text.contains("unknown")), "{told}");
}

#[tokio::test]
async fn a_token_has_only_so_many_streams() {
    let server = Server::start_with(&["--token-streams-max", "1"]);
    let made = token(&server, &["create", "--name", "a"]);
    let follow = || server.to(Method::GET, "/v1/events").bearer_auth(&made);
    let open = follow().send().await.unwrap();
    assert_eq!(open.status(), 200);
    ask(follow()).await.problem(429, "rate-limited");
    drop(open);
}

#[tokio::test]
async fn a_token_comes_in_one_of_two_headers() {
    let server = Server::start();
    let made = token(&server, &["create", "--name", "a"]);
    let list =
        || crate::harness::client().get(format!("http://{}/v1/sessions", server.authority()));
    ask(list().header("x-api-key", &made)).await.is(200);
    ask(list().header("authorization", format!("bearer {made}"))).await.is(200);
    for request in [
        list(),
        list().header("authorization", &made),
        list().header("authorization", format!("Basic {made}")),
        list().bearer_auth(&made).header("x-api-key", &made),
        list().bearer_auth(&made).bearer_auth(&made),
        list().bearer_auth(format!("{made} x")),
    ] {
        ask(request).await.refused();
    }
}

#[tokio::test]
async fn who_writes_is_the_agent_of_the_token_whatever_a_header_says() {
    let house = House::new().await;
    let post = house.server.to(Method::POST, "/v1/sessions/s/requests").bearer_auth(&house.a);
    let post = post.header("x-agent-id", "B").header("content-type", "application/json").body("{}");
    let seq = ask(post).await.is(201).json()["entries"][0]["seq"].clone();
    let entry = house.got(&house.a, &format!("requests/{seq}")).await.json();
    assert_eq!(entry["agent"], "A");
}

#[tokio::test]
async fn a_key_is_its_callers_own() {
    let house = House::new().await;
    let others = token(&house.server, &["create", "--name", "other"]);
    let post = |token: &str| {
        let request = house.server.to(Method::POST, "/v1/sessions/s/requests").bearer_auth(token);
        let request =
            request.header("idempotency-key", "k").header("content-type", "application/json");
        ask(request.body("{}"))
    };
    post(&house.admin).await.is(201);
    assert_eq!(post(&house.admin).await.is(201).header("idempotency-replayed"), "true");
    post(&others).await.problem(422, "idempotency-key-reused");
    post(&house.a).await.problem(422, "idempotency-key-reused");
}

#[test]
fn a_server_makes_its_first_token_or_takes_one_from_a_file() {
    let mut server = Server::start_with(&["--require-token"]);
    let file = server.data().join("admin-token");
    let made = fs::read_to_string(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(made.starts_with("bb_") && made.trim().len() == 46);
    let said = server.said("created the first token");
    assert!(said.contains("admin-token") && !said.contains(made.trim()));
    server.stop();
    server.start_again();
    assert_eq!(fs::read_to_string(&file).unwrap(), made, "one is enough");
}

#[test]
fn an_address_beyond_loopback_needs_tokens() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let data = data.to_str().unwrap();
    let refused = finished(&["serve", "--listen", "0.0.0.0:0", "--data", data]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("--require-token") && said.contains("--insecure"), "{said}");
    assert!(!home.path().join("data").exists(), "nothing was made");
}
