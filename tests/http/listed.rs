//! Lists by label and prefix: correct after any change, without scanning all sessions.

use reqwest::Method;
use serde_json::json;

use crate::answer::ask;
use crate::harness::Server;
use crate::matrix::token;

const SESSIONS: usize = 60;

/// Many sessions, of which every twentieth has the label.
async fn many() -> Server {
    let server = Server::start();
    for n in 0..SESSIONS {
        let name = format!("team-{}-{n:02}", n % 2);
        let labels = if n % 20 == 0 {
            json!({"kind": "rare", "n": n.to_string()})
        } else {
            json!({"kind": "usual"})
        };
        server.board(&name).put("", &json!({"labels": labels}).to_string()).await.is(201);
    }
    server
}

/// How many sessions lists have looked at until now.
async fn examined(server: &Server) -> usize {
    examined_in(server.get("/metrics").await.text())
}

fn examined_in(metrics: &str) -> usize {
    let name = "blackboard_list_sessions_examined_total ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.parse().unwrap()
}

async fn names(server: &Server, query: &str) -> Vec<String> {
    let page = server.get(&format!("/v1/sessions{query}")).await.json();
    let sessions = page["sessions"].as_array().unwrap();
    sessions.iter().map(|session| session["session"].as_str().unwrap().to_owned()).collect()
}

/// What a list has, and how many sessions were looked at for it.
async fn listed(server: &Server, query: &str) -> (Vec<String>, usize) {
    let before = examined(server).await;
    let found = names(server, query).await;
    (found, examined(server).await - before)
}

#[tokio::test]
async fn a_list_by_a_rare_label_looks_at_no_other_session() {
    let server = many().await;
    let rare = ["team-0-00", "team-0-20", "team-0-40"];
    for (query, expected) in [
        ("?label=kind:rare", &rare[..]),
        ("?label=kind:rare&limit=2", &rare[..2]),
        ("?label=kind:rare&after=team-0-00", &rare[1..]),
        ("?label=kind:rare&prefix=team-1", &[]),
        ("?label=kind:usual,n:20", &[]),
        ("?label=kind:rare,n:20", &rare[1..2]),
        ("?label=kind:none", &[]),
    ] {
        let (found, looked) = listed(&server, query).await;
        assert_eq!(found, expected, "{query}");
        assert!(looked <= 3, "{query} looked at {looked} sessions");
    }
}

#[tokio::test]
async fn a_list_by_a_token_looks_only_where_its_patterns_lead() {
    let server = many().await;
    let admin = token(&server, &["create", "--name", "admin", "--scopes", "admin"]);
    let team = token(&server, &["create", "--name", "team", "--sessions", "team-0-0*"]);
    let got = |token: &str, path: &str| ask(server.to(Method::GET, path).bearer_auth(token));
    let before = examined_in(got(&admin, "/metrics").await.text());
    let page = got(&team, "/v1/sessions").await.json();
    assert_eq!(page["sessions"].as_array().unwrap().len(), 5, "{page}");
    let looked = examined_in(got(&admin, "/metrics").await.text()) - before;
    assert!(looked <= 5, "{looked} sessions");
    let foreign = got(&team, "/v1/sessions?prefix=team-1").await.json();
    assert_eq!(foreign["sessions"].as_array().unwrap().len(), 0, "{foreign}");
}

#[tokio::test]
async fn a_list_by_label_follows_every_change_of_labels() {
    let mut server = Server::start();
    let board = server.made("s").await;
    let with = |label: &str| format!("?label={label}");
    for (labels, has, has_not) in [
        (json!({"a": "1"}), "a:1", "a:2"),
        (json!({"a": "2", "b": "1"}), "a:2", "a:1"),
        (json!({"a": null}), "b:1", "a:2"),
    ] {
        board.put("", &json!({"labels": labels}).to_string()).await.is(200);
        board.post("requests", "{}").await.is(201);
        assert_eq!(names(&server, &with(has)).await, ["s"], "{has}");
        assert!(names(&server, &with(has_not)).await.is_empty(), "{has_not}");
    }
    server.stop();
    server.start_again();
    assert_eq!(names(&server, "?label=b:1").await, ["s"]);
    let board = server.board("s");
    board.delete("").await.is(200);
    assert!(names(&server, "?label=b:1").await.is_empty());
    board.post("requests", "{}").await.is(201);
    assert!(names(&server, "?label=b:1").await.is_empty());
}

#[tokio::test]
async fn a_list_that_is_waited_for_by_label_comes_when_it_changes() {
    let server = many().await;
    let first = server.get("/v1/sessions?label=kind:rare").await;
    let tag = first.header("etag").to_owned();
    let waits = [(); 8].map(|()| {
        let path = "/v1/sessions?label=kind:rare&wait=30s";
        let request = server.to(Method::GET, path).header("if-none-match", &tag);
        tokio::spawn(ask(request))
    });
    // Commits that concern others end no wait.
    let before = examined(&server).await;
    for _ in 0..20 {
        server.board("team-1-01").post("requests", "{}").await.is(201);
    }
    server.board("team-1-03").put("", "{\"labels\":{\"kind\":\"rare\"}}").await.is(200);
    for wait in waits {
        let page = wait.await.unwrap().json();
        assert_eq!(page["sessions"].as_array().unwrap().len(), 4);
    }
    // Eight first looks of three sessions each, and then one for all of them at most every 100 ms.
    let looked = examined(&server).await - before;
    assert!(looked <= 4 * (8 + 21), "{looked} sessions");
}

#[tokio::test]
async fn the_inbox_by_a_rare_label_looks_at_no_other_session() {
    let server = many().await;
    for n in (0..SESSIONS).step_by(5) {
        let board = server.board(&format!("team-{}-{n:02}", n % 2));
        board.post("questions", "{\"question\":\"which?\"}").await.is(201);
    }
    let before = examined(&server).await;
    let page = server.get("/v1/questions?label=kind:rare").await.json();
    assert_eq!(page["questions"].as_array().unwrap().len(), 3);
    assert!(examined(&server).await - before <= 3);
}
