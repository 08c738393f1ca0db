//! The extractor of query parameters.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::api::params::Params;
use crate::http::response::problem::Problem;

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default())?)
    }
}
