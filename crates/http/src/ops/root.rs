//! The root resource: links for programs, a redirect to the page or the documentation for browsers.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi;
use crate::request::query::Query;
use crate::response::problem::Problem;
use crate::response::{Answer, prefers};

/// The path of the documentation.
const DOCS: &str = "/docs/";

/// The server and the paths of its interfaces.
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
    /// The paths of the page, `ui`, and of other protocols, such as `mcp`.
    #[serde(flatten)]
    doors: BTreeMap<&'static str, &'static str>,
}

/// The paths that the root resource shows.
#[derive(Clone)]
pub(crate) struct Links {
    /// The names of the page and of other protocols' doors, with their paths.
    pub(crate) doors: BTreeMap<&'static str, &'static str>,
    /// The page for browsers.
    pub(crate) page: Option<&'static str>,
}

/// Find the server's interfaces
///
/// A browser is redirected to the page, or to the documentation of a server without one.
#[utoipa::path(get, path = "/", operation_id = "get_root", tag = "server",
    responses(
        (status = 200, description = "The server and the paths of its interfaces", body = RootBody),
        (status = 303, description = "For a browser: the page", headers(("Location" = String, description = "`/ui/`"))),
        openapi::ServerRefusals,
    )
)]
pub(crate) async fn root(
    State(links): State<Links>,
    headers: HeaderMap,
    Query(params): Query,
) -> Result<Response, Problem> {
    params.finish()?;
    if prefers(&headers, &["text/html"]) {
        return Ok(Redirect::to(links.page.unwrap_or(DOCS)).into_response());
    }
    Answer::plain().json(&RootBody {
        name: blackboard_api::NAME,
        version: blackboard_api::VERSION,
        docs: DOCS,
        openapi: "/openapi.yaml",
        doors: links.doors,
    })
}
