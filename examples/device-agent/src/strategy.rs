//! Strategy layer: the work of an agent in a step, as strategies in four phases.
//!
//! A strategy declares the fields that it needs and provides. A processor is rejected if a strategy needs a field that
//! none before it provides.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::board::{Error, Later, Outcome};
use crate::command::{Command, ResultStatus, ToolType};
use crate::model::Turn;
use crate::registry::Agent;
use crate::state::{AgentStatus, Round};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    DataCollection,
    LlmInteraction,
    ActionExecution,
    MemoryUpdate,
}

/// The fields of a step, which end with it; what outlives it is in the [`Round`].
pub type Context = BTreeMap<&'static str, Value>;

pub type Execute = for<'a> fn(&'a Agent, &'a mut Round, &'a mut Context) -> Later<'a, ()>;

/// A part of a step. A failure ends the round with ERROR if it is `fail_fast`, else the step goes on.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    pub name: &'static str,
    pub phase: Phase,
    pub needs: &'static [&'static str],
    pub provides: &'static [&'static str],
    pub fail_fast: bool,
    pub execute: Execute,
}

/// Is called after each strategy, with the time that it took.
pub type Middleware = fn(&Agent, &Strategy, Duration, &Outcome<()>, &mut Round);

pub type Registered<T> = Result<T, MissingDependency>;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("strategy '{strategy}' needs '{field}', which no strategy before it provides")]
pub struct MissingDependency {
    pub strategy: &'static str,
    pub field: &'static str,
}

/// The strategies of an agent in their order, and what is around each.
#[derive(Clone, Debug)]
pub struct Processor {
    strategies: Vec<Strategy>,
    middleware: Vec<Middleware>,
}

impl Processor {
    /// Registers strategies; those of one phase are composed in the order given.
    pub fn new(strategies: &[Strategy], middleware: &[Middleware]) -> Registered<Self> {
        let mut strategies = strategies.to_vec();
        strategies.sort_by_key(|strategy| strategy.phase);
        let mut provided = Vec::new();
        for Strategy { name: strategy, needs, provides, .. } in &strategies {
            if let Some(&field) = needs.iter().find(|field| !provided.contains(*field)) {
                return Err(MissingDependency { strategy, field });
            }
            provided.extend(*provides);
        }
        Ok(Self { strategies, middleware: middleware.to_vec() })
    }

    /// Does the strategies of all phases to the last one given.
    pub async fn process(&self, agent: &Agent, round: &mut Round, last: Phase) -> Outcome<()> {
        let mut context = Context::new();
        for strategy in self.strategies.iter().filter(|one| one.phase <= last) {
            let began = Instant::now();
            let mut ended = (strategy.execute)(agent, round, &mut context).await;
            for &field in strategy.provides.iter().filter(|field| !context.contains_key(*field)) {
                ended = ended.and(Err(Error::NotProvided { strategy: strategy.name, field }));
            }
            for after in &self.middleware {
                after(agent, strategy, began.elapsed(), &ended, round);
            }
            if ended.as_ref().is_err_and(|error| strategy.fail_fast || error.is_lost_claim()) {
                return ended;
            }
        }
        Ok(())
    }
}

/// A line on standard error for each strategy.
pub fn log(of: &Agent, one: &Strategy, took: Duration, ended: &Outcome<()>, round: &mut Round) {
    let ended = ended.as_ref().map_or_else(ToString::to_string, |()| "done".to_owned());
    let (name, request, step) = (&of.name, round.request, round.step);
    eprintln!("{name} {request}/{step} {}: {ended}, {} ms", one.name, took.as_millis());
}

/// Adds the cost of the round, as its model reports it.
pub fn cost(_: &Agent, one: &Strategy, _: Duration, ended: &Outcome<()>, round: &mut Round) {
    if one.name == DECIDE.name && ended.is_ok() {
        round.cost += round.decision.cost;
    }
}

/// The failures that do not stop the round.
pub fn errors(_: &Agent, one: &Strategy, _: Duration, ended: &Outcome<()>, round: &mut Round) {
    let passed = ended.as_ref().err().filter(|_| !one.fail_fast);
    round.errors.extend(passed.map(ToString::to_string));
}

/// Reads the board as a model reads it.
pub const READ_BOARD: Strategy = Strategy {
    name: "ReadBoard",
    phase: Phase::DataCollection,
    needs: &[],
    provides: &["board"],
    fail_fast: true,
    execute: |agent, _, context| {
        Box::pin(async {
            context.insert("board", agent.board.get("prompt", &[("images", "inline")]).await?.body);
            Ok(())
        })
    },
};

