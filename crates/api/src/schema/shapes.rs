//! Shapes that several parameters and members have: patterns and bounds.

use serde_json::json;
use utoipa::openapi::schema::{
    KnownFormat, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};

use super::{pattern, unsigned};

/// The pattern of a label in a list.
pub(crate) const LABEL: &str = r"^[^:,\[\u0000]+:[^,\u0000]*$";

/// The pattern of a seq.
pub(crate) const SEQ: &str = "^0*[1-9][0-9]{0,18}$";

/// The pattern of a trace id (W3C Trace Context).
pub(crate) const TRACE: &str = "^(?!0+$)[0-9a-f]{32}$";

/// The pattern of an inbox cursor: a session's name and a seq.
pub(crate) const INBOX_PLACE: &str = r"^(?!\.{1,2}/)[^/\u0000-\u001f\u007f-\u009f]+/[0-9]{1,19}$";

/// The pattern of a list of entity tags, or `*`.
pub(crate) const TAGS: &str = r#"^(\*|(W/)?"[!#-~]*"(, (W/)?"[!#-~]*")*)$"#;

/// The pattern of a time to live. The server accepts slightly more: up to 36500d, in any unit.
pub(crate) const TTL: &str =
    "^0*([1-9][0-9]{0,11}ms|[1-9][0-9]{0,8}s|[1-9][0-9]{0,6}m|[1-9][0-9]{0,4}h|[1-9][0-9]{0,3}d)$";

/// The pattern of a time by RFC 3339, or of a duration. The server accepts slightly more: longer durations, and the 29th of
/// February. It is one pattern, since generators do not understand a choice of two strings.
pub(crate) const WHEN: &str = concat!(
    "^(0*([1-9][0-9]{0,11}ms|[1-9][0-9]{0,8}s|[1-9][0-9]{0,6}m|[1-9][0-9]{0,4}h|[1-9][0-9]{0,3}d)|",
    "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))",
    "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))$"
);

/// The pattern of the time between two attempts. The server accepts slightly more: up to 7d, in any unit.
pub(crate) const RETRY_IN: &str =
    "^0*([1-9][0-9]{0,7}ms|[1-9][0-9]{0,4}s|[1-9][0-9]{0,3}m|[1-9][0-9]?h|[1-7]d)$";

/// The pattern of a wait, at most 60 s.
pub const WAIT: &str =
    "^0*([0-9]{1,4}ms|[1-5][0-9]{4}ms|60000ms|[0-9]s|[1-5][0-9]s|60s|[01]m|0h|0d)$";

/// The pattern of a part of a session, by its address within the session.
pub(crate) const PART: &str = "^(questions|requests|trajectories|screenshots|agents(/[^/,]+(/(memory|messages))?)?|state(/([^/,~]|~[01])+)*)$";

/// The pattern of a percent-encoded name.
pub const ENCODED_NAME: &str = r"^([!-$&-.0-~]|%[0-9A-Fa-f]{2})+$";

/// Returns the schema of a part's image: an object with the URL, or the URL alone.
pub fn image_url() -> Schema {
    let told =
        "The image of an image part: in `parts` an object with its `url`, in `responses` its URL";
    let any = OneOfBuilder::new().description(Some(told));
    any.item(ObjectBuilder::new().schema_type(Type::Object)).item(text()).into()
}

/// Any string.
pub fn text() -> Object {
    ObjectBuilder::new().schema_type(Type::String).build()
}

pub(crate) fn some_text() -> Object {
    ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).build()
}

/// A JSON number as text.
pub fn number() -> Object {
    pattern(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$")
}

pub(crate) fn member() -> Object {
    pattern(r"^[^,\[][^,]*$")
}

pub(crate) fn json_text() -> Object {
    let json = ObjectBuilder::new().schema_type(Type::String);
    json.content_media_type("application/json").build()
}

pub(crate) fn moment() -> Object {
    let moment = ObjectBuilder::new().schema_type(Type::String);
    moment.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))).build()
}

pub(crate) fn boolean() -> Object {
    ObjectBuilder::new().schema_type(Type::Boolean).build()
}

/// A list of entity tags.
pub fn tags() -> Object {
    let tags = ObjectBuilder::new().schema_type(Type::String).pattern(Some(TAGS));
    tags.examples([r#""41a.5f2d0c9b7e13a846""#]).build()
}

/// One of these words.
pub fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

pub(crate) fn last_k() -> Schema {
    let mut number = unsigned(1, usize::MAX);
    number.minimum = Some((-1).into());
    number.extensions = Some([("not".to_owned(), json!({ "const": 0 }))].into_iter().collect());
    number.into()
}
