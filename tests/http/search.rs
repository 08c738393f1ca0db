//! Search over all sessions: queries, filters, rights, and an index that follows every change.

use std::fs;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server, encoded};
use crate::tokens::House;

async fn search(server: &Server, query: &str, more: &str) -> Answer {
    server.get(&format!("/v1/search?q={}{more}", encoded(query))).await
}

/// The places of the hits, best first.
fn places(answer: &Answer) -> Vec<String> {
    let page = answer.is(200).json();
    let place = |hit: &Value| {
        format!(
            "{}/{}/{}",
            hit["session"].as_str().unwrap(),
            hit["log"].as_str().unwrap(),
            hit["seq"]
        )
    };
    page["hits"].as_array().unwrap().iter().map(place).collect()
}

/// The places of the hits once a write to a session is indexed.
async fn found(server: &Server, query: &str, session: &str, written: &Answer) -> Vec<String> {
    let wait =
        format!("&session={}&min_revision={}&wait=30s", encoded(session), written.revision());
    let mut all = places(&search(server, query, &wait).await);
    all.sort();
    all
}

#[tokio::test]
async fn words_phrases_prefixes_and_exclusions_are_found() {
    let server = Server::start();
    let (lab, ops) = (server.board("lab 1"), server.board("ops"));
    lab.post("requests", r#"{"request":"The disk is full: free it <now> & log"}"#).await.is(201);
    lab.post("questions", r#"{"question":"Is a full backup on disk?","n":4711}"#).await.is(201);
    ask(lab.by("Ann", Method::POST, "trajectories", r#"{"thought":"ディスクが満杯です"}"#))
        .await
        .is(201);
    ask(ops.by("Bob", Method::POST, "agents/Bob/memory", r#"{"thought":"Naïve disks"}"#))
        .await
        .is(201);
    let last = ops.post("requests", r#"{"request":{"deep":["disk DISK disk"]}}"#).await;
    let all = found(&server, "disk*", "ops", &last).await;
    assert_eq!(all, ["ops/memory/1", "ops/requests/1"]);
    let last = lab.get("").await;
    assert_eq!(
        found(&server, "disk", "lab 1", &last).await,
        ["lab 1/questions/1", "lab 1/requests/1"]
    );
    let ranked = places(&search(&server, "disk", "").await);
    assert_eq!(ranked.len(), 3);
    assert_eq!(ranked[0], "ops/requests/1");
    let of = async |query: &str, more: &str| places(&search(&server, query, more).await);
    assert_eq!(of("full disk", "").await.len(), 2);
    assert_eq!(of("\"disk is full\"", "").await, ["lab 1/requests/1"]);
    assert_eq!(of("full -backup", "").await, ["lab 1/requests/1"]);
    assert_eq!(of("4711", "").await, ["lab 1/questions/1"]);
    assert_eq!(of("naive", "").await, ["ops/memory/1"]);
    assert_eq!(of("満杯", "").await, ["lab 1/trajectories/1"]);
    assert_eq!(of("request", "").await, [""; 0], "names of members are not searched");
    assert_eq!(of("disk", "&prefix=lab").await.len(), 2);
    assert_eq!(of("disk*", "&log=memory").await, ["ops/memory/1"]);
    assert_eq!(of("disk*", "&agent=Bob").await, ["ops/memory/1"]);
    assert_eq!(of("disk", "&agent=Nobody").await, [""; 0]);
    assert_eq!(of("disk", "&since=2999-01-01T00:00:00Z").await, [""; 0]);
    assert_eq!(of("disk", "&since=2020-01-01T00:00:00Z").await.len(), 3);
    let first = search(&server, "disk", "&limit=2").await;
    let next = first.is(200).json()["next"].clone();
    let rest = search(&server, "disk", &format!("&limit=2&after={}", next.as_str().unwrap())).await;
    assert_eq!([places(&first), places(&rest)].concat(), ranked);
    assert_eq!(rest.json()["next"], Value::Null);
    let hit = search(&server, "free", "").await.json()["hits"][0].clone();
    assert_eq!(hit["snippet"], "The disk is full: <mark>free</mark> it &lt;now&gt; &amp; log");
    assert_eq!((&hit["agent"], &hit["seq"]), (&Value::Null, &json!(1)));
    assert!(hit["score"].as_f64().unwrap() > 0.0);
    assert_eq!(hit["at"], lab.get("requests/1").await.json()["at"]);
}

#[tokio::test]
async fn bad_queries_are_refused() {
    let server = Server::start();
    for query in ["", "\"open", "-only", "- &", "!!", "x*", &"a ".repeat(33)] {
        let answer = search(&server, query, "").await;
        let problem = answer.problem(400, "invalid-parameter");
        assert!(problem["detail"].as_str().unwrap().starts_with("'q'"), "{problem}");
    }
    server.get("/v1/search").await.problem(400, "invalid-parameter");
    for more in [
        "&limit=0",
        "&limit=101",
        "&log=memories",
        "&agent=",
        "&since=now",
        "&after=x",
        "&min_revision=1",
        "&wait=1s",
    ] {
        search(&server, "word", more).await.problem(400, "invalid-parameter");
    }
    search(&server, "word", "&nothing=1").await.problem(400, "unknown-parameter");
    search(&server, "word", "&session=none").await.problem(404, "session-not-found");
    let board = server.made("s").await;
    // Once its index is there.
    search(&server, "word", "&session=s&min_revision=1&wait=60s").await.is(200);
    let beyond = search(&server, "word", "&session=s&min_revision=99&wait=0s").await;
    beyond.problem(503, "revision-not-reached");
    drop(board);
    let off = Server::start_with(&["--search", "off"]);
    search(&off, "word", "").await.problem(404, "route-not-found");
    assert!(!off.data().join("cache/search.db").exists());
}

/// Changes of every kind, each with the words found after it.
async fn change_all(server: &Server, board: &Board) {
    let of = async |query: &str, written: &Answer| found(server, query, "s", written).await;
    let items = r#"[{"t":"alpha one"},{"t":"alpha two"},{"t":"alpha three"}]"#;
    let written = board.post("trajectories", items).await;
    assert_eq!(of("alpha", &written).await.len(), 3);
    let written = board.delete("trajectories/2").await;
    assert_eq!(of("alpha", &written).await, ["s/trajectories/1", "s/trajectories/3"]);
    let written = board.put("trajectories/3", r#"{"t":"beta"}"#).await;
    assert_eq!(of("alpha", &written).await, ["s/trajectories/1"]);
    assert_eq!(of("beta", &written).await, ["s/trajectories/3"]);
    let before = written.revision();
    board.put("checkpoints", "").await;
    let written = board.delete("trajectories").await;
    assert_eq!(of("alpha", &written).await, [""; 0]);
    let restored = board.post("restore", &format!("{{\"at\":{before}}}")).await;
    assert_eq!(of("alpha", &restored).await, ["s/trajectories/1"]);
    board.post("questions", r#"{"question":"gamma?"}"#).await.is(201);
    let written = board.put("questions/1/answer", r#"{"answer":"delta"}"#).await;
    assert_eq!(of("delta", &written).await, ["s/questions/1"]);
    board.post("requests", r#"{"request":"epsilon"}"#).await.is(201);
    let written = board.put("requests/1/done", r#"{"result":"zeta"}"#).await;
    assert_eq!(of("zeta", &written).await, ["s/requests/1"]);
}

#[tokio::test]
async fn every_change_is_followed_and_a_deleted_session_is_gone() {
    let server = Server::start();
    let board = server.board("s");
    change_all(&server, &board).await;
    board.post("fork", r#"{"to":"s2"}"#).await.is(201);
    let forked = server.board("s2").get("").await;
    assert_eq!(found(&server, "zeta", "s2", &forked).await, ["s2/requests/1"]);
    board.delete("").await.succeeded();
    assert_eq!(places(&search(&server, "zeta", "").await), ["s2/requests/1"]);
    let again = board.post("requests", r#"{"request":"eta"}"#).await;
    assert_eq!(found(&server, "eta", "s", &again).await, ["s/requests/1"]);
    assert_eq!(places(&search(&server, "zeta", "").await), ["s2/requests/1"]);
}

#[tokio::test]
async fn words_of_a_deleted_session_leave_the_file() {
    let server = Server::start();
    let (kept, gone) = (server.board("kept"), server.board("gone"));
    for n in 0..50 {
        kept.post("requests", &json!({"t": format!("w{n} remains")}).to_string()).await.is(201);
        gone.post("requests", &json!({"t": format!("w{n} xylophone{n}")}).to_string())
            .await
            .is(201);
    }
    let last = gone.get("").await;
    assert_eq!(found(&server, "xylophone*", "gone", &last).await.len(), 20);
    assert!(has_word(&server));
    gone.delete("").await.succeeded();
    for _ in 0..200 {
        if !has_word(&server) {
            let kept = search(&server, "remains", "&limit=100").await;
            assert_eq!(places(&kept).len(), 50);
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the index still has the words");
}

/// Returns true if a file of the index has the word.
fn has_word(server: &Server) -> bool {
    let files = ["search.db", "search.db-wal"].map(|name| server.data().join("cache").join(name));
    let bytes = files.iter().filter_map(|file| fs::read(file).ok());
    bytes.into_iter().any(|bytes| bytes.windows(9).any(|part| part == b"xylophone"))
}

/// The hits of a server for some words, as text.
async fn hits(server: &Server, last: &Answer) -> Vec<Value> {
    let mut all = Vec::new();
    found(server, "common", "s", last).await;
    for query in ["common", "w1*", "\"item w7\"", "common -w3"] {
        let page = search(server, query, "&limit=100").await.is(200).json();
        let mut hits = page["hits"].as_array().unwrap().clone();
        hits.sort_by_key(|hit| hit["seq"].as_u64());
        all.extend(hits);
    }
    all
}

#[tokio::test]
async fn after_kills_the_hits_are_those_of_a_fresh_index() {
    let mut server = Server::start();
    let index = server.data().join("cache/search.db");
    for round in 0..6_u64 {
        let board = server.board("s");
        for n in 0..15 {
            let text = json!({"t": format!("common item w{n} of round r{round}")}).to_string();
            board.post("trajectories", &text).await.is(201);
        }
        board.delete(&format!("trajectories/{}", round * 15 + 4)).await.succeeded();
        tokio::time::sleep(Duration::from_millis(round * 40)).await;
        server.kill();
        server.start_again();
    }
    let last = server.board("s").get("").await;
    let followed = hits(&server, &last).await;
    assert!(followed.len() > 90, "{}", followed.len());
    server.kill();
    fs::remove_file(&index).unwrap();
    server.start_again();
    assert_eq!(places_of(&hits(&server, &last).await), places_of(&followed));
    server.stop();
    fs::write(&index, vec![7; 1 << 16]).unwrap();
    server.start_again();
    assert_eq!(places_of(&hits(&server, &last).await), places_of(&followed));
}

/// Scores depend on what was deleted before, which an index forgets in its own time.
fn places_of(hits: &[Value]) -> Vec<(Value, Value)> {
    hits.iter().map(|hit| (hit["seq"].clone(), hit["snippet"].clone())).collect()
}

#[tokio::test]
async fn another_agents_memory_is_found_by_no_query() {
    let house = House::new().await;
    let foreign = house.server.board("t1");
    ask(foreign
        .request(Method::POST, "requests", r#"{"request":"elsewhere"}"#)
        .bearer_auth(&house.admin))
    .await
    .is(201);
    let search = async |token: &str, query: &str, more: &str| {
        let path = format!("/v1/search?q={}{more}", encoded(query));
        ask(house.server.to(Method::GET, &path).bearer_auth(token)).await
    };
    let head = house.got(&house.admin, "").await.revision();
    let wait = format!("&session=s&min_revision={head}&wait=30s");
    let all = search(&house.admin, "thought", &wait).await;
    assert_eq!(places(&all), ["s/memory/1"]);
    for query in ["thought", "\"the-thought-of-b\"", "though*", "the -nothing", "of b"] {
        for more in ["", "&log=memory", "&agent=B", "&session=s", "&prefix=s"] {
            assert_eq!(places(&search(&house.a, query, more).await), [""; 0], "{query} {more}");
            assert_eq!(places(&search(&house.b, query, more).await), ["s/memory/1"], "{query}");
        }
    }
    // The pattern s* does not reach t1.
    assert_eq!(places(&search(&house.b, "elsewhere", "").await), [""; 0]);
    search(&house.b, "elsewhere", "&session=t1").await.problem(404, "session-not-found");
    assert_eq!(places(&search(&house.a, "open", "").await), ["s/requests/1"]);
}

/// The answers to queries of A in one of two worlds, which differ in what A may not read alone.
async fn answers_of_a(hidden: &str) -> Vec<Value> {
    let house = House::new().await;
    let (session, admin) = (house.server.board("elsewhere"), &house.admin);
    // Newest first in the order of names, whether or not two come within a millisecond.
    for n in (0..5).rev() {
        let board = house.server.board(&format!("s{n}"));
        let items =
            json!([{"t": format!("printer {} jam", "tray ".repeat(n))}, {"t": "printer ok"}]);
        let post = board.request(Method::POST, "requests", &items.to_string());
        ask(post.bearer_auth(admin)).await.is(201);
    }
    for n in 0..20 {
        let items =
            json!([{"t": format!("{hidden} {hidden}{n}")}, {"t": format!("{hidden} printer")}]);
        let post = session.request(Method::POST, "trajectories", &items.to_string());
        ask(post.bearer_auth(admin)).await.is(201);
        let memory = json!({"step": n, "t": format!("{hidden} {hidden}")}).to_string();
        house.sent(&house.b, Method::POST, "agents/B/memory", &memory).await.is(201);
    }
    for (name, board) in [("elsewhere", &session), ("s", &house.server.board("s"))] {
        let head = ask(board.request(Method::GET, "", "").bearer_auth(admin)).await.revision();
        let wait = format!("/v1/search?q=zz&session={name}&min_revision={head}&wait=30s");
        ask(house.server.to(Method::GET, &wait).bearer_auth(admin)).await.is(200);
    }
    let mut answers = Vec::new();
    for query in
        ["printer", "print*", "printer -ok", "\"printer tray\"", "jam", "ja*", "jam printer", "dam"]
    {
        for more in ["", "&limit=2", "&limit=2&after=1", "&agent=B", "&log=memory", "&prefix=s"] {
            let path = format!("/v1/search?q={}{more}", encoded(query));
            let answer = ask(house.server.to(Method::GET, &path).bearer_auth(&house.a)).await;
            let mut page = answer.is(200).json();
            for hit in page["hits"].as_array_mut().unwrap() {
                hit["at"].take();
            }
            answers.push(json!([query, more, page]));
        }
    }
    answers
}

#[tokio::test]
async fn what_a_token_may_not_read_changes_no_answer() {
    let (one, other) = (answers_of_a("jam").await, answers_of_a("dam").await);
    assert_eq!(one, other);
    let hits = one.iter().filter(|answer| answer[2]["hits"] != json!([])).count();
    assert!(hits > 20, "{hits}");
}
