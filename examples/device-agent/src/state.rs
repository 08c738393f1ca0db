//! State layer: a state machine that decides when an agent acts, with its status on the board.
//!
//! Anyone can read the status there, and the server rejects an illegal transition. A state runs the strategies below
//! it; [`drive`] takes one round through the states.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::board::{Answer, Board, Later, Outcome};
use crate::command::CommandResult;
use crate::model::Decision;
use crate::registry::Agent;
use crate::strategy::Phase;

/// How long a round waits for a person, another agent or a state before it fails.
pub const EVENT: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentStatus {
    Error,
    Finish,
    Continue,
    Fail,
    Pending,
    Confirm,
    Screenshot,
}

use AgentStatus::{Confirm, Continue, Fail, Finish, Pending, Screenshot};

/// The statuses with their names, and those that may follow each within a round.
const STATUSES: [(AgentStatus, &str, &[AgentStatus]); 7] = [
    (AgentStatus::Error, "ERROR", &[]),
    (Finish, "FINISH", &[]),
    (Continue, "CONTINUE", &AgentStatus::ALL),
    (Fail, "FAIL", &[]),
    (Pending, "PENDING", &[Continue, Fail]),
    (Confirm, "CONFIRM", &[Continue, Fail]),
    (Screenshot, "SCREENSHOT", &[Continue]),
];

impl AgentStatus {
    pub const ALL: [Self; 7] = [Self::Error, Finish, Continue, Fail, Pending, Confirm, Screenshot];

    pub fn name(self) -> &'static str {
        STATUSES[self as usize].1
    }

    pub fn next(self) -> &'static [Self] {
        STATUSES[self as usize].2
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// One request from its claim to its end; the state `rounds/{request}` has what a successor needs to go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Round {
    #[serde(skip)]
    pub request: u64,
    #[serde(skip)]
    pub item: Value,
    /// The observations under this claim.
    #[serde(skip)]
    pub observations: usize,
    /// How often the request failed before.
    pub attempt: u32,
    pub step: usize,
    pub status: String,
    pub decision: Decision,
    /// The step of the decision.
    pub decided: Option<usize>,
    pub results: Vec<CommandResult>,
    /// The answers of persons and other agents, the latest last.
    pub answers: Vec<Value>,
    pub cost: f64,
    pub errors: Vec<String>,
}

impl Round {
    /// Names something that is done once in this step, by any process.
    pub fn key(&self, what: &str) -> String {
        format!("r{}-a{}-s{}-{what}", self.request, self.attempt, self.step)
    }

    pub fn go(&mut self, status: AgentStatus) {
        status.name().clone_into(&mut self.status);
    }
}

/// Does what a state is for, and leaves the next status in the round.
pub type Handle = for<'a> fn(&'a Agent, &'a mut Round) -> Later<'a, ()>;

/// A state of an agent; one without a handle ends the round.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub name: &'static str,
    pub handle: Option<Handle>,
}

/// The states of an agent by name: the seven, and those that it adds.
pub type States = BTreeMap<&'static str, State>;

/// Returns the states that every agent has.
pub fn common() -> States {
    let handles: [(AgentStatus, Option<Handle>); 7] = [
        (Continue, Some(|agent, round| Box::pin(work(agent, round)))),
        (Screenshot, Some(|agent, round| Box::pin(look(agent, round)))),
        (Pending, Some(|agent, round| Box::pin(wait(agent, round)))),
        (Confirm, Some(|agent, round| Box::pin(confirm(agent, round)))),
        (Finish, None),
        (Fail, None),
        (AgentStatus::Error, None),
    ];
    let state = |(status, handle): (AgentStatus, _)| State { name: status.name(), handle };
    handles.into_iter().map(state).map(|state| (state.name, state)).collect()
}

impl State {
    /// Returns the state after this one; a status that is unknown or may not follow is an error.
    pub fn next_state(&self, agent: &Agent, round: &Round) -> Self {
        let (own, next) = (AgentStatus::named(self.name), AgentStatus::named(&round.status));
        let is_legal = own.zip(next).is_none_or(|(own, next)| own.next().contains(&next));
        let next = agent.kind.states.get(round.status.as_str()).filter(|_| is_legal);
        next.copied().unwrap_or(State { name: AgentStatus::Error.name(), handle: None })
    }

    /// Returns the agent whose turn it is: the host's when a subtask ends, another's while it has one.
    pub fn next_agent(&self, agent: &Agent, round: &Round) -> String {
        let host = round.item["host"].as_str().filter(|_| self.is_subtask_end());
        let other = round.decision.agent.as_deref().filter(|_| round.status == "ASSIGN");
        host.or(other).unwrap_or(&agent.name).to_owned()
    }

