//! Schemas of JSON in requests and responses.

pub(crate) mod profiles;
pub(crate) mod settings;
pub mod shapes;

use serde::Serialize;
use serde_json::{Value, json};
use shapes::TTL;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    KnownFormat, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

use blackboard_board::NAME_BYTES_MAX;

/// An item: an object or a string.
pub struct ItemBody;

impl ToSchema for ItemBody {}

impl PartialSchema for ItemBody {
    fn schema() -> RefOr<Schema> {
        let told = "An item: any JSON object, stored exactly as sent. A string is short for the object `{\"text\": …}`.";
        anything_but(told, json!({ "type": ["array", "boolean", "null", "number"], "items": {} }))
    }
}

/// Items, written all or none.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of a body that is stored as JSON text")]
pub struct ItemArray(Vec<ItemBody>);

/// One item or an array of items.
pub struct ItemsBody;

impl ToSchema for ItemsBody {}

impl PartialSchema for ItemsBody {
    fn schema() -> RefOr<Schema> {
        let no_item = json!({ "not": { "$ref": "#/components/schemas/ItemBody" } });
        let lists = json!({ "type": "array", "items": {}, "contains": no_item });
        let values = json!({ "type": ["boolean", "null", "number"] });
        anything_but("One item or an array of items.", json!({ "anyOf": [values, lists] }))
    }
}

/// Returns the schema of a value of several types, by what it excludes, so that generated clients take any value.
///
/// From a `oneOf` of objects, strings and arrays, generators make code that does not compile, or classes that drop
/// members. `items` beside each `array` is for Spectral.
fn anything_but(told: &str, excluded: Value) -> RefOr<Schema> {
    let value = ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some(told));
    value.extensions(Some([("not".to_owned(), excluded)].into_iter().collect())).into()
}

/// A time to live in a body.
#[derive(Serialize)]
pub(crate) struct TtlText(String);

impl ToSchema for TtlText {}

impl PartialSchema for TtlText {
    fn schema() -> RefOr<Schema> {
        let mut text = pattern(TTL);
        text.description =
            Some("A time to live: an integer with `ms`, `s`, `m`, `h` or `d`.".into());
        text.example = Some("60s".into());
        text.into()
    }
}

/// The pattern of a session's or agent's name: no control character, no slash, and not `.` or `..`.
pub(crate) const NAME: &str = r"^(?!\.{1,2}$)[^/\u0000-\u001f\u007f-\u009f]+$";

/// The pattern of a checkpoint's name: a [`NAME`] with at least one character that is not a digit.
pub(crate) const CHECKPOINT: &str = r"^(?![0-9]+$)(?!\.{1,2}$)[^/\u0000-\u001f\u007f-\u009f]+$";

/// The pattern of a part of a prompt.
pub(crate) const PROMPT_PART: &str = r"^(questions|requests|trajectories|screenshots|state|(memory|messages):(?!\.{1,2}$)[^/,\u0000-\u001f\u007f-\u009f]+)$";

/// A name, such as a session's.
pub fn name() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(NAME_BYTES_MAX))
        .pattern(Some(NAME))
        .build()
}

/// A string of this pattern.
pub fn pattern(pattern: &str) -> Object {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).build()
}

/// Adds an example.
pub(crate) fn with_example(schema: impl Into<Object>, example: impl Into<Value>) -> Object {
    let mut schema = schema.into();
    schema.example = Some(example.into());
    schema
}

/// The largest number that a schema names: the largest of its format `int64`. The server also reads larger ones.
pub(crate) const INT64_MAX: usize = usize::MAX >> 1;

/// A whole number within these bounds.
pub fn unsigned(min: usize, max: usize) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(min))
        .maximum(Some(max.min(INT64_MAX)))
        .build()
}

/// A whole number of at least this.
pub(crate) fn from(min: usize) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(min))
        .build()
}

/// The name of a checkpoint.
pub fn checkpoint_name() -> Object {
    let told = "A name with at least one character that is not a digit";
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(told))
        .min_length(Some(1))
        .max_length(Some(NAME_BYTES_MAX))
        .pattern(Some(CHECKPOINT))
        .build()
}

/// Returns the schema of a point in history: a revision, as a number or as digits, or a checkpoint's name.
pub(crate) fn point() -> Schema {
    let told = "A revision or the name of a checkpoint";
    let any = OneOfBuilder::new().description(Some(told));
    any.item(unsigned(0, usize::MAX)).item(name()).into()
}
