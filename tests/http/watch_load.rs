//! Load of four writers that repeat each write until acknowledged, over kills of the server.

use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

use crate::harness::{Board, DEADLINE, Server, client};

pub(crate) const WRITERS: u64 = 4;

/// The last commit of a load, by no writer.
pub(crate) const END: u64 = 99;

/// How long the writers may take between two looks at how far they are.
const LOAD_MAX: Duration = Duration::from_secs(300);

/// An entry that was written, and at which revision: of whom, which of his, under which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Written {
    pub(crate) revision: u64,
    pub(crate) seq: u64,
    pub(crate) w: u64,
    pub(crate) n: u64,
}

/// The log that a writer writes: two share one, one writes three items at a time, one an agent's memory.
pub(crate) fn log_of(writer: u64) -> &'static str {
    match writer {
        0 | 1 => "trajectories",
        2 => "requests",
        3 => "agents/A/memory",
        _ => "questions",
    }
}

fn batch_of(writer: u64) -> u64 {
    if writer == 1 { 3 } else { 1 }
}

/// Where a session is to be found: its server's address, or nothing while that is down.
#[derive(Clone)]
pub(crate) struct Place {
    http: Client,
    address: watch::Receiver<Option<String>>,
    session: String,
}

impl Place {
    /// With a session's name of its own, since another server may get the port of one that was killed.
    pub(crate) fn of(server: &Server) -> (watch::Sender<Option<String>>, Self) {
        let (sender, address) = watch::channel(Some(address(server)));
        let session = format!("watched {}", Uuid::new_v4());
        (sender, Self { http: client(), address, session })
    }

    pub(crate) async fn board(&mut self) -> Board {
        let there = self.address.wait_for(Option::is_some);
        let there = timeout(DEADLINE, there).await.expect("a server in time").expect("a test");
        let address = there.as_deref().expect("an address");
        Board::at(&self.http, address, &self.session)
    }
}

pub(crate) fn address(server: &Server) -> String {
    format!("http://{}", server.authority())
}

/// Writers at work.
pub(crate) struct Load {
    place: Place,
    writers: Vec<JoinHandle<Vec<Written>>>,
    acknowledged: watch::Receiver<u64>,
}

impl Load {
    /// So many commits, as many of each writer, and one more at the end.
    pub(crate) fn start(place: &Place, commits: u64) -> Self {
        let (sender, acknowledged) = watch::channel(0);
        let writers = (0..WRITERS).map(|writer| {
            let (place, sender) = (place.clone(), sender.clone());
            tokio::spawn(async move { write(place, writer, commits / WRITERS, &sender).await })
        });
        Self { place: place.clone(), writers: writers.collect(), acknowledged }
    }

    pub(crate) async fn acknowledged(&mut self, commits: u64) {
        let enough = self.acknowledged.wait_for(|count| *count >= commits);
        timeout(LOAD_MAX, enough).await.expect("the writers get on").expect("writers");
    }

    /// All that was acknowledged, in the order of the revisions.
    pub(crate) async fn ended(mut self) -> Vec<Written> {
        let mut all = Vec::new();
        for writer in self.writers {
            all.extend(timeout(LOAD_MAX, writer).await.expect("a writer ends").unwrap());
        }
        all.extend(written(&mut self.place, END, 0, 1).await);
        all.sort_unstable();
        all
    }
}

async fn write(
    mut place: Place,
    writer: u64,
    commits: u64,
    acknowledged: &watch::Sender<u64>,
) -> Vec<Written> {
    let (mut all, batch) = (Vec::new(), batch_of(writer));
    for commit in 0..commits {
        all.extend(written(&mut place, writer, commit * batch, batch).await);
        acknowledged.send_modify(|count| *count += 1);
    }
    all
}

/// Writes a batch, under a key, until it is acknowledged.
async fn written(place: &mut Place, w: u64, first: u64, batch: u64) -> Vec<Written> {
    let items: Vec<Value> = (first..first + batch).map(|n| json!({"w":w,"n":n})).collect();
    let body = Value::from(items).to_string();
    loop {
        let board = place.board().await;
        let request = board.json(Method::POST, log_of(w), &body);
        let request = request.header("idempotency-key", format!("{w} {first}"));
        let Ok(response) = request.send().await else { continue };
        assert!(!response.status().is_client_error(), "a sound write was refused: {response:?}");
        let acknowledged = response.status().is_success();
        let Ok(answer) = response.bytes().await else { continue };
        if acknowledged {
            let answer: Value = serde_json::from_slice(&answer).expect("JSON");
            let revision = answer["revision"].as_u64().expect("a revision");
            let entries = answer["entries"].as_array().expect("entries");
            assert_eq!(entries.len() as u64, batch, "{answer}");
            let seqs = entries.iter().map(|entry| entry["seq"].as_u64().expect("a seq"));
            return (first..).zip(seqs).map(|(n, seq)| Written { revision, seq, w, n }).collect();
        }
    }
}
