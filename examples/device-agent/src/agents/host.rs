//! `HostAgent`, of the upper tier: divides a request and assigns the parts to other agents.

use serde_json::{Value, json};

use crate::agents::plain;
use crate::board::Outcome;
use crate::registry::{Agent, Kind};
use crate::state::{AgentStatus, EVENT, Round, State};
use crate::strategy::{ACT, DECIDE, READ_BOARD, REMEMBER, Registered};

const INSTRUCTIONS: &str = "You divide a request among agents. Answer with one JSON object: \
    thought, status (ASSIGN with agent and subtask, CONTINUE, FINISH with result, FAIL, PENDING or \
    CONFIRM with a question).";

/// Makes the kind, with a state of its own.
pub fn kind() -> Registered<Kind> {
    let mut kind = plain(INSTRUCTIONS, &[READ_BOARD, DECIDE, ACT, REMEMBER])?;
    let handle = Some::<crate::state::Handle>(|agent, round| Box::pin(assign(agent, round)));
    kind.states.insert("ASSIGN", State { name: "ASSIGN", handle });
    kind.own_states = json!({"ASSIGN": {"from": ["CONTINUE"], "to": ["CONTINUE", "FAIL"]}});
    Ok(kind)
}

/// ASSIGN: the subtask is a request for another agent, whose turn it is until that ends.
async fn assign(agent: &Agent, round: &mut Round) -> Outcome<()> {
    let (to, subtask) = (&round.decision.agent, &round.decision.subtask);
    let item = json!({"agent": to, "request": subtask, "host": agent.name});
    let append = json!({"append": "requests", "item": item, "attempts": 1});
    let seq = agent.board.append_once(&round.key("subtask"), append).await?;
    let end = |entry: &Value| entry.get("done").or_else(|| entry.get("failed")).cloned();
    let path = format!("requests/{seq}");
    let ended = agent.board.until(&path, EVENT, |answer| end(&answer.body)).await?;
    // A subtask that failed is an answer too: the model decides what comes of it.
    round.answers.push(ended.unwrap_or_default());
    round.go(AgentStatus::Continue);
    Ok(())
}
