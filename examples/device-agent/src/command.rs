//! Command layer: commands to a device, run in the process or sent through the board.
//!
//! A command is a tool and its parameters. In the process it runs at once. Through the board it is a request to a
//! device, whose client finishes it with the result.

use std::time::Duration;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::board::{Board, Outcome};
use crate::device::Device;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolType {
    /// Observes and changes nothing, so it may be run again.
    DataCollection,
    #[default]
    Action,
}

/// A tool with its parameters: the smallest thing that a device does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    pub tool_name: String,
    pub parameters: Map<String, Value>,
    pub tool_type: ToolType,
    /// Names this call, which is made once.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call_id: String,
    /// How many seconds it may take, with the time that its device is away; 120 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// The device, where it is not the agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    Success,
    /// The tool failed, or no device finished in time.
    Failure,
    /// The device refused to run the tool.
    Skipped,
    #[default]
    None,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandResult {
    pub status: ResultStatus,
    pub error: Option<String>,
    pub result: Value,
    pub namespace: String,
    pub call_id: String,
    /// The command that undoes this one, where the tool names one.
    pub undo: Option<Command>,
}

impl Command {
    pub fn ended(&self, status: ResultStatus, error: impl Into<String>) -> CommandResult {
        let (error, call_id) = (Some(error.into()), self.call_id.clone());
        CommandResult { status, error, call_id, ..CommandResult::default() }
    }

    pub fn within(&self) -> Duration {
        Duration::from_secs(self.timeout.unwrap_or(120))
    }

    /// An action is not repeated by itself if its device dies: whether it happened is unknown.
    fn attempts(&self) -> u32 {
        if self.tool_type == ToolType::Action { 1 } else { 3 }
    }

    /// The result in the command's entry, once it has ended.
    fn result_in(&self, entry: &Value) -> Option<CommandResult> {
        if let Some(failed) = entry.get("failed") {
            let error = format!("no device finished it: {failed}");
            return Some(self.ended(ResultStatus::Failure, error));
        }
        serde_json::from_value(entry.get("done")?["result"].clone()).ok()
    }
}

/// A way from an agent to its devices.
pub enum Dispatcher {
    /// The agent is its own device.
    InProcess(Device),
    /// The device of this name, unless a command names another.
    ThroughBoard(String),
}

impl Dispatcher {
    /// Returns the schemas of the tools that there are.
    pub async fn tools(&self, board: &Board) -> Outcome<Value> {
        match self {
            Self::InProcess(device) => Ok(device.schemas()),
            Self::ThroughBoard(name) => {
                Ok(board.get(&format!("agents/{name}"), &[]).await?.body["tools"].clone())
            }
        }
    }

    /// Executes one command after the other; a tool's failure is a result.
    pub async fn execute(&self, board: &Board, all: &[Command]) -> Outcome<Vec<CommandResult>> {
        let mut results = Vec::new();
        for command in all {
            results.push(match self {
                Self::InProcess(device) => device.run(command).await,
                Self::ThroughBoard(name) => {
                    post(board, command.device.as_ref().unwrap_or(name), command).await?
                }
            });
        }
        Ok(results)
    }
}

async fn post(board: &Board, device: &str, command: &Command) -> Outcome<CommandResult> {
    let item = json!({"device": device, "command": command});
    let append = json!({"append": "requests", "item": item, "attempts": command.attempts()});
    let path = format!("requests/{}", board.append_once(&command.call_id, append).await?);
    let ended =
        board.until(&path, command.within(), |answer| command.result_in(&answer.body)).await?;
    if let Some(result) = ended {
        return Ok(result);
    }
    // A device that comes back must not act on what was given up.
    board.write(Method::DELETE, &path, &Value::Null).await?;
    let error = format!("device '{device}' did not finish within {:?}", command.within());
    Ok(command.ended(ResultStatus::Failure, error))
}
