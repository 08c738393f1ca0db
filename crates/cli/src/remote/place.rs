//! Places on a board as people write them: `SESSION/log/seq`, `SESSION/path/in/the/state`.

use std::str::FromStr;

use serde::de::IgnoredAny;

use blackboard_address::{entry_url, log_path, log_url, parse_log_path, session_url};
use blackboard_board::{InvalidName, InvalidPath, LogName, Seq, SessionName, StatePath};

/// A text that is no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidPlace {
    #[error("the session's name is invalid: {0}")]
    Session(#[from] InvalidName),
    #[error(
        "{0:?} is not a log; the logs are questions, requests, trajectories, screenshots, agents/NAME/memory and \
         agents/NAME/messages"
    )]
    Log(String),
    #[error("{0:?} is not a seq, which is a whole number from 1")]
    Seq(String),
    #[error("name a log, as in SESSION/requests")]
    NoLog,
    #[error("name an entry, as in SESSION/{0}/3")]
    NoEntry(String),
    #[error("the path in the state is invalid: {0}")]
    State(#[from] InvalidPath),
}

/// A text that is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("{name} is not JSON; a text needs quotes within the shell's, as in '\"text\"'")]
pub(crate) struct InvalidJson {
    name: &'static str,
    source: serde_json::Error,
}

/// A session, a log of it, or an entry of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) session: SessionName,
    pub(super) log: Option<LogName>,
    pub(super) seq: Option<Seq>,
}

impl Place {
    /// Returns the address of what it names.
    pub(super) fn address(&self) -> String {
        match (&self.log, self.seq) {
            (Some(log), Some(seq)) => entry_url(&self.session, log, seq),
            (Some(log), None) => log_url(&self.session, log),
            (None, _) => session_url(&self.session),
        }
    }
}

impl FromStr for Place {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        let (session, rest) = split(text)?;
        let Some(rest) = rest else { return Ok(Self { session, log: None, seq: None }) };
        if let Some(log) = parse_log_path(rest) {
            return Ok(Self { session, log: Some(log), seq: None });
        }
        let no_log = || InvalidPlace::Log(rest.to_owned());
        let (log, seq) = rest.rsplit_once('/').ok_or_else(no_log)?;
        let log = parse_log_path(log).ok_or_else(no_log)?;
        Ok(Self { session, log: Some(log), seq: Some(parse_seq(seq)?) })
    }
}

/// A log of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogPlace {
    pub(super) session: SessionName,
    pub(super) log: LogName,
}

impl FromStr for LogPlace {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        match text.parse()? {
            Place { session, log: Some(log), seq: None } => Ok(Self { session, log }),
            Place { log: Some(_), seq: Some(Seq(seq)), .. } => {
                Err(InvalidPlace::Log(format!("…/{seq}")))
            }
            Place { log: None, .. } => Err(InvalidPlace::NoLog),
        }
    }
}

/// An entry of the one log that a command is about; `SESSION/3` is short for `SESSION/requests/3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryPlace {
    pub(super) session: SessionName,
    pub(super) seq: Seq,
}

impl EntryPlace {
    pub(super) fn question(text: &str) -> Result<Self, InvalidPlace> {
        Self::of(text, &LogName::Questions)
    }

    pub(super) fn request(text: &str) -> Result<Self, InvalidPlace> {
        Self::of(text, &LogName::Requests)
    }

    fn of(text: &str, log: &LogName) -> Result<Self, InvalidPlace> {
        let (session, rest) = split(text)?;
        let log = log_path(log);
        let rest = rest.ok_or_else(|| InvalidPlace::NoEntry(log.clone()))?;
        let seq = rest.strip_prefix(&log).and_then(|rest| rest.strip_prefix('/')).unwrap_or(rest);
        if seq.is_empty() || *seq == *log {
            return Err(InvalidPlace::NoEntry(log));
        }
        Ok(Self { session, seq: parse_seq(seq)? })
    }
}

/// A value in a session's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValuePlace {
    pub(super) session: SessionName,
    pub(super) path: StatePath,
}

impl FromStr for ValuePlace {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        let (session, rest) = split(text)?;
        let path = rest.map_or_else(|| Ok(StatePath::root()), str::parse)?;
        Ok(Self { session, path })
    }
}

