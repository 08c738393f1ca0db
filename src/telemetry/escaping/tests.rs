//! Tests of escaping: no name reverses, hides or ends a line, and the JSON keeps its meaning.

use tracing_subscriber::fmt;

use super::*;
use crate::telemetry::json_line::JsonLine;
use crate::telemetry::lines::Lines;

/// Right-to-left override, line and paragraph separator, a next line of C1, zero width, a byte order mark, a tag
/// beyond the first plane.
const HOSTILE: &str = "a\u{202e}b\u{2028}c\u{2029}d\u{85}e\u{200b}f\u{feff}g\u{e0041}h";

#[test]
fn what_is_seen_for_itself_stays() {
    for line in ["plain\n", "\u{1b}[32mINFO\u{1b}[0m geh\u{f6}rt \u{5317}\u{4eac} \u{1f600}\n"] {
        assert!(matches!(plain(line), Cow::Borrowed(_)), "{line:?}");
    }
}

#[test]
fn json_is_on_one_line_and_says_the_same() {
    let lines = Lines::default();
    let left = lines.clone();
    let log = fmt().event_format(JsonLine).with_writer(move || Plain(lines.clone())).finish();
    tracing::subscriber::with_default(log, || {
        tracing::warn!(session = %HOSTILE, "something of {HOSTILE}");
    });
    let said = left.text();
    assert!(said.is_ascii() && said.lines().count() == 1, "{said}");
    let line: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(line["session"], HOSTILE);
    assert_eq!(line["message"], format!("something of {HOSTILE}"));
}

#[test]
fn a_terminal_sees_numbers() {
    let lines = Lines::default();
    let left = lines.clone();
    let log = fmt().compact().with_ansi(false).with_writer(move || Plain(lines.clone())).finish();
    tracing::subscriber::with_default(log, || tracing::warn!(session = %HOSTILE, "something"));
    let said = left.text();
    assert!(said.is_ascii() && said.contains("a\\u202eb\\u2028c\\u2029d"), "{said}");
    assert!(said.contains("g\\udb40\\udc41h"), "{said}");
}
