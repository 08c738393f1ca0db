//! The root resource: links for programs, a redirect to the documentation for browsers.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::params::Params;
use crate::http::openapi;
use crate::http::response::problem::Problem;
use crate::http::response::{Answer, prefers};

/// The path of the documentation.
const DOCS: &str = "/docs/";

/// The server and the paths of its doors.
#[derive(Serialize, ToSchema)]
pub(crate) struct RootBody {
    #[schema(example = "blackboard")]
    name: &'static str,
    /// The server's version.
    #[schema(example = "0.1.0")]
    version: &'static str,
    /// The documentation, as a page.
    #[schema(example = "/docs/")]
    docs: &'static str,
    /// The OpenAPI document.
    #[schema(example = "/openapi.yaml")]
    openapi: &'static str,
    /// The paths of other protocols' doors, such as `mcp`.
    #[serde(flatten)]
    doors: BTreeMap<&'static str, &'static str>,
}

/// The names of other protocols' doors, with their paths.
#[derive(Clone)]
pub(crate) struct Doors(pub(crate) BTreeMap<&'static str, &'static str>);

/// Find the server's doors
///
/// A browser is redirected to the documentation.
#[utoipa::path(get, path = "/", operation_id = "get_root", tag = "server",
    responses(
        (status = 200, description = "The server and the paths of its doors", body = RootBody),
        (status = 303, description = "For a browser: the documentation", headers(("Location" = String, description = "`/docs/`"))),
        openapi::ServerRefusals,
    )
)]
pub(crate) async fn root(
    State(doors): State<Doors>,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    if prefers(&headers, &["text/html"]) {
        return Ok(Redirect::to(DOCS).into_response());
    }
    Answer::plain().json(&RootBody {
        name: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        docs: DOCS,
        openapi: "/openapi.yaml",
        doors: doors.0,
    })
}
