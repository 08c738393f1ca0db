//! Headers as the document describes them.

use serde_json::json;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};

pub(crate) fn text_header(description: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}

pub(crate) fn revision_header() -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    let told = "The revision of the session that this was decided against";
    HeaderBuilder::new().schema(Some(schema)).description(Some(told)).build()
}

/// The header is on every such answer. OpenAPI has a word for it, and the builder has none.
pub(in crate::http) fn required(mut header: Header) -> Header {
    header.extensions = Some([("required", json!(true))].into_iter().collect());
    header
}
