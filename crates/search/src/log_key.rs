//! Keys of logs in an index: the names of the board's logs; before them the memories and the messages, by their owners.

use blackboard_board::LogName;

/// The text before the owner's name in the key of a memory. It sorts before the names of the board's logs.
pub(super) const MEMORY: &str = "memory/";

/// The text before the owner's name in the key of messages. It sorts between memories and the board's logs.
pub(super) const MESSAGES: &str = "messages/";

/// The first of the board's logs, in the order of keys.
pub(super) const BOARD_FROM: &str = "questions";

/// Returns the key of a log.
#[must_use]
pub fn log_key(log: &LogName) -> String {
    match log {
        LogName::Memory(agent) => format!("{MEMORY}{agent}"),
        LogName::Messages(agent) => format!("{MESSAGES}{agent}"),
        LogName::Questions | LogName::Requests | LogName::Trajectories | LogName::Screenshots => {
            log.to_string()
        }
    }
}

/// Returns the log of a key.
#[must_use]
pub fn log_of(key: &str) -> Option<LogName> {
    match (key.strip_prefix(MEMORY), key.strip_prefix(MESSAGES)) {
        (Some(agent), _) => Some(LogName::Memory(agent.parse().ok()?)),
        (None, Some(agent)) => Some(LogName::Messages(agent.parse().ok()?)),
        (None, None) => LogName::of_board(key),
    }
}
