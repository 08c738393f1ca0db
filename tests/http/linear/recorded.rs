//! Recording clients of a real server, each with one request under way.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::choice::{Chooser, Mix};
use super::history::{Call, Op, Outcome, Shown, Tag};
use super::tasks;
use crate::harness::{Board, DEADLINE, Server};

/// As many calls of each of so many clients, all answered.
pub(super) async fn record(
    server: &Server,
    session: &str,
    mix: Mix,
    clients: u32,
    each: u32,
) -> Vec<Call> {
    let start = Instant::now();
    let calls = Clients::start(server, session, mix, 0..clients, each, start).ended().await;
    assert!(calls.iter().all(|call| call.ended.is_some()), "the server was lost");
    calls
}

/// The rest before a request is repeated.
const REPEATED_AFTER: Duration = Duration::from_millis(20);

/// The servers that a client asks.
enum Servers {
    /// Those of now: without an answer the client ends.
    One(Board),
    /// Whatever there are, if any: a call is repeated until it is answered.
    Replaced(watch::Receiver<Option<Board>>),
}

/// Clients at work; permits count their answers.
pub(super) struct Clients {
    at_work: Vec<JoinHandle<Vec<Call>>>,
    answered: Arc<Semaphore>,
}

impl Clients {
    /// They work until each has made its calls or lost the server. Their numbers choose what they do; the
    /// times of their calls count from `start`.
    pub(super) fn start(
        server: &Server,
        session: &str,
        mix: Mix,
        clients: Range<u32>,
        each: u32,
        start: Instant,
    ) -> Self {
        Self::of(mix, clients, each, start, || Servers::One(server.board(session)))
    }

    /// They work until each has made its calls, and repeat one without an answer, with its key, until there is one: to
    /// whatever servers there are then, if any.
    pub(super) fn persistent(
        boards: &watch::Receiver<Option<Board>>,
        mix: Mix,
        clients: u32,
        each: u32,
        start: Instant,
    ) -> Self {
        Self::of(mix, 0..clients, each, start, || Servers::Replaced(boards.clone()))
    }

    fn of(
        mix: Mix,
        clients: Range<u32>,
        each: u32,
        start: Instant,
        servers: impl Fn() -> Servers,
    ) -> Self {
        let answered = Arc::new(Semaphore::new(0));
        let at_work = clients.map(|client| {
            let (servers, answered) = (servers(), Arc::clone(&answered));
            tokio::spawn(async move {
                let mut chooser = Chooser::new(mix, client);
                let mut calls = Vec::new();
                for number in 0..each {
                    let op = chooser.choose();
                    let call = match &servers {
                        Servers::One(board) => called(board, op, start).await,
                        Servers::Replaced(boards) => {
                            repeated(boards, op, &format!("{client}-{number}"), start).await
                        }
                    };
                    chooser.learn(&call.op, &call.outcome);
                    let lost = call.ended.is_none();
                    calls.push(call);
                    if lost {
                        break;
                    }
                    answered.add_permits(1);
                }
                calls
            })
        });
        Self { at_work: at_work.collect(), answered }
    }

    /// Returns when they have had that many answers.
    pub(super) async fn answered(&self, count: u32) {
        let enough = self.answered.acquire_many(count);
        let permits = tokio::time::timeout(DEADLINE, enough).await;
        permits.expect("the clients get on").expect("open").forget();
    }

    pub(super) async fn ended(self) -> Vec<Call> {
        let mut calls = Vec::new();
        for client in self.at_work {
            calls.extend(client.await.expect("a client ends"));
        }
        calls
    }
}

async fn called(board: &Board, op: Op, start: Instant) -> Call {
    let request = request(board, &op);
    let began = start.elapsed();
    let reply = Reply::to(request).await;
    let ended = start.elapsed();
    match reply {
        Some(reply) => {
            let (outcome, revision) = (reply.outcome(&op), reply.revision);
            Call { op, outcome, revision, began, ended: Some(ended) }
        }
        None => Call { op, outcome: Outcome::Unknown, revision: 0, began, ended: None },
    }
}

async fn repeated(
    boards: &watch::Receiver<Option<Board>>,
    op: Op,
    key: &str,
    start: Instant,
) -> Call {
    let began = start.elapsed();
    while start.elapsed() < began + DEADLINE {
        let board = boards.borrow().clone();
        if let Some(board) = board {
            let request = request(&board, &op).header("idempotency-key", key);
            if let Some(reply) = Reply::to(request).await.filter(|reply| reply.status != 503) {
                let (outcome, revision) = (reply.outcome(&op), reply.revision);
                return Call { op, outcome, revision, began, ended: Some(start.elapsed()) };
            }
        }
        tokio::time::sleep(REPEATED_AFTER).await;
    }
    panic!("no answer to {op:?} within {DEADLINE:?}");
}

