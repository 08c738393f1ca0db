//! A board as a model reads it: the original's `blackboard_to_prompt`, part by part.
//!
//! Everything here is text in, text out. Which entries, and where an image's bytes come from, is the
//! caller's.

pub mod python;
mod python_float;

use crate::board::{IMAGE_MEMBER, Item, LogName, json};

/// The part that opens every prompt.
pub const OPENING: &str = "{\"type\": \"text\", \"text\": \"[Blackboard:]\"}";

/// The heading of a log's part.
#[must_use]
pub fn heading(log: &LogName) -> String {
    match log {
        LogName::Questions => "[Questions & Answers:]".to_owned(),
        LogName::Requests => "[Request History:]".to_owned(),
        LogName::Trajectories => "[Step Trajectories Completed Previously:]".to_owned(),
        LogName::Screenshots => "[Screenshots:]".to_owned(),
        LogName::Memory(agent) => format!("[Memory of {agent}:]"),
    }
}

/// A text part while it is being written: a heading, and a list of items as Python's `json.dumps`
/// writes it.
#[derive(Debug, Default)]
pub struct ListPart {
    begun: bool,
    line: String,
}

impl ListPart {
    /// Writes the part's beginning.
    pub fn open(log: &LogName, out: &mut String) -> Self {
        open_text(&format!("{}\n [", heading(log)), out);
        Self::default()
    }

    /// Writes one item, with these members only where some are named.
    pub fn item(&mut self, item: &Item, keys: Option<&[String]>, out: &mut String) {
        if self.begun {
            out.push_str(", ");
        }
        self.begun = true;
        self.line.clear();
        match keys {
            Some(keys) => {
                let keep = |name: &str| keys.iter().any(|key| key == name);
                python::dumps_members(item.text(), keep, &mut self.line);
            }
            None => python::dumps(item.text(), &mut self.line),
        }
        python::escape_into(&self.line, out);
    }

    /// Writes the part's end.
    pub fn close(self, out: &mut String) {
        out.push_str("]\"}");
    }
}

/// Writes a text part's beginning. Its string stays open.
fn open_text(beginning: &str, out: &mut String) {
    out.push_str("{\"type\": \"text\", \"text\": ");
    let mut opening = String::new();
    json::quote(beginning, &mut opening);
    out.push_str(opening.strip_suffix('"').unwrap_or(&opening));
}

/// The part of the state: a heading, and its document as Python's `json.dumps` writes it.
#[must_use]
pub fn state_part(document: &str) -> String {
    let (mut part, mut dumped) = (String::new(), String::new());
    open_text("[State:]\n ", &mut part);
    python::dumps(document, &mut dumped);
    python::escape_into(&dumped, &mut part);
    part.push_str("\"}");
    part
}

/// Writes a screenshot's first part: its metadata as Python's `json.dumps` writes it.
pub fn metadata_part(item: &Item, out: &mut String) {
    let mut metadata = String::new();
    python::dumps(item.get("metadata").unwrap_or("\"\""), &mut metadata);
    out.push_str("{\"type\": \"text\", \"text\": \"");
    python::escape_into(&metadata, out);
    out.push_str("\"}");
}

/// Writes a screenshot's second part: its image. `url` is the data URL or the address of a stored image,
/// which needs no escape in a JSON string; without one it is what the item has as its image, of whatever
/// kind.
pub fn image_part(item: &Item, url: Option<&str>, out: &mut String) {
    out.push_str("{\"type\": \"image_url\", \"image_url\": {\"url\": ");
    match url {
        Some(url) => {
            out.push('"');
            out.push_str(url);
            out.push('"');
        }
        None => python::dumps(item.get(IMAGE_MEMBER).unwrap_or("\"\""), out),
    }
    out.push_str("}}");
}
