//! Pages from cached entries: each entry is shown in its current form, whatever changed it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::claims::won;
use crate::harness::{Board, Server};
use crate::logs::LOGS;

/// More entries than two chunks have.
const ENTRIES: u64 = 600;

/// Every so many entries one is read alone. Changes touch entries between them and others.
const APART: usize = 50;

async fn filled(server: &Server, log: &str) -> Board {
    let board = server.board("s");
    let items: Vec<Value> = (1..=ENTRIES).map(|n| json!({"step":n,"text":"né \"x\""})).collect();
    ask(board.by("A", Method::POST, log, &Value::from(items).to_string())).await.is(201);
    board
}

/// All entries twice, since the first page makes the texts; a few entries of a chunk after all of one, and before many.
const QUERIES: [&str; 7] = [
    "limit=1000",
    "limit=1000",
    "after=5&limit=400",
    "latest=300",
    "before=290",
    "limit=260",
    "after=250&limit=100",
];

/// Checks the pages against the entries read one by one; `changed` are read too.
async fn agrees(board: &Board, log: &str, changed: &[u64]) {
    let newest = board.get(&format!("{log}?latest=1")).await.seqs()[0];
    for query in QUERIES {
        let page = board.get(&format!("{log}?{query}")).await;
        let seqs = page.is(200).seqs();
        assert!(seqs.is_sorted() && seqs.len() >= 100, "{query}");
        let text = page.text();
        for (index, seq) in seqs.iter().enumerate() {
            if index % APART == 0 || index + 1 == seqs.len() || changed.contains(seq) {
                let entry = board.get(&format!("{log}/{seq}")).await;
                let entry = entry.is(200).text().trim_end().to_owned();
                assert!(text.contains(&entry), "{query}: {entry}");
            }
        }
        let page = page.json();
        assert_eq!(page["next"], *seqs.last().unwrap(), "{query}");
        assert_eq!(page["more"], seqs.last() < Some(&newest), "{query}");
    }
}

#[tokio::test]
async fn a_page_shows_each_change_of_an_entry() {
    for log in LOGS.into_iter().filter(|log| *log != "screenshots") {
        let server = Server::start();
        let board = filled(&server, log).await;
        agrees(&board, log, &[]).await;
        // In a chunk, in the next one, and in the tail.
        let changed = [100, 300, 599];
        for seq in changed {
            let patch = json!({"text":"patched"}).to_string();
            board.merge(&format!("{log}/{seq}"), &patch).await.is(200);
        }
        agrees(&board, log, &changed).await;
        board.delete(&format!("{log}/298")).await.is(200);
        board.delete(&format!("{log}/598")).await.is(200);
        board.post(log, r#"{"step":601}"#).await.is(201);
        agrees(&board, log, &[297, 299, 601]).await;
        board.delete(&format!("{log}?keep=450")).await.is(200);
        agrees(&board, log, &changed).await;
    }
}

#[tokio::test]
async fn a_page_shows_the_work_on_requests() {
    let server = Server::start();
    let board = filled(&server, "requests").await;
    let changed = [50, 255, 256, 300, 590];
    for seq in changed {
        agrees(&board, "requests", &changed).await;
        let fence = won(&board, "A", seq).await;
        agrees(&board, "requests", &changed).await;
        let done = json!({"fence":fence,"result":{"ok":seq}}).to_string();
        ask(board.by("A", Method::PUT, &format!("requests/{seq}/done"), &done)).await.is(200);
    }
    agrees(&board, "requests", &changed).await;
}

#[tokio::test]
async fn pages_of_a_fork_a_restore_and_a_restart_agree() {
    let mut server = Server::start();
    let board = filled(&server, "trajectories").await;
    agrees(&board, "trajectories", &[]).await;
    board.post("checkpoints", r#"{"name":"c"}"#).await.is(201);
    let patch = json!({"text":"patched"}).to_string();
    board.merge("trajectories/100", &patch).await.is(200);
    board.post("fork", r#"{"to":"f"}"#).await.is(201);
    let fork = server.board("f");
    fork.merge("trajectories/300", &patch).await.is(200);
    for board in [&board, &fork] {
        agrees(board, "trajectories", &[100, 300]).await;
    }
    board.post("restore", r#"{"at":"c"}"#).await.is(200);
    agrees(&board, "trajectories", &[100, 300]).await;
    server.kill();
    server.start_again();
    for name in ["s", "f"] {
        agrees(&server.board(name), "trajectories", &[100, 300]).await;
    }
}
