//! Logs: append items.

use crate::board::{Command, Item, LogCommand, LogName, Plan};

/// Returns the command that appends items. A plan is one of requests, and has no effect on other logs.
pub(crate) fn append(log: LogName, items: Vec<Item>, plan: Plan) -> Command {
    match log {
        LogName::Requests if !plan.is_empty() => Command::Plan { items, plan },
        _ => Command::Log(log, LogCommand::Append { items }),
    }
}
