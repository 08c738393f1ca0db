//! Requests and questions: appended, claimed, given back, done and answered, and the model of them.
//!
//! No claim here lapses: it ends by its holder alone, who gives it back or ends the request.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::choice::Chance;
use crate::harness::Board;

/// Longer than any history takes.
const TTL: &str = "12h";

/// A client stays with the last few requests and questions, so that it meets others there.
const RECENT: u64 = 4;

/// A claim as its holder was told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) seq: u64,
    pub(crate) fence: u64,
}

/// A client's question about a log's entry, or its change of one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    AppendRequest,
    ReadRequest {
        seq: u64,
    },
    /// Wins a request, or renews its own claim.
    Claim {
        seq: u64,
        client: u32,
    },
    GiveBack {
        claim: Claim,
        client: u32,
    },
    /// Ends a request under a claim, which may be over.
    Finish {
        claim: Claim,
        client: u32,
        result: i64,
    },
    AppendQuestion,
    ReadQuestion {
        seq: u64,
    },
    Answer {
        seq: u64,
        text: i64,
    },
}

/// The answer to that.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Appended {
        seq: u64,
    },
    Request(Work),
    Question(Option<i64>),
    Claimed {
        fence: u64,
    },
    /// It was given back, ended or answered.
    Done,
    Refused,
}

impl Told {
    pub(crate) fn committed(&self) -> bool {
        match self {
            Self::Appended { .. } | Self::Claimed { .. } | Self::Done => true,
            Self::Request(_) | Self::Question(_) | Self::Refused => false,
        }
    }
}

/// A request's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    Open,
    Claimed { client: u32, fence: u64 },
    Done,
}

/// The requests and the questions of a board, by their `seq` from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tasks {
    requests: Vec<Work>,
    questions: Vec<Option<i64>>,
    /// The last fence of any claim.
    fence: u64,
}

fn place(seq: u64) -> Option<usize> {
    usize::try_from(seq).ok()?.checked_sub(1)
}

impl Tasks {
    /// Takes the effect of a call, if these tasks can give its answer.
    pub(crate) fn step(&mut self, task: Task, told: &Told) -> Option<()> {
        match (task, told) {
            (Task::AppendRequest, Told::Appended { seq }) => {
                self.requests.push(Work::Open);
                fits(self.requests.len() as u64 == *seq)
            }
            (Task::AppendQuestion, Told::Appended { seq }) => {
                self.questions.push(None);
                fits(self.questions.len() as u64 == *seq)
            }
            (Task::ReadRequest { seq }, Told::Request(work)) => {
                fits(self.requests.get(place(seq)?)? == work)
            }
            (Task::ReadQuestion { seq }, Told::Question(answer)) => {
                fits(self.questions.get(place(seq)?)? == answer)
            }
            (Task::Claim { seq, client }, told) => self.claim(seq, client, told),
            (Task::GiveBack { claim, client }, Told::Done) => self.end(claim, client, Work::Open),
            (Task::Finish { claim, client, .. }, Told::Done) => self.end(claim, client, Work::Done),
            (Task::Finish { claim, client, .. }, Told::Refused) => {
                fits(!self.is_under(claim, client)?)
            }
            (Task::Answer { seq, text }, told) => {
                let answer = self.questions.get_mut(place(seq)?)?;
                match told {
                    Told::Done => fits(answer.replace(text).is_none()),
                    Told::Refused => fits(answer.is_some()),
                    Told::Appended { .. }
                    | Told::Request(_)
                    | Told::Question(_)
                    | Told::Claimed { .. } => None,
                }
            }
            _ => None,
        }
    }

    fn claim(&mut self, seq: u64, client: u32, told: &Told) -> Option<()> {
        let work = self.requests.get_mut(place(seq)?)?;
        match (&*work, told) {
            (Work::Open, Told::Claimed { fence }) => {
                *work = Work::Claimed { client, fence: *fence };
                let before = std::mem::replace(&mut self.fence, *fence);
                fits(before < *fence)
            }
            (Work::Claimed { client: holder, fence }, Told::Claimed { fence: told }) => {
                fits(*holder == client && fence == told)
            }
            (Work::Claimed { client: holder, .. }, Told::Refused) => fits(*holder != client),
            (Work::Done, Told::Refused) => Some(()),
            _ => None,
        }
    }

    fn is_under(&self, claim: Claim, client: u32) -> Option<bool> {
        let work = self.requests.get(place(claim.seq)?)?;
        Some(*work == Work::Claimed { client, fence: claim.fence })
    }

    fn end(&mut self, claim: Claim, client: u32, after: Work) -> Option<()> {
        fits(self.is_under(claim, client)?)?;
        *self.requests.get_mut(place(claim.seq)?)? = after;
        Some(())
    }
}

fn fits(fits: bool) -> Option<()> {
    fits.then_some(())
}

/// A client's knowledge of requests and questions, by which it chooses.
#[derive(Default)]
pub(crate) struct Known {
    client: u32,
    requests: u64,
    questions: u64,
    held: Option<Claim>,
    /// A claim that it had before.
    over: Option<Claim>,
    /// The last number in an answer or a result of its own.
    number: i64,
}

