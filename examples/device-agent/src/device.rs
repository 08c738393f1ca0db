//! Device's side of the command layer: claims commands, checks, runs and finishes them.
//!
//! A device trusts no agent: a command that is not on its allow-list, or does not fit the tool's schema, is not run.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};

use crate::board::{Board, Outcome};
use crate::command::{Command, CommandResult, ResultStatus};
use crate::mcp::ToolServer;

/// A tool server with the tools of it that may be used.
pub struct Device {
    pub tools: ToolServer,
    pub allowed: BTreeSet<String>,
}

impl Device {
    /// Runs a command if it is allowed and fits. A tool's failure is a result.
    pub async fn run(&self, command: &Command) -> CommandResult {
        let tool = command.tool_name.as_str();
        let Some(schema) = self.tools.schemas.get(tool).filter(|_| self.allowed.contains(tool))
        else {
            let error = format!("tool '{tool}' is not on the device's list");
            return command.ended(ResultStatus::Skipped, error);
        };
        let arguments = Value::Object(command.parameters.clone());
        if let Some(misfit) = misfit(schema, &arguments) {
            return command.ended(ResultStatus::Skipped, format!("tool '{tool}': {misfit}"));
        }
        let mut result = match self.tools.call(tool, &arguments, command.within()).await {
            Ok(answer) => read(&answer, command),
            Err(error) => command.ended(ResultStatus::Failure, error.to_string()),
        };
        self.tools.name.clone_into(&mut result.namespace);
        result
    }

    /// Returns the schemas of the tools that it may use.
    pub fn schemas(&self) -> Value {
        let known = self.tools.schemas.iter().filter(|(name, _)| self.allowed.contains(*name));
        json!(known.collect::<BTreeMap<_, _>>())
    }

    /// Works on the commands that are addressed to the board's agent, until `stop`.
    pub async fn serve(&self, board: &Board, stop: impl Future<Output = ()>) -> Outcome<()> {
        let profile = json!({"type": "DeviceClient", "tools": self.schemas()});
        board.write(Method::PUT, &format!("agents/{}", board.agent), &profile).await?;
        let finish = async |seq: u64, fence: u64, item: &Value| {
            let result = match serde_json::from_value::<Command>(item["command"].clone()) {
                Ok(command) => self.run(&command).await,
                Err(error) => Command::default().ended(ResultStatus::Skipped, error.to_string()),
            };
            let body = json!({"fence": fence, "result": result});
            board.write(Method::PUT, &format!("requests/{seq}/done"), &body).await.map(drop)
        };
        board.serve(&json!({"device": board.agent}), stop, finish).await
    }
}

/// A tool's answer as a result: its structured content, else its text.
fn read(answer: &Value, command: &Command) -> CommandResult {
    let parts = answer["content"].as_array().into_iter().flatten();
    let text = parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n");
    if answer["isError"] == json!(true) {
        return command.ended(ResultStatus::Failure, text);
    }
    let result = answer.get("structuredContent").cloned().unwrap_or(Value::String(text));
    let undo = serde_json::from_value(answer["_meta"]["undo"].clone()).ok();
    let (status, call_id) = (ResultStatus::Success, command.call_id.clone());
    CommandResult { status, result, call_id, undo, ..CommandResult::default() }
}

/// Returns the fault in a tool's arguments: a member that is missing, unknown or of another type.
pub fn misfit(schema: &Value, arguments: &Value) -> Option<String> {
    let mut required = schema["required"].as_array().into_iter().flatten();
    if let Some(name) = required.find(|name| arguments[name.as_str().unwrap_or("")].is_null()) {
        return Some(format!("parameter {name} is missing"));
    }
    arguments.as_object()?.iter().find_map(|(name, value)| {
        let Some(expected) = schema["properties"].get(name) else {
            let is_closed = schema["additionalProperties"] == json!(false);
            return is_closed.then(|| format!("parameter '{name}' is unknown"));
        };
        let expected = expected["type"].as_str()?;
        let fits = match expected {
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => true,
        };
        (!fits).then(|| format!("parameter '{name}' is no {expected}"))
    })
}
