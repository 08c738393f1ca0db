//! Model's turn: from an agent's context to its decision.
//!
//! [`Scripted`] reads its decisions from a file; [`Endpoint`] asks any server of `OpenAI`'s chat completions.

use std::collections::BTreeMap;

use reqwest::{Client, Url};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::board::{Error, Later};
use crate::command::Command;

/// The decision of an agent's model in a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    pub thought: String,
    /// The status after the commands.
    pub status: String,
    pub commands: Vec<Command>,
    /// With ASSIGN: who is to do what.
    pub agent: Option<String>,
    pub subtask: Option<String>,
    /// With PENDING or CONFIRM: the question for a person.
    pub question: Option<String>,
    /// With PENDING: the path of the state that has to exist first.
    pub wait_for: Option<String>,
    /// Of a critic: the authors whose drafts are accepted.
    pub accept: Vec<String>,
    pub result: Value,
    pub cost: f64,
}

/// The input of a model's turn.
pub struct Turn<'a> {
    pub request: &'a str,
    pub step: usize,
    pub instructions: &'a str,
    pub board: &'a Value,
    /// The observation, and the outcome of the last step.
    pub seen: Value,
}

pub trait Model: Send + Sync {
    fn decide<'a>(&'a self, turn: &'a Turn<'a>) -> Later<'a, Decision>;
}

/// Decisions by request and step: the same at every run.
#[derive(Deserialize)]
pub struct Scripted(BTreeMap<String, Vec<Decision>>);

impl Model for Scripted {
    fn decide<'a>(&'a self, turn: &'a Turn<'a>) -> Later<'a, Decision> {
        let decided = self.0.get(turn.request).and_then(|steps| steps.get(turn.step)).cloned();
        let reason = || format!("the script has no step {} for '{}'", turn.step, turn.request);
        Box::pin(async move { decided.ok_or_else(|| Error::NoDecision { reason: reason() }) })
    }
}

/// The address of an endpoint of chat completions.
pub struct Endpoint {
    pub url: Url,
    pub model: String,
    pub key: Option<String>,
}

impl Model for Endpoint {
    fn decide<'a>(&'a self, turn: &'a Turn<'a>) -> Later<'a, Decision> {
        Box::pin(async {
            let mut content = turn.board.as_array().cloned().unwrap_or_default();
            let text = json!({"request": turn.request, "step": turn.step, "seen": turn.seen});
            content.push(json!({"type": "text", "text": text.to_string()}));
            let system = json!({"role": "system", "content": turn.instructions});
            let body = json!({"model": self.model, "response_format": {"type": "json_object"},
            "messages": [system, {"role": "user", "content": content}]});
            let request = Client::new().post(self.url.clone()).json(&body);
            let request = self.key.iter().fold(request, reqwest::RequestBuilder::bearer_auth);
            let answer: Value = request.send().await?.error_for_status()?.json().await?;
            let text = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
            let failed = |error: serde_json::Error| Error::NoDecision { reason: error.to_string() };
            serde_json::from_str(text).map_err(failed)
        })
    }
}
