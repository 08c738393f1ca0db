//! Items as Markdown, for people and for models that read text.
//!
//! An item stays inside its own list entry, whatever it contains: no heading, HTML, link, image or further entry. Only
//! white space at the ends of lines is dropped, and control characters become U+FFFD.

use std::borrow::Cow;
use std::collections::HashMap;

use exact_json::python;

use super::markdown_text::{line, plain};
use blackboard_board::TextKeys;
use blackboard_board::json::{Kind, decode, kind, members};

/// The beginnings of a list entry and of its further lines.
const BULLET: &str = "- ";
const INDENT: &str = "  ";

/// The end of a line that is shown as a line break.
const HARD_BREAK: &str = "  \n";

/// The fewest backticks around a block of lines.
const BLOCK_FENCE_MIN: usize = 3;

/// Appends an object as a list entry, one member a line. With keys, only those members are shown. A repeated name
/// keeps its last value at its first place.
pub fn item(text: &str, keys: &TextKeys, out: &mut String) {
    out.push_str(BULLET);
    let members = shown(text, keys);
    if members.is_empty() {
        out.push_str("{}\n");
    }
    let mut rest = members.as_slice();
    let mut indent = "";
    while let Some(((name, value), others)) = rest.split_first() {
        out.push_str(indent);
        push_name(name, out);
        let end = if others.is_empty() { "\n" } else { HARD_BREAK };
        push_member(value, end, out);
        (indent, rest) = (INDENT, others);
    }
}

/// Appends a text to a line. Line breaks become spaces.
pub fn text(text: &str, out: &mut String) {
    line(text, out);
}

/// Appends a JSON value within a line: a string as its text or, where that has several lines, as JSON; an array or
/// an object as JSON.
pub fn value(json: &str, out: &mut String) {
    let json = json.trim_ascii();
    match kind(json) {
        Kind::String => {
            let said = decode(json);
            if has_lines(&said) { push_code(json, out) } else { line(&said, out) }
        }
        Kind::Array | Kind::Object => push_code(json, out),
        Kind::Number | Kind::Bool | Kind::Null => out.push_str(json),
    }
}

/// Returns the shown members with their names, each name once.
fn shown<'t>(object: &'t str, keys: &TextKeys) -> Vec<(Cow<'t, str>, &'t str)> {
    let mut places = HashMap::new();
    let mut shown: Vec<(Cow<'t, str>, &'t str)> = Vec::new();
    for member in members(object) {
        let name = decode(member.name);
        if keys.as_ref().is_some_and(|keys| !keys.iter().any(|key| *key == *name)) {
            continue;
        }
        let place = *places.entry(name.clone()).or_insert(shown.len());
        match shown.get_mut(place) {
            Some((_, last)) => *last = member.value,
            None => shown.push((name, member.value)),
        }
    }
    shown
}

fn push_name(name: &str, out: &mut String) {
    out.push_str("**");
    // Asterisks beside white space are not read as emphasis.
    plain(name.trim(), out);
    out.push_str(":**");
}

/// Appends a member's value after its name, and the end of its last line.
fn push_member(json: &str, end: &str, out: &mut String) {
    if kind(json) == Kind::String {
        let said = decode(json);
        if has_lines(&said) {
            out.push('\n');
            push_block(&said, out);
            return;
        }
        out.push(' ');
        plain(&said, out);
    } else {
        out.push(' ');
        value(json, out);
    }
    // Spaces before the line's end would change its meaning.
    out.truncate(out.trim_end_matches(' ').len());
    out.push_str(end);
}

fn has_lines(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Appends lines as a block of an entry.
fn push_block(lines: &str, out: &mut String) {
    let fence = "`".repeat(BLOCK_FENCE_MIN.max(longest_run(lines) + 1));
    let lines = lines.replace("\r\n", "\n").replace('\r', "\n");
    let lines = lines.split('\n');
    for line in std::iter::once(&*fence).chain(lines).chain(std::iter::once(&*fence)) {
        if !line.is_empty() {
            out.push_str(INDENT);
        }
        let shown =
            |c: char| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
        out.extend(line.chars().map(shown));
        out.push('\n');
    }
}

/// Appends JSON as code within a line.
fn push_code(json: &str, out: &mut String) {
    let mut code = String::with_capacity(json.len());
    python::dumps_characters(json, &mut code);
    // The JSON begins and ends with a bracket or a quote, so no backtick stands beside the fence.
    let fence = "`".repeat(longest_run(&code) + 1);
    out.extend([&*fence, &*code, &*fence]);
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or_default()
}

#[cfg(test)]
mod tests;
