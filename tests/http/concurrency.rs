//! Many writers on one log: every entry once, each writer's in order.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::harness::Server;

const CLIENTS: u64 = 16;
const POSTS: u64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_clients_post_two_hundred_times_each() {
    let server = Server::start();
    let clients = (0..CLIENTS).map(|client| {
        let board = server.board("s");
        tokio::spawn(async move {
            let mut given = Vec::new();
            for n in 0..POSTS {
                let item = json!({"client":client,"n":n}).to_string();
                let answer = board.post("trajectories", &item).await;
                given.push((answer.is(201).seqs()[0], n));
            }
            given
        })
    });
    let mut given: HashMap<u64, (u64, u64)> = HashMap::new();
    for (client, task) in (0..).zip(clients.collect::<Vec<_>>()) {
        for (seq, n) in task.await.unwrap() {
            assert_eq!(given.insert(seq, (client, n)), None, "seq {seq} was given twice");
        }
    }

    let board = server.board("s");
    let lines = board.lines("trajectories").await;
    assert_eq!(lines.len() as u64, CLIENTS * POSTS);
    let mut next = HashMap::new();
    for (seq, line) in (1..).zip(&lines) {
        let item: Value = serde_json::from_str(line).unwrap();
        let (client, n) = (item["client"].as_u64().unwrap(), item["n"].as_u64().unwrap());
        assert_eq!(given.get(&seq), Some(&(client, n)), "seq {seq}");
        let expected = next.entry(client).or_insert(0);
        assert_eq!(n, *expected, "client {client} is out of order");
        *expected += 1;
    }
    let page = board.get("trajectories?latest=1").await;
    assert_eq!(page.seqs(), [CLIENTS * POSTS]);
    assert_eq!(page.json()["count"], CLIENTS * POSTS);
    assert_eq!(board.get("").await.revision(), CLIENTS * POSTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_always_sees_a_whole_commit() {
    let server = Server::start();
    let board = server.made("s").await;
    let writer = board.clone();
    let writing = tokio::spawn(async move {
        for n in 0..100 {
            let list = json!([{"n":n}, {"n":n}]);
            let body = json!({"requests":list,"trajectories":list}).to_string();
            writer.put("blackboard", &body).await.succeeded();
        }
    });
    let mut revision = 0;
    while !writing.is_finished() {
        let answer = board.get("blackboard").await;
        let shown = answer.is(200).json();
        assert_eq!(shown["requests"], shown["trajectories"]);
        assert!(answer.revision() >= revision, "the board went back");
        revision = answer.revision();
    }
    writing.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_do_not_mix() {
    let server = Server::start();
    let tasks = (0..20).map(|session| {
        let board = server.board(&format!("own {session}"));
        tokio::spawn(async move {
            for n in 0..20 {
                let item = json!({"of":session,"n":n}).to_string();
                assert_eq!(board.post("requests", &item).await.is(201).seqs(), [n + 1]);
            }
            let items = board.get("requests").await.items();
            assert!(items.iter().all(|item| item["of"] == session), "{items:?}");
            assert_eq!(board.get("").await.revision(), 20);
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}
