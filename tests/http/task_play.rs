//! Requests of a real server against the plain model, through expiry, kills, restores and forks; by three servers over PostgreSQL.
//!
//! Commits of an agent are the play's own, the others are those of time. Both go to the model in their order and with their
//! times, so that a slow machine changes what happens, and not whether it is right.
#![expect(clippy::wildcard_enum_match_arm, reason = "the other operations and states are alike")]

use std::cell::{Cell, RefCell};
use std::env;
use std::time::Duration;

use blackboard_task_model::{End, Model, Op, Plan, State, Step, Task, Verdict, steps};
use jiff::Timestamp;
use proptest::test_runner::{Config, TestRunner};
use reqwest::{Method, RequestBuilder};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};

const PLAYS: u32 = 12;

const STEPS_MAX: usize = 40;

/// The longest time from a decision to its commit.
const DECIDED_MS_MAX: i64 = 10_000;

/// A play in sessions of a server, beside its model.
struct Play<'a> {
    server: &'a mut Server,
    name: String,
    board: Board,
    model: Model,
    /// The revision that the model is of.
    revision: u64,
    past: Vec<(u64, Model)>,
    forks: usize,
    kills: u32,
}

/// A commit of the history.
struct Commit {
    revision: u64,
    at: i64,
    is_own: bool,
}

impl<'a> Play<'a> {
    async fn begin(server: &'a mut Server, name: String) -> Self {
        let board = server.made(&name).await;
        let revision = board.get("").await.revision();
        let past = vec![(revision, Model::default())];
        Self { server, name, board, model: Model::default(), revision, past, forks: 0, kills: 0 }
    }

    async fn take(&mut self, (op, agent, pause): &Step) {
        sleep(Duration::from_millis(pause.unsigned_abs())).await;
        match op {
            Op::Crash => {
                self.kills += 1;
                self.server.replace(self.kills);
                self.board = self.server.board(&self.name);
                self.catch_up(|_, _, _| Ok(None), &Ok(None)).await;
            }
            Op::Fork(point) => {
                let (revision, then) = point.get(&self.past).clone();
                self.fork(revision, &then).await;
            }
            Op::Restore(point) => {
                let (revision, then) = point.get(&self.past).clone();
                let body = json!({ "at": revision }).to_string();
                let restore = self.board.by(agent, Method::POST, "restore", &body);
                let verdict = verdict(&ask(restore).await);
                let restored = |model: &mut Model, _: i64, _: u64| {
                    *model = then.freed(model);
                    Ok(None)
                };
                self.catch_up(restored, &verdict).await;
            }
            op => {
                let verdict = verdict(&ask(self.request(op, agent)).await);
                let taken = |model: &mut Model, now: i64, revision: u64| {
                    model.take(op, agent, now, revision)
                };
                self.catch_up(taken, &verdict).await;
            }
        }
        self.past.push((self.revision, self.model.clone()));
    }

    async fn fork(&mut self, revision: u64, then: &Model) {
        self.forks += 1;
        let to = format!("{}-{}", self.name, self.forks);
        let body = json!({ "to": to, "at": revision }).to_string();
        self.revision = self.board.post("fork", &body).await.is(201).revision();
        (self.board, self.name) = (self.server.board(&to), to);
        (self.model, self.past) = (then.freed(then), Vec::new());
        self.catch_up(|_, _, _| Ok(None), &Ok(None)).await;
    }

    fn request(&self, op: &Op, agent: &str) -> RequestBuilder {
        let put = |seq: &u64, part: &str, body: Value| {
            self.board.by(agent, Method::PUT, &format!("requests/{seq}/{part}"), &body.to_string())
        };
        match op {
            Op::Post { device, plan } => {
                let item = device.map_or(json!({}), |device| json!({ "device": device }));
                let tail = format!("requests?{}", query(plan));
                self.board.by(agent, Method::POST, &tail, &item.to_string())
            }
            Op::Claim { seq, ttl } => put(seq, "claim", json!({ "ttl": format!("{ttl}ms") })),
            Op::Next { device, ttl } => {
                let mut body = json!({ "ttl": format!("{ttl}ms") });
                if let Some(device) = device {
                    body["match"] = json!({ "device": f64::from(*device) });
                }
                self.board.by(agent, Method::POST, "requests/claim", &body.to_string())
            }
            Op::Release { seq } => {
                self.board.by(agent, Method::DELETE, &format!("requests/{seq}/claim"), "")
            }
            Op::Finish { seq, with_fence } => {
                let fence = self.model.fence(*seq).filter(|_| *with_fence);
                put(seq, "done", present(json!({ "fence": fence, "result": 7 })))
            }
            Op::Fail { seq, retry_in } => {
                let retry_in = retry_in.map(|pause| format!("{pause}ms"));
                put(seq, "failed", present(json!({ "reason": "so", "retry_in": retry_in })))
            }
            Op::Cancel { seq } => put(seq, "cancelled", json!({})),
            Op::Judge { seq, accepted } => {
                let fence = self.model.review_fence(*seq);
                put(seq, "verdict", present(json!({ "fence": fence, "accept": accepted })))
            }
            Op::Retry { seq } => {
                self.board.by(agent, Method::POST, &format!("requests/{seq}/retry"), "")
            }
            Op::Caps(caps) => {
                let rule = |cap: &blackboard_task_model::Cap| {
                    present(json!({ "by": cap.by_device.then_some("device"), "max": cap.max }))
                };
                let running_max: Vec<Value> = caps.iter().map(rule).collect();
                let body = json!({ "settings": { "running_max": running_max } }).to_string();
                self.board.by(agent, Method::PUT, "", &body)
            }
            Op::Restore(_) | Op::Fork(_) | Op::Crash => unreachable!("no write"),
        }
    }

