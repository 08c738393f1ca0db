//! The registry: which kinds of agents there are, and an agent that works on its requests.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::agents;
use crate::board::{Board, Error};
use crate::command::Dispatcher;
use crate::model::Model;
use crate::state::{Round, States, drive};
use crate::strategy::{MissingDependency, Processor};

/// Makes a kind, unless its strategies do not fit.
pub type MakeKind = fn() -> Result<Kind, MissingDependency>;

/// The kinds of agents by name, each made when it is needed. A new one is a file and its line here.
pub const KINDS: [(&str, MakeKind); 4] = [
    ("HostAgent", agents::host::kind),
    ("AppAgent", agents::app::kind),
    ("LinuxAgent", agents::linux::kind),
    ("CriticAgent", agents::critic::kind),
];

/// What agents of a kind have in common.
#[derive(Debug)]
pub struct Kind {
    pub processor: Processor,
    pub states: States,
    /// The statuses that it adds to the session's seven, with their transitions; null for none.
    pub own_states: Value,
    pub instructions: &'static str,
    /// The tool that observes, if it has one.
    pub observes: &'static str,
}

/// An agent that works on the requests which it can do.
#[derive(Clone)]
pub struct Agent {
    pub name: String,
    /// Its view of the board, in a round under the claim.
    pub board: Board,
    pub processor: Processor,
    pub states: States,
    pub instructions: &'static str,
    pub observes: &'static str,
    pub model: Arc<dyn Model>,
    pub dispatcher: Arc<Dispatcher>,
}

impl Agent {
    /// Registers an agent of a kind on the board.
    pub async fn register(
        board: Board,
        (name, kind): (&str, Kind),
        model: Arc<dyn Model>,
        dispatcher: Dispatcher,
    ) -> Result<Self, Error> {
        let Kind { processor, states, own_states, instructions, observes } = kind;
        if !own_states.is_null() {
            let settings = json!({"settings": {"agent_states": own_states}});
            board.write(Method::PUT, "", &settings).await?;
        }
        let profile = json!({"type": name, "status": "CONTINUE"});
        board.write(Method::PUT, &format!("agents/{}", board.agent), &profile).await?;
        let (name, dispatcher) = (board.agent.clone(), Arc::new(dispatcher));
        Ok(Self { name, board, processor, states, instructions, observes, model, dispatcher })
    }

    /// Works on the requests whose items have these members, until `stop`.
    pub async fn serve(
        &self,
        wanted: &Value,
        ttl: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let mut stop = pin!(stop);
        loop {
            let entry = tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                entry = self.board.claim_next(wanted, ttl) => entry?,
            };
            if entry.is_null() {
                continue;
            }
            match self.work(&entry, ttl).await {
                // Another agent has the request by now, and goes on from the last step that was kept.
                Err(error) if error.is_lost_claim() => eprintln!("{}: {error}", self.name),
                ended => ended?,
            }
        }
    }

    /// Works on a claimed request to its end.
    async fn work(&self, entry: &Value, ttl: Duration) -> Result<(), Error> {
        let seq = entry["seq"].as_u64().unwrap_or_default();
        let _renewal = self.board.renewal(seq, ttl);
        let fence = entry["claim"]["fence"].as_u64().unwrap_or_default();
        let board = self.board.under(seq, fence);
        let (mut own, mut fork) = (Self { board: board.clone(), ..self.clone() }, Value::Null);
        if entry["item"]["private"] == json!(true) {
            (own.board, fork) = self.fork().await?;
        }
        let mut round = own.resumed(seq, &entry["item"]).await?;
        drive(&own, &mut round).await?;
        if round.status == "FINISH" {
            let result = json!({"status": "FINISH", "result": round.decision.result,
                "steps": round.step, "cost": round.cost, "errors": round.errors, "fork": fork});
            let mut operations = vec![json!({"done": seq, "fence": fence, "result": result})];
            let readies = round.item["readies"].as_str();
            operations.extend(readies.map(|path| json!({"put": path, "value": true})));
            return board.commit(json!([]), Value::Array(operations)).await.map(drop);
        }
        // The next attempt begins from the start.
        let again = Round { attempt: round.attempt + 1, ..Round::default() };
        let put = json!([{"put": format!("rounds/{seq}"), "value": again}]);
        own.board.commit(json!([]), put).await?;
        let thought = round.decision.thought;
        let reason = json!({"status": round.status, "errors": round.errors, "thought": thought});
        let body = json!({"fence": fence, "reason": reason});
        board.write(Method::PUT, &format!("requests/{seq}/failed"), &body).await.map(drop)
    }

    /// Makes a board of the agent's own from the present one; it may be there from an attempt before.
    async fn fork(&self) -> Result<(Board, Value), Error> {
        let to = format!("{}-{}", self.board.session, self.name);
        let made = self.board.write(Method::POST, "fork", &json!({"to": to})).await;
        if !made.as_ref().is_err_and(Error::is_session_exists) {
            made?;
        }
        let own = self.board.of(&to);
        let from = own.get("", &[]).await?.body["revision"].clone();
        Ok((own, json!({"session": to, "from": from})))
    }

    /// Returns a round as it was left: new, or after the last step that was kept.
    async fn resumed(&self, seq: u64, item: &Value) -> Result<Round, Error> {
        let kept = self.board.get(&format!("state/rounds/{seq}"), &[]).await?;
        let mut round: Round = serde_json::from_value(kept.body).unwrap_or_default();
        (round.request, round.item) = (seq, item.clone());
        if round.status.is_empty() {
            round.decision.wait_for = item["needs"].as_str().map(str::to_owned);
            let is_waiting = round.decision.wait_for.is_some();
            if is_waiting { "PENDING" } else { "CONTINUE" }.clone_into(&mut round.status);
        }
        Ok(round)
    }
}
