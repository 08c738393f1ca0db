//! The routes, and the document that describes them.

use axum::Router;
use axum::extract::FromRef;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::body::BodyRoom;
use super::problem::{Problem, ProblemBody};
use super::{blackboard, entries, health, logs, memory, prompt, screenshots, sessions};
use crate::board::Code;
use crate::service::Service;

/// What the document says of all routes together.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Blackboard",
        description = "A durable blackboard that agents on many devices share: questions and answers, requests, \
            step trajectories, screenshots, and each agent's memory of its steps.\n\n\
            Every refusal is a problem (RFC 9457) with a stable `code`. Every answer about a session has the \
            revision that it shows in `Blackboard-Revision`.",
        license(name = "MIT", identifier = "MIT"),
    ),
    servers((url = "/", description = "This server")),
    tags(
        (name = "sessions", description = "Named boards"),
        (name = "blackboard", description = "The four logs as one dictionary"),
        (name = "prompt", description = "The board as a model reads it"),
        (name = "logs", description = "Ordered lists of items"),
        (name = "memories", description = "What each agent remembers of its own steps: a log like the others"),
        (name = "entries", description = "Single entries"),
        (name = "server", description = "The server itself"),
    ),
    components(schemas(ProblemBody))
)]
struct Api;

/// What the handlers may reach.
#[derive(Clone)]
struct Handles {
    service: Service,
    bodies: BodyRoom,
}

impl FromRef<Handles> for Service {
    fn from_ref(handles: &Handles) -> Self {
        handles.service.clone()
    }
}

impl FromRef<Handles> for BodyRoom {
    fn from_ref(handles: &Handles) -> Self {
        handles.bodies.clone()
    }
}

const LOG: &str = "/v1/sessions/{session}/{log}";
const ENTRY: &str = "/v1/sessions/{session}/{log}/{seq}";
const MEMORY: &str = "/v1/sessions/{session}/agents/{agent}/memory";
const MEMORY_ENTRY: &str = "/v1/sessions/{session}/agents/{agent}/memory/{seq}";

fn described() -> OpenApiRouter<Handles> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::describe, sessions::put, sessions::delete))
        .routes(routes!(blackboard::get, blackboard::put, blackboard::delete))
        .routes(routes!(prompt::get))
        .routes(routes!(logs::get, logs::post, logs::put, logs::delete))
        .routes(routes!(entries::get, entries::put, entries::patch, entries::delete))
        .routes(routes!(screenshots::image))
        .routes(routes!(memory::cost))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
}

/// All routes, with the service behind them.
pub fn router(service: Service) -> Router {
    let (described, document) = described().split_for_parts();
    let document = with_memories(document);
    let [yaml, json] = [
        document.to_yaml().unwrap_or_default(),
        document.to_pretty_json().unwrap_or_default() + "\n",
    ];
    let handles = Handles { service, bodies: BodyRoom::new() };
    described
        .route(MEMORY, get(logs::get).post(logs::post).put(logs::put).delete(logs::delete))
        .route(
            MEMORY_ENTRY,
            get(entries::get).put(entries::put).patch(entries::patch).delete(entries::delete),
        )
        .with_state(handles)
        .route("/openapi.yaml", get(async move || text("application/yaml", yaml.clone())))
        .route("/openapi.json", get(async move || text("application/json", json.clone())))
        .merge(SwaggerUi::new("/docs").config(Config::new(["/openapi.json"])))
}

fn text(media_type: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(media_type))], text).into_response()
}

/// The OpenAPI document, as YAML.
///
/// # Errors
///
/// Where it cannot be written, which is a fault of its parts.
pub fn openapi_yaml() -> Result<String, impl std::error::Error + Send + Sync + 'static> {
    let (_, document) = described().split_for_parts();
    with_memories(document).to_yaml()
}

/// The document with what it says of the board's logs said of the agents' memories too: they have the
/// same handlers, so the same is true of them.
fn with_memories(mut document: Document) -> Document {
    for (of_log, of_memory) in [(LOG, MEMORY), (ENTRY, MEMORY_ENTRY)] {
        if let Some(item) = document.paths.get_path_item(of_log) {
            let item = of_agent(item.clone());
            document.paths.paths.insert(of_memory.to_owned(), item);
        }
    }
    document
}

fn of_agent(mut item: PathItem) -> PathItem {
    let operations =
        [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
    for operation in operations.into_iter().flatten() {
        operation.tags = Some(vec!["memories".to_owned()]);
        operation.operation_id = operation.operation_id.as_ref().map(|id| format!("memory_{id}"));
        rename_parameter(operation);
        drop_images(operation);
    }
    item
}

fn rename_parameter(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && parameter.name == "log"
        {
            "agent".clone_into(&mut parameter.name);
            parameter.description = Some("The agent's name".to_owned());
            parameter.schema = Some(<String as utoipa::PartialSchema>::schema());
        }
    }
}

/// Images belong to screenshots only.
fn drop_images(operation: &mut Operation) {
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        body.content.retain(|media_type, _| {
            !media_type.starts_with("image/") && media_type != "multipart/form-data"
        });
    }
}

/// The refusal of a path that is no route.
pub(super) fn no_route() -> Problem {
    Problem::new(Code::RouteNotFound, "there is no such route; /openapi.json lists them all")
}
