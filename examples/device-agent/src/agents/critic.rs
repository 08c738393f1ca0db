//! `CriticAgent`: reads the drafts that agents made on forks of the board, and merges those that it accepts.

use serde_json::{Value, json};

use crate::agents::plain;
use crate::board::Outcome;
use crate::registry::{Agent, Kind};
use crate::state::Round;
use crate::strategy::{ACT, Context, DECIDE, OBSERVE, READ_BOARD, REMEMBER, Registered, Strategy};

const INSTRUCTIONS: &str = "You judge drafts; the observation is what each agent wrote in private. \
    Answer with one JSON object: thought, status (FINISH or FAIL), accept (agents), result.";

/// Makes the kind, with two strategies of its own.
pub fn kind() -> Registered<Kind> {
    let read = Strategy {
        name: "ReadDrafts",
        fail_fast: true,
        execute: |agent, round, context| Box::pin(read_drafts(agent, round, context)),
        ..OBSERVE
    };
    let merge = Strategy {
        name: "Merge",
        needs: &["observation", "decision"],
        execute: |agent, round, context| Box::pin(merge(agent, round, context)),
        ..ACT
    };
    plain(INSTRUCTIONS, &[read, READ_BOARD, DECIDE, merge, REMEMBER])
}

/// Reads what each draft adds to the trajectories.
async fn read_drafts(agent: &Agent, round: &mut Round, context: &mut Context) -> Outcome<()> {
    let mut drafts = Vec::new();
    for seq in round.item["drafts"].as_array().into_iter().flatten() {
        let done = agent.board.get(&format!("requests/{seq}"), &[]).await?.body["done"].clone();
        let fork = &done["result"]["fork"];
        let own = agent.board.of(fork["session"].as_str().unwrap_or_default());
        let diff = own.get("diff", &[("from", &fork["from"].to_string())]).await?.body;
        let is_step =
            |part: &&Value| part["path"].as_str().is_some_and(|path| path.starts_with("traj"));
        let steps = diff["added"].as_array().into_iter().flatten().filter(is_step);
        let steps: Vec<_> = steps.map(|part| &part["item"]).collect();
        drafts.push(
            json!({"author": done["agent"], "steps": steps, "result": done["result"]["result"]}),
        );
    }
    context.insert("observation", Value::Array(drafts));
    Ok(())
}

/// Appends the steps of the accepted drafts in one commit, once: also if the last critic died after it.
async fn merge(agent: &Agent, round: &mut Round, context: &mut Context) -> Outcome<()> {
    let (accepted, marker) = (&round.decision.accept, format!("merged/{}", round.request));
    let mut operations = vec![json!({"put": marker, "value": accepted})];
    let drafts = context.get("observation").and_then(Value::as_array);
    let is_accepted = |draft: &&Value| accepted.iter().any(|name| draft["author"] == json!(name));
    for draft in drafts.into_iter().flatten().filter(is_accepted) {
        let steps = draft["steps"].as_array().into_iter().flatten();
        operations.extend(steps.map(|step| json!({"append": "trajectories", "item": step})));
    }
    let conditions = json!([{"path": marker, "absent": true}]);
    agent.board.commit(conditions, Value::Array(operations)).await?;
    context.insert("results", json!(accepted));
    Ok(())
}