    /// Takes the commits since the last step to the model, and compares the requests with it. A write that made no commit is
    /// judged by the model as it was at some moment since.
    async fn catch_up(&mut self, write: impl Fn(&mut Model, i64, u64) -> Verdict, found: &Verdict) {
        let page = self.board.get("requests?limit=1000").await;
        let (page, revision) = (page.is(200).json(), page.revision());
        let commits = self.commits(revision).await;
        let mut moments = vec![self.model.clone()];
        let mut is_judged = false;
        for commit in &commits {
            if commit.is_own {
                let model = self.model.clone();
                if !self.has_several_clocks() {
                    self.model.expire(commit.at);
                    assert_eq!(self.model, model, "expired at {} and is not committed", commit.at);
                }
                let expected = write(&mut self.model, commit.at, commit.revision);
                assert_eq!(&expected, found, "before: {model:#?}");
                is_judged = true;
            } else {
                self.model.expire(commit.at);
            }
            moments.push(self.model.clone());
        }
        if !is_judged {
            let is_so = |moment: &Model| {
                let mut after = moment.clone();
                let expected = write(&mut after, 0, 0);
                &expected == found && after == *moment
            };
            assert!(moments.iter().any(is_so), "{found:?} is not explained by {moments:#?}");
        }
        self.revision = revision;
        self.check(&page).await;
    }

    /// The commits since the model's revision.
    async fn commits(&self, until: u64) -> Vec<Commit> {
        let mut commits = Vec::new();
        let mut after = self.revision;
        while after < until {
            let events = self.board.to(Method::GET, &format!("events?after={after}"));
            let page = ask(events.header("accept", "application/json")).await.is(200).json();
            for event in page["events"].as_array().unwrap_or_else(|| panic!("{page}")) {
                let revision = event["revision"].as_u64().expect("a revision");
                let is_own = event["agent"].is_string();
                commits.push(Commit { revision, at: time(&event["at"]).expect("a time"), is_own });
            }
            after = page["next"].as_u64().expect("next");
        }
        commits.retain(|commit| commit.revision <= until);
        commits
    }

    /// Whether a server may decide by a time that it read before another server's last commit.
    fn has_several_clocks(&self) -> bool {
        self.server.schema().is_some()
    }

    /// Compares a page of all requests with the model.
    async fn check(&mut self, page: &Value) {
        let entries = page["entries"].as_array().expect("entries");
        assert_eq!(entries.len(), self.model.requests.len(), "{page}");
        let has_several_clocks = self.has_several_clocks();
        for (entry, (seq, expected)) in entries.iter().zip(&mut self.model.requests) {
            assert_eq!(entry["seq"], *seq);
            if has_several_clocks {
                count_from_decision(expected, &shown(entry, expected));
            }
            assert_eq!(shown(entry, expected), visible(expected), "{entry}");
        }
        let pending = self.board.get("requests?pending=true&limit=1000").await;
        if pending.is(200).revision() == self.revision {
            let entries = pending.json()["entries"].as_array().expect("entries").clone();
            let found: Vec<u64> =
                entries.iter().filter_map(|entry| entry["seq"].as_u64()).collect();
            let waiting =
                self.model.requests.iter().filter(|(_, task)| self.model.is_waiting(task));
            let waiting: Vec<u64> = waiting.map(|(seq, _)| *seq).collect();
            assert_eq!(found, waiting, "{:#?}", self.model);
        }
    }
}

/// Lets the times of a task count from the decision, which may be a little earlier than its commit.
fn count_from_decision(expected: &mut Task, found: &Task) {
    let is_earlier = |expected: i64, found: i64| (0..=DECIDED_MS_MAX).contains(&(expected - found));
    for (expected, found) in
        [(&mut expected.not_before, found.not_before), (&mut expected.deadline, found.deadline)]
    {
        *expected =
            found.filter(|found| expected.is_some_and(|at| is_earlier(at, *found))).or(*expected);
    }
    if let State::Claimed { expires, .. } = &mut expected.state
        && let State::Claimed { expires: found, .. } = &found.state
        && is_earlier(*expires, *found)
    {
        *expires = *found;
    }
}

