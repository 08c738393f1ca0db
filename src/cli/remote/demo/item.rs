//! The bodies of the demonstration's writes, with their members in the order that people read.

use serde::Serialize;
use serde_json::value::RawValue;

use super::deed::{Fact, Question, Request, Step};
use super::unwritable::Unwritable;
use crate::board::Seq;

/// A request's item.
#[derive(Serialize)]
struct RequestItem<'a> {
    request: &'a str,
    agent: &'a str,
    application: &'a str,
}

/// A question's item.
#[derive(Serialize)]
struct QuestionItem<'a> {
    question: &'a str,
    options: &'a [&'a str],
}

/// A step in the trajectories, under the original's names.
#[derive(Serialize)]
struct Trajectory<'a> {
    step: u64,
    agent: &'a str,
    subtask: &'a str,
    observation: &'a str,
    thought: &'a str,
    action: &'a str,
    status: &'a str,
    /// The screenshot that the agent looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    screenshot: Option<u64>,
    cost: f64,
    duration: f64,
}

/// A step in its agent's memory, where its cost counts.
#[derive(Serialize)]
struct Memory<'a> {
    step: u64,
    subtask: &'a str,
    action_representation: String,
    results: [Outcome<'a>; 1],
    status: &'a str,
    cost: f64,
}

#[derive(Serialize)]
struct Outcome<'a> {
    status: &'a str,
}

/// An operation of a transaction.
#[derive(Serialize)]
#[serde(untagged)]
enum Operation<'a> {
    Put { put: &'a str, value: &'a RawValue },
    Add { add: &'a str, value: u32 },
    Trajectory { append: &'a str, item: Trajectory<'a> },
    Memory { append: String, item: Memory<'a> },
    Status { status: &'a str, value: &'a str },
}

#[derive(Serialize)]
struct Transaction<'a> {
    then: Vec<Operation<'a>>,
}

pub(super) fn request(request: &Request) -> Result<String, Unwritable> {
    let Request { text, agent, application, .. } = *request;
    Ok(serde_json::to_string(&RequestItem { request: text, agent, application })?)
}

pub(super) fn question(question: &Question) -> Result<String, Unwritable> {
    let Question { text, options, .. } = *question;
    Ok(serde_json::to_string(&QuestionItem { question: text, options })?)
}

/// Returns a transaction that sets values of the state.
pub(super) fn facts(facts: &[Fact]) -> Result<String, Unwritable> {
    Ok(serde_json::to_string(&Transaction { then: puts(facts)? })?)
}

/// Returns the transaction of a step: its trajectory, its agent's memory and status, and values of the state.
pub(super) fn step(
    agent: &str,
    number: u64,
    seen: Option<Seq>,
    step: &Step,
) -> Result<String, Unwritable> {
    let Step { subtask, observation, thought, action, status, cost, duration, facts } = *step;
    let trajectory = Trajectory {
        step: number,
        agent,
        subtask,
        observation,
        thought,
        action,
        status,
        screenshot: seen.map(|seq| seq.0),
        cost,
        duration,
    };
    let outcome = if status == "FAIL" { "FAILURE" } else { "SUCCESS" };
    let memory = Memory {
        step: number,
        subtask,
        action_representation: format!("[Action] {action}\n[Status] ResultStatus.{outcome}"),
        results: [Outcome { status: outcome }],
        status,
        cost,
    };
    let mut then = vec![
        Operation::Trajectory { append: "trajectories", item: trajectory },
        Operation::Memory { append: format!("agents/{agent}/memory"), item: memory },
        Operation::Status { status: agent, value: status },
        Operation::Add { add: "progress/steps", value: 1 },
    ];
    then.extend(puts(facts)?);
    Ok(serde_json::to_string(&Transaction { then })?)
}

fn puts<'a>(facts: &[Fact]) -> Result<Vec<Operation<'a>>, Unwritable> {
    let put = |(path, value): &Fact| {
        Ok(Operation::Put { put: path, value: serde_json::from_str(value)? })
    };
    facts.iter().map(put).collect()
}