/// Runs the kind's tool that observes. Blind is better than stuck, so a failure stops nothing.
pub const OBSERVE: Strategy = Strategy {
    name: "Observe",
    phase: Phase::DataCollection,
    needs: &[],
    provides: &["observation"],
    fail_fast: false,
    execute: |agent, round, context| {
        Box::pin(async {
            // An earlier observation, or one under another claim, may be outdated.
            round.observations += 1;
            let fence = agent.board.claim.map_or(0, |(_, fence)| fence);
            let command = Command {
                tool_name: agent.kind.observes.to_owned(),
                tool_type: ToolType::DataCollection,
                call_id: round.key(&format!("f{fence}-o{}", round.observations)),
                ..Command::default()
            };
            let seen = agent.dispatcher.execute(&agent.board, &[command]).await?;
            context.insert("observation", json!(seen));
            Ok(())
        })
    },
};

/// Lets the model decide.
pub const DECIDE: Strategy = Strategy {
    name: "Decide",
    phase: Phase::LlmInteraction,
    needs: &["board"],
    provides: &["decision"],
    fail_fast: true,
    execute: |agent, round, context| {
        Box::pin(async {
            if round.decided != Some(round.step) {
                let tools = agent.dispatcher.tools(&agent.board).await?;
                let turn = Turn {
                    request: round.item["request"].as_str().unwrap_or_default(),
                    step: round.step,
                    instructions: agent.kind.instructions,
                    board: context.get("board").unwrap_or(&Value::Null),
                    seen: json!({"observation": context.get("observation"),
                        "results": round.results, "answers": round.answers, "tools": tools}),
                };
                let mut decision = agent.model.decide(&turn).await?;
                for (number, command) in decision.commands.iter_mut().enumerate() {
                    command.call_id = round.key(&format!("c{number}"));
                }
                (round.decision, round.decided) = (decision, Some(round.step));
                // A successor acts on this decision, which may be under way, and does not ask again.
                let put = json!([{"put": format!("rounds/{}", round.request), "value": &*round}]);
                agent.board.commit(json!([]), put).await?;
            }
            round.status.clone_from(&round.decision.status);
            context.insert("decision", json!(round.decision));
            Ok(())
        })
    },
};

/// Executes what was decided. An agent does not finish with an action that failed: FINISH becomes FAIL.
pub const ACT: Strategy = Strategy {
    name: "Act",
    phase: Phase::ActionExecution,
    needs: &["decision"],
    provides: &["results"],
    fail_fast: true,
    execute: |agent, round, context| {
        Box::pin(async {
            let commands = &round.decision.commands;
            round.results = agent.dispatcher.execute(&agent.board, commands).await?;
            let failed = round.results.iter().find(|one| one.status != ResultStatus::Success);
            if let Some(failed) = failed.filter(|_| round.status == "FINISH") {
                round.errors.extend(failed.error.clone());
                round.go(AgentStatus::Fail);
            }
            context.insert("results", json!(round.results));
            Ok(())
        })
    },
};

/// Keeps the step in one commit, under the claim: memory, trajectories, and the round for a successor.
pub const REMEMBER: Strategy = Strategy {
    name: "Remember",
    phase: Phase::MemoryUpdate,
    needs: &["decision", "results"],
    provides: &[],
    fail_fast: true,
    execute: |agent, round, _| {
        Box::pin(async {
            round.step += 1;
            let (decision, results, tools) =
                (&round.decision, &round.results, &round.decision.commands);
            let step = json!({"step": round.step, "agent": agent.name, "request": round.item["request"],
                "thought": decision.thought, "status": round.status,
                "actions": tools.iter().map(|command| &command.tool_name).collect::<Vec<_>>(),
                "results": results.iter().map(|result| &result.result).collect::<Vec<_>>()});
            let memory = json!({"step": round.step, "request": round.request, "decision": decision,
                "results": results, "cost": decision.cost});
            let operations = json!([
                {"append": format!("agents/{}/memory", agent.name), "item": memory},
                {"append": "trajectories", "item": step},
                {"put": format!("rounds/{}", round.request), "value": &*round},
            ]);
            agent.board.commit(json!([]), operations).await.map(drop)
        })
    },
};
