//! Reach of a search: the names of sessions and the logs that it looks through.
//!
//! An index reads only what lies within these ranges. What lies outside costs no work, so no time gives it away.

use std::sync::Arc;

use super::log_key::{BOARD_FROM, MEMORY, MESSAGES, log_key};
use blackboard_board::{AgentName, LogName, SessionName, Timestamp};

/// A byte that no text has: the end of all names.
const BEYOND: u8 = 0xFF;

/// The entries that a search looks through.
#[derive(Clone)]
pub struct Reach {
    /// Names in order; none overlaps another.
    names: Vec<Names>,
    /// Returns true for a session of these names that is searched.
    pub admits: Arc<dyn Fn(&SessionName) -> bool + Send + Sync>,
    /// The logs, of which none overlaps another.
    pub logs: Vec<Logs>,
    /// The author of entries of the board's logs, if selected.
    pub agent: Option<AgentName>,
    /// The time of the oldest entry, if selected.
    pub since: Option<Timestamp>,
}

/// Names of sessions, in their order: one, or all that begin alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Names {
    /// This name.
    One(String),
    /// All names that begin so.
    From(String),
}

/// Logs of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logs {
    /// All four of the board.
    Board,
    /// All memories.
    Memories,
    /// The messages to all agents.
    Messages,
    /// This one.
    One(LogName),
}

impl std::fmt::Debug for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reach")
            .field("names", &self.names)
            .field("logs", &self.logs)
            .finish_non_exhaustive()
    }
}

impl Names {
    /// Returns the names that are also among those that begin with `prefix`, if there may be any.
    #[must_use]
    pub fn within(self, prefix: &str) -> Option<Self> {
        match self {
            Self::One(name) => name.starts_with(prefix).then_some(Self::One(name)),
            Self::From(stem) if stem.starts_with(prefix) => Some(Self::From(stem)),
            Self::From(stem) => prefix.starts_with(&stem).then(|| Self::From(prefix.to_owned())),
        }
    }

    fn text(&self) -> &str {
        let (Self::One(text) | Self::From(text)) = self;
        text
    }

    fn has_all(&self, other: &Self) -> bool {
        match self {
            Self::One(_) => self == other,
            Self::From(stem) => other.text().starts_with(stem),
        }
    }

    /// Returns the first name, and the least bytes behind the last one.
    fn range(&self) -> (Vec<u8>, Vec<u8>) {
        let mut end = self.text().as_bytes().to_vec();
        end.push(match self {
            Self::One(_) => 0,
            Self::From(_) => BEYOND,
        });
        (self.text().as_bytes().to_vec(), end)
    }
}

impl Logs {
    /// Returns the first key, and the least text behind the last one.
    fn range(&self) -> (String, String) {
        match self {
            Self::Board => (BOARD_FROM.to_owned(), '\u{10FFFF}'.to_string()),
            // Behind the slash comes the digit 0.
            Self::Memories => (MEMORY.to_owned(), "memory0".to_owned()),
            Self::Messages => (MESSAGES.to_owned(), "messages0".to_owned()),
            // No name has a control character.
            Self::One(log) => (log_key(log), format!("{}\u{1}", log_key(log))),
        }
    }
}

impl Reach {
    /// Makes a reach over all entries of these names and logs.
    #[must_use]
    pub fn new(
        mut names: Vec<Names>,
        admits: Arc<dyn Fn(&SessionName) -> bool + Send + Sync>,
        logs: Vec<Logs>,
    ) -> Self {
        // Names that begin alike follow the beginning itself.
        names.sort_unstable_by(|a, b| a.text().cmp(b.text()).then(b.cmp(a)));
        names.dedup_by(|next, kept| kept.has_all(next));
        Self { names, admits, logs, agent: None, since: None }
    }

    /// Returns the ranges of names: the first one, and the least bytes behind the last one.
    #[must_use]
    pub fn name_ranges(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.names.iter().map(Names::range).collect()
    }

    /// Returns the ranges of the keys of logs, likewise.
    #[must_use]
    pub fn log_ranges(&self) -> Vec<(String, String)> {
        self.logs.iter().map(Logs::range).collect()
    }

    /// Returns the author whose entries of a log are found, if they are selected. A memory is one author's, and of
    /// messages those to the author are found.
    #[must_use]
    pub fn author_in(&self, log: &LogName) -> Option<&str> {
        match log {
            LogName::Memory(_) | LogName::Messages(_) => None,
            LogName::Questions
            | LogName::Requests
            | LogName::Trajectories
            | LogName::Screenshots => self.agent.as_ref().map(AgentName::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> Names {
        Names::One(name.to_owned())
    }

    fn from(stem: &str) -> Names {
        Names::From(stem.to_owned())
    }

    #[test]
    fn names_within_names_are_searched_once() {
        let reach =
            |names: &[Names]| Reach::new(names.to_vec(), Arc::new(|_| true), Vec::new()).names;
        assert_eq!(reach(&[one("b"), from("a"), one("ab"), from("ab")]), [from("a"), one("b")]);
        assert_eq!(reach(&[one("a"), from("a"), one("a")]), [from("a")]);
        assert_eq!(reach(&[one("a"), one("ab"), one("a")]), [one("a"), one("ab")]);
        assert_eq!(reach(&[from(""), from("x"), one("y")]), [from("")]);
    }

    #[test]
    fn a_prefix_narrows_names() {
        assert_eq!(one("demo-1").within("demo"), Some(one("demo-1")));
        assert_eq!(one("demo").within("demo-"), None);
        assert_eq!(from("demo-").within("de"), Some(from("demo-")));
        assert_eq!(from("de").within("demo"), Some(from("demo")));
        assert_eq!(from("a").within("b"), None);
    }

    #[test]
    fn ranges_hold_their_names_and_no_others() {
        let holds = |names: Names, name: &str| {
            let (from, to) = names.range();
            name.as_bytes() >= from.as_slice() && name.as_bytes() < to.as_slice()
        };
        for (names, name, expected) in [
            (one("demo"), "demo", true),
            (one("demo"), "demo1", false),
            (one("demo"), "dem", false),
            (from("demo"), "demo", true),
            (from("demo"), "demo\u{10FFFF}\u{10FFFF}", true),
            (from("demo"), "demp", false),
            (from(""), "日本", true),
        ] {
            assert_eq!(holds(names.clone(), name), expected, "{names:?} {name}");
        }
    }

    #[test]
    fn no_range_of_logs_touches_another() {
        let memory = LogName::Memory("x".parse().unwrap());
        let messages = LogName::Messages("x".parse().unwrap());
        let all = LogName::BOARD.into_iter().chain([memory.clone(), messages.clone()]);
        for log in all {
            let key = log_key(&log);
            let within = |logs: Logs| {
                let (from, to) = logs.range();
                key >= from && key < to
            };
            assert_eq!(within(Logs::Board), log.owner().is_none(), "{key}");
            assert_eq!(within(Logs::Memories), log == memory, "{key}");
            assert_eq!(within(Logs::Messages), log == messages, "{key}");
            assert!(
                within(Logs::One(log.clone()))
                    && !within(Logs::One(LogName::Memory("xy".parse().unwrap())))
            );
        }
    }
}
