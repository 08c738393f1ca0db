//! Six writers that remember acknowledgements, and a check of the restarted server against them.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::harness::{Board, Server};
use crate::images::png;

/// What one writer sent and what was acknowledged. `n` counts a writer's own items from 0.
#[derive(Default)]
struct Ledger {
    sent: u64,
    acknowledged: Vec<(u64, u64)>,
    deleting: Option<u64>,
    deleted: Vec<u64>,
}

impl Ledger {
    fn acknowledge(&mut self, answer: &Value, first: u64) {
        let entries = answer["entries"].as_array().expect("entries");
        for (n, entry) in (first..).zip(entries) {
            self.acknowledged.push((n, entry["seq"].as_u64().expect("a seq")));
        }
    }
}

/// The load on one session; permits count what was acknowledged.
pub(crate) struct Load {
    session: String,
    writers: Vec<JoinHandle<Ledger>>,
    done: Arc<Semaphore>,
}

/// The answer's body if the write was acknowledged; nothing if that is not known.
async fn attempt(request: RequestBuilder) -> Option<Value> {
    let response = request.send().await.ok()?;
    let acknowledged = response.status().is_success();
    assert!(!response.status().is_client_error(), "a sound write was refused: {response:?}");
    let body = response.bytes().await.ok()?;
    acknowledged.then(|| serde_json::from_slice(&body).expect("JSON"))
}

impl Load {
    pub(crate) fn start(server: &Server, session: &str) -> Self {
        let done = Arc::new(Semaphore::new(0));
        let writers = (0..6).map(|writer| {
            let (board, done) = (server.board(session), Arc::clone(&done));
            tokio::spawn(async move {
                match writer {
                    0 => post(board, &done, "trajectories", writer, 1).await,
                    1 => post(board, &done, "trajectories", writer, 3).await,
                    2 => post(board, &done, "agents/A/memory", writer, 1).await,
                    3 => shoot(board, &done, writer).await,
                    4 => replace(board, &done, writer).await,
                    _ => post_and_delete(board, &done, writer).await,
                }
            })
        });
        Self { session: session.to_owned(), writers: writers.collect(), done }
    }

    /// Returns when that many writes have been acknowledged.
    pub(crate) async fn acknowledged(&self, count: u32) {
        let enough = self.done.acquire_many(count);
        let permits = tokio::time::timeout(Duration::from_secs(60), enough).await;
        permits.expect("the writers get on").expect("open").forget();
    }

    /// Waits until every writer has lost the server, and gives what must now be there.
    pub(crate) async fn ended(self) -> Written {
        let mut ledgers = Vec::new();
        for writer in self.writers {
            let end = tokio::time::timeout(Duration::from_secs(60), writer).await;
            ledgers.push(end.expect("a writer ends with the server").unwrap());
        }
        Written { session: self.session, ledgers }
    }
}

async fn post(board: Board, done: &Semaphore, log: &str, writer: u64, batch: u64) -> Ledger {
    let mut ledger = Ledger::default();
    loop {
        let first = ledger.sent;
        let items: Vec<Value> = (first..first + batch).map(|n| json!({"w":writer,"n":n})).collect();
        ledger.sent += batch;
        let body = Value::from(items).to_string();
        let Some(answer) = attempt(board.json(Method::POST, log, &body)).await else {
            return ledger;
        };
        ledger.acknowledge(&answer, first);
        done.add_permits(1);
    }
}

pub(crate) fn picture(n: u64) -> Vec<u8> {
    let shade = u8::try_from(n % 251).expect("a byte");
    png(40, 40, shade)
}

async fn shoot(board: Board, done: &Semaphore, writer: u64) -> Ledger {
    let mut ledger = Ledger::default();
    loop {
        let n = ledger.sent;
        let metadata = crate::harness::encoded(&json!({"w":writer,"n":n}).to_string());
        let tail = format!("screenshots?metadata={metadata}");
        ledger.sent += 1;
        let request = board.typed(Method::POST, &tail, "image/png", picture(n));
        let Some(answer) = attempt(request).await else {
            return ledger;
        };
        ledger.acknowledge(&answer, n);
        done.add_permits(1);
    }
}

async fn replace(board: Board, done: &Semaphore, writer: u64) -> Ledger {
    let mut ledger = Ledger::default();
    loop {
        let n = ledger.sent;
        let body = json!({"w":writer,"n":n}).to_string();
        ledger.sent += 1;
        let request = match n {
            0 => board.json(Method::POST, "requests", &body),
            _ => board.json(Method::PUT, "requests/1", &body),
        };
        if attempt(request).await.is_none() {
            return ledger;
        }
        ledger.acknowledged.push((n, 1));
        done.add_permits(1);
    }
}

