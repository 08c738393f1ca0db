//! Schemas of response headers.

use serde_json::json;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};

pub(crate) fn text_header(description: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}

/// The header that each answer with a tag has beside `ETag`.
pub(super) const TAG: &str = "Blackboard-ETag";

pub(super) fn tag_header() -> Header {
    text_header("The text of `ETag`, in a header that proxies do not change")
}

pub(crate) fn revision_header() -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    let told = "The revision of the session at which the request was decided";
    HeaderBuilder::new().schema(Some(schema)).description(Some(told)).build()
}

/// Marks a header as always present. The builder has no method for OpenAPI's `required`.
pub(crate) fn required(mut header: Header) -> Header {
    header.extensions = Some([("required", json!(true))].into_iter().collect());
    header
}
