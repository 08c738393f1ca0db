//! Alternatives in the OpenAPI document, as generators of clients read them.

use utoipa::openapi::schema::Schema;
use utoipa::openapi::{OpenApi, RefOr};

/// Removes the descriptions beside references among alternatives; the schemas they refer to have their own.
///
/// For a reference with a description, openapi-generator writes types without their imports.
pub(crate) fn with_bare_alternatives(mut document: OpenApi) -> OpenApi {
    let components = document.components.iter_mut();
    for schema in components.flat_map(|components| components.schemas.values_mut()) {
        if let RefOr::T(Schema::OneOf(any)) = schema {
            for item in &mut any.items {
                if let RefOr::Ref(named) = item {
                    named.description.clear();
                }
            }
        }
    }
    document
}
