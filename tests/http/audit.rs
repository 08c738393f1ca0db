//! The audit: authors, kinds and times of commits, in pages and as lines, from either end.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};

fn revisions(page: &Answer) -> Vec<u64> {
    let body = page.is(200).json();
    let commits = body["commits"].as_array().expect("commits").iter();
    commits.map(|commit| commit["revision"].as_u64().expect("a revision")).collect()
}

async fn audited(board: &Board, query: &str) -> Vec<u64> {
    revisions(&board.get(&format!("audit?{query}")).await)
}

async fn lines(board: &Board, query: &str) -> Vec<u64> {
    let lines = board.lines(&format!("audit?{query}")).await;
    let revision = |line: &String| {
        let commit: Value = serde_json::from_str(line).expect("a commit a line");
        commit["revision"].as_u64().expect("a revision")
    };
    lines.iter().map(revision).collect()
}

#[tokio::test]
async fn a_commit_is_audited_with_author_kind_and_brief_changes() {
    let server = Server::start();
    let board = server.board("s");
    let posted =
        ask(board.by("Host é", Method::POST, "trajectories", r#"[{"a":1},{"b":2}]"#)).await;
    let at = posted.is(201).json()["entries"][0]["at"].as_str().unwrap().to_owned();
    let page = board.get("audit").await;
    let appended = "/v1/sessions/s/trajectories?after=0&before=3";
    let body = format!(
        r#"{{"commits":[{{"revision":1,"at":"{at}","agent":"Host é","kind":"transaction","changes":[{{"kind":"created"}},{{"kind":"agent_put","agent":"Host é","url":"/v1/sessions/s/agents/Host%20%C3%A9"}},{{"kind":"appended","log":"trajectories","first":1,"count":2,"url":"{appended}"}}]}}],"next":1,"more":false,"revision":1}}"#
    );
    let without_agent = body.replace(
        r#"{"kind":"agent_put","agent":"Host é","url":"/v1/sessions/s/agents/Host%20%C3%A9"},"#,
        "",
    );
    let text = page.is(200).text().trim_end();
    assert!(text == body || text == without_agent, "{page}");
    board.put("state/a", "1").await.is(201);
    assert_eq!(
        board.get("audit?after=1").await.json()["commits"][0]["changes"],
        json!([{"kind":"state_put","path":"a","url":"/v1/sessions/s/state/a"}])
    );
}

#[tokio::test]
async fn it_is_paged_from_either_end_and_streamed_as_lines() {
    let server = Server::start();
    let board = server.made("s").await;
    for _ in 1..700 {
        board.post("requests", "{}").await.is(201);
    }
    let all: Vec<u64> = (1..=700).collect();
    let newest: Vec<u64> = (1..=700).rev().collect();
    for (order, cursor, expected) in [("asc", "after", &all), ("desc", "before", &newest)] {
        let (mut found, mut query) = (Vec::new(), format!("order={order}&limit=150"));
        loop {
            let page = board.get(&format!("audit?{query}")).await;
            found.extend(revisions(&page));
            let body = page.json();
            assert_eq!(body["revision"], 700);
            assert_eq!(body["next"], *found.last().unwrap());
            assert_eq!(body["more"], found.len() < 700);
            if body["more"] == false {
                break;
            }
            query = format!("order={order}&limit=150&{cursor}={}", body["next"]);
        }
        assert_eq!(&found, expected);
        assert_eq!(&lines(&board, &format!("order={order}")).await, expected);
    }
    assert_eq!(audited(&board, "limit=2").await, [1, 2]);
    assert_eq!(audited(&board, "after=3&before=6").await, [4, 5]);
    assert_eq!(audited(&board, "after=3&before=6&order=desc").await, [5, 4]);
    assert_eq!(audited(&board, "order=desc&limit=1").await, [700]);
    assert_eq!(lines(&board, "limit=3&after=600").await, [601, 602, 603]);
    let past = board.get("audit?after=900").await.is(200).json();
    assert_eq!(past, json!({"commits":[],"next":900,"more":false,"revision":700}));
    for query in ["before=1", "before=0&order=desc", "after=700"] {
        assert!(audited(&board, query).await.is_empty(), "{query}");
    }
}

#[tokio::test]
async fn commits_are_found_by_author_kind_and_time() {
    let server = Server::start();
    let board = server.made("s").await;
    ask(board.by("A", Method::PUT, "state/a", "1")).await.is(201);
    ask(board.by("B", Method::PUT, "state/b", "1")).await.is(201);
    let both = r#"{"then":[{"put":"x","value":1},{"append":"requests","item":{}}]}"#;
    ask(board.by("A", Method::POST, "transactions", both)).await.is(200);
    board.post("requests", "{}").await.is(201);
    assert_eq!(audited(&board, "agent=A").await, [2, 4]);
    assert_eq!(audited(&board, "agent=A&order=desc").await, [4, 2]);
    assert_eq!(audited(&board, "kind=state_put").await, [2, 3, 4]);
    assert_eq!(audited(&board, "kind=transaction").await, [4]);
    assert_eq!(audited(&board, "kind=appended&agent=A").await, [4]);
    let all = board.get("audit").await.json();
    let time = |index: usize| all["commits"][index]["at"].as_str().unwrap().to_owned();
    let from = async |index: usize| audited(&board, &format!("since={}", time(index))).await;
    let (first, last) = (from(0).await, from(4).await);
    assert_eq!((first.len(), last.last()), (5, Some(&5)));
    assert!(audited(&board, &format!("till={}", time(4))).await.len() == 5);
    assert!(audited(&board, "since=2999-01-01T00:00:00Z&order=desc").await.is_empty());
    assert!(audited(&board, "till=1999-01-01T00:00:00Z").await.is_empty());
    for query in ["kind=x", "since=yesterday", "till=1", "limit=0", "limit=1001", "order=up"] {
        board.get(&format!("audit?{query}")).await.problem(400, "invalid-parameter");
    }
    board.get("audit?at=1").await.problem(400, "unknown-parameter");
    server.board("none").get("audit").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_commit_keeps_the_trace_of_its_request() {
    let server = Server::start();
    let board = server.made("s").await;
    let (one, two) = ("0af7651916cd43dd8448eb211c80319c", "11111111111111111111111111111111");
    let traced = |id: &str, tail: &str| {
        let post = board.by("A", Method::POST, tail, "{}");
        ask(post.header("traceparent", format!("00-{id}-b7ad6b7169203331-01")))
    };
    traced(one, "requests").await.is(201);
    traced(two, "trajectories").await.is(201);
    traced(&one.to_uppercase(), "trajectories").await.is(201);
    traced(one, "questions").await.is(201);
    assert_eq!(audited(&board, &format!("trace={one}")).await, [2, 5]);
    assert_eq!(audited(&board, &format!("trace={two}&agent=A")).await, [3]);
    assert_eq!(audited(&board, &format!("trace={}", "2".repeat(32))).await, [0_u64; 0]);
    let all = board.get("audit").await.json();
    let traces = all["commits"].as_array().unwrap().iter().map(|commit| commit["trace"].as_str());
    assert_eq!(traces.collect::<Vec<_>>(), [None, Some(one), Some(two), None, Some(one)]);
    let events = async |query: &str| {
        let (mut all, mut after) = (Vec::new(), json!(0));
        loop {
            let events = board.to(Method::GET, &format!("events?after={after}&{query}"));
            let page = ask(events.header("accept", "application/json")).await.is(200).json();
            all.extend(page["events"].as_array().unwrap().clone());
            if page["more"] == false {
                return all;
            }
            after = page["next"].clone();
        }
    };
    let all = events(&format!("trace={one}")).await;
    assert_eq!(all.len(), 2);
    assert_eq!((&all[1]["revision"], &all[1]["trace"]), (&json!(5), &json!(one)));
    assert_eq!(events(&format!("trace={one}&on=questions")).await.len(), 1);
    for id in ["", "x", &one[1..], &one.to_uppercase(), &"0".repeat(32)] {
        board.get(&format!("audit?trace={id}")).await.problem(400, "invalid-parameter");
    }
}

#[tokio::test]
async fn it_is_304_until_something_is_committed() {
    let server = Server::start();
    let board = server.made("s").await;
    let tag = board.get("audit?limit=5").await.etag();
    let again = async || {
        let read = board.to(Method::GET, "audit?limit=5").header("if-none-match", tag.clone());
        ask(read).await.status()
    };
    assert_eq!(again().await, 304);
    board.post("requests", "{}").await.is(201);
    assert_eq!(again().await, 200);
}

#[tokio::test]
async fn a_revision_beyond_the_head_has_nothing_after_it() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    for after in ["1", "2", "18446744073709551615"] {
        assert_eq!(audited(&board, &format!("after={after}")).await, [0_u64; 0], "{after}");
        assert_eq!(audited(&board, &format!("after={after}&order=desc")).await, [0_u64; 0]);
    }
}
