//! Tests of the lines: the members and their order, and each kind of value.

use std::io;

use serde_json::{Value, json};
use tracing_subscriber::fmt;

use super::*;
use crate::telemetry::lines::Lines;

/// The line that is logged.
fn said(log: impl FnOnce()) -> String {
    let lines = Lines::default();
    let left = lines.clone();
    let format = fmt().event_format(JsonLine).with_writer(move || lines.clone());
    tracing::subscriber::with_default(format.finish(), log);
    left.text()
}

#[test]
fn a_line_has_its_time_level_fields_and_target() {
    let said =
        said(|| tracing::warn!(target: "a::target", b = 1, a = "two", none = None::<u8>, "text"));
    let (time, rest) = said.split_at("{\"timestamp\":\"2026-11-26T08:12:45.113458Z".len());
    assert_eq!(
        rest,
        "\",\"level\":\"WARN\",\"message\":\"text\",\"b\":1,\"a\":\"two\",\"target\":\"a::target\"}\n"
    );
    let time = time.trim_start_matches("{\"timestamp\":\"");
    assert!(time.parse::<Timestamp>().is_ok() && time.ends_with('Z'), "{time}");
}

#[test]
fn a_time_has_six_digits_after_the_second() {
    let nanoseconds =
        [0, 999_999_999, 1_000_000_000, 1_795_700_000_000_004_999, 1_795_700_000_999_999_999];
    for time in nanoseconds.map(|time| Timestamp::from_nanosecond(time).unwrap()) {
        let mut written = String::new();
        push_time(time, &mut written);
        assert_eq!(written, format!("{time:.6}"));
    }
}

#[test]
fn values_of_each_kind_are_json() {
    let said = said(|| {
        let error = io::Error::other("out of \"luck\"");
        let error: &(dyn Error + 'static) = &error;
        tracing::info!(
            minus = -1, large = u64::MAX, yes = true, half = 0.5, nan = f64::NAN, text = "a\"b\\c\n\u{1}é",
            shown = %"d\te", debugged = ?Some("f"), error, r#type = "g", huge = u128::MAX,
        );
    });
    let mut line: Value = serde_json::from_str(&said).unwrap();
    let line = line.as_object_mut().unwrap();
    line.remove("timestamp");
    let huge: Value = serde_json::from_str(&u128::MAX.to_string()).unwrap();
    let expected = json!({
        "level": "INFO", "minus": -1, "large": u64::MAX, "yes": true, "half": 0.5, "nan": null,
        "text": "a\"b\\c\n\u{1}é", "shown": "d\te", "debugged": "Some(\"f\")", "error": "out of \"luck\"",
        "type": "g", "huge": huge, "target": module_path!(),
    });
    assert_eq!(Value::Object(line.clone()), expected);
}