/// Returns the session and what follows its slash. A name has no slash.
fn split(text: &str) -> Result<(SessionName, Option<&str>), InvalidPlace> {
    match text.split_once('/') {
        Some((session, rest)) => Ok((session.parse()?, Some(rest).filter(|rest| !rest.is_empty()))),
        None => Ok((text.parse()?, None)),
    }
}

fn parse_seq(text: &str) -> Result<Seq, InvalidPlace> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let seq = text.parse().ok().filter(|seq| is_number && *seq > 0);
    seq.map(Seq).ok_or_else(|| InvalidPlace::Seq(text.to_owned()))
}

/// Returns a text that is JSON as it is.
pub(super) fn json(name: &'static str, text: String) -> Result<String, InvalidJson> {
    match serde_json::from_str::<IgnoredAny>(&text) {
        Ok(_) => Ok(text),
        Err(source) => Err(InvalidJson { name, source }),
    }
}

/// Returns a text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> String {
        text.parse::<Place>().unwrap().address()
    }

    #[test]
    fn a_place_is_a_session_a_log_or_an_entry() {
        assert_eq!(address("demo"), "/v1/sessions/demo");
        assert_eq!(address("demo/"), "/v1/sessions/demo");
        assert_eq!(address("a b%/requests"), "/v1/sessions/a%20b%25/requests");
        assert_eq!(address("demo/questions/3"), "/v1/sessions/demo/questions/3");
        assert_eq!(address("é/agents/A b/memory"), "/v1/sessions/%C3%A9/agents/A%20b/memory");
        assert_eq!(address("demo/agents/3/memory/17"), "/v1/sessions/demo/agents/3/memory/17");
        assert_eq!(address("demo/agents/A/messages/1"), "/v1/sessions/demo/agents/A/messages/1");
    }

    #[test]
    fn what_is_no_place_says_why() {
        let refused = |text: &str| text.parse::<Place>().unwrap_err().to_string();
        for text in ["demo/logs", "demo/requests/3/4", "demo/agents/A", "demo/3", "demo//"] {
            assert!(refused(text).contains("is not a log"), "{text}: {}", refused(text));
        }
        for text in ["demo/requests/x", "demo/requests/0", "demo/requests/+3", "demo/requests/"] {
            assert!(refused(text).contains("is not a seq"), "{text}: {}", refused(text));
        }
        for text in ["", "/requests", "..", "a\u{7}"] {
            assert!(refused(text).contains("the session's name is invalid"), "{text}");
        }
        assert_eq!("demo".parse::<LogPlace>(), Err(InvalidPlace::NoLog));
        assert!(matches!("demo/requests/3".parse::<LogPlace>(), Err(InvalidPlace::Log(_))));
    }

    #[test]
    fn an_entry_of_a_known_log_has_a_short_form() {
        for text in ["demo/questions/3", "demo/3"] {
            let place = EntryPlace::question(text).unwrap();
            assert_eq!((place.session.as_str(), place.seq), ("demo", Seq(3)));
        }
        assert!(matches!(EntryPlace::request("demo/questions/3"), Err(InvalidPlace::Seq(_))));
        for text in ["demo", "demo/", "demo/requests", "demo/requests/"] {
            assert!(matches!(EntryPlace::request(text), Err(InvalidPlace::NoEntry(_))), "{text}");
        }
    }

    #[test]
    fn a_value_has_a_path_with_escapes() {
        let place = |text: &str| text.parse::<ValuePlace>();
        assert!(place("demo").unwrap().path.is_root() && place("demo/").unwrap().path.is_root());
        assert_eq!(place("demo/a/b~1c").unwrap().path.to_string(), "a/b~1c");
        for text in ["demo//a", "demo/a/", "demo/a~2", "demo/a/.."] {
            assert!(matches!(place(text), Err(InvalidPlace::State(_))), "{text}");
        }
    }

    #[test]
    fn json_is_kept_as_it_is_written() {
        assert_eq!(json("VALUE", " {\"b\": 1.0}".to_owned()).unwrap(), " {\"b\": 1.0}");
        let refused = json("VALUE", "ready".to_owned()).unwrap_err().to_string();
        assert!(refused.contains("VALUE is not JSON"), "{refused}");
        assert_eq!(quoted("a\"\n"), r#""a\"\n""#);
    }
}
