//! The arguments of a call, as exact JSON.
//!
//! The protocol's library parses numbers as floats and drops the order of members. So the text of the arguments is
//! taken from the request itself.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::fingerprint::Fingerprint;
use crate::api::intake::fields::{members, text_of, value_of};
use crate::api::params::Params;
use crate::api::refusal::{Refusal, child, invalid_field, object_required, unknown_field};
use crate::board::json::{DEPTH_MAX, Kind};
use crate::board::{ITEM_BYTES_MAX, Seq, json};

/// The text of the arguments in a request's body.
#[derive(Clone)]
pub(crate) struct RawArguments(Arc<str>);

/// The parts of a message that are looked at before the protocol's library parses it.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    params: Option<MessageParams<'a>>,
}

#[derive(Deserialize)]
struct MessageParams<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl RawArguments {
    /// Finds the arguments in a message. A message that is not understood here has none.
    pub(crate) fn of(body: &[u8]) -> Option<Self> {
        let message: Message<'_> = serde_json::from_slice(body).ok()?;
        Some(Self(message.params?.arguments?.get().into()))
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
    /// Reads the arguments as they were sent, else as the protocol's library read them.
    pub(crate) fn of(
        raw: Option<&RawArguments>,
        parsed: Option<JsonObject>,
    ) -> Result<Self, Refusal> {
        let text: Cow<'_, str> = match (raw, parsed) {
            // The whole body was checked to be JSON.
            (Some(raw), _) => Cow::Borrowed(&raw.0),
            (None, Some(parsed)) => Cow::Owned(serde_json::Value::Object(parsed).to_string()),
            (None, None) => Cow::Borrowed("{}"),
        };
        if json::kind(&text) != Kind::Object {
            return Err(object_required(String::new(), json::kind(&text)));
        }
        let mut left: Vec<(String, String)> = Vec::new();
        for (pointer, value) in members("", &text)? {
            // The last of repeated ones, as in Python.
            left.retain(|(known, _)| *known != pointer);
            left.push((pointer, value.to_owned()));
        }
        let said = said(&left);
        Ok(Self { left, known: Vec::new(), said })
    }

    /// Creates no arguments.
    pub(crate) const fn none() -> Self {
        Self { left: Vec::new(), known: Vec::new(), said: [0; 32] }
    }

    /// Returns the hash of all arguments except the idempotency key, in any order.
    pub(crate) const fn said(&self) -> [u8; 32] {
        self.said
    }

    /// Takes an argument as JSON text, null included.
    pub(crate) fn json(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let pointer = child("", &format!("\"{name}\""));
        let index = self.left.iter().position(|(known, _)| *known == pointer)?;
        Some(self.left.swap_remove(index).1)
    }

    /// Returns an argument without taking it, if it is a short string of this type.
    pub(crate) fn peek<T: FromStr>(&self, name: &'static str) -> Option<T> {
        let pointer = child("", &format!("\"{name}\""));
        let (_, value) = self.left.iter().find(|(known, _)| *known == pointer)?;
        text_of(value, &pointer).ok()?.parse().ok()
    }

    /// Takes an argument. A null counts as absent, since many models send it for what they leave out.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<String> {
        self.json(name).filter(|value| value != "null")
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
        value_of(&value, DEPTH_MAX, &pointer(name))?;
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
        let text = match json::kind(&value) {
            Kind::String => text_of(&value, &pointer(name))?,
            // A revision or a checkpoint, say.
            Kind::Number => value,
            Kind::Object | Kind::Array | Kind::Bool | Kind::Null => {
                return Err(invalid_field(pointer(name), "expected a string"));
            }
        };
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

/// Hashes arguments for the fingerprint of a keyed call.
fn said(all: &[(String, String)]) -> [u8; 32] {
    let mut sorted: Vec<_> = all.iter().filter(|(name, _)| name != "/idempotency_key").collect();
    sorted.sort();
    let mut said = Fingerprint::default();
    for part in sorted.iter().flat_map(|(name, value)| [name, value]) {
        said.say(part.as_bytes());
    }
    said.digest().0
}

/// Returns the JSON pointer of an argument. Names of arguments need no escaping.
pub(crate) fn pointer(name: &str) -> String {
    format!("/{name}")
}

/// Refuses a call without an argument that it must have.
pub(crate) fn missing(name: &str) -> Refusal {
    invalid_field(String::new(), format!("expected the argument '{name}'"))
}
