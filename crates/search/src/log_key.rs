//! Keys of logs in an index: the names of the board's logs; before them the memories, by their owners.

use blackboard_board::LogName;

/// The text before the owner's name in the key of a memory. It sorts before the names of the board's logs.
pub(super) const MEMORY: &str = "memory/";

/// The first of the board's logs, in the order of keys.
pub(super) const BOARD_FROM: &str = "questions";

/// Returns the key of a log.
#[must_use]
pub fn log_key(log: &LogName) -> String {
    match log {
        LogName::Memory(agent) => format!("{MEMORY}{agent}"),
        LogName::Questions | LogName::Requests | LogName::Trajectories | LogName::Screenshots => {
            log.to_string()
        }
    }
}

/// Returns the log of a key.
#[must_use]
pub fn log_of(key: &str) -> Option<LogName> {
    match key.strip_prefix(MEMORY) {
        Some(agent) => Some(LogName::Memory(agent.parse().ok()?)),
        None => LogName::of_board(key),
    }
}
