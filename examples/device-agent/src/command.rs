//! The command layer: what is done to a device, and the two ways to it.
//!
//! A command is a tool and its parameters. In the process it is run at once. Through the board it is a request that is
//! addressed to a device, and its result what the device's client finishes it with.

use std::time::Duration;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::board::{Board, Error};
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub result: Value,
    /// The tool server's name.
    pub namespace: String,
    pub call_id: String,
    /// The command that undoes this one, where the tool names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<Command>,
}

impl Command {
    pub fn ended(&self, status: ResultStatus, error: impl Into<String>) -> CommandResult {
        let (error, call_id) = (Some(error.into()), self.call_id.clone());
        CommandResult { status, error, call_id, ..CommandResult::default() }
    }

    /// An action is not repeated by itself if its device dies: whether it happened is unknown.
    fn attempts(&self) -> u32 {
        match self.tool_type {
            ToolType::DataCollection => 3,
            ToolType::Action => 1,
        }
    }

    /// The result in the command's entry, once it has ended.
    fn result_in(&self, entry: &Value) -> Option<CommandResult> {
        if let Some(failed) = entry.get("failed") {
            return Some(
                self.ended(ResultStatus::Failure, format!("no device finished it: {failed}")),
            );
        }
        serde_json::from_value(entry.get("done")?["result"].clone()).ok()
    }
}

/// A way from an agent to its devices.
#[derive(Debug)]
pub enum Dispatcher {
    /// The agent is its own device.
    InProcess(Device),
    /// The device of this name, unless a command names another.
    ThroughBoard(String),
}

impl Dispatcher {
    /// Executes one command after the other; a tool's failure is a result.
    pub async fn execute(
        &self,
        board: &Board,
        commands: &[Command],
        within: Duration,
    ) -> Result<Vec<CommandResult>, Error> {
        let mut results = Vec::new();
        for command in commands {
            results.push(match self {
                Self::InProcess(device) => device.run(command, within).await,
                Self::ThroughBoard(name) => {
                    let device = command.device.as_ref().unwrap_or(name);
                    post(board, device, command, within).await?
                }
            });
        }
        Ok(results)
    }
}

async fn post(
    board: &Board,
    device: &str,
    command: &Command,
    within: Duration,
) -> Result<CommandResult, Error> {
    let item = json!({"device": device, "command": command});
    let append = json!({"append": "requests", "item": item, "attempts": command.attempts()});
    let path = format!("requests/{}", board.append_once(&command.call_id, append).await?);
    let ended = board.until(&path, within, |answer| command.result_in(&answer.body)).await?;
    if let Some(result) = ended {
        return Ok(result);
    }
    // A device that comes back must not act on what was given up.
    board.write(Method::DELETE, &path, &Value::Null).await?;
    let error = format!("device '{device}' did not finish within {} ms", within.as_millis());
    Ok(command.ended(ResultStatus::Failure, error))
}
