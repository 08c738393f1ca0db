//! Arguments as their schema has them.
//!
//! Many hosts send an array, an object or a number as its JSON text in a string, and JSON Schema counts 5.0 among the
//! integers. One rule reads these for all tools, so that no tool stores an array's text as an item.

use std::borrow::Cow;
use std::sync::OnceLock;

use blackboard_api::refusal::{Refusal, invalid_field};
use blackboard_board::json::{self, Kind};

/// The schemas of a tool's arguments by name, read once.
pub(crate) struct Properties {
    text: &'static str,
    schemas: OnceLock<Vec<(&'static str, &'static str)>>,
}

impl Properties {
    /// Creates the properties of a schema, as JSON whose names need no escapes.
    pub(crate) const fn of(text: &'static str) -> Self {
        Self { text, schemas: OnceLock::new() }
    }

    /// Returns the JSON text.
    pub(crate) const fn text(&self) -> &'static str {
        self.text
    }

    /// Returns the schema of an argument.
    pub(crate) fn get(&self, name: &str) -> Option<&'static str> {
        let read = || {
            json::members(self.text).map(|own| (own.name.trim_matches('"'), own.value)).collect()
        };
        let schemas = self.schemas.get_or_init(read);
        schemas.iter().find(|(own, _)| *own == name).map(|(_, schema)| *schema)
    }
}

/// Returns an argument's value by the schema of its tool's properties. A value of another type stays as it is: the tool
/// judges it.
pub(super) fn conformed(
    properties: &Properties,
    name: &str,
    value: &str,
) -> Result<String, Refusal> {
    match properties.get(name) {
        Some(schema) => Ok(by(schema, &format!("/{name}"), value)?.into_owned()),
        None => Ok(value.to_owned()),
    }
}

fn by<'a>(schema: &str, pointer: &str, value: &'a str) -> Result<Cow<'a, str>, Refusal> {
    let types = json::get(schema, "type").unwrap_or_default();
    let value = match json::kind(value) {
        Kind::String if !types.is_empty() && !takes(types, "string") => {
            of_text(types, pointer, value)?
        }
        Kind::String | Kind::Object | Kind::Array | Kind::Bool | Kind::Number | Kind::Null => {
            Cow::Borrowed(value)
        }
    };
    match json::kind(&value) {
        Kind::Number if takes(types, "integer") => {
            Ok(json::whole(&value).map_or(value, |whole| whole.to_string().into()))
        }
        Kind::Array => match json::get(schema, "items") {
            Some(items) => Ok(elements(items, pointer, &value)?.into()),
            None => Ok(value),
        },
        Kind::String | Kind::Object | Kind::Bool | Kind::Number | Kind::Null => Ok(value),
    }
}

fn elements(schema: &str, pointer: &str, array: &str) -> Result<String, Refusal> {
    let mut text = String::from("[");
    for (index, element) in json::elements(array).enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&by(schema, &format!("{pointer}/{index}"), element)?);
    }
    text.push(']');
    Ok(text)
}

/// Reads a string as the JSON text of a value of these types. Any other text stays a string, unless it begins as an array
/// or an object does.
fn of_text<'a>(types: &str, pointer: &str, literal: &'a str) -> Result<Cow<'a, str>, Refusal> {
    json::check(literal, 1)
        .map_err(|unsupported| invalid_field(pointer.to_owned(), unsupported.reason.to_string()))?;
    let text = json::decode(literal);
    let begins = json::kind(&text);
    match json::document(text.as_bytes()) {
        Ok(value) if takes_kind(types, begins) => Ok(value.get().to_owned().into()),
        // One element of an array, as the tools that take a bare element read it.
        Ok(value) if begins == Kind::Object => Ok(value.get().to_owned().into()),
        Err(_) if matches!(begins, Kind::Array | Kind::Object) => {
            let why = format!(
                "begins as {} and is not its JSON text; send the value itself",
                begins.with_article()
            );
            Err(invalid_field(pointer.to_owned(), why))
        }
        Ok(_) | Err(_) => Ok(Cow::Borrowed(literal)),
    }
}

fn takes_kind(types: &str, kind: Kind) -> bool {
    match kind {
        Kind::Array => takes(types, "array"),
        Kind::Object => takes(types, "object"),
        Kind::Bool => takes(types, "boolean"),
        Kind::Number => takes(types, "integer") || takes(types, "number"),
        Kind::String | Kind::Null => false,
    }
}

/// Returns true if a schema's `type`, one or a list, names this one.
fn takes(types: &str, name: &str) -> bool {
    let is = |literal: &str| json::decode(literal) == name;
    match json::kind(types) {
        Kind::Array => json::elements(types).any(is),
        Kind::String => is(types),
        Kind::Object | Kind::Bool | Kind::Number | Kind::Null => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROPERTIES: &str = r#"{"items":{"type":"array","items":{"type":["object","string"]}},
        "after":{"type":"array","items":{"type":"integer"}},"latest":{"type":"integer"},"full":{"type":"boolean"},
        "add":{"type":"number"},"match":{"type":"object"},"at":{"type":["string","integer"]},"q":{"type":"string"},
        "value":{},"then":{"type":"array","items":{"type":"object"}}}"#;

    #[test]
    fn a_value_is_read_by_its_schema() {
        for (name, value, read) in [
            ("items", r#""[{\"do\":1}, {\"do\":2}]""#, r#"[{"do":1},{"do":2}]"#),
            ("items", r#"["[1]","5"]"#, r#"["[1]","5"]"#),
            ("items", r#""{\"do\":1}""#, r#"{"do":1}"#),
            ("items", r#""sum up""#, r#""sum up""#),
            ("items", r#""5""#, r#""5""#),
            ("after", r#""[3.0,\"4\"]""#, "[3,4]"),
            ("latest", "5.0", "5"),
            ("latest", "5e0", "5"),
            ("latest", r#"" 5.0 ""#, "5"),
            ("latest", "5.5", "5.5"),
            ("latest", "-1", "-1"),
            ("latest", r#""five""#, r#""five""#),
            ("latest", "null", "null"),
            ("full", r#""true""#, "true"),
            ("full", r#""1""#, r#""1""#),
            ("add", r#""1.50""#, "1.50"),
            ("add", "1.50", "1.50"),
            ("match", r#""{\"a\":1.50}""#, r#"{"a":1.50}"#),
            ("at", r#""7""#, r#""7""#),
            ("at", "7.0", "7"),
            ("q", r#""[1]""#, r#""[1]""#),
            ("value", r#""[1]""#, r#""[1]""#),
            ("then", r#"["{\"put\":\"a\"}"]"#, r#"[{"put":"a"}]"#),
            ("unknown", r#""5""#, r#""5""#),
        ] {
            assert_eq!(
                conformed(&Properties::of(PROPERTIES), name, value).unwrap(),
                read,
                "{name} {value}"
            );
        }
    }

    #[test]
    fn a_text_that_begins_as_an_array_must_be_one() {
        for value in [r#""[{'do':1}]""#, r#""[1,""#, r#"" {\"a\"""#] {
            let refused = conformed(&Properties::of(PROPERTIES), "items", value).unwrap_err();
            assert!(refused.detail().contains("/items: begins as"), "{}", refused.detail());
        }
    }
}
