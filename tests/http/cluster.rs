//! Several servers over one PostgreSQL schema.
//!
//! `BLACKBOARD_CLUSTER_COMMITS` and `BLACKBOARD_CLUSTER_READS` make the full runs of what is otherwise shorter.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::crash::{moment, rounds};
use crate::crash_load::Load;
use crate::follower::Follower;
use crate::harness::{Board, DEADLINE, Schema, Server, client};
use crate::images::png;
use crate::matrix::token;
use crate::mcp::of_task;
use crate::postgres;
use crate::sse::Stream;

const SERVERS: usize = 3;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

fn cluster(flags: &[&str]) -> (Schema, Vec<Server>) {
    let schema = Schema::new().expect("BLACKBOARD_TEST_POSTGRES names a service");
    let servers = (0..SERVERS).map(|_| Server::start_on(Some(schema.clone()), flags)).collect();
    (schema, servers)
}

fn boards(servers: &[Server], session: &str) -> Vec<Board> {
    servers.iter().map(|server| server.board(session)).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn watchers_of_each_server_see_every_commit_once_and_in_order() {
    let commits = number("BLACKBOARD_CLUSTER_COMMITS", 1_500);
    let (_, servers) = cluster(&["--token-rate", "0"]);
    let boards = boards(&servers, "s");
    boards[0].put("", "{}").await.is(201);
    let base = boards[0].get("").await.revision();
    let mut watchers = Vec::new();
    for board in boards.clone() {
        watchers.push(tokio::spawn(async move {
            let mut follower =
                Follower::open(&board, &format!("?after={base}"), None).await.expect("a stream");
            let mut seen = base;
            while seen < base + commits {
                let frame = follower.frame().await.expect("a frame");
                if frame.data.is_empty() {
                    continue;
                }
                let commit = frame.commit();
                assert_eq!(commit.revision, seen + 1, "a commit is missing or comes twice");
                seen = commit.revision;
            }
        }));
    }
    let writers = (0..6_u64).map(|writer| {
        let boards = boards.clone();
        tokio::spawn(async move {
            for n in (writer..commits).step_by(6) {
                let board = &boards[usize::try_from(n * 7 + writer).unwrap() % boards.len()];
                board
                    .post("trajectories", &json!({ "w": writer, "n": n }).to_string())
                    .await
                    .is(201);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("a writer");
    }
    for watcher in watchers {
        watcher.await.expect("a watcher");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn a_write_through_one_server_is_in_the_next_read_through_another() {
    let reads = number("BLACKBOARD_CLUSTER_READS", 500);
    let (_, servers) = cluster(&["--token-rate", "0"]);
    let boards = boards(&servers, "s");
    for n in 0..reads {
        let (writer, reader) = (n % 3, (n + 1 + n / 3 % 2) % 3);
        let [writer, reader] = [writer, reader].map(|n| &boards[usize::try_from(n).unwrap()]);
        let put = writer.put("state/n", &n.to_string()).await;
        put.succeeded();
        let read = reader.get("state/n").await;
        assert_eq!(read.is(200).json(), n);
        assert_eq!((read.revision(), read.etag()), (put.revision(), put.etag()));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn a_killed_server_loses_nothing_that_it_acknowledged() {
    let (schema, mut servers) = cluster(&["--token-rate", "0"]);
    let (mut acknowledged, rounds) = (Vec::new(), rounds());
    for round in 0..rounds {
        let load = Load::start(&servers[0], &format!("round {round}"));
        load.acknowledged(moment()).await;
        servers[0].kill();
        let written = load.ended().await;
        written.judge(&servers[1]).await;
        acknowledged.push(written);
        servers[0] = Server::start_on(Some(schema.clone()), &["--token-rate", "0"]);
    }
    for written in &acknowledged {
        written.judge(&servers[2]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn a_paused_server_shows_nothing_old_when_it_goes_on() {
    let pause = Duration::from_secs(number("BLACKBOARD_CLUSTER_PAUSE", 3));
    let (_, servers) = cluster(&["--token-rate", "0"]);
    let boards = boards(&servers, "s");
    boards[0].put("state/n", "0").await.succeeded();
    servers[0].signal(Signal::STOP);
    let begun = Instant::now();
    let mut n = 0;
    while begun.elapsed() < pause {
        n += 1;
        boards[1].put("state/n", &n.to_string()).await.succeeded();
    }
    let asked = {
        let board = boards[0].clone();
        tokio::spawn(async move { board.get("state/n").await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    servers[0].signal(Signal::CONT);
    assert_eq!(asked.await.expect("an answer").is(200).json(), n);
    boards[0].put("state/n", "-1").await.succeeded();
    assert_eq!(boards[2].get("state/n").await.json(), -1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn a_revocation_holds_on_every_server_within_a_second() {
    let (_, servers) = cluster(&[]);
    let admin = token(&servers[0], &["create", "--name", "root", "--scopes", "admin"]);
    let worker = token(&servers[0], &["create", "--name", "worker"]);
    let status = async |server: &Server, secret: &str| {
        let url = format!("http://{}/v1/sessions", server.authority());
        ask(client().get(url).bearer_auth(secret.to_owned())).await.status()
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    for server in &servers {
        assert_eq!((status(server, &admin).await, status(server, &worker).await), (200, 200));
    }
    token(&servers[0], &["revoke", "worker"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for server in &servers {
        assert_eq!((status(server, &admin).await, status(server, &worker).await), (200, 401));
    }
}

/// Logs a browser in with a token, and returns its cookie without attributes.
async fn log_in(server: &Server, token: &str) -> String {
    let body = json!({ "token": token }).to_string();
    let log_in = browser(server, Method::POST, "/ui/session", "");
    let answer = ask(log_in.header("content-type", "application/json").body(body)).await;
    let cookie = answer.is(200).header("set-cookie").split(';').next().unwrap().to_owned();
    // The name has the port of the server, and browsers reach all servers at one address.
    cookie.split_once('=').unwrap().1.to_owned()
}

fn browser(server: &Server, method: Method, path: &str, login: &str) -> RequestBuilder {
    let authority = server.authority();
    let port = authority.rsplit(':').next().unwrap();
    let request = client().request(method, format!("http://{authority}{path}"));
    let request = request.header("origin", format!("http://{authority}"));
    request.header("cookie", format!("blackboard-{port}={login}"))
}

async fn log_out(server: &Server, login: &str) {
    ask(browser(server, Method::DELETE, "/ui/session", login)).await.is(200);
}

async fn status(server: &Server, login: &str) -> u16 {
    ask(browser(server, Method::GET, "/v1/sessions", login)).await.status()
}

/// Waits until each server refuses a login.
async fn refused_by(servers: &[Server], login: &str) {
    let begun = Instant::now();
    for server in servers {
        while status(server, login).await != 401 {
            assert!(begun.elapsed() < DEADLINE, "the login goes on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn a_logout_ends_a_login_on_every_server_and_for_good() {
    let (_, mut servers) = cluster(&["--token-rate", "0"]);
    let owner = token(&servers[0], &["create", "--name", "owner", "--scopes", "admin"]);
    let noisy = token(&servers[0], &["create", "--name", "noisy"]);
    let login = log_in(&servers[0], &owner).await;
    let events = browser(&servers[2], Method::GET, "/v1/events", &login);
    let mut stream = Stream::open(events.header("accept", "text/event-stream")).await;
    // The second server has not seen the cookie before. It refuses it at once, the others soon.
    log_out(&servers[1], &login).await;
    assert_eq!(status(&servers[1], &login).await, 401);
    refused_by(&servers, &login).await;
    while stream.frame().await.is_some() {}
    // Neither later log-ins with the token nor logouts with another one bring it back.
    for _ in 0..101 {
        log_in(&servers[0], &owner).await;
    }
    let first = log_in(&servers[0], &noisy).await;
    log_out(&servers[0], &first).await;
    for _ in 0..101 {
        let again = log_in(&servers[0], &noisy).await;
        log_out(&servers[0], &again).await;
    }
    let stays = log_in(&servers[0], &noisy).await;
    for ended in [&login, &first] {
        refused_by(&servers, ended).await;
    }
    servers[0].kill();
    servers[0].start_again();
    for server in &servers {
        assert_eq!(status(server, &login).await, 401);
        assert_eq!(status(server, &first).await, 401);
        assert_eq!(status(server, &stays).await, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn those_who_wait_at_one_server_hear_of_writes_through_another() {
    let (_, servers) = cluster(&["--token-rate", "0"]);
    let begins = Duration::from_millis(300);
    let wait = |path: &str, tag: String| {
        tokio::spawn(ask(servers[0].to(Method::GET, path).header("if-none-match", tag)))
    };
    // Sessions that the first server has never read.
    let tag = servers[0].get("/v1/questions").await.etag();
    let inbox = wait("/v1/questions?wait=20s", tag);
    tokio::time::sleep(begins).await;
    servers[1].board("asks").post("questions", r#"{"question":"?"}"#).await.is(201);
    assert_eq!(inbox.await.unwrap().is(200).json()["questions"][0]["session"], "asks");

    servers[2].made("work").await;
    let claimed = servers[0].board("work").request(Method::POST, "requests/claim?wait=20s", "{}");
    let claimed = tokio::spawn(ask(claimed.header("x-agent-id", "w")));
    tokio::time::sleep(begins).await;
    servers[2].board("work").post("requests", r#"{"job":1}"#).await.is(201);
    assert_eq!(claimed.await.unwrap().succeeded().json()["item"], json!({"job":1}));

    let answer = "/v1/sessions/asks/questions/1?wait=20s&until=answered";
    let answered = wait(answer, "\"none\"".to_owned());
    tokio::time::sleep(begins).await;
    servers[2].board("asks").put("questions/1/answer", r#"{"answer":"yes"}"#).await.succeeded();
    assert_eq!(answered.await.unwrap().is(200).json()["item"]["answer"], "yes");

    let mut notices = servers[0].to(Method::GET, "/v1/events").send().await.expect("a stream");
    servers[1].board("fresh").post("requests", "{}").await.is(201);
    let (begun, mut said) = (Instant::now(), String::new());
    while !said.contains(r#""session":"fresh""#) {
        assert!(begun.elapsed() < DEADLINE, "{said}");
        let piece = tokio::time::timeout(DEADLINE, notices.chunk()).await.expect("in time");
        said.push_str(&String::from_utf8_lossy(&piece.expect("a piece").expect("no end")));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn one_server_expires_what_no_client_touches() {
    let (schema, mut servers) = cluster(&[]);
    let board = servers[0].board("brief");
    board.put("", r#"{"settings":{"ttl":"1s"}}"#).await.is(201);
    servers[0].kill();
    let begun = Instant::now();
    let live = || postgres::value::<i64>(&schema, "SELECT count(*) FROM session WHERE is_live");
    while live() > 0 {
        assert!(begun.elapsed() < DEADLINE, "it did not expire");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    servers[1].board("brief").get("").await.problem(404, "session-not-found");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn servers_that_stand_still_do_not_keep_the_lead() {
    let (schema, servers) = cluster(&[]);
    for survivor in [0, SERVERS - 1] {
        let name = format!("brief {survivor}");
        let board = servers[survivor].board(&name);
        board.put("", r#"{"settings":{"ttl":"1s"}}"#).await.is(201);
        let others = || (0..SERVERS).filter(|n| *n != survivor).map(|n| &servers[n]);
        others().for_each(|server| server.signal(Signal::STOP));
        let begun = Instant::now();
        let live = || postgres::value::<i64>(&schema, "SELECT count(*) FROM session WHERE is_live");
        while live() > 0 {
            assert!(begun.elapsed() < DEADLINE, "it did not expire");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        others().for_each(|server| server.signal(Signal::CONT));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn purges_through_several_servers_succeed_and_count_the_same() {
    let (_, servers) = cluster(&["--token-rate", "0"]);
    let boards = boards(&servers, "s");
    for round in 0..10 {
        let each = boards.iter().zip(0_u64..).map(|(board, n)| async move {
            for m in 0..4 {
                let text = json!({"round": round, "n": n, "m": m}).to_string();
                board.post("requests", &text).await.is(201);
            }
            board.post("purge", "").await.succeeded();
            board.get("audit").await.is(200);
        });
        join_all(each).await;
        let shown = join_all(boards.iter().map(|board| board.get(""))).await;
        assert!(shown.iter().all(|one| one.is(200).text() == shown[0].text()));
        assert!(shown.iter().all(|one| one.etag() == shown[0].etag()));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn sessions_deleted_and_made_again_are_the_same_on_every_server() {
    let (_, servers) = cluster(&["--token-rate", "0"]);
    let boards = boards(&servers, "s");
    let mut last = 0;
    for round in 0..12 {
        let [one, two, three] = [0, 1, 2].map(|n| &boards[(round + n) % SERVERS]);
        let made = one.post("requests", &json!({ "round": round }).to_string()).await;
        assert!(made.is(201).revision() > last, "a revision of the name came twice");
        let image = ask(two.typed(Method::POST, "screenshots", "image/png", png(8, 8, 1))).await;
        image.is(201);
        let shown = ask(three.to(Method::GET, "screenshots/1/image")).await;
        assert_eq!(shown.is(200).body(), png(8, 8, 1));
        last = two.delete("").await.succeeded().revision();
        three.get("").await.problem(404, "session-not-found");
        let listed = servers[round % SERVERS].get("/v1/sessions").await;
        assert_eq!(listed.json()["sessions"], Value::Array(Vec::new()));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn each_server_signs_what_the_others_accept() {
    let (_, servers) = cluster(&["--public-url", "http://127.0.0.1:1"]);
    let boards = boards(&servers, "s");
    ask(boards[0].typed(Method::POST, "screenshots", "image/png", png(8, 8, 1))).await.is(201);
    let prompt = boards[0].get("prompt?include=screenshots&images=url&format=responses").await;
    let text = prompt.is(200).text();
    let begins = text.find("/v1/sessions/s/screenshots").expect("an address");
    let address = &text[begins..begins + text[begins..].find('"').expect("an end")];
    for server in &servers {
        let answer = ask(client().get(format!("http://{}{address}", server.authority()))).await;
        assert_eq!(answer.is(200).body(), png(8, 8, 1), "{address}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn a_login_on_one_server_is_taken_by_the_others() {
    let (_, servers) = cluster(&[]);
    let secret = token(&servers[0], &["create", "--name", "page", "--scopes", "admin"]);
    let origin = |server: &Server| format!("http://{}", server.authority());
    let log_in = client().post(format!("{}/ui/session", origin(&servers[0])));
    let log_in = log_in.header("origin", origin(&servers[0]));
    let log_in = log_in.json(&json!({ "token": secret }));
    let answer = ask(log_in).await;
    let cookie = answer.is(200).header("set-cookie");
    let login = cookie.split([';', '=']).nth(1).expect("a value");
    for server in &servers {
        let (_, port) = server.authority().rsplit_once(':').expect("a port");
        let listed = client().get(format!("{}/v1/sessions", origin(server)));
        ask(listed.header("cookie", format!("blackboard-{port}={login}"))).await.is(200);
        let forged = client().get(format!("{}/v1/sessions", origin(server)));
        ask(forged.header("cookie", format!("blackboard-{port}={}", &login[1..]))).await.is(401);
    }
}

/// A request may name a session besides the one of its path.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn a_session_that_is_named_elsewhere_is_up_to_date_too() {
    let (_, servers) = cluster(&[]);
    let (source, other) = (boards(&servers, "source"), boards(&servers, "other"));
    source[0].post("requests", r#"{"text":"lantern"}"#).await.is(201);
    for round in 0..10_usize {
        let at = |turn: usize| (round + turn) % servers.len();
        let fork = || source[at(1)].post("fork", r#"{"to":"other"}"#);
        other[at(0)].post("requests", "{}").await.is(201);
        fork().await.problem(409, "session-exists");
        other[at(2)].delete("").await.is(200);
        fork().await.is(201);
        servers[at(2)].get("/v1/search?q=lantern&session=other").await.is(200);
        other[at(0)].delete("").await.is(200);
        let gone = servers[at(1)].get("/v1/search?q=lantern&session=other").await;
        gone.problem(404, "session-not-found");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; tests/run has one"]
async fn a_task_is_known_to_every_server() {
    let (_, servers) = cluster(&["--token-rate", "0"]);
    let boards = boards(&servers, "s");
    boards[0].put("", "{}").await.is(201);
    // The second server has the session, and is behind after each question.
    for seq in 1..=20 {
        boards[1].get("questions").await.is(200);
        boards[0].post("questions", r#"{"question":"?"}"#).await.is(201);
        let answer = of_task(&servers[1], "tasks/get", seq).await;
        assert_eq!(answer["result"]["status"], "working", "{seq}: {answer}");
        let answer = of_task(&servers[2], "tasks/cancel", seq).await;
        assert!(answer["error"].is_null(), "{seq}: {answer}");
        let answer = of_task(&servers[1], "tasks/get", seq).await;
        assert_eq!(answer["result"]["status"], "cancelled", "{seq}: {answer}");
    }
}
