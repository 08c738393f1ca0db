//! Entries, changes, agents and state as JSON.
//!
//! A response struct is both the schema in the document and the serialized form, so the two cannot differ.

pub mod agent;
pub mod change;
pub mod entry;
pub mod event;
pub mod inline_image;
pub mod state;
pub(crate) mod text_image;
pub mod transaction;

use std::fmt::Display;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A value whose JSON is a string with its `Display` text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<T>(pub(crate) T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Wraps JSON text written here, to embed it in another text.
pub fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Appends a value as JSON, by way of a string of its own: a writer that appends to `out` must check each token to be
/// UTF-8, which costs a page a third of its time.
pub fn write_json(value: &impl Serialize, out: &mut String) {
    match serde_json::to_string(value) {
        Ok(json) => out.push_str(&json),
        Err(error) => tracing::error!(%error, "cannot serialize a response as JSON"),
    }
}

/// Appends the rest of a page that was serialized with an empty list, from the end of the list on.
pub(crate) fn write_page_end(page: &impl Serialize, out: &mut String) {
    let mut text = String::new();
    write_json(page, &mut text);
    out.push_str(text.split_once('[').map_or("", |(_, end)| end));
}
