//! JSON-RPC messages, of which only the parts that the bridge needs are read.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The error code of a line that is not JSON.
pub(super) const PARSE_ERROR: i32 = -32700;

/// The error code of JSON that is not a message.
pub(super) const INVALID_REQUEST: i32 = -32600;

/// The id of a request, as the text that the host sent.
#[derive(Clone, Debug)]
pub(super) struct Id(Box<RawValue>);

/// A message, with what its headers need.
#[derive(Debug)]
pub(super) enum Message {
    Request {
        id: Id,
        method: String,
        params: Params,
    },
    Notification {
        method: String,
        params: Params,
    },
    /// The answer to a request of the other side; `id` is missing or null where that was not understood.
    Answer {
        id: Option<Id>,
        error: Option<Box<RawValue>>,
    },
}

/// A text that is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("the line is not JSON in UTF-8")]
    Json,
    #[error(
        "the line is not a JSON-RPC message: an object with a method, an id or both; batches are not supported"
    )]
    Message,
}

/// The members of `params` and `result` that say something about the exchange. A member of another type is left to
/// the server.
#[derive(Debug, Default)]
pub(super) struct Params {
    pub(super) name: Option<String>,
    pub(super) uri: Option<String>,
    pub(super) task_id: Option<String>,
    /// The version in `_meta`, which each request has from 2026-07-28 on.
    pub(super) meta_version: Option<String>,
    /// The version of `initialize` and its answer.
    pub(super) version: Option<String>,
    /// The id that `notifications/cancelled` names.
    pub(super) request_id: Option<Id>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    task_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow)]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Resulting<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

#[derive(Serialize)]
struct Failed<'a, T> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    error: T,
}

/// An error as JSON-RPC has it.
#[derive(Debug, Serialize)]
pub(super) struct RpcError<'a, T> {
    pub(super) code: i32,
    pub(super) message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<T>,
}

/// A member that is null is there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Message {
    pub(super) fn read(text: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(text).map_err(|_| Malformed::Json)?;
        let envelope: Envelope<'_> = object(text)?;
        let id = match envelope.id.map(|id| (Id::read(id), id.get())) {
            Some((None, "null")) if envelope.method.is_none() => None,
            Some((None, _)) => return Err(Malformed::Message),
            Some((id, _)) => id,
            None => None,
        };
        let Some(method) = envelope.method else {
            let error = envelope.error.map(ToOwned::to_owned);
            let is_answer = id.is_some() || error.is_some();
            return if is_answer {
                Ok(Self::Answer { id, error })
            } else {
                Err(Malformed::Message)
            };
        };
        let method = string(method).ok_or(Malformed::Message)?;
        let params = envelope.params.map(Params::read).unwrap_or_default();
        Ok(match id {
            Some(id) => Self::Request { id, method, params },
            None => Self::Notification { method, params },
        })
    }
}

impl Id {
    /// Reads an id; only strings and numbers are ids.
    fn read(value: &RawValue) -> Option<Self> {
        let is_id = value.get().starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
        is_id.then(|| Self(value.to_owned()))
    }

    /// Returns what is equal of equal ids: one string may be written in several ways.
    pub(super) fn key(&self) -> String {
        string(&self.0).map_or_else(|| self.0.get().to_owned(), |text| format!("\"{text}"))
    }
}

impl Params {
    fn read(value: &RawValue) -> Self {
        let members: Members<'_> = object(value.get()).unwrap_or_default();
        let meta: Meta<'_> =
            members.meta.and_then(|meta| object(meta.get()).ok()).unwrap_or_default();
        Self {
            name: members.name.and_then(string),
            uri: members.uri.and_then(string),
            task_id: members.task_id.and_then(string),
            meta_version: meta.version.and_then(string),
            version: members.protocol_version.and_then(string),
            request_id: members.request_id.and_then(Id::read),
        }
    }

    /// Reads the result of an answer.
    pub(super) fn of_result(answer: &str) -> Self {
        object::<Resulting<'_>>(answer).map(|answer| Self::read(answer.result)).unwrap_or_default()
    }
}

/// Returns the text of an error for a request, or for a line whose id is unknown.
pub(super) fn error_text(id: Option<&Id>, error: impl Serialize) -> String {
    let failed = Failed { jsonrpc: "2.0", id: id.map(|id| &*id.0), error };
    serde_json::to_string(&failed).unwrap_or_default()
}

/// Reads an object; a struct would be read from an array too.
fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Malformed> {
    if !text.trim_start().starts_with('{') {
        let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
        return Err(if is_json { Malformed::Message } else { Malformed::Json });
    }
    serde_json::from_str(text)
        .map_err(|why| if why.is_data() { Malformed::Message } else { Malformed::Json })
}

fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests;