impl Known {
    pub(crate) fn of(client: u32) -> Self {
        Self { client, number: i64::from(client) * 1_000_000_000, ..Self::default() }
    }

    pub(crate) fn choose(&mut self, chance: &mut Chance) -> Task {
        let client = self.client;
        let recent = |last: u64, chance: &mut Chance| last - chance.below(RECENT.min(last));
        let drawn = chance.below(100);
        if self.requests == 0 || drawn < 12 {
            return Task::AppendRequest;
        }
        if self.questions == 0 || drawn < 20 {
            return Task::AppendQuestion;
        }
        match (drawn, self.held, self.over) {
            (20..35, Some(claim), _) => Task::GiveBack { claim, client },
            (35..55, Some(claim), _) | (55..60, _, Some(claim)) => {
                Task::Finish { claim, client, result: self.number() }
            }
            (60..75, ..) => {
                Task::Answer { seq: recent(self.questions, chance), text: self.number() }
            }
            (75..82, ..) => Task::ReadQuestion { seq: recent(self.questions, chance) },
            (82..90, ..) => Task::ReadRequest { seq: recent(self.requests, chance) },
            _ => {
                // A client holds one request at a time, and now and then renews its claim.
                let seq = self.held.map_or_else(|| recent(self.requests, chance), |held| held.seq);
                Task::Claim { seq, client }
            }
        }
    }

    fn number(&mut self) -> i64 {
        self.number += 1;
        self.number
    }

    pub(crate) fn learn(&mut self, task: Task, told: &Told) {
        match (task, told) {
            (Task::AppendRequest, Told::Appended { seq }) => self.requests = *seq,
            (Task::AppendQuestion, Told::Appended { seq }) => self.questions = *seq,
            (Task::Claim { seq, .. }, Told::Claimed { fence }) => {
                self.held = Some(Claim { seq, fence: *fence });
            }
            (Task::GiveBack { .. }, _) => self.over = self.held.take(),
            (Task::Finish { claim, .. }, _) if Some(claim) == self.held => {
                self.over = self.held.take();
            }
            _ => {}
        }
    }
}

pub(super) fn agent(client: u32) -> String {
    format!("client-{client}")
}

pub(super) fn request(board: &Board, task: Task) -> RequestBuilder {
    let by = |client: u32, method, tail: String, body: &Value| {
        board.json(method, &tail, &body.to_string()).header("x-agent-id", agent(client))
    };
    match task {
        Task::AppendRequest => board.json(Method::POST, "requests", r#"{"text":"do it"}"#),
        Task::AppendQuestion => board.json(Method::POST, "questions", r#"{"question":"?"}"#),
        Task::ReadRequest { seq } => board.to(Method::GET, &format!("requests/{seq}")),
        Task::ReadQuestion { seq } => board.to(Method::GET, &format!("questions/{seq}")),
        Task::Claim { seq, client } => {
            by(client, Method::PUT, format!("requests/{seq}/claim"), &json!({ "ttl": TTL }))
        }
        Task::GiveBack { claim, client } => {
            let request = board.to(Method::DELETE, &format!("requests/{}/claim", claim.seq));
            request.header("x-agent-id", agent(client))
        }
        Task::Finish { claim: Claim { seq, fence }, client, result } => {
            let body = json!({ "fence": fence, "result": result });
            by(client, Method::PUT, format!("requests/{seq}/done"), &body)
        }
        Task::Answer { seq, text } => {
            let body = json!({ "answer": text.to_string() }).to_string();
            board.json(Method::PUT, &format!("questions/{seq}/answer"), &body)
        }
    }
}

/// An answer of this status and body.
pub(super) fn told(task: Task, status: u16, body: &Value) -> Told {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("no number: {body}"));
    match (task, status, body["code"].as_str()) {
        (Task::AppendRequest | Task::AppendQuestion, 201, _) => {
            Told::Appended { seq: number(&body["entries"][0]["seq"]) }
        }
        (Task::ReadRequest { .. }, 200, _) if body.get("done").is_some() => {
            Told::Request(Work::Done)
        }
        (Task::ReadRequest { .. }, 200, _) => {
            Told::Request(body.get("claim").map_or(Work::Open, |claim| {
                let holder = claim["agent"].as_str().and_then(|agent| agent.split_once('-'));
                let client = holder.and_then(|(_, client)| client.parse().ok());
                let client = client.unwrap_or_else(|| panic!("no client: {body}"));
                Work::Claimed { client, fence: number(&claim["fence"]) }
            }))
        }
        (Task::ReadQuestion { .. }, 200, _) => {
            let answer = body["item"]["answer"].as_str();
            Told::Question(answer.map(|answer| answer.parse().expect("a number")))
        }
        (Task::Claim { .. }, 200 | 201, _) => {
            Told::Claimed { fence: number(&body["claim"]["fence"]) }
        }
        (Task::GiveBack { .. } | Task::Finish { .. } | Task::Answer { .. }, 200, _) => Told::Done,
        (Task::Claim { .. }, 409, Some("already-claimed"))
        | (Task::Finish { .. }, 409, Some("stale-fence" | "already-claimed"))
        | (Task::Answer { .. }, 409, Some("already-answered")) => Told::Refused,
        (_, status, _) => panic!("{task:?} -> {status} {body}"),
    }
}
