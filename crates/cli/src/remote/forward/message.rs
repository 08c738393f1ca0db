//! Messages: a commit, an open question or what waits for an agent as the body of a webhook, with its id.
//!
//! The id is made of what the message tells, so that a message that is sent again, by this process or another one, has
//! the same id.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest as _, Sha256};

use super::stopped::Stopped;
use super::waiting::Parcel;
use crate::connection::foreign;
use crate::remote::refusal::Refusal;

/// The maximum size of a body, in bytes. The server sends addresses instead of the contents of events over 256 KiB.
const BODY_BYTES_MAX: usize = 16 << 20;

/// The bytes of a digest that are in an id.
const ID_BYTES: usize = 16;

/// A message to a receiver.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) body: Bytes,
    /// Its name for people.
    pub(super) name: String,
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: &'a str,
    timestamp: &'a str,
    session: &'a str,
    data: &'a RawValue,
}

/// The members of an event that a message needs.
#[derive(Deserialize)]
struct Commit<'a> {
    revision: u64,
    #[serde(borrow)]
    at: Cow<'a, str>,
}

/// The members of an open question that a message needs.
#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(borrow)]
    session: Cow<'a, str>,
    seq: u64,
    #[serde(borrow)]
    at: Cow<'a, str>,
}

impl Message {
    /// Makes the message of an event.
    pub(super) fn of_commit(session: &str, kind: &str, data: &str) -> Result<Self, Refusal> {
        let Commit { revision, at } = serde_json::from_str(data).map_err(Refusal::Event)?;
        let data: &RawValue = serde_json::from_str(data).map_err(Refusal::Event)?;
        // A restored backup may give a revision again, at another time.
        let id = id(&["commit", session, &revision.to_string(), &at]);
        let body = Body { r#type: &format!("commit.{kind}"), timestamp: &at, session, data };
        Self::of(id, &body, foreign(&format!("revision {revision} of {session}")))
    }

    /// Makes the message of an open question, as the inbox lists it.
    pub(super) fn of_question(entry: &RawValue) -> Result<Self, Refusal> {
        let Asked { session, seq, at } =
            serde_json::from_str(entry.get()).map_err(Refusal::Event)?;
        let id = id(&["question", &session, &seq.to_string(), &at]);
        let body = Body { r#type: "question.open", timestamp: &at, session: &session, data: entry };
        Self::of(id, &body, foreign(&format!("{session}/questions/{seq}")))
    }

    /// Makes the message of what waits for an agent.
    pub(super) fn of_attention(session: &str, parcel: &Parcel<'_>) -> Result<Self, Refusal> {
        let (agent, contents) = (parcel.agent(), &parcel.contents);
        let keys: Vec<&str> = contents.keys.iter().map(String::as_str).collect();
        let id = id(&[&["attention", session, agent], keys.as_slice()].concat());
        let data = to_raw_value(parcel).map_err(Refusal::Event)?;
        let body = Body { r#type: "attention", timestamp: &contents.at, session, data: &data };
        Self::of(id, &body, foreign(&format!("what waits for {agent} in {session}")))
    }

    fn of(id: String, body: &Body<'_>, name: String) -> Result<Self, Refusal> {
        let body = serde_json::to_vec(body).map_err(Refusal::Event)?;
        if body.len() > BODY_BYTES_MAX {
            return Err(Stopped::TooLarge { what: name, max: BODY_BYTES_MAX }.into());
        }
        Ok(Self { id, body: body.into(), name })
    }
}

/// Returns an id without a full stop, which would divide what is signed. Names have no line ends.
fn id(parts: &[&str]) -> String {
    let digest = Sha256::digest(parts.join("\n"));
    let hex = digest.iter().take(ID_BYTES).map(|byte| format!("{byte:02x}"));
    format!("msg_{}", hex.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::waiting::Waiting;
    use super::*;

    #[test]
    fn an_event_is_data_as_it_came() {
        let data = r#"{"revision":3,"at":"2026-11-21T07:03:01.500Z","changes":[{"n": 1.0}]}"#;
        let message = Message::of_commit("a.b", "appended", data).unwrap();
        let expected = format!(
            r#"{{"type":"commit.appended","timestamp":"2026-11-21T07:03:01.500Z","session":"a.b","data":{data}}}"#
        );
        assert_eq!(message.body, expected);
        assert_eq!(message.name, "revision 3 of a.b");
    }

    #[test]
    fn an_id_is_that_of_one_commit_or_question() {
        let commit = |session: &str, revision: u64, at: &str| {
            let data = format!(r#"{{"revision":{revision},"at":"{at}","changes":[]}}"#);
            Message::of_commit(session, "appended", &data).unwrap().id
        };
        let question = |session: &str, seq: u64, at: &str| {
            let entry = format!(r#"{{"session":"{session}","seq":{seq},"at":"{at}","item":{{}}}}"#);
            let entry = RawValue::from_string(entry).unwrap();
            Message::of_question(&entry).unwrap().id
        };
        let id = commit("a.b", 3, "x");
        assert!(id.len() == 36 && id.starts_with("msg_") && !id.contains('.'), "{id}");
        assert_eq!(commit("a.b", 3, "x"), id);
        let others = [
            commit("a", 3, "x"),
            commit("a.b", 4, "x"),
            commit("a.b", 3, "y"),
            question("a.b", 3, "x"),
        ];
        assert!(others.iter().all(|other| *other != id), "{others:?}");
    }

    #[test]
    fn an_id_is_that_of_what_waits() {
        let message = |agent: &str, seq: u64, next: u64| {
            let entry = format!(r#"{{"seq":{seq},"revision":1,"at":"T","item":{{}}}}"#);
            let text = format!(
                r#"{{"messages":{{"count":1,"newest":[{entry}]}},"paused":false,"next":{next}}}"#
            );
            let waiting: Waiting<'_> = serde_json::from_str(&text).unwrap();
            let parcel = waiting.parcel(agent, None, &BTreeSet::new()).unwrap().unwrap();
            Message::of_attention("demo", &parcel).unwrap()
        };
        let first = message("A", 1, 7);
        assert_eq!(first.name, "what waits for A in demo");
        assert!(first.body.starts_with(br#"{"type":"attention","timestamp":"T","session":"demo""#));
        // What else happened in the session makes no other message.
        assert_eq!(message("A", 1, 8).id, first.id);
        for other in [message("B", 1, 7), message("A", 2, 7)] {
            assert_ne!(other.id, first.id);
        }
    }
}