/// The members that are not null.
fn present(value: Value) -> Value {
    let Value::Object(members) = value else { return value };
    Value::Object(members.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
}

fn query(plan: &Plan) -> String {
    let after: Vec<String> = plan.after.iter().map(u64::to_string).collect();
    let terms = [
        (!after.is_empty()).then(|| format!("after={}", after.join(","))),
        plan.attempts.map(|attempts| format!("attempts={attempts}")),
        (plan.priority != 0).then(|| format!("priority={}", plan.priority)),
        plan.not_before.map(|pause| format!("not_before={pause}ms")),
        plan.deadline.map(|pause| format!("deadline={pause}ms")),
        plan.review.then(|| "review=true".to_owned()),
    ];
    terms.into_iter().flatten().collect::<Vec<_>>().join("&")
}

/// What an answer says, in the words of the model.
fn verdict(answer: &Answer) -> Verdict {
    const WORDS: [&str; 11] = [
        "already-claimed",
        "blocked",
        "cancelled",
        "entry-not-found",
        "failed",
        "forbidden",
        "illegal-transition",
        "in_review",
        "invalid-field",
        "not_before",
        "running_max",
    ];
    match answer.status() {
        204 => Ok(None),
        200 | 201 => Ok(answer.json()["seq"].as_u64()),
        _ => {
            let problem = answer.json();
            let word = problem["why"].as_str().or(problem["code"].as_str()).expect("a code");
            Err(WORDS
                .into_iter()
                .find(|known| *known == word)
                .unwrap_or_else(|| panic!("{problem}")))
        }
    }
}

fn time(value: &Value) -> Option<i64> {
    let time: Timestamp = value.as_str()?.parse().expect("a time");
    Some(time.as_millisecond())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// A task as far as an entry shows it: not the fence of an ended claim.
fn visible(task: &Task) -> Task {
    let state = match task.state.clone() {
        State::Lapsed(_) => State::Free,
        State::Failed(_) => State::Failed(None),
        state => state,
    };
    Task { state, ..task.clone() }
}

/// A request as the model would have it; of past attempts it shows the last ten.
fn shown(entry: &Value, expected: &Task) -> Task {
    let member = |name: &str| entry.get(name).filter(|value| !value.is_null());
    let state = if let Some(claim) = member("claim") {
        let fence = claim["fence"].as_u64().expect("a fence");
        let expires = time(&claim["expires_at"]).expect("a time");
        State::Claimed { agent: text(&claim["agent"]), fence, expires }
    } else if let Some(review) = member("in_review") {
        State::InReview { agent: text(&review["agent"]), fence: review["fence"].as_u64() }
    } else if let Some(done) = member("done") {
        let judge = done.get("verdict").map(|verdict| text(&verdict["agent"]));
        State::Done { agent: text(&done["agent"]), fence: done["fence"].as_u64(), judge }
    } else if member("failed").is_some() {
        State::Failed(None)
    } else if member("cancelled").is_some() {
        State::Cancelled
    } else {
        State::Free
    };
    let attempts = entry["past_attempts"].as_array().cloned().unwrap_or_default();
    let ends = attempts.iter().filter_map(|attempt| {
        let end = match attempt["outcome"].as_str() {
            Some("failed") => End::Failed,
            Some("lapsed") => End::Lapsed,
            Some("refused") => End::Refused,
            Some("released") => return None,
            _ => panic!("{attempt}"),
        };
        Some((text(&attempt["agent"]), end))
    });
    let past = expected.with_forgotten(ends.collect());
    let after = entry["after"].as_array().cloned().unwrap_or_default();
    Task {
        device: entry["item"]["device"]
            .as_u64()
            .map(|device| u8::try_from(device).expect("a device")),
        priority: entry["priority"].as_i64().unwrap_or(0),
        after: after.iter().filter_map(Value::as_u64).collect(),
        attempts: entry["attempts"].as_u64().map(|attempts| u32::try_from(attempts).expect("few")),
        not_before: time(&entry["not_before"]),
        deadline: time(&entry["deadline"]),
        review: entry["review"] == true,
        failures: entry["failures"]
            .as_u64()
            .map_or(0, |failures| u32::try_from(failures).expect("few")),
        cancel: member("cancel").is_some(),
        state,
        past,
    }
}

async fn play(server: &mut Server, name: String, steps: &[Step]) {
    let mut play = Play::begin(server, name).await;
    for step in steps {
        play.take(step).await;
    }
}

#[test]
fn requests_of_a_server_are_as_a_plain_model_has_them() {
    let plays =
        env::var("BLACKBOARD_TASK_PLAYS").map_or(PLAYS, |text| text.parse().expect("a number"));
    let runtime = Runtime::new().expect("a runtime");
    let (server, number) = (RefCell::new(Server::start()), Cell::new(0_u32));
    let config = Config {
        cases: plays,
        max_shrink_iters: 100,
        failure_persistence: None,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&steps(STEPS_MAX), |steps: Vec<Step>| {
        number.set(number.get() + 1);
        let name = format!("play-{}", number.get());
        runtime.block_on(play(&mut server.borrow_mut(), name, &steps));
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}