async fn post_and_delete(board: Board, done: &Semaphore, writer: u64) -> Ledger {
    let mut ledger = Ledger::default();
    loop {
        let n = ledger.sent;
        let body = json!({"w":writer,"n":n}).to_string();
        ledger.sent += 1;
        let Some(answer) = attempt(board.json(Method::POST, "questions", &body)).await else {
            return ledger;
        };
        ledger.acknowledge(&answer, n);
        done.add_permits(1);
        if n % 3 == 0 {
            continue;
        }
        ledger.deleting = Some(n);
        let tail = format!("questions/{}", n + 1);
        if attempt(board.to(Method::DELETE, &tail)).await.is_none() {
            return ledger;
        }
        ledger.deleted.push(n);
        ledger.deleting = None;
        done.add_permits(1);
    }
}

/// An entry of a log as the judgement needs it.
struct Found {
    seq: u64,
    writer: u64,
    n: u64,
}

async fn found(board: &Board, log: &str) -> Vec<Found> {
    let (mut entries, mut after) = (Vec::new(), 0);
    loop {
        let page = board.get(&format!("{log}?limit=1000&after={after}")).await;
        let body = page.is(200).json();
        for entry in body["entries"].as_array().expect("entries") {
            let item = &entry["item"];
            let item = if log == "screenshots" { &item["metadata"] } else { item };
            entries.push(Found {
                seq: entry["seq"].as_u64().expect("a seq"),
                writer: item["w"].as_u64().expect("a writer"),
                n: item["n"].as_u64().expect("a number"),
            });
        }
        if body["more"] == false {
            return entries;
        }
        after = body["next"].as_u64().expect("next");
    }
}

/// What six writers left behind in one session.
pub(crate) struct Written {
    session: String,
    ledgers: Vec<Ledger>,
}

impl Written {
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Nothing acknowledged is lost, nothing is there twice, each writer's order and the seqs hold.
    pub(crate) async fn judge(&self, server: &Server) {
        let board = server.board(&self.session);
        let trajectories = found(&board, "trajectories").await;
        self.judge_log(&trajectories, &[0, 1]);
        let batched = trajectories.iter().filter(|entry| entry.writer == 1).count();
        assert_eq!(batched % 3, 0, "half a batch is there");
        self.judge_log(&found(&board, "agents/A/memory").await, &[2]);
        let screenshots = found(&board, "screenshots").await;
        self.judge_log(&screenshots, &[3]);
        for entry in screenshots {
            let answer = board.get(&format!("screenshots/{}/image", entry.seq)).await;
            assert_eq!(answer.is(200).body(), picture(entry.n));
        }
        self.judge_replaced(&found(&board, "requests").await);
        self.judge_deleted(&found(&board, "questions").await);
    }

    fn judge_log(&self, entries: &[Found], writers: &[u64]) {
        let seqs: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
        let expected: Vec<u64> = (1..=entries.len() as u64).collect();
        assert_eq!(seqs, expected, "the seqs have gaps");
        for (&writer, ledger) in
            writers.iter().map(|w| (w, &self.ledgers[usize::try_from(*w).unwrap()]))
        {
            let own: Vec<&Found> = entries.iter().filter(|entry| entry.writer == writer).collect();
            let ns: Vec<u64> = own.iter().map(|entry| entry.n).collect();
            let in_order: Vec<u64> = (0..own.len() as u64).collect();
            assert_eq!(ns, in_order, "writer {writer}: lost, twice or out of order");
            let (least, most) = (ledger.acknowledged.len(), ledger.sent);
            assert!(own.len() >= least, "writer {writer}: {} of {least} acknowledged", own.len());
            assert!(own.len() as u64 <= most, "writer {writer}: {} of {most} sent", own.len());
            for (entry, (n, seq)) in own.iter().zip(&ledger.acknowledged) {
                assert_eq!((entry.n, entry.seq), (*n, *seq), "writer {writer}");
            }
        }
    }

    fn judge_replaced(&self, entries: &[Found]) {
        let ledger = &self.ledgers[4];
        let Some((acknowledged, _)) = ledger.acknowledged.last() else {
            assert!(entries.len() <= 1);
            return;
        };
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].seq, 1);
        let n = entries[0].n;
        assert!(
            n >= *acknowledged && n < ledger.sent,
            "{acknowledged} was acknowledged, {n} is there"
        );
    }

    fn judge_deleted(&self, entries: &[Found]) {
        let ledger = &self.ledgers[5];
        assert!(entries.is_sorted_by(|a, b| a.seq < b.seq), "the seqs do not rise");
        assert!(entries.iter().all(|entry| entry.seq == entry.n + 1), "an entry moved");
        for (n, seq) in &ledger.acknowledged {
            assert_eq!(*seq, n + 1);
            let there = entries.iter().any(|entry| entry.n == *n);
            if ledger.deleted.contains(n) {
                assert!(!there, "{n} was deleted and is there");
            } else if ledger.deleting != Some(*n) {
                assert!(there, "{n} was acknowledged and is lost");
            }
        }
        let last = entries.last().map_or(0, |entry| entry.n);
        assert!(last < ledger.sent.max(1), "{last} was never sent");
    }
}
