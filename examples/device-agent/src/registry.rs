//! Registry of the kinds of agents, and an agent that works on its requests.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};

use crate::agents;
use crate::board::{Board, Outcome};
use crate::command::Dispatcher;
use crate::model::Model;
use crate::state::{Round, States, drive};
use crate::strategy::{Processor, Registered};

/// Makes a kind by its name. A new one is a file and its line here.
pub fn kind(name: &str) -> Option<Registered<Kind>> {
    match name {
        "HostAgent" => Some(agents::host::kind()),
        "AppAgent" => Some(agents::app::kind()),
        "LinuxAgent" => Some(agents::linux::kind()),
        "CriticAgent" => Some(agents::critic::kind()),
        _ => None,
    }
}

/// The parts that agents of a kind share.
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
    pub kind: Arc<Kind>,
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
    ) -> Outcome<Self> {
        if !kind.own_states.is_null() {
            let settings = json!({"settings": {"agent_states": kind.own_states}});
            board.write(Method::PUT, "", &settings).await?;
        }
        let profile = json!({"type": name, "status": "CONTINUE"});
        board.write(Method::PUT, &format!("agents/{}", board.agent), &profile).await?;
        let (name, kind) = (board.agent.clone(), Arc::new(kind));
        Ok(Self { name, board, kind, model, dispatcher: Arc::new(dispatcher) })
    }

    /// Works on a claimed request to its end.
    pub async fn work(&self, seq: u64, fence: u64, item: &Value) -> Outcome<()> {
        let board = self.board.under(seq, fence);
        let (mut own, mut fork) = (Self { board: board.clone(), ..self.clone() }, Value::Null);
        if item["private"] == json!(true) {
            (own.board, fork) = self.fork().await?;
        }
        let mut round = own.resumed(seq, item).await?;
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
        let reason = json!({"status": round.status, "errors": round.errors});
        let body = json!({"fence": fence, "reason": reason});
        board.write(Method::PUT, &format!("requests/{seq}/failed"), &body).await.map(drop)
    }

    /// Makes a board of the agent's own from the present one; it may be there from an attempt before.
    async fn fork(&self) -> Outcome<(Board, Value)> {
        let to = format!("{}-{}", self.board.session, self.name);
        let made = self.board.write(Method::POST, "fork", &json!({"to": to})).await;
        if !made.as_ref().is_err_and(|error| error.code() == "session-exists") {
            made?;
        }
        let own = self.board.of(&to);
        let from = own.get("", &[]).await?.body["revision"].clone();
        Ok((own, json!({"session": to, "from": from})))
    }

    /// Returns a round as it was left: new, or after the last step that was kept.
    async fn resumed(&self, seq: u64, item: &Value) -> Outcome<Round> {
        let kept = self.board.get(&format!("state/rounds/{seq}"), &[]).await?;
        let read = serde_json::from_value(kept.body).ok().filter(|_| kept.status.is_success());
        let mut round: Round = read.unwrap_or_default();
        (round.request, round.item) = (seq, item.clone());
        if round.status.is_empty() {
            round.decision.wait_for = item["needs"].as_str().map(str::to_owned);
            let is_waiting = round.decision.wait_for.is_some();
            if is_waiting { "PENDING" } else { "CONTINUE" }.clone_into(&mut round.status);
        }
        Ok(round)
    }
}
