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
use std::io;

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
pub(crate) fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Appends a value as JSON.
pub(crate) fn write_json(value: &impl Serialize, out: &mut String) {
    if let Err(error) = serde_json::to_writer(Text(out), value) {
        tracing::error!(%error, "cannot write an answer as JSON");
    }
}

/// Appends the rest of a page that was serialized with an empty list, from the end of the list on.
pub(crate) fn write_page_end(page: &impl Serialize, out: &mut String) {
    let mut text = String::new();
    write_json(page, &mut text);
    out.push_str(text.split_once('[').map_or("", |(_, end)| end));
}

/// A string as a writer of UTF-8.
struct Text<'a>(&'a mut String);

impl io::Write for Text<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push_str(str::from_utf8(bytes).map_err(io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
