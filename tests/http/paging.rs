//! Paging: first entry, last entry, and the cursor to the next page.

use serde_json::{Value, json};

use crate::harness::{Board, Server};
use crate::logs::LOGS;

async fn filled(server: &Server, log: &str, count: u64) -> Board {
    let board = server.board(&format!("{log} {count}").replace('/', "."));
    let items: Vec<Value> = (1..=count).map(|n| json!({"step":n,"even":n % 2 == 0})).collect();
    board.post(log, &Value::from(items).to_string()).await.is(201);
    board
}

#[tokio::test]
async fn a_page_says_where_to_go_on() {
    let server = Server::start();
    for log in LOGS {
        let board = filled(&server, log, 25).await;
        let cases: [(&str, Vec<u64>, u64, bool); 8] = [
            ("limit=10", (1..=10).collect(), 10, true),
            ("limit=10&after=20", (21..=25).collect(), 25, false),
            ("limit=25", (1..=25).collect(), 25, false),
            ("after=5&before=9", vec![6, 7, 8], 8, false),
            ("before=3", vec![1, 2], 2, false),
            ("order=desc&limit=10", (16..=25).rev().collect(), 16, true),
            ("order=desc&before=4&limit=10", vec![3, 2, 1], 1, false),
            ("order=asc&limit=1", vec![1], 1, true),
        ];
        for (query, seqs, next, more) in cases {
            let answer = board.get(&format!("{log}?{query}")).await;
            assert_eq!(answer.is(200).seqs(), seqs, "{query}");
            let page = answer.json();
            assert_eq!((&page["next"], &page["count"]), (&json!(next), &json!(25)), "{query}");
            // A bound of the caller's own is not more to read.
            if !query.contains("before") || query.contains("desc") {
                assert_eq!(page["more"], more, "{query}");
            }
        }
    }
}

#[tokio::test]
async fn pages_by_next_show_each_entry_once_in_both_orders() {
    let server = Server::start();
    let board = filled(&server, "requests", 23).await;
    board.delete("requests/7").await.is(200);
    for (first, follow) in [("limit=5", "after"), ("limit=5&order=desc", "before")] {
        let mut seqs = Vec::new();
        let mut query = first.to_owned();
        loop {
            let answer = board.get(&format!("requests?{query}")).await;
            seqs.extend(answer.is(200).seqs());
            let page = answer.json();
            if page["more"] == false {
                break;
            }
            query = format!("{first}&{follow}={}", page["next"]);
        }
        seqs.sort_unstable();
        let expected: Vec<u64> = (1..=23).filter(|&seq| seq != 7).collect();
        assert_eq!(seqs, expected);
    }
}

#[tokio::test]
async fn an_empty_page_still_says_where_to_go_on() {
    let server = Server::start();
    let board = filled(&server, "requests", 3).await;
    let end = board.get("requests?after=3").await;
    assert_eq!(end.is(200).seqs(), [] as [u64; 0]);
    assert_eq!(end.json()["more"], false);
    board.post("requests", "{}").await.is(201);
    let next = &end.json()["next"];
    assert_eq!(board.get(&format!("requests?after={next}")).await.seqs(), [4]);
}

#[tokio::test]
async fn next_is_the_last_entry_examined_and_not_only_matched() {
    let server = Server::start();
    let board = filled(&server, "trajectories", 10).await;
    let page = board.get("trajectories?steps=1,2&limit=5").await;
    assert_eq!(page.is(200).seqs(), [1, 2]);
    let page = page.json();
    assert_eq!((&page["next"], &page["more"]), (&json!(10), &json!(false)));
    assert_eq!(page["count"], 10);
}

#[tokio::test]
async fn a_page_ends_at_its_examined_bound_and_the_next_continues() {
    let server = Server::start();
    let board = server.made("s").await;
    let item = format!("{{\"text\":\"{}\"}}", "x".repeat((1 << 20) - 20));
    for _ in 0..12 {
        board.post("trajectories", &item).await.is(201);
    }
    board.post("trajectories", "{\"text\":\"found\"}").await.is(201);
    let page = board.get("trajectories?contains=found").await;
    assert_eq!(page.is(200).seqs(), [] as [u64; 0]);
    assert_eq!((&page.json()["next"], &page.json()["more"]), (&json!(9), &json!(true)));
    let page = board.get("trajectories?contains=found&after=9").await;
    assert_eq!(page.seqs(), [13]);
    assert_eq!(page.json()["more"], false);
    let whole = board.get("trajectories?limit=1000").await;
    assert_eq!(whole.seqs().len(), 13, "what is not filtered is not cut");
}

#[tokio::test]
async fn a_page_has_a_hundred_entries_and_at_most_a_thousand() {
    let server = Server::start();
    let board = filled(&server, "requests", 1001).await;
    assert_eq!(board.get("requests").await.seqs().len(), 100);
    assert_eq!(board.get("requests?limit=1000").await.seqs().len(), 1000);
    board.get("requests?limit=1001").await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn latest_gives_the_last_after_filtering_ascending() {
    let server = Server::start();
    for log in LOGS {
        let board = filled(&server, log, 9).await;
        assert_eq!(board.get(&format!("{log}?latest=3")).await.seqs(), [7, 8, 9]);
        assert_eq!(board.get(&format!("{log}?latest=99")).await.seqs().len(), 9);
        let filtered = format!("{log}?latest=2&steps=1,2,3,5");
        assert_eq!(board.get(&filtered).await.seqs(), [3, 5]);
        for other in ["after=1", "before=5", "limit=2", "order=asc", "order=desc"] {
            let query = format!("{log}?latest=2&{other}");
            board.get(&query).await.problem(400, "invalid-parameter");
        }
    }
}

#[tokio::test]
async fn a_parameter_that_cannot_be_is_refused_by_every_log() {
    let server = Server::start();
    let board = server.made("s").await;
    let wrong = [
        "limit=x",
        "limit=-1",
        "limit=",
        "after=x",
        "after=-1",
        "before=x",
        "latest=x",
        "latest=-1",
        "order=up",
        "order=",
        "after=1.5",
        "steps=x",
    ];
    for log in LOGS {
        for query in wrong {
            board.get(&format!("{log}?{query}")).await.problem(400, "invalid-parameter");
        }
    }
}
