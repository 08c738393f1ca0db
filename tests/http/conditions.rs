//! Tags and revisions: caching for readers, conditions for writers.

use std::collections::HashSet;

use reqwest::Method;
use serde_json::json;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::images::png;

const READS: [&str; 13] = [
    "",
    "blackboard",
    "prompt",
    "questions",
    "requests",
    "trajectories",
    "screenshots",
    "agents/A/memory",
    "requests/1",
    "screenshots/1",
    "agents/A/memory/1",
    "agents/A/memory/cost",
    "screenshots/1/image",
];

async fn filled(server: &Server) -> Board {
    let board = server.board("s");
    for log in ["questions", "requests", "trajectories", "agents/A/memory"] {
        board.post(log, r#"{"a":1}"#).await.is(201);
    }
    let image = board.typed(Method::POST, "screenshots", "image/png", png(2, 2, 7));
    ask(image).await.is(201);
    board
}

async fn read_if_changed(board: &Board, tail: &str, tag: &str) -> Answer {
    ask(board.to(Method::GET, tail).header("if-none-match", tag)).await
}

async fn write_if(board: &Board, method: Method, tail: &str, tag: &str, body: &str) -> Answer {
    let request = match (&method, tail) {
        (&Method::DELETE, _) => board.to(method, tail),
        (&Method::PATCH, _) => {
            board.typed(method, tail, "application/merge-patch+json", body.to_owned())
        }
        _ => board.json(method, tail, body),
    };
    ask(request.header("if-match", tag)).await
}

#[tokio::test]
async fn every_read_has_a_tag_and_is_304_while_it_holds() {
    let server = Server::start();
    let board = filled(&server).await;
    for tail in READS {
        let tag = board.get(tail).await.is(200).etag();
        for sent in [tag.clone(), format!("\"other\", {tag}"), format!("W/{tag}"), "*".to_owned()] {
            let same = read_if_changed(&board, tail, &sent).await;
            assert!(same.is(304).body().is_empty(), "{same}");
            assert_eq!(same.etag(), tag, "{tail}");
        }
        read_if_changed(&board, tail, "\"other\"").await.is(200);
    }
    let list = server.get("/v1/sessions").await.is(200).etag();
    let request = server.to(Method::GET, "/v1/sessions").header("if-none-match", &list);
    ask(request).await.is(304);
}

#[tokio::test]
async fn a_tag_is_repeated_and_kept_from_proxies() {
    let server = Server::start();
    let board = filled(&server).await;
    let mut answers = vec![server.get("/v1/sessions").await, server.get("/ui/").await];
    for tail in READS {
        let read = board.get(tail).await;
        answers.push(read_if_changed(&board, tail, &read.etag()).await);
        answers.push(read);
    }
    answers.push(board.post("requests", r#"{"a":1}"#).await);
    answers.push(board.put("state/a", "1").await);
    answers.push(write_if(&board, Method::PUT, "state/a", "\"other\"", "2").await);
    for answer in answers {
        assert_eq!(answer.header("blackboard-etag"), answer.etag(), "{answer}");
        assert!(answer.header("cache-control").ends_with(", no-transform"), "{answer}");
    }
    let without = ask(server.to(Method::GET, "/v1/sessions/none")).await;
    assert_eq!(without.header("cache-control"), "private, no-cache");
    assert_eq!(without.header("blackboard-etag"), "");
}

#[tokio::test]
async fn a_weak_tag_on_a_write_is_named_as_the_reason() {
    let server = Server::start();
    let board = server.board("s");
    let tag = board.put("state/a", "1").await.is(201).etag();
    for (method, tail, body) in [(Method::PUT, "state/a", "2"), (Method::POST, "requests", "{}")] {
        let weak = write_if(&board, method.clone(), tail, &format!("W/{tag}"), body).await;
        let problem = weak.problem(412, "precondition-failed");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("weak tag") && detail.contains("Blackboard-ETag"), "{detail}");
        let stale = write_if(&board, method, tail, "\"other\"", body).await;
        let problem = stale.problem(412, "precondition-failed");
        assert!(!problem["detail"].to_string().contains("weak"), "{problem}");
    }
    write_if(&board, Method::PUT, "state/a", &tag, "2").await.is(200);
}

#[tokio::test]
async fn a_tag_changes_with_its_own_resource() {
    let server = Server::start();
    let board = filled(&server).await;
    let mut before = Vec::new();
    for tail in READS {
        before.push(board.get(tail).await.etag());
    }
    board.merge("requests/1", r#"{"a":2}"#).await.is(200);
    for (tail, tag) in READS.iter().zip(&before) {
        let answer = read_if_changed(&board, tail, tag).await;
        match *tail {
            "" | "blackboard" | "prompt" | "requests" | "requests/1" => answer.is(200),
            _ => answer.is(304),
        };
    }
}

#[tokio::test]
async fn tags_differ_by_query_and_format() {
    let server = Server::start();
    let board = filled(&server).await;
    let mut tags = HashSet::new();
    let tails = [
        "requests",
        "requests?limit=1",
        "requests?order=desc",
        "requests?keys=a",
        "prompt",
        "prompt?latest=1",
    ];
    for tail in tails {
        assert!(tags.insert(board.get(tail).await.etag()), "{tail}");
    }
    let request = board.to(Method::GET, "requests").header("accept", "application/x-ndjson");
    assert!(tags.insert(ask(request).await.etag()), "NDJSON");
}

#[tokio::test]
async fn every_kind_of_write_obeys_if_match() {
    let server = Server::start();
    let writes = [
        (Method::POST, "requests", "{}", "requests"),
        (Method::PUT, "requests", "[{}]", "requests"),
        (Method::DELETE, "requests", "", "requests"),
        (Method::POST, "agents/A/memory", "{}", "agents/A/memory"),
        (Method::PUT, "requests/1", r#"{"b":1}"#, "requests/1"),
        (Method::PATCH, "requests/1", r#"{"b":1}"#, "requests/1"),
        (Method::DELETE, "requests/1", "", "requests/1"),
        (Method::PUT, "blackboard", r#"{"requests":[{"b":1}]}"#, "blackboard"),
        (Method::DELETE, "blackboard", "", "blackboard"),
        (Method::PUT, "", r#"{"labels":{"b":"1"}}"#, ""),
        (Method::DELETE, "", "", ""),
    ];
    for (index, (method, tail, body, resource)) in writes.into_iter().enumerate() {
        let board = server.board(&format!("if-{index}"));
        board.post("requests", r#"{"a":1}"#).await.is(201);
        board.post("agents/A/memory", r#"{"a":1}"#).await.is(201);
        let stale = board.get(resource).await.etag();
        board.merge("requests/1", r#"{"a":2}"#).await.is(200);
        board.merge("agents/A/memory/1", r#"{"a":2}"#).await.is(200);
        board.put("", r#"{"labels":{"x":"y"}}"#).await.is(200);
        let present = board.get(resource).await;
        let (tag, revision) = (present.etag(), present.revision());

        for refused in [stale.as_str(), "\"other\""] {
            let answer = write_if(&board, method.clone(), tail, refused, body).await;
            let problem = answer.problem(412, "precondition-failed");
            assert_eq!(answer.etag(), tag, "{method} {tail}");
            if resource == "requests/1" {
                assert!(problem["current"].to_string().contains("\"a\":2"), "{problem}");
            }
        }
        assert_eq!(board.get("").await.revision(), revision, "{method} {tail}");
        let listed = format!("\"other\", {tag}");
        let written = write_if(&board, method.clone(), tail, &listed, body).await;
        assert_eq!(written.succeeded().revision(), revision + 1, "{method} {tail}");
    }
}

#[tokio::test]
async fn the_tag_of_a_write_serves_the_next_one() {
    let server = Server::start();
    let board = server.board("s");
    let mut log = board.post("requests", "{}").await.next_tag();
    for _ in 0..3 {
        let answer = write_if(&board, Method::POST, "requests", &log, "{}").await;
        assert_ne!(answer.is(201).next_tag(), log);
        log = answer.next_tag();
    }
    assert_eq!(board.get("requests").await.etag(), log);
    let mut entry = board.put("requests/1", r#"{"n":0}"#).await.is(200).etag();
    for n in 1..4 {
        let body = json!({"n":n}).to_string();
        let answer = write_if(&board, Method::PATCH, "requests/1", &entry, &body).await;
        entry = answer.is(200).etag();
    }
    assert_eq!(board.get("requests/1").await.etag(), entry);
}

#[tokio::test]
async fn the_tag_of_a_write_is_of_what_location_names() {
    let server = Server::start();
    let board = server.board("s");
    let one = board.post("questions", r#"{"question":"?"}"#).await;
    assert_eq!(one.is(201).header("location"), "/v1/sessions/s/questions/1");
    assert_eq!(one.etag(), board.get("questions/1").await.etag());
    assert_eq!(one.next_tag(), board.get("questions").await.etag());
    assert_eq!(one.json()["entries"][0]["etag"], one.etag());

    let two = board.post("questions", "[{},{}]").await;
    assert_eq!((two.is(201).header("location"), two.etag()), ("", two.next_tag()));
    assert_eq!(two.etag(), board.get("questions").await.etag());
    for entry in two.json()["entries"].as_array().unwrap() {
        let shown = board.get(&format!("questions/{}", entry["seq"])).await;
        assert_eq!(entry["etag"], shown.etag());
    }
    for (count, tagged) in [(100, true), (101, false)] {
        let many = board.post("requests", &json!(vec![json!({}); count]).to_string()).await;
        assert_eq!(many.is(201).json()["entries"][0]["etag"].is_string(), tagged);
    }

    let checkpoint = board.post("checkpoints", r#"{"name":"here"}"#).await;
    let shown = ask(board.to(Method::GET, "checkpoints/here")).await;
    assert_eq!(checkpoint.is(201).etag(), shown.is(200).etag());
    assert_eq!(checkpoint.next_tag(), board.get("checkpoints").await.etag());
    for (tail, body) in [("state/a", "1"), ("agents/A", "{}"), ("", "{}"), ("blackboard", "{}")] {
        let put = board.put(tail, body).await;
        assert_eq!(
            (put.succeeded().etag(), put.next_tag()),
            (put.next_tag(), put.etag()),
            "{tail}"
        );
    }
}

#[tokio::test]
async fn a_star_asks_whether_a_thing_is_there() {
    let server = Server::start();
    let board = server.board("s");
    for (method, tail, body) in [
        (Method::PUT, "", "{}"),
        (Method::POST, "requests", "{}"),
        (Method::PUT, "blackboard", "{}"),
    ] {
        let answer = ask(board.json(method, tail, body).header("if-match", "*")).await;
        assert!(matches!(answer.status(), 404 | 412), "{answer}");
    }
    board.get("").await.problem(404, "session-not-found");

    let only_new = |method, tail, body| board.json(method, tail, body).header("if-none-match", "*");
    ask(only_new(Method::PUT, "", "{}")).await.is(201);
    ask(only_new(Method::PUT, "", r#"{"labels":{"a":"b"}}"#))
        .await
        .problem(412, "precondition-failed");
    board.post("requests", "{}").await.is(201);
    for (method, tail, body) in [
        (Method::POST, "requests", "{}"),
        (Method::PUT, "requests", "[]"),
        (Method::PUT, "requests/1", r#"{"x":1}"#),
        (Method::PUT, "blackboard", "{}"),
    ] {
        ask(only_new(method, tail, body)).await.problem(412, "precondition-failed");
    }
    let request = board.json(Method::POST, "requests", "{}").header("if-match", "*");
    ask(request).await.is(201);
}

#[tokio::test]
async fn one_of_many_conditional_writers_wins() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", r#"{"n":0}"#).await.is(201);
    let tag = board.get("requests/1").await.etag();
    let writers = (1..=16).map(|n| {
        let (board, tag) = (board.clone(), tag.clone());
        tokio::spawn(async move {
            let body = json!({"n":n}).to_string();
            write_if(&board, Method::PUT, "requests/1", &tag, &body).await.status()
        })
    });
    let mut statuses = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        statuses.push(writer.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200);
    assert!(statuses[1..].iter().all(|&status| status == 412), "{statuses:?}");
}

#[tokio::test]
async fn no_tag_is_used_again_after_a_deletion() {
    let mut server = Server::start();
    let mut known = HashSet::new();
    for round in 0..3 {
        let board = filled(&server).await;
        for tail in READS {
            assert!(known.insert((tail, board.get(tail).await.etag())), "{round}: {tail}");
        }
        board.delete("").await.is(200);
        if round == 1 {
            server.kill();
            server.start_again();
        }
    }
}

#[tokio::test]
async fn a_reader_may_wait_for_a_revision() {
    let server = Server::start();
    let board = filled(&server).await;
    let head = board.get("").await.revision();
    for tail in ["", "requests", "requests/1", "blackboard", "prompt"] {
        board.get(&format!("{tail}?min_revision={head}")).await.is(200);
    }
    let late = board.get(&format!("requests?min_revision={}", head + 1)).await;
    late.problem(503, "revision-not-reached");
    assert!(!late.header("retry-after").is_empty(), "{late}");
    board.get("requests?min_revision=x").await.problem(400, "invalid-parameter");

    let reader = board.clone();
    let waiting =
        tokio::spawn(
            async move { reader.get(&format!("requests?min_revision={}", head + 1)).await },
        );
    board.post("requests", r#"{"late":1}"#).await.is(201);
    let seen = waiting.await.unwrap();
    assert_eq!(seen.is(200).revision(), head + 1);
    assert_eq!(seen.json()["count"], 2);
}

#[tokio::test]
async fn a_condition_holds_for_reads_before_if_none_match() {
    let server = Server::start();
    let board = filled(&server).await;
    let blob = board.typed(Method::POST, "blobs", "text/plain", "0123456789");
    let blob = ask(blob).await.is(201).header("location").to_owned();
    let blob = blob.trim_start_matches("/v1/sessions/s/").to_owned();
    for tail in READS.into_iter().chain(["state", "agents", "checkpoints", "audit", &blob]) {
        let tag = board.get(tail).await.is(200).etag();
        let with = |value: &str| board.to(Method::GET, tail).header("if-match", value);
        for (value, known, status) in [
            (tag.as_str(), None, 200),
            ("*", None, 200),
            (&format!("\"other\", {tag}"), None, 200),
            ("\"other\"", None, 412),
            (&format!("W/{tag}"), None, 412),
            ("other", None, 400),
            // The order of RFC 9110, section 13.2.2.
            ("\"other\"", Some(&tag), 412),
            (&tag, Some(&tag), 304),
        ] {
            for method in [Method::GET, Method::HEAD] {
                let request = board.to(method, tail).header("if-match", value);
                let request =
                    known.iter().fold(request, |all, tag| all.header("if-none-match", *tag));
                let answer = request.send().await.expect("an answer");
                assert_eq!(answer.status(), status, "{tail} {value}");
                if status == 412 {
                    assert_eq!(answer.headers()["etag"], tag, "{tail} {value}");
                }
            }
        }
        ask(with("\"other\"")).await.problem(412, "precondition-failed");
    }
    let part = |value: &str| {
        let request = board.to(Method::GET, &blob).header("if-match", value);
        ask(request.header("range", "bytes=0-3"))
    };
    let tag = board.get(&blob).await.etag();
    assert_eq!(part(&tag).await.is(206).text(), "0123");
    part("\"other\"").await.problem(412, "precondition-failed");
    let list = server.to(Method::GET, "/v1/sessions").header("if-match", "\"other\"");
    // A list is of no session, so its answer has no revision.
    assert_eq!(list.send().await.expect("an answer").status(), 412);
}

#[tokio::test]
async fn a_part_of_a_body_is_never_written() {
    let server = Server::start();
    let board = filled(&server).await;
    let before = board.get("").await.revision();
    for (method, tail) in [
        (Method::POST, "requests"),
        (Method::PUT, "requests"),
        (Method::PUT, "requests/1"),
        (Method::PATCH, "requests/1"),
        (Method::PUT, "state/a"),
        (Method::PUT, "blackboard"),
        (Method::POST, "transactions"),
        (Method::POST, "blobs"),
        (Method::DELETE, "requests/1"),
        (Method::DELETE, "requests"),
        (Method::DELETE, ""),
    ] {
        let part = board.request(method, tail, r#"{"b":2}"#);
        let part = part.header("content-range", "bytes 0-6/100");
        ask(part).await.problem(400, "partial-content");
    }
    assert_eq!(board.get("").await.revision(), before);
    ask(board.to(Method::GET, "requests").header("content-range", "bytes 0-6/100")).await.is(200);
}