    pub fn is_round_end(&self) -> bool {
        self.handle.is_none()
    }

    /// An agent works on one request at a time, so its round is the subtask.
    pub fn is_subtask_end(&self) -> bool {
        self.is_round_end()
    }
}

/// CONTINUE: all phases.
async fn work(agent: &Agent, round: &mut Round) -> Outcome<()> {
    agent.kind.processor.process(agent, round, Phase::MemoryUpdate).await
}

/// SCREENSHOT: observation without an action.
async fn look(agent: &Agent, round: &mut Round) -> Outcome<()> {
    agent.kind.processor.process(agent, round, Phase::DataCollection).await?;
    round.go(Continue);
    Ok(())
}

/// PENDING: a person's answer, or a path of the state.
async fn wait(agent: &Agent, round: &mut Round) -> Outcome<()> {
    let came = if let Some(path) = &round.decision.wait_for {
        let is_there = |answer: &Answer| answer.status.is_success().then(|| answer.body.clone());
        agent.board.until(&format!("state/{path}"), EVENT, is_there).await?
    } else {
        ask(&agent.board, round).await?
    };
    round.go(if came.is_some() { Continue } else { Fail });
    round.answers.extend(came);
    Ok(())
}

/// CONFIRM: a person's consent; anything but yes is a refusal.
async fn confirm(agent: &Agent, round: &mut Round) -> Outcome<()> {
    let answer = ask(&agent.board, round).await?;
    round.go(if answer == Some(json!("yes")) { Continue } else { Fail });
    round.answers.extend(answer);
    Ok(())
}

/// Asks a person once, and waits for the answer.
async fn ask(board: &Board, round: &Round) -> Outcome<Option<Value>> {
    let question = round.decision.question.as_deref().unwrap_or("Go on?");
    let append = json!({"append": "questions", "item": {"question": question}});
    let seq = board.append_once(&round.key("question"), append).await?;
    let answer = |answer: &Answer| answer.body["item"].get("answer").cloned();
    board.until(&format!("questions/{seq}"), EVENT, answer).await
}

/// Drives a round from the state where its last agent left it to its end.
pub async fn drive(agent: &Agent, round: &mut Round) -> Outcome<()> {
    let mut state = State { name: "", handle: None }.next_state(agent, round);
    loop {
        if state.name == Continue.name() {
            pause(agent, round).await?;
        }
        report(agent, state.name, json!({"turn": state.next_agent(agent, round)})).await?;
        let Some(handle) = state.handle else { return Ok(()) };
        if let Err(error) = handle(agent, round).await {
            if error.is_lost_claim() {
                return Err(error);
            }
            round.errors.push(error.to_string());
            round.go(AgentStatus::Error);
        }
        state = state.next_state(agent, round);
        state.name.clone_into(&mut round.status);
    }
}

/// Reports the status, with other members of the profile.
async fn report(agent: &Agent, status: &str, mut profile: Value) -> Outcome<()> {
    let path = format!("agents/{}", agent.name);
    profile["status"] = json!(status);
    let written = agent.board.write(Method::PATCH, &path, &profile).await;
    if !written.as_ref().is_err_and(|error| error.code() == "illegal-transition") {
        return written.map(drop);
    }
    // The server lets a waiting agent only go on: that it fails, or is broken off, follows CONTINUE.
    agent.board.write(Method::PATCH, &path, &json!({"status": "CONTINUE"})).await?;
    agent.board.write(Method::PATCH, &path, &profile).await.map(drop)
}

/// Waits while `agents/{name}/paused` is in the state.
///
/// The directive is what the state says now, never an event of the past, and one that names another request is stale.
async fn pause(agent: &Agent, round: &Round) -> Outcome<()> {
    let path = format!("state/agents/{}/paused", agent.name);
    let is_free = |answer: &Answer| {
        let named = answer.body.get("request");
        let is_stale = named.is_some_and(|named| *named != json!(round.request));
        (!answer.status.is_success() || answer.body.is_null() || is_stale).then_some(())
    };
    if agent.board.until(&path, Duration::ZERO, is_free).await?.is_some() {
        return Ok(());
    }
    report(agent, Pending.name(), json!({"paused": true})).await?;
    while agent.board.until(&path, EVENT, is_free).await?.is_none() {}
    report(agent, Continue.name(), json!({"paused": null})).await
}
