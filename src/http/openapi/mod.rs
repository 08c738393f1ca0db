//! Parameters, problems and schemas of the OpenAPI document.

mod conventions;
mod examples;
mod headers;
mod log_kinds;
mod params;
mod problems;
mod transactions;

use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::board::{LABEL_BYTES_MAX, LABELS_MAX};

pub(super) use crate::api::schema::shapes::image_url;
pub(super) use conventions::with_conventions;
pub(super) use examples::with_examples;
pub(super) use log_kinds::{MEMORY, MEMORY_ENTRY, STATE, STATE_SLASH, with_all_kinds};
pub(super) use params::*;
pub(super) use problems::*;
pub(super) use transactions::{OperationBody, TestBody};

/// An item: any JSON object, stored exactly as sent. A string is short for the object `{"text": …}`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the OpenAPI schema of a body that is stored as JSON text")]
pub(super) enum ItemBody {
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    Object(Value),
    Text(String),
}

/// Items, written all or none.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of a body that is stored as JSON text")]
pub(super) struct ItemArray(Vec<ItemBody>);

/// One item or an array of items.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the OpenAPI schema of a body that is stored as JSON text")]
pub(super) enum ItemsBody {
    One(ItemBody),
    Many(Vec<ItemBody>),
}

/// The operations of a JSON Patch (RFC 6902), in order.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of a body that is stored as JSON text")]
pub(super) struct JsonPatchBody(Vec<JsonPatchOperation>);

/// One operation of a JSON Patch.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of a body that is stored as JSON text")]
pub(super) struct JsonPatchOperation {
    op: JsonPatchVerb,
    /// A JSON pointer (RFC 6901).
    path: String,
    /// The pointer to move or copy from.
    #[schema(required = false, nullable = false)]
    from: Option<String>,
    /// The value to add, to replace with, or to test for.
    #[schema(required = false)]
    value: Option<Value>,
}

/// The kind of operation.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the OpenAPI schema of a body that is stored as JSON text")]
pub(super) enum JsonPatchVerb {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

/// A screenshot as form data.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the OpenAPI schema of a body that is read part by part")]
pub(super) struct ScreenshotForm {
    /// The bytes of the image. Without a media type of the part, the type is detected from the bytes.
    #[schema(format = Binary, value_type = String)]
    image: Vec<u8>,
    /// The metadata, as JSON.
    #[schema(required = false, nullable = false)]
    metadata: Option<String>,
    /// A label. Defaults to the name of the file.
    #[schema(required = false, nullable = false)]
    image_path: Option<String>,
}

/// Any bytes.
pub(super) struct Bytes;

impl ToSchema for Bytes {}

impl PartialSchema for Bytes {
    fn schema() -> RefOr<Schema> {
        // OpenAPI 3.1 describes a body other than JSON by its media type alone.
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }
}

/// Any JSON value.
pub(super) struct AnyJson;

impl ToSchema for AnyJson {}

impl PartialSchema for AnyJson {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }
}

/// An OpenAPI document.
#[derive(ToSchema)]
#[schema(value_type = BTreeMap<String, serde_json::Value>)]
#[expect(dead_code, reason = "the OpenAPI schema of the document itself")]
pub(super) struct DocumentBody(Value);

/// Returns the schema of a request's labels, a merge patch.
pub(super) fn labels_patch() -> Schema {
    let told = format!(
        "At most {LABELS_MAX} labels, each name and value of at most {LABEL_BYTES_MAX} bytes. A name is not empty and contains \
        neither `:` nor `,`; neither contains U+0000. An absent label stays, null removes a label, and null for `labels` removes all"
    );
    let text = |max| ObjectBuilder::new().schema_type(Type::String).max_length(Some(max));
    let value = text(LABEL_BYTES_MAX)
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .pattern(Some("^[^\\u0000]*$"));
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some(told))
        .property_names(Some(
            text(LABEL_BYTES_MAX).min_length(Some(1)).pattern(Some("^[^\\u0000:,]+$")),
        ))
        .additional_properties(Some(value))
        .max_properties(Some(LABELS_MAX))
        .into()
}
