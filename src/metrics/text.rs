//! The text format of Prometheus, version 0.0.4.

use std::fmt::Display;

/// Metrics as text, a line each, each name with its help and type before it.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// The media type of what is written.
    pub const MEDIA_TYPE: &'static str = "text/plain; version=0.0.4";

    /// A number of now, without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, help, "gauge");
        self.part(name, "", &[], None, value);
    }

    /// Numbers of now, by one label.
    pub fn gauges<V: Display>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'static str, V)>,
    ) {
        self.head(name, help, "gauge");
        for (word, value) in values {
            self.part(name, "", &[(label, word)], None, value);
        }
    }

    /// What is written.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }

    pub(super) fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.0.extend(["# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"]);
    }

    /// One line: the name and its end, the labels and one more, the value. Labels are words of ours and routes,
    /// none of which has what would have to be escaped.
    pub(super) fn part(
        &mut self,
        name: &str,
        end: &str,
        labels: &[(&str, &str)],
        last: Option<(&str, &str)>,
        value: impl Display,
    ) {
        self.0.extend([name, end]);
        let mut before = "{";
        for (label, word) in labels.iter().copied().chain(last) {
            self.0.extend([before, label, "=\"", word, "\""]);
            before = ",";
        }
        if before == "," {
            self.0.push('}');
        }
        self.0.extend([" ", &value.to_string(), "\n"]);
    }
}
