//! Keyed writes repeated after a kill: stored once, answered as before.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::crash::{check_is_sound, moment, rounds};
use crate::crash_load::picture;
use crate::harness::{Board, Server, encoded};

/// How many of a writer's answers are asked for again after each kill.
const ASKED_AGAIN: usize = 8;

/// All of an answer that a repeat must give again.
#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    headers: [String; 4],
    body: String,
}

impl Seen {
    /// With whether it was given before; nothing where the server went before it was whole.
    async fn of(response: Response) -> Option<(Self, bool)> {
        let status = response.status().as_u16();
        let header = |name: &str| {
            let value = response.headers().get(name);
            value.map_or("", |value| value.to_str().expect("a header of ASCII")).to_owned()
        };
        let headers = ["etag", "location", "blackboard-revision", "content-type"].map(header);
        let replayed = header("idempotency-replayed") == "true";
        let body = response.text().await.ok()?;
        assert!(matches!(status, 200 | 201), "a sound write was refused: {status} {body}");
        Some((Self { status, headers, body }, replayed))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    fn seq(&self) -> u64 {
        self.json()["entries"][0]["seq"].as_u64().expect("a seq")
    }
}

/// What a writer does, one request after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Posts,
    Adds,
    /// Posts a request, then claims it.
    Claims,
    Shoots,
}

const WRITERS: [Kind; 7] = {
    use Kind::{Adds, Claims, Posts, Shoots};
    [Posts, Posts, Adds, Adds, Claims, Claims, Shoots]
};

/// One writer, and what it was answered so far: its next request is the one after the last answered.
struct Writer {
    kind: Kind,
    index: usize,
    answers: Vec<Seen>,
}