fn path(key: usize) -> String {
    format!("numbers/{key}")
}

fn request(board: &Board, op: &Op) -> RequestBuilder {
    let path = op.key().map(path).unwrap_or_default();
    let tail = format!("state/{path}");
    match op {
        Op::Read { .. } => board.to(Method::GET, &tail),
        Op::Put { value, .. } => board.json(Method::PUT, &tail, &value.to_string()),
        Op::Swap { seen, value, .. } => {
            let request = board.json(Method::PUT, &tail, &value.to_string());
            match seen {
                Some(seen) => request.header("if-match", &*seen.tag),
                None => request.header("if-none-match", "*"),
            }
        }
        Op::Add { by, .. } => board.json(Method::PATCH, &tail, &json!({ "add": by }).to_string()),
        Op::Delete { .. } => board.to(Method::DELETE, &tail),
        Op::Transact { asked, expected, value, by, .. } => {
            let asked = self::path(*asked);
            let condition = match expected {
                Some(expected) => json!({"path":asked,"equals":expected}),
                None => json!({"path":asked,"absent":true}),
            };
            let body = json!({
                "if": [condition],
                "then": [{"put":path,"value":value}],
                "else": [{"add":path,"value":by}],
            });
            board.json(Method::POST, "transactions", &body.to_string())
        }
        Op::Task(task) => tasks::request(board, *task),
    }
}

/// An answer that came whole.
struct Reply {
    status: u16,
    revision: u64,
    tag: Option<Tag>,
    body: Value,
}

impl Reply {
    async fn to(request: RequestBuilder) -> Option<Self> {
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            Some(value.to_str().expect("ASCII").to_owned())
        };
        let (revision, tag) = (header("blackboard-revision"), header("etag").map(Tag::from));
        let text = response.bytes().await.ok()?;
        let body = serde_json::from_slice(&text).expect("JSON");
        let revision = match revision {
            Some(revision) => revision.parse().expect("a number"),
            None if status == 503 => 0,
            None => panic!("{status} names no revision: {body}"),
        };
        Some(Self { status, revision, tag, body })
    }

    fn tag(&self) -> Tag {
        let tag = self.tag.as_ref();
        Arc::clone(tag.unwrap_or_else(|| panic!("{} has no tag: {}", self.status, self.body)))
    }

    fn shown(&self, value: &Value) -> Shown {
        let number = value.as_i64();
        let number = number.unwrap_or_else(|| panic!("{value} is no number: {}", self.body));
        Shown { value: number, tag: self.tag() }
    }

    fn outcome(&self, op: &Op) -> Outcome {
        let made = self.status == 201;
        if let Op::Task(task) = op {
            return Outcome::Task(tasks::told(*task, self.status, &self.body));
        }
        if made || (self.status == 200 && !matches!(op, Op::Read { .. })) {
            assert_eq!(self.body["revision"], self.revision, "a write names two revisions");
        }
        match (op, self.status, self.body["code"].as_str()) {
            (Op::Read { .. }, 200, _) => Outcome::Shown(Some(self.shown(&self.body))),
            (Op::Read { .. } | Op::Delete { .. }, 404, Some("path-not-found")) => {
                Outcome::Shown(None)
            }
            (Op::Swap { .. }, 412, Some("precondition-failed")) => {
                Outcome::Shown(self.body.get("current").map(|current| self.shown(current)))
            }
            (Op::Put { .. } | Op::Swap { .. }, 200 | 201, _) => {
                Outcome::Put { made, tag: self.tag() }
            }
            (Op::Add { .. }, 200 | 201, _) => {
                Outcome::Added { made, shown: self.shown(&self.body["value"]) }
            }
            (Op::Delete { .. }, 200, _) => Outcome::Deleted,
            (Op::Transact { key, .. }, 200, _) => self.transacted(&path(*key)),
            (_, status, _) => panic!("{op:?} -> {status} {}", self.body),
        }
    }

    fn transacted(&self, path: &str) -> Outcome {
        let results = &self.body["results"];
        if self.body["succeeded"] == true {
            assert_eq!(*results, json!([{ "put": path }]), "{}", self.body);
            return Outcome::Then;
        }
        assert_eq!(self.body["succeeded"], false, "{}", self.body);
        let sum = results[0]["value"].as_i64().expect("a sum");
        assert_eq!(*results, json!([{"add":path,"value":sum}]), "{}", self.body);
        Outcome::Else(sum)
    }
}
