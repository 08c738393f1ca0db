//! Races: as many winners as allowed, the others refused, and nothing lost.

use std::collections::{BTreeSet, HashMap};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};

const CLIENTS: u64 = 8;
const RACERS: u64 = 16;
const ROUNDS: u64 = 100;

/// The answers to what each of so many clients asks at the same time, by client.
async fn race(clients: u64, request: impl Fn(u64) -> RequestBuilder) -> Vec<Answer> {
    let asked: Vec<_> = (0..clients).map(|client| tokio::spawn(ask(request(client)))).collect();
    let mut answers = Vec::new();
    for answer in asked {
        answers.push(answer.await.unwrap());
    }
    answers
}

/// The one client whose answer has that status.
#[track_caller]
fn winner(answers: &[Answer], status: u16) -> u64 {
    let won = (0..).zip(answers).filter(|(_, answer)| answer.status() == status);
    let won: Vec<u64> = won.map(|(client, _)| client).collect();
    let statuses: Vec<u16> = answers.iter().map(Answer::status).collect();
    assert_eq!(won.len(), 1, "not one {status} among {statuses:?}");
    won[0]
}

/// What each client comes to, all at work at the same time.
async fn at_once<T, F>(server: &Server, work: impl Fn(u64, Board) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let at_work = (0..CLIENTS).map(|client| tokio::spawn(work(client, server.board("s"))));
    let mut ends = Vec::new();
    for end in at_work.collect::<Vec<_>>() {
        ends.push(end.await.unwrap());
    }
    ends
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_conditional_increments_make_two_hundred() {
    let server = Server::start();
    let board = server.board("s");
    let base = board.put("state/counter", "0").await.is(201).revision();
    let refused = at_once(&server, |_, board| async move {
        let mut refused = 0;
        for _ in 0..25 {
            loop {
                let seen = board.get("state/counter").await;
                let next = seen.is(200).json().as_u64().unwrap() + 1;
                let put = board.json(Method::PUT, "state/counter", &next.to_string());
                let answer = ask(put.header("if-match", seen.etag())).await;
                if answer.status() == 200 {
                    break;
                }
                let present = answer.problem(412, "precondition-failed")["current"].as_u64();
                assert!(present >= Some(next), "refused for nothing: {answer}");
                refused += 1;
            }
        }
        refused
    });
    let refused: u64 = refused.await.iter().sum();
    let end = board.get("state/counter").await;
    assert_eq!(end.json(), 200, "with {refused} refusals");
    assert_eq!(end.revision(), base + 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn four_hundred_additions_tell_four_hundred_sums() {
    let server = Server::start();
    let sums = at_once(&server, |_, board| async move {
        let mut sums = Vec::new();
        for _ in 0..50 {
            let add = ask(board.json(Method::PATCH, "state/counter", r#"{"add":1}"#)).await;
            sums.push(add.succeeded().json()["value"].as_u64().unwrap());
        }
        assert!(sums.is_sorted_by(|a, b| a < b), "a client's sums do not rise: {sums:?}");
        sums
    });
    let sums: Vec<u64> = sums.await.concat();
    assert_eq!(sums.len(), 400);
    assert_eq!(BTreeSet::from_iter(sums), (1..=400).collect());
    let end = server.board("s").get("state/counter").await;
    assert_eq!(end.json(), 400);
    assert_eq!(end.revision(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_sixteen_wins_each_transaction() {
    let server = Server::start();
    let board = server.made("s").await;
    let base = board.get("").await.revision();
    for round in 1..=ROUNDS {
        let path = format!("rounds/{round}/winner");
        let answers = race(RACERS, |client| {
            let body = json!({
                "if": [{"path":path,"absent":true}],
                "then": [{"put":path,"value":client}],
            });
            board.json(Method::POST, "transactions", &body.to_string())
        });
        let mut won = Vec::new();
        for (client, answer) in (0..RACERS).zip(answers.await) {
            let body = answer.is(200).json();
            assert_eq!(body["revision"], base + round, "{answer}");
            if body["succeeded"] == true {
                assert_eq!(body["results"], json!([{ "put": path }]));
                won.push(client);
            } else {
                assert_eq!((&body["succeeded"], &body["results"]), (&json!(false), &json!([])));
            }
        }
        assert_eq!(won.len(), 1, "round {round}: {won:?} won");
        let end = board.get(&format!("state/{path}")).await;
        assert_eq!(end.is(200).json(), won[0]);
        assert_eq!(end.revision(), base + round);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_sixteen_agents_wins_each_claim() {
    let server = Server::start();
    let board = server.board("s");
    let requests: Vec<Value> = (1..=ROUNDS).map(|n| json!({ "n": n })).collect();
    let base = board.post("requests", &Value::from(requests).to_string()).await.revision();
    for seq in 1..=ROUNDS {
        let answers = race(RACERS, |client| {
            let tail = format!("requests/{seq}/claim");
            let claim = board.json(Method::PUT, &tail, r#"{"ttl":"1h"}"#);
            claim.header("x-agent-id", format!("Agent{client}"))
        });
        let answers = answers.await;
        let agent = format!("Agent{}", winner(&answers, 201));
        for answer in &answers {
            if answer.status() == 201 {
                let claim = &answer.json()["claim"];
                assert_eq!((&claim["agent"], &claim["fence"]), (&json!(agent), &json!(base + seq)));
            } else {
                answer.problem(409, "already-claimed");
            }
        }
        let entry = board.get(&format!("requests/{seq}")).await;
        assert_eq!(entry.json()["claim"]["agent"], agent.as_str());
        assert_eq!(entry.revision(), base + seq);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_eight_clients_append_is_all_there_in_the_order_of_each() {
    const APPENDS: u64 = 40;
    let server = Server::start();
    at_once(&server, |client, board| async move {
        for n in 0..APPENDS {
            let pair = json!([[client, n, 0], [client, n, 1]]);
            let body = json!({ "append": pair }).to_string();
            let answer = ask(board.json(Method::PATCH, "state/list", &body)).await;
            let list = answer.succeeded().json()["value"].clone();
            let list = list.as_array().unwrap().clone();
            assert!(list.ends_with(pair.as_array().unwrap()), "its own are not the last: {answer}");
            let own = list.iter().filter(|element| element[0] == client).count() as u64;
            assert_eq!(own, 2 * (n + 1), "{answer}");
        }
    })
    .await;
    let end = server.board("s").get("state/list").await;
    let list = end.is(200).json();
    let list = list.as_array().unwrap();
    assert_eq!(list.len() as u64, 2 * CLIENTS * APPENDS);
    let mut next = HashMap::new();
    for pair in list.chunks(2) {
        let client = pair[0][0].as_u64().unwrap();
        let n = next.entry(client).or_insert(0_u64);
        assert_eq!(pair, [json!([client, *n, 0]), json!([client, *n, 1])], "torn or out of order");
        *n += 1;
    }
    assert_eq!(end.revision(), CLIENTS * APPENDS);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_sixteen_makes_what_must_not_exist() {
    const ROUNDS: u64 = 25;
    let server = Server::start();
    let board = server.made("s").await;
    let base = board.get("").await.revision();
    for round in 1..=ROUNDS {
        let tail = format!("state/made/{round}");
        let answers = race(RACERS, |client| {
            board.json(Method::PUT, &tail, &client.to_string()).header("if-none-match", "*")
        });
        let answers = answers.await;
        let won = winner(&answers, 201);
        let tag = board.get(&tail).await.etag();
        for answer in &answers {
            assert_eq!(answer.etag(), tag);
            if answer.status() != 201 {
                assert_eq!(answer.problem(412, "precondition-failed")["current"], won);
            }
        }
        let end = board.get(&tail).await;
        assert_eq!((end.json(), end.revision()), (json!(won), base + round));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_equal_posts_under_one_key_are_one() {
    const ROUNDS: u64 = 25;
    let server = Server::start();
    let board = server.board("s");
    for round in 1..=ROUNDS {
        let answers = race(RACERS, |_| {
            let post = board.json(Method::POST, "requests", &json!({ "round": round }).to_string());
            post.header("idempotency-key", format!("round {round}"))
        });
        let answers = answers.await;
        let first: Vec<&Answer> = answers
            .iter()
            .filter(|answer| answer.header("idempotency-replayed").is_empty())
            .collect();
        assert_eq!(first.len(), 1, "round {round}: {} were no replay", first.len());
        for answer in &answers {
            assert_eq!(answer.is(201).seqs(), [round]);
            assert_eq!(answer.revision(), round);
            assert_eq!(answer.text(), first[0].text());
            for header in ["etag", "location"] {
                assert_eq!(answer.header(header), first[0].header(header), "{header}");
            }
            if !std::ptr::eq(answer, first[0]) {
                assert_eq!(answer.header("idempotency-replayed"), "true");
            }
        }
    }
    let page = board.get("requests?limit=1000").await;
    assert_eq!(page.seqs(), (1..=ROUNDS).collect::<Vec<_>>());
    assert_eq!(page.revision(), ROUNDS);
}
