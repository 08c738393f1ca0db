//! A board as a model reads it: the original's `blackboard_to_prompt`, part by part.
//!
//! Everything here is text in, text out. Which entries, and where an image's bytes come from, is the
//! caller's.

pub mod markdown;
mod markdown_text;
pub mod python;
mod python_float;
pub mod tokens;
#[cfg(feature = "openai-tokens")]
mod vocabulary;

use self::python::Literal;
use crate::board::{IMAGE_MEMBER, Item, LogName, Run, RunText, TextKeys, json};

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

/// The beginning of the part of a text log: its heading, and a list as Python's `json.dumps` writes it.
#[must_use]
pub fn list_begin(log: &LogName) -> String {
    format!("{}[", text_begin(&format!("{}\n ", heading(log))))
}

/// The end of the part of a text log.
pub const LIST_END: &str = "]\"}";

/// What stands between two items of a list, and begins the text of a run of them.
pub const LIST_COMMA: &str = ", ";

/// The items of a run as they stand in the list of their log's part, with the comma before each, and with these
/// members only where some are named. It is kept with the run.
#[must_use]
pub fn list_items(run: &Run, keys: &TextKeys) -> RunText {
    let mut literal = Literal::default();
    run.text(keys, |entry, out| list_item(&entry.item, keys, &mut literal, out))
}

/// The same items, for keys that hardly anybody else asks for: it is not kept.
#[must_use]
pub fn list_items_once(run: &Run, keys: &TextKeys) -> String {
    let (mut literal, mut out) = (Literal::default(), String::new());
    run.entries().for_each(|entry| list_item(&entry.item, keys, &mut literal, &mut out));
    out
}

fn list_item(item: &Item, keys: &TextKeys, literal: &mut Literal, out: &mut String) {
    out.push_str(LIST_COMMA);
    match keys {
        Some(keys) => {
            let keep = |name: &str| keys.iter().any(|key| key == name);
            literal.dumps_members(item.text(), keep, out);
        }
        None => literal.dumps(item.text(), out),
    }
}

/// A text part's beginning. Its string stays open.
fn text_begin(beginning: &str) -> String {
    let mut opening = String::from("{\"type\": \"text\", \"text\": ");
    json::quote(beginning, &mut opening);
    opening.pop();
    opening
}

/// The part of the state: a heading, and its document as Python's `json.dumps` writes it.
#[must_use]
pub fn state_part(document: &str) -> String {
    let mut part = text_begin("[State:]\n ");
    Literal::default().dumps(document, &mut part);
    part.push_str("\"}");
    part
}

/// The first part of each screenshot of a run, with the comma before it: its metadata as Python's `json.dumps`
/// writes it. It is kept with the run.
#[must_use]
pub fn metadata_parts(run: &Run) -> RunText {
    let mut literal = Literal::default();
    run.text(&None, |entry, out| {
        out.push_str(", {\"type\": \"text\", \"text\": \"");
        literal.dumps(entry.item.get("metadata").unwrap_or("\"\""), out);
        out.push_str("\"}");
    })
}

/// The beginning of a screenshot's second part, its image, with the comma before it.
pub const IMAGE_BEGIN: &str = ", {\"type\": \"image_url\", \"image_url\": {\"url\": ";

/// The end of a screenshot's second part.
pub const IMAGE_END: &str = "}}";

/// What a screenshot has as its image, of whatever kind, where none of it is stored.
#[must_use]
pub fn image_value(item: &Item) -> String {
    let mut out = String::new();
    python::dumps(item.get(IMAGE_MEMBER).unwrap_or("\"\""), &mut out);
    out
}
