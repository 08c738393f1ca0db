//! Canaries: secrets sent with every request, which no log line may contain.
//!
//! The harness lets every server log at trace level, and looks through what it said when it is gone.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderValue};
use serde_json::Value;

/// Of the form that tokens have.
pub(crate) const TOKEN: &str = "bb_CanaryThatSingsOnlyWhereItIsHeard0123456789";

/// A session's cookie.
pub(crate) const BISCUIT: &str = "CanaryInABiscuitThatNobodyEats";

/// How images begin, as text; nobody has to send them first.
const IMAGES: [&str; 3] = ["data:image/", "iVBORw0KGgo", "R0lGODlh"];

/// What stands before a signature in an address.
const SIGNATURE: &str = "signature=";

/// How many contents are kept of what one server is sent, each of at least and at most so many bytes: enough to find
/// that a line tells them at all.
const CONTENTS_MAX: usize = 64;
const LENGTH_MIN: usize = 12;
const LENGTH_MAX: usize = 64;
const BODY_BYTES_MAX: usize = 16 << 10;

/// Members whose text is a name, which a log may have.
const NAMES: [&str; 5] = ["agent", "by", "name", "session", "to"];

/// What goes with every request of the harness that brings nothing of its own in its place.
pub(crate) fn headers() -> HeaderMap {
    let bearer = HeaderValue::from_str(&format!("Bearer {TOKEN}")).expect("a header");
    let cookie = HeaderValue::from_str(&format!("blackboard={BISCUIT}")).expect("a header");
    [(AUTHORIZATION, bearer), (COOKIE, cookie)].into_iter().collect()
}

/// What was sent to one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Canaries(Arc<Mutex<Sent>>);

#[derive(Debug, Default)]
struct Sent {
    contents: HashSet<String>,
    names: HashSet<String>,
}

impl Canaries {
    /// A session or an agent is named so.
    pub(crate) fn name(&self, name: &str) {
        self.0.lock().unwrap().names.insert(name.to_owned());
    }

    /// A body is sent: its strings are contents, where it is JSON or lines of it.
    pub(crate) fn body(&self, body: &[u8]) {
        if body.len() > BODY_BYTES_MAX {
            return;
        }
        let mut sent = self.0.lock().unwrap();
        for value in serde_json::Deserializer::from_slice(body).into_iter().map_while(Result::ok) {
            sent.add(&value);
        }
    }

    /// Nothing of it may be in what the server said.
    #[track_caller]
    pub(crate) fn check(&self, said: &str) {
        let sent = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_name = |canary: &&String| sent.names.iter().any(|name| name.contains(&***canary));
        let contents = sent.contents.iter().filter(|canary| !is_name(canary)).map(String::as_str);
        let always = [TOKEN, BISCUIT, SIGNATURE].into_iter().chain(IMAGES);
        for canary in always.chain(contents) {
            if let Some(line) = said.lines().find(|line| line.contains(canary)) {
                panic!("the log has {canary:?}, which was sent as a secret or a content:\n{line}");
            }
        }
    }
}

impl Sent {
    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(values) => values.iter().for_each(|value| self.add(value)),
            Value::Object(members) => {
                for (_, value) in members.iter().filter(|(name, _)| !NAMES.contains(&&***name)) {
                    self.add(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The first part of it that a log would show as it is; ids and digests may be told.
    fn text(&mut self, text: &str) {
        let shown = |c: char| (c.is_ascii_graphic() || c == ' ') && !matches!(c, '"' | '\\');
        let part = text.split(|c| !shown(c)).find(|part| part.len() >= LENGTH_MIN);
        let Some(part) = part else { return };
        let part = &part[..part.len().min(LENGTH_MAX)];
        let is_id = part.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        if !is_id && self.contents.len() < CONTENTS_MAX {
            self.contents.insert(part.to_owned());
        }
    }
}

#[test]
fn what_was_sent_is_found_and_names_are_not_meant() {
    let canaries = Canaries::default();
    canaries.name("a session of some length");
    let item = br#"{"text":"\u00e4 word that nobody may read","to":"another session of a length"}"#;
    canaries.body(item);
    canaries.body(
        br#"{"session":"a session of some length","n":"session of some"} ["0123456789ab-cdef"]"#,
    );
    canaries.check(
        "a session of some length, another session of a length, 0123456789ab-cdef, session of some",
    );
    for secret in ["said: word that nobody may read", TOKEN, BISCUIT, "\"data:image/png;base64,\""]
    {
        let check = || canaries.check(secret);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).unwrap_err();
    }
}
