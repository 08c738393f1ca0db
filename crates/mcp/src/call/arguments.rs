//! The arguments of a call, as exact JSON.
//!
//! The protocol's library parses numbers as floats and drops the order of members. So the text of the arguments is
//! taken from the request itself.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use axum::body::Bytes;

use super::schema::{Properties, conformed};
use blackboard_api::fingerprint::Fingerprint;
use blackboard_api::intake::fields::{json_text, text_of, value_of};
use blackboard_api::intake::input::Source;
use blackboard_api::offload::work;
use blackboard_api::params::Params;
use blackboard_api::refusal::{Refusal, child, invalid_field, unknown_field};
use blackboard_board::json::{DEPTH_MAX, Kind};
use blackboard_board::{ITEM_BYTES_MAX, Seq, json};

/// The maximum number of arguments of a call, repeated ones counted once. No tool has as many.
const ARGUMENTS_MAX: usize = 64;

/// The room that is made for arguments at first.
const ARGUMENTS_USUAL: usize = 8;

/// The argument that identifies a call, so that a repeat gets the first answer.
const KEY: &str = "/idempotency_key";

/// The text of the arguments in a request's body, an object. It keeps the body.
#[derive(Clone)]
pub(crate) struct RawArguments(Bytes);

impl RawArguments {
    /// Creates the arguments with a part of a body that was checked to be JSON.
    pub(crate) const fn new(text: Bytes) -> Self {
        Self(text)
    }
}

/// The arguments that are not taken yet.
pub(crate) struct Arguments {
    /// Each with its JSON pointer.
    left: Vec<(String, String)>,
    known: Vec<&'static str>,
    said: [u8; 32],
}

impl Arguments {
    /// Reads the arguments as they were sent, by the schema of their tool's properties; in the client's turn if they are
    /// large.
    pub(crate) async fn of(
        raw: Option<RawArguments>,
        properties: &'static Properties,
    ) -> Result<Self, Refusal> {
        let Some(RawArguments(text)) = raw else { return Ok(Self::none()) };
        work(text.len(), move || Self::read(json_text(&text)?, properties)).await
    }

    fn read(text: &str, properties: &Properties) -> Result<Self, Refusal> {
        let mut left: Vec<(String, String)> = Vec::with_capacity(ARGUMENTS_USUAL);
        for member in json::members(text) {
            let (name, pointer) = (json::decode(member.name), child("", member.name));
            // The last of repeated ones, as in Python.
            left.retain(|(known, _)| *known != pointer);
            if left.len() == ARGUMENTS_MAX {
                let why = format!("expected at most {ARGUMENTS_MAX} arguments");
                return Err(invalid_field(String::new(), why));
            }
            left.push((pointer, conformed(properties, &name, member.value)?));
        }
        // Only a keyed call is compared with earlier ones.
        let is_keyed = left.iter().any(|(name, _)| name == KEY);
        let said = if is_keyed { hash(text) } else { [0; 32] };
        Ok(Self { left, known: Vec::with_capacity(ARGUMENTS_USUAL), said })
    }

    /// Creates no arguments.
    pub(crate) const fn none() -> Self {
        Self { left: Vec::new(), known: Vec::new(), said: [0; 32] }
    }

    /// Returns the hash of all arguments except the idempotency key, in any order; zero of a call without the key.
    pub(crate) const fn said(&self) -> [u8; 32] {
        self.said
    }

    /// Takes an argument as JSON text, null included.
    pub(crate) fn json(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        // No name of an argument needs escaping.
        let index =
            self.left.iter().position(|(known, _)| known.strip_prefix('/') == Some(name))?;
        Some(self.left.swap_remove(index).1)
    }

