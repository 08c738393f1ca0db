//! Entries, changes, agents and state as JSON.
//!
//! A response struct is both the schema in the document and the serialized form, so the two cannot differ.

pub(crate) mod agent;
pub(crate) mod change;
pub(crate) mod entry;
pub(crate) mod event;
pub(crate) mod inline_image;
pub(crate) mod state;

use std::fmt::Display;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The maximum size of JSON that is written without an allocation.
const JSON_BYTES: usize = 512;

/// A value whose JSON is a string with its `Display` text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<T>(pub(crate) T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Wraps JSON text written here, to embed it in another text.
pub(crate) fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Appends a value as JSON. The text is checked once as a whole, since a check of each token costs a page a third of
/// its time.
pub(crate) fn write_json(value: &impl Serialize, out: &mut String) {
    let mut buffer = [0; JSON_BYTES];
    let mut rest = buffer.as_mut_slice();
    if serde_json::to_writer(&mut rest, value).is_ok() {
        let length = JSON_BYTES - rest.len();
        return push_json(buffer.get(..length).unwrap_or_default(), out);
    }
    match serde_json::to_vec(value) {
        Ok(json) => push_json(&json, out),
        Err(error) => tracing::error!(%error, "cannot serialize a response as JSON"),
    }
}

fn push_json(json: &[u8], out: &mut String) {
    match str::from_utf8(json) {
        Ok(text) => out.push_str(text),
        Err(error) => tracing::error!(%error, "a response's JSON is not UTF-8"),
    }
}

/// Appends the rest of a page that was serialized with an empty list, from the end of the list on.
pub(crate) fn write_page_end(page: &impl Serialize, out: &mut String) {
    let mut text = String::new();
    write_json(page, &mut text);
    out.push_str(text.split_once('[').map_or("", |(_, end)| end));
}
