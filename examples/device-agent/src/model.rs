//! The model's turn: from what an agent knows to what it decides.
//!
//! [`Scripted`] reads its decisions from a file; [`Endpoint`] asks any server of `OpenAI`'s chat completions.

use std::collections::BTreeMap;

use reqwest::{Client, Url};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::board::{Error, Later};
use crate::command::Command;

/// What an agent's model decided in a step.
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

/// What a model is shown.
#[derive(Debug)]
pub struct Turn<'a> {
    pub request: &'a str,
    pub step: usize,
    /// What the agent is, and how it answers.
    pub instructions: &'a str,
    /// The board, as content parts.
    pub board: &'a Value,
    /// What was observed, and what came of the last step.
    pub seen: Value,
}

pub trait Model: Send + Sync {
    fn decide<'a>(&'a self, turn: &'a Turn<'a>) -> Later<'a, Result<Decision, Error>>;
}

/// Decisions by request and step: the same at every run.
#[derive(Debug, Deserialize)]
pub struct Scripted(BTreeMap<String, Vec<Decision>>);

impl Model for Scripted {
    fn decide<'a>(&'a self, turn: &'a Turn<'a>) -> Later<'a, Result<Decision, Error>> {
        let decided = self.0.get(turn.request).and_then(|steps| steps.get(turn.step)).cloned();
        let reason = || format!("the script has no step {} for '{}'", turn.step, turn.request);
        Box::pin(async move { decided.ok_or_else(|| Error::NoDecision { reason: reason() }) })
    }
}

/// An endpoint of chat completions, with its key in `OPENAI_API_KEY`.
#[derive(Debug)]
pub struct Endpoint {
    http: Client,
    url: Url,
    model: String,
    key: Option<String>,
}

impl Endpoint {
    /// Creates a model from the address of its `…/chat/completions`; nothing is sent yet.
    pub fn new(url: Url, model: &str, key: Option<String>) -> Self {
        Self { http: Client::new(), url, model: model.to_owned(), key }
    }

    async fn ask(&self, turn: &Turn<'_>) -> Result<Decision, Error> {
        let mut content = turn.board.as_array().cloned().unwrap_or_default();
        let text =
            json!({"request": turn.request, "step": turn.step, "seen": turn.seen}).to_string();
        content.push(json!({"type": "text", "text": text}));
        let body = json!({
            "model": self.model,
            "response_format": {"type": "json_object"},
            "messages": [
                {"role": "system", "content": turn.instructions},
                {"role": "user", "content": content},
            ],
        });
        let request = self.http.post(self.url.clone()).json(&body);
        let request = self.key.iter().fold(request, reqwest::RequestBuilder::bearer_auth);
        let answer: Value = request.send().await?.error_for_status()?.json().await?;
        let text = answer
            .pointer("/choices/0/message/content")
            .and_then(Value::as_str)
            .unwrap_or_default();
        serde_json::from_str(text).map_err(|error| Error::NoDecision { reason: error.to_string() })
    }
}

impl Model for Endpoint {
    fn decide<'a>(&'a self, turn: &'a Turn<'a>) -> Later<'a, Result<Decision, Error>> {
        Box::pin(self.ask(turn))
    }
}