    /// Takes an argument. A null counts as absent, since many models send it for what they leave out.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<String> {
        self.json(name).filter(|value| value != "null")
    }

    /// Returns the number of bytes that are left.
    pub(crate) fn bytes(&self) -> usize {
        self.left.iter().map(|(_, value)| value.len()).sum()
    }

    /// Takes an argument that must be there.
    pub(crate) fn need(&mut self, name: &'static str) -> Result<String, Refusal> {
        self.take(name).ok_or_else(|| missing(name))
    }

    /// Takes a string of any length that an item may have.
    pub(crate) fn string(&mut self, name: &'static str) -> Result<Option<String>, Refusal> {
        let Some(value) = self.take(name) else { return Ok(None) };
        if json::kind(&value) != Kind::String {
            return Err(invalid_field(pointer(name), "expected a string"));
        }
        if value.len() > ITEM_BYTES_MAX {
            return Err(invalid_field(pointer(name), "is too long"));
        }
        // Only an escape can stand for a character that no board takes.
        if value.contains('\\') {
            value_of(&value, DEPTH_MAX, &pointer(name))?;
        }
        Ok(Some(json::decode(&value).into_owned()))
    }

    /// Takes a string that must be there.
    pub(crate) fn need_string(&mut self, name: &'static str) -> Result<String, Refusal> {
        self.string(name)?.ok_or_else(|| missing(name))
    }

    /// Takes a short string, parsed by its type.
    pub(crate) fn parsed<T>(&mut self, name: &'static str) -> Result<Option<T>, Refusal>
    where
        T: FromStr<Err: Display>,
    {
        let Some(value) = self.take(name) else { return Ok(None) };
        let text = short(&value, &pointer(name))?;
        text.parse().map(Some).map_err(|why: T::Err| invalid_field(pointer(name), why.to_string()))
    }

    /// Takes a whole number within bounds.
    pub(crate) fn whole(
        &mut self,
        name: &'static str,
        min: u64,
        max: u64,
    ) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let whole = json::whole(&value).filter(|number| (min..=max).contains(number));
        let why = || match max {
            u64::MAX => format!("expected a whole number of at least {min}"),
            max => format!("expected a whole number from {min} to {max}"),
        };
        whole.map(Some).ok_or_else(|| invalid_field(pointer(name), why()))
    }

    /// Takes the place of an entry, which must be there.
    pub(crate) fn need_seq(&mut self, name: &'static str) -> Result<Seq, Refusal> {
        self.whole(name, 1, u64::MAX)?.map(Seq).ok_or_else(|| missing(name))
    }

    /// Takes true or false; false if absent.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, Refusal> {
        match self.take(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(invalid_field(pointer(name), "expected true or false")),
        }
    }

    /// Takes these arguments as the parameters of a query: texts, and lists of texts. A number counts as its text.
    pub(crate) fn params(
        &mut self,
        texts: &[&'static str],
        lists: &[&'static str],
    ) -> Result<Params, Refusal> {
        let mut pairs = Vec::new();
        for name in texts.iter().chain(lists) {
            let Some(value) = self.take(name) else { continue };
            let is_list = lists.contains(name);
            let text = match json::kind(&value) {
                Kind::String => {
                    value_of(&value, 1, &pointer(name))?;
                    json::decode(&value).into_owned()
                }
                Kind::Number => value,
                Kind::Array if is_list => value,
                Kind::Array | Kind::Bool | Kind::Null | Kind::Object => {
                    let expected =
                        if is_list { "expected an array of strings" } else { "expected a string" };
                    return Err(invalid_field(pointer(name), expected));
                }
            };
            pairs.push((*name, text));
        }
        Ok(Params::of(pairs))
    }

    /// Takes the argument `by`, the agent that a query is limited to, into the query's parameters.
    pub(crate) fn by(&mut self, params: Params) -> Result<Params, Refusal> {
        Ok(match self.string("by")? {
            Some(by) => params.and("agent", &by),
            None => params,
        })
    }

    /// Refuses an argument that is left, which is unknown.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        match self.left.into_iter().next() {
            Some((pointer, _)) => Err(unknown_field(pointer, &self.known)),
            None => Ok(()),
        }
    }
}

impl Source for Arguments {
    fn member(&mut self, name: &'static str) -> Option<(String, Cow<'_, str>)> {
        self.take(name).map(|value| (pointer(name), Cow::Owned(value)))
    }

    fn lacks(&self, name: &str) -> Refusal {
        missing(name)
    }
}

/// Hashes arguments, as they were sent, for the fingerprint of a keyed call.
fn hash(text: &str) -> [u8; 32] {
    let mut all: Vec<(String, &str)> = Vec::new();
    for member in json::members(text) {
        let name = child("", member.name);
        all.retain(|(known, _)| *known != name);
        all.push((name, member.value));
    }
    all.retain(|(name, _)| name != KEY);
    all.sort();
    let mut said = Fingerprint::default();
    for (name, value) in &all {
        said.say(name.as_bytes());
        said.say(value.as_bytes());
    }
    said.digest().0
}

/// Reads a short string. A number counts as its text, such as a revision or a checkpoint.
fn short(value: &str, pointer: &str) -> Result<String, Refusal> {
    match json::kind(value) {
        Kind::String => text_of(value, pointer),
        Kind::Number => Ok(value.to_owned()),
        Kind::Object | Kind::Array | Kind::Bool | Kind::Null => {
            Err(invalid_field(pointer.to_owned(), "expected a string"))
        }
    }
}

/// Returns the JSON pointer of an argument. Names of arguments need no escaping.
pub(crate) fn pointer(name: &str) -> String {
    format!("/{name}")
}

/// Refuses a call without an argument that it must have.
pub(crate) fn missing(name: &str) -> Refusal {
    invalid_field(String::new(), format!("expected the argument '{name}'"))
}
