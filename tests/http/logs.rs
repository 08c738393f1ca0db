//! Operations of every log: items keep their text, and no `seq` is reused.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::Server;
use crate::whole::receipt;

pub(crate) const LOGS: [&str; 5] =
    ["questions", "requests", "trajectories", "screenshots", "agents/HostAgent/memory"];

/// Key order, number text, depth and names that mean something elsewhere.
const ODD_ITEM: &str = r#"{"zeta":1E5,"alpha":1.0,"minus":-0,"tiny":1e-400,"big":123456789012345678901234567890,"to_dict":{"step":[null,true,{"__class__":"x"}]},"":"\u0000\ud83d\ude00","é":"\/"}"#;

#[tokio::test]
async fn every_log_answers_to_the_same_verbs() {
    let server = Server::start();
    for (index, log) in LOGS.into_iter().enumerate() {
        let board = server.board(&format!("verbs-{index}"));
        let first = board.post(log, r#"{"n":1}"#).await;
        assert_eq!(first.is(201).seqs(), [1]);
        assert!(first.header("location").ends_with(&format!("{log}/1")), "{first}");
        let many = board.post(log, r#"[{"n":2},"three",{"n":4}]"#).await;
        assert_eq!(many.is(201).seqs(), [2, 3, 4]);
        assert!(many.json()["entries"][0]["at"].is_string(), "{many}");

        let page = board.get(log).await;
        let shown = page.is(200).json();
        assert_eq!(page.seqs(), [1, 2, 3, 4]);
        assert_eq!(page.items()[2], json!({"text":"three"}));
        assert_eq!((&shown["next"], &shown["more"]), (&json!(4), &json!(false)));
        assert_eq!((&shown["count"], &shown["revision"]), (&json!(4), &json!(2)));

        assert_eq!(board.get(&format!("{log}/2")).await.is(200).json()["item"], json!({"n":2}));
        board.delete(&format!("{log}/2")).await.is(200);
        board.get(&format!("{log}/2")).await.problem(404, "entry-not-found");
        assert_eq!(board.post(log, "{}").await.is(201).seqs(), [5]);

        board.put(log, r#"[{"n":6},"seven"]"#).await.succeeded();
        let replaced = board.get(log).await;
        assert_eq!(replaced.items(), [json!({"n":6}), json!({"text":"seven"})]);
        assert_eq!(replaced.seqs(), [6, 7]);
        let cleared = board.delete(log).await;
        assert_eq!(cleared.is(200).json()["deleted"], 2);
        assert_eq!(board.get(log).await.is(200).json()["count"], 0);
        assert_eq!(board.post(log, "{}").await.is(201).seqs(), [8]);
    }
}

#[tokio::test]
async fn seqs_go_on_after_a_restart() {
    let mut server = Server::start();
    let board = server.board("s");
    board.post("requests", "[{},{},{}]").await.is(201);
    board.delete("requests").await.is(200);
    server.kill();
    server.start_again();
    let board = server.board("s");
    assert_eq!(board.post("requests", "{}").await.is(201).seqs(), [4]);
}

#[tokio::test]
async fn an_entry_has_its_envelope() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    let nobody = board.get("requests/1").await.is(200).json();
    assert_eq!(nobody.get("agent"), None);
    assert_eq!((&nobody["seq"], &nobody["revision"]), (&json!(1), &json!(1)));
    let at = nobody["at"].as_str().unwrap();
    assert!(at.len() == 24 && at.ends_with('Z') && &at[10..11] == "T", "{at}");

    let named = board.json(Method::POST, "requests", "{}");
    ask(named.header("x-agent-id", "%C3%89tienne%20A")).await.is(201);
    let entry = board.get("requests/2").await.is(200).json();
    assert_eq!(entry["agent"], "Étienne A");
    assert_eq!(entry["revision"], 2);
}

#[tokio::test]
async fn an_item_keeps_key_order_number_text_and_odd_names() {
    let mut server = Server::start();
    for log in LOGS {
        server.board("s").post(log, ODD_ITEM).await.is(201);
    }
    for _ in 0..2 {
        let board = server.board("s");
        for log in LOGS {
            let entry = board.get(&format!("{log}/1")).await;
            let needle = format!("\"item\":{ODD_ITEM}");
            assert!(entry.is(200).text().contains(&needle), "{entry}");
            let page = board.get(log).await;
            assert!(page.is(200).text().contains(&needle), "{page}");
            assert_eq!(board.lines(log).await, [ODD_ITEM]);
        }
        let list = format!("[{ODD_ITEM}]");
        let dictionary = format!(
            r#"{{"questions":{list},"requests":{list},"trajectories":{list},"screenshots":{list}}}"#
        );
        assert_eq!(board.dictionary().await.trim_end(), dictionary);
        server.kill();
        server.start_again();
    }
}

#[tokio::test]
async fn a_pretty_printed_item_is_one_line_of_ndjson() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{\n  \"a\": [\n    1\n  ]\n}").await.is(201);
    let lines = board.lines("requests").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(serde_json::from_str::<Value>(&lines[0]).unwrap(), json!({"a":[1]}));
}

#[tokio::test]
async fn a_batch_with_one_bad_item_is_refused_whole() {
    let server = Server::start();
    let board = server.made("s").await;
    for log in LOGS {
        for bad in ["[{},5]", "[{},null]", "[{},[{}]]", "[{},true]"] {
            let problem = board.post(log, bad).await.problem(422, "unsupported-item");
            assert_eq!(problem["errors"][0]["pointer"], "/1", "{problem}");
        }
        assert_eq!(board.get(log).await.is(200).json()["count"], 0);
    }
    assert_eq!(board.get("").await.revision(), 1);
}

#[tokio::test]
async fn a_refused_first_write_makes_no_session() {
    let server = Server::start();
    let board = server.board("s");
    for log in LOGS {
        board.post(log, "5").await.problem(422, "unsupported-item");
        board.put(log, "{}").await.problem(422, "array-required");
    }
    board.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_write_that_changes_nothing_commits_nothing() {
    let server = Server::start();
    let board = server.made("s").await;
    board.post("trajectories", r#"{"step":1,"a":[1.0]}"#).await.is(201);
    let before = board.get("").await.revision();

    let nothing = board.post("trajectories", "[]").await;
    assert_eq!(receipt(nothing.is(200)), json!({"revision":before,"entries":[]}));
    for tail in ["trajectories?steps=9", "trajectories?keep=5", "requests", "agents/A/memory"] {
        assert_eq!(board.delete(tail).await.is(200).json()["deleted"], 0, "{tail}");
    }
    board.put("trajectories/1", r#"{"step":1,"a":[1.0]}"#).await.is(200);
    board.merge("trajectories/1", "{}").await.is(200);
    board.merge("trajectories/1", r#"{"step":1,"none":null}"#).await.is(200);
    let patch = "application/json-patch+json";
    ask(board.typed(Method::PATCH, "trajectories/1", patch, "[]")).await.is(200);
    board.put("", "{}").await.is(200);
    assert_eq!(board.get("").await.revision(), before);

    board.delete("blackboard").await.is(200);
    let cleared = board.get("").await.revision();
    assert_eq!(cleared, before + 1);
    board.delete("blackboard").await.is(200);
    assert_eq!(board.get("").await.revision(), cleared);
}

#[tokio::test]
async fn items_are_deleted_by_step_and_the_newest_kept_by_number() {
    let server = Server::start();
    for (index, log) in LOGS.into_iter().enumerate() {
        let board = server.board(&format!("steps-{index}"));
        let items = r#"[{"step":1},{"step":2},{"step":2.0},{"step":"2"},{"no":2},{"step":4}]"#;
        board.post(log, items).await.is(201);
        let deleted = board.delete(&format!("{log}?steps=2,4")).await;
        assert_eq!(deleted.is(200).json()["deleted"], 3);
        assert_eq!(board.get(log).await.seqs(), [1, 4, 5]);
        let kept = board.delete(&format!("{log}?keep=1")).await;
        assert_eq!(kept.is(200).json()["deleted"], 2);
        assert_eq!(board.get(log).await.seqs(), [5]);
        let wrong = ["steps=", "keep=", "keep=-1", "keep=x", "steps=true", "steps=1,,2"];
        for query in wrong {
            board.delete(&format!("{log}?{query}")).await.problem(400, "invalid-parameter");
        }
        assert_eq!(board.get(log).await.seqs(), [5]);
        board.delete(&format!("{log}?keep=0")).await.is(200);
        assert_eq!(board.get(log).await.is(200).json()["count"], 0);
    }
}

#[tokio::test]
async fn only_an_array_replaces_a_log() {
    let server = Server::start();
    let board = server.made("s").await;
    for log in LOGS {
        board.post(log, r#"{"old":1}"#).await.is(201);
        for body in ["{}", "null", "5", "\"x\""] {
            board.put(log, body).await.problem(422, "array-required");
        }
        board.put(log, r#"[{"a":1},5]"#).await.problem(422, "unsupported-item");
        assert_eq!(board.lines(log).await, [r#"{"old":1}"#]);
        let lines = "{\"n\":1}\n{\"n\":2}\n";
        ask(board.typed(Method::PUT, log, "application/x-ndjson", lines)).await.succeeded();
        assert_eq!(board.lines(log).await, [r#"{"n":1}"#, r#"{"n":2}"#]);
        board.put(log, "[]").await.succeeded();
        assert_eq!(board.get(log).await.is(200).json()["count"], 0);
    }
}

#[tokio::test]
async fn each_commit_adds_one_to_the_revision_however_much_it_changes() {
    let server = Server::start();
    let board = server.board("s");
    let mut revisions = Vec::new();
    revisions.push(board.post("requests", "[{},{},{}]").await.revision());
    revisions.push(board.post("agents/A/memory", "[{},{}]").await.revision());
    revisions.push(board.delete("requests").await.revision());
    revisions.push(board.put("blackboard", r#"{"requests":[{}]}"#).await.revision());
    assert_eq!(revisions, [1, 2, 3, 4]);
    assert_eq!(board.get("requests").await.revision(), 4);
}

#[tokio::test]
async fn the_memory_of_an_agent_knows_its_cost() {
    let server = Server::start();
    let board = server.board("s");
    let items = r#"[{"step":1,"cost":0.5},{"step":2,"cost":0.25},{"step":3},{"cost":"x"}]"#;
    board.post("agents/A/memory", items).await.is(201);
    let cost = board.get("agents/A/memory/cost").await.is(200).json();
    assert_eq!(cost["total_cost"], 0.75);
    assert!(cost["steps"].is_u64(), "{cost}");
    board.post("agents/B/memory", r#"{"cost":1}"#).await.is(201);
    assert_eq!(board.get("agents/A/memory/cost").await.json()["total_cost"], 0.75);
}
