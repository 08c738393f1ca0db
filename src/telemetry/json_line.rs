//! JSON of a log line: `timestamp`, `level`, the event's fields in their order, `target`.
//!
//! The same line as of tracing-subscriber's own format, for two fifths of its instructions: that passes each token through
//! several writers, and every request has a line. Spans are left out, as the server has none.

use std::cell::RefCell;
use std::error::Error;
use std::fmt::{self, Debug, Display, Write as _};

use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::board::json::{escape, quote};

/// The capacity that most lines fit into.
const LINE_BYTES: usize = 512;

/// Formats events as lines of JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut line = Line(String::with_capacity(LINE_BYTES));
        line.0.push_str("{\"timestamp\":\"");
        push_time(Timestamp::now(), &mut line.0);
        line.0.push_str("\",\"level\":\"");
        line.0.push_str(metadata.level().as_str());
        line.0.push('"');
        event.record(&mut line);
        line.text("target", metadata.target());
        line.0.push_str("}\n");
        writer.write_str(&line.0)
    }
}

/// Appends a time with microseconds. The text of a second is kept for the lines that follow.
fn push_time(time: Timestamp, out: &mut String) {
    thread_local! {
        static LAST: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
    }
    let second = time.as_second();
    LAST.with_borrow_mut(|(last, text)| {
        if *last != second {
            *text = format!("{time:.0}").trim_end_matches('Z').to_owned();
            *last = second;
        }
        out.push_str(text);
    });
    let micros = time.subsec_microsecond();
    out.push('.');
    let digits = [100_000, 10_000, 1_000, 100, 10, 1].map(|unit| micros / unit % 10);
    out.extend(digits.iter().filter_map(|digit| char::from_digit(digit.unsigned_abs(), 10)));
    out.push('Z');
}

/// A line, without its end.
struct Line(String);

impl Line {
    /// Begins a field. Names are Rust's identifiers and paths, which need no escape.
    fn name(&mut self, name: &'static str) {
        self.0.push_str(",\"");
        // Raw identifiers are Rust's, not the field's name.
        self.0.push_str(name.strip_prefix("r#").unwrap_or(name));
        self.0.push_str("\":");
    }

    fn text(&mut self, name: &'static str, text: &str) {
        self.name(name);
        quote(text, &mut self.0);
    }

    fn formatted(&mut self, name: &'static str, text: fmt::Arguments<'_>) {
        self.name(name);
        self.0.push('"');
        // Writing to a String does not fail, and what cannot be formatted ends early.
        Escaped(&mut self.0).write_fmt(text).ok();
        self.0.push('"');
    }

    fn number(&mut self, field: &Field, number: impl Display) {
        self.name(field.name());
        // Writing to a String does not fail.
        write!(self.0, "{number}").ok();
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.number(field, value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.number(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinity and no NaN, which become null.
        self.number(field, serde_json::Value::from(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.formatted(field.name(), format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.formatted(field.name(), format_args!("{value:?}"));
    }
}

/// The inside of a string literal.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(text, self.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
        let said = said(
            || tracing::warn!(target: "a::target", b = 1, a = "two", none = None::<u8>, "text"),
        );
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
}