impl Writer {
    /// Its request number `n`, to the byte the same each time.
    fn request(&self, board: &Board, n: usize) -> RequestBuilder {
        let item = json!({"w":self.index,"n":n}).to_string();
        let request = match self.kind {
            Kind::Posts => board.json(Method::POST, "trajectories", &item),
            Kind::Adds => board.json(Method::PATCH, "state/count", r#"{"add":1}"#),
            Kind::Claims if n.is_multiple_of(2) => board.json(Method::POST, "requests", &item),
            Kind::Claims => {
                let tail = format!("requests/{}/claim", self.answers[n - 1].seq());
                board.json(Method::PUT, &tail, r#"{"ttl":"1d"}"#)
            }
            Kind::Shoots => {
                let tail = format!("screenshots?metadata={}", encoded(&item));
                board.typed(Method::POST, &tail, "image/png", picture(n as u64))
            }
        };
        let agent = format!("writer {}", self.index);
        request
            .header("x-agent-id", encoded(&agent))
            .header("idempotency-key", format!("{agent}, request {n}"))
    }

    /// Writes until the server is gone.
    async fn write(mut self, board: Board, done: Arc<Semaphore>) -> Self {
        while let Ok(response) = self.request(&board, self.answers.len()).send().await
            && let Some((seen, replayed)) = Seen::of(response).await
        {
            assert!(!replayed, "nobody sent this before: {seen:?}");
            self.answers.push(seen);
            done.add_permits(1);
        }
        self
    }

    async fn again(&self, board: &Board, n: usize) -> (Seen, bool) {
        let response = self.request(board, n).send().await.expect("an answer");
        Seen::of(response).await.expect("a whole answer")
    }

    /// Sends again what was not answered, and some of what was.
    async fn repeat(&mut self, board: &Board) {
        let unanswered = self.answers.len();
        // It may have been stored, so that this is its first answer or not.
        let (seen, _) = self.again(board, unanswered).await;
        self.answers.push(seen);
        for n in unanswered.saturating_sub(ASKED_AGAIN)..=unanswered {
            let (seen, replayed) = self.again(board, n).await;
            assert!(replayed, "{:?} {n} was carried out twice: {seen:?}", self.kind);
            assert_eq!(seen, self.answers[n], "{:?} {n}", self.kind);
        }
    }
}

struct Load {
    session: String,
    writers: Vec<JoinHandle<Writer>>,
    done: Arc<Semaphore>,
}

impl Load {
    fn start(server: &Server, session: &str) -> Self {
        let done = Arc::new(Semaphore::new(0));
        let writers = WRITERS.into_iter().enumerate().map(|(index, kind)| {
            let writer = Writer { kind, index, answers: Vec::new() };
            tokio::spawn(writer.write(server.board(session), Arc::clone(&done)))
        });
        Self { session: session.to_owned(), writers: writers.collect(), done }
    }

    async fn acknowledged(&self, count: u32) {
        let enough = tokio::time::timeout(Duration::from_secs(60), self.done.acquire_many(count));
        enough.await.expect("the writers get on").expect("open").forget();
    }

    async fn ended(self) -> Written {
        let mut writers = Vec::new();
        for writer in self.writers {
            let end = tokio::time::timeout(Duration::from_secs(60), writer).await;
            writers.push(end.expect("a writer ends with the server").unwrap());
        }
        Written { session: self.session, writers }
    }
}

/// What the writers left behind in one session.
struct Written {
    session: String,
    writers: Vec<Writer>,
}

impl Written {
    /// Repeats what was not answered; then every write is there once, and nothing else.
    async fn repeat_and_judge(&mut self, server: &Server) {
        let board = server.board(&self.session);
        for writer in &mut self.writers {
            writer.repeat(&board).await;
        }
        let sent: usize = self.writers.iter().map(|writer| writer.answers.len()).sum();
        assert_eq!(board.get("").await.revision(), sent as u64, "a write is one commit");
        let trajectories = items(&board, "trajectories").await;
        let requests = items(&board, "requests").await;
        let screenshots = items(&board, "screenshots").await;
        let mut adds = 0;
        for writer in &self.writers {
            let own = |items: &[Value]| {
                let own = items.iter().filter(|item| item["w"] == writer.index);
                own.map(|item| item["n"].as_u64().expect("a number")).collect::<Vec<_>>()
            };
            let all = 0..writer.answers.len() as u64;
            match writer.kind {
                Kind::Posts => assert!(own(&trajectories).into_iter().eq(all)),
                Kind::Adds => adds += writer.answers.len(),
                Kind::Claims => assert!(own(&requests).into_iter().eq(all.step_by(2))),
                Kind::Shoots => assert!(own(&screenshots).into_iter().eq(all)),
            }
        }
        assert_eq!(board.get("state/count").await.text(), format!("{adds}\n"));
        self.judge_claims(&board).await;
    }

    async fn judge_claims(&self, board: &Board) {
        for writer in self.writers.iter().filter(|writer| writer.kind == Kind::Claims) {
            for pair in writer.answers.chunks(2) {
                let entry = board.get(&format!("requests/{}", pair[0].seq())).await.json();
                let claim = pair.get(1).map(|claimed| claimed.json()["claim"].clone());
                assert_eq!(entry.get("claim"), claim.as_ref());
            }
        }
    }

    /// Some of what was answered in an earlier round is answered so still.
    async fn repeat_last(&self, server: &Server) {
        let board = server.board(&self.session);
        for writer in &self.writers {
            let last = writer.answers.len() - 1;
            let (seen, replayed) = writer.again(&board, last).await;
            assert!(replayed && seen == writer.answers[last], "{:?}: {seen:?}", writer.kind);
        }
    }
}

/// The items of a log, of a screenshot its metadata.
async fn items(board: &Board, log: &str) -> Vec<Value> {
    let lines = board.lines(&format!("{log}?images=none")).await;
    let items = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    items.map(|item| item.get("metadata").cloned().unwrap_or(item)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_after_a_kill_is_answered_as_before_and_adds_nothing() {
    let mut server = Server::start();
    let mut kept: Vec<Written> = Vec::new();
    for round in 0..rounds() {
        let load = Load::start(&server, &format!("keys {round}"));
        load.acknowledged(moment()).await;
        server.kill();
        let mut written = load.ended().await;
        check_is_sound(&server);
        server.start_again();
        written.repeat_and_judge(&server).await;
        for earlier in &kept {
            earlier.repeat_last(&server).await;
        }
        kept.push(written);
    }
    assert!(server.stop().success());
    check_is_sound(&server);
}
