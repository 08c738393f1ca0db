//! Parameters, problems and schemas of the OpenAPI document.

mod alternatives;
mod conventions;
mod examples;
mod headers;
mod images;
mod log_kinds;
mod params;
mod problems;

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType};
use utoipa::{PartialSchema, ToSchema};

pub(super) use alternatives::with_bare_alternatives;
pub(super) use blackboard_api::schema::shapes::image_url;
use blackboard_api::schema::shapes::{one_of, text};
pub(super) use blackboard_api::schema::{ItemArray, ItemBody, ItemsBody};
pub(super) use conventions::with_conventions;
pub(super) use examples::with_examples;
pub(super) use images::with_image_types;
pub(super) use log_kinds::{MEMORY, MEMORY_ENTRY, STATE, STATE_SLASH, with_all_kinds};
pub(super) use params::*;
pub(super) use problems::*;

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
pub(super) struct ScreenshotForm;

impl ToSchema for ScreenshotForm {}

impl PartialSchema for ScreenshotForm {
    fn schema() -> RefOr<Schema> {
        let told = "A screenshot as form data. The part `image` is the bytes of the image; without a media type of the \
            part, the type is detected from the bytes. `metadata` is the metadata, as JSON. `image_path` is a label; it \
            defaults to the name of the file.";
        // A map: of a form with `properties` openapi-generator writes the import, but no model.
        ObjectBuilder::new()
            .description(Some(told))
            .property_names(Some(one_of(["image", "metadata", "image_path"])))
            .additional_properties(Some(Schema::from(text())))
            .required("image")
            .into()
    }
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
