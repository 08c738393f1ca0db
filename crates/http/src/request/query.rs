//! The extractor of query parameters.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::response::problem::Problem;
use blackboard_api::params::Params;

/// The parameters of a request's query.
pub(crate) struct Query(pub(crate) Params);

/// Reads the parameters.
pub(crate) fn params(parts: &Parts) -> Result<Params, Problem> {
    Ok(Params::parse(parts.uri.query().unwrap_or_default())?)
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        params(parts).map(Self)
    }
}
