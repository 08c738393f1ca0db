//! The OpenAPI document as YAML, JSON and an HTML page.
//!
//! The page loads nothing from other servers.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use tokio::sync::OnceCell;
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui::Config;

use crate::openapi;
use crate::read::{Early, Reading};
use crate::request::query::Query;
use crate::response::problem::Problem;
use crate::response::problem::no_route;
use blackboard_board::Code;
use blackboard_fairness::compute;

/// The page's policy: it may load its own files and answers of this server. Swagger UI sets inline styles, and has
/// its icons there as `data:` URLs.
const PAGE: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// The document, rendered at the first request for it: most servers are never asked.
#[derive(Clone)]
pub(crate) struct Document(Arc<Parts>);

struct Parts {
    make: fn() -> OpenApi,
    texts: OnceCell<Texts>,
    page: Arc<Config<'static>>,
}

struct Texts {
    yaml: String,
    json: String,
}

impl Document {
    /// Takes the maker of the document.
    pub(crate) fn new(make: fn() -> OpenApi) -> Self {
        let page = Config::new(["/openapi.json"])
            .use_base_layout()
            .validator_url("none")
            .doc_expansion("list")
            .default_models_expand_depth(0)
            .display_operation_id(true)
            .display_request_duration(true)
            .filter(true);
        Self(Arc::new(Parts { make, texts: OnceCell::new(), page: Arc::new(page) }))
    }

    /// Returns the document in both forms. A test of the command ensures that rendering succeeds.
    async fn texts(&self) -> Result<&Texts, Problem> {
        let make = self.0.make;
        let render = move || {
            let document = make();
            Texts {
                yaml: yaml(&document).unwrap_or_default(),
                json: document.to_pretty_json().unwrap_or_default() + "\n",
            }
        };
        let failed = |_| Problem::new(Code::Internal, "the document could not be rendered");
        self.0.texts.get_or_try_init(|| compute(render)).await.map_err(failed)
    }
}

/// Read this document as YAML
#[utoipa::path(get, path = "/openapi.yaml", operation_id = "get_openapi_yaml", tag = "server",
    responses((status = 200, description = "The OpenAPI document", body = openapi::DocumentBody, content_type = "application/yaml"), openapi::ListRefusals))]
pub(crate) async fn openapi_yaml(
    State(document): State<Document>,
    reading: Reading,
) -> Result<Response, Early> {
    reading.text("application/yaml", &document.texts().await?.yaml)
}

/// Read this document as JSON
#[utoipa::path(get, path = "/openapi.json", operation_id = "get_openapi_json", tag = "server",
    responses((status = 200, description = "The OpenAPI document", body = openapi::DocumentBody), openapi::ListRefusals))]
pub(crate) async fn openapi_json(
    State(document): State<Document>,
    reading: Reading,
) -> Result<Response, Early> {
    reading.text("application/json", &document.texts().await?.json)
}

/// Redirect to the page of this document
#[utoipa::path(get, path = "/docs", operation_id = "find_docs", tag = "server",
    responses((status = 308, description = "The page is at `/docs/`", headers(("Location" = String, description = "`/docs/`"))), openapi::ServerRefusals))]
pub(crate) async fn find_docs(Query(params): Query) -> Result<Redirect, Problem> {
    params.finish()?;
    Ok(Redirect::permanent("/docs/"))
}

/// Read this document as a page
///
/// The page's scripts and styles are below `/docs/` too; it loads nothing from other servers.
#[utoipa::path(get, path = "/docs/", operation_id = "get_docs", tag = "server",
    responses((status = 200, description = "The page", body = String, content_type = "text/html"), openapi::ServerRefusals))]
pub(crate) async fn docs(
    State(document): State<Document>,
    Query(params): Query,
) -> Result<Response, Problem> {
    params.finish()?;
    page_file(&document, "index.html")
}

/// Serves a file that the page loads.
pub(crate) async fn docs_file(
    State(document): State<Document>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    page_file(&document, &name)
}

fn page_file(document: &Document, name: &str) -> Result<Response, Problem> {
    let config = Arc::clone(&document.0.page);
    let found = utoipa_swagger_ui::serve(name, config)
        .map_err(|_| Problem::new(Code::Internal, "the page could not be rendered"))?;
    let file = found.ok_or_else(|| no_route(""))?;
    let bytes = match name {
        "index.html" => {
            let page = String::from_utf8_lossy(&file.bytes);
            page.replace("<title>Swagger UI</title>", "<title>Blackboard API</title>").into_bytes()
        }
        _ => file.bytes.into_owned(),
    };
    let media_type = HeaderValue::from_str(&file.content_type)
        .map_err(|error| Problem::new(Code::Internal, "the file has no media type").cause(error))?;
    let headers = [(header::CONTENT_TYPE, media_type), (header::CONTENT_SECURITY_POLICY, PAGE)];
    Ok((headers, bytes).into_response())
}

/// Renders the document as YAML that parsers of YAML 1.1 accept too: they read a bare `on` as true.
pub(crate) fn yaml(
    document: &OpenApi,
) -> Result<String, impl std::error::Error + Send + Sync + use<>> {
    document.to_yaml().map(|yaml| yaml.replace("name: on\n", "name: 'on'\n"))
}
