//! The routes and their OpenAPI document.
use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::{MethodRouter, get, post};
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{OpenApi as Document, RefOr};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::access::methods::{Methods, method_not_allowed};
use super::access::{Guard, is_public};
use super::doors::{Door, Page, pass};
use super::events::notices;
use super::events::sse::Streams;
use super::history::{archive, audit, checkpoints, diff};
use super::logs::{blackboard, entries, memory, messages};
use super::openapi::{
    MEMORY, MEMORY_ENTRY, STATE, STATE_SLASH, with_all_kinds, with_bare_alternatives,
    with_conventions, with_examples, with_image_types,
};
use super::ops::{docs, health, metrics, root};
use super::read::shared_scans::Lists;
use super::request::body::BodyRoom;
use super::request::path::{MESSAGE, MESSAGES};
use super::request::public_url::PublicUrl;
use super::response::problem::ProblemBody;
use super::{
    agents, attention, blobs, events, history, inbox, logs, openapi, prompt, questions, requests,
    screenshots, search, sessions, state, transactions,
};
use blackboard_api::intake::query::{ImagesName, OrderName};
use blackboard_auth::Tokens;
use blackboard_service::Service;

/// The general part of the document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Blackboard",
        description = "A durable blackboard that agents on many devices share: questions and answers, requests, \
            step trajectories, screenshots, and each agent's memory of its steps.\n\n\
            Every error is a problem (RFC 9457) with a stable `code`. Every response about a session has the \
            revision that it shows in `Blackboard-Revision`. Every response has a unique id in `X-Request-Id`, \
            which a problem repeats as `instance`.\n\n\
            Times are RFC 3339 in UTC with milliseconds. `seq` counts a log's entries from 1, `revision` a \
            session's commits. Bodies may be compressed with gzip or zstd. A decompressed body has at most 8 MiB, \
            32 MiB if it is a blob or may contain screenshots, or 256 MiB if it is a whole board or an archive. Parameters and \
            members that are not in this document are rejected.\n\n\
            A path in the state may have slashes, each between two keys.",
        license(name = "MIT", identifier = "MIT"),
    ),
    servers((url = "/", description = "This server")),
    tags(
        (name = "sessions", description = "Named boards"),
        (name = "blackboard", description = "The four logs as one dictionary"),
        (name = "prompt", description = "The board as input for a model"),
        (name = "questions", description = "Questions to the user with their answers, and the inbox of open questions"),
        (name = "requests", description = "Requests, claims of agents on them, and the inbox of pending requests"),
        (name = "trajectories", description = "Steps of the agents"),
        (name = "screenshots", description = "Screenshots and their images"),
        (name = "blobs", description = "Any bytes that items and the state refer to"),
        (name = "memories", description = "Each agent's memory of its own steps, a log like the others"),
        (name = "messages", description = "Messages to an agent, and all that waits for it"),
        (name = "state", description = "One JSON document, by path"),
        (name = "transactions", description = "Tests and operations in one commit"),
        (name = "agents", description = "Participants and their status"),
        (name = "history", description = "Past revisions, and how to return to them"),
        (name = "search", description = "Entries of all sessions by their words"),
        (name = "events", description = "Changes as they happen"),
        (name = "server", description = "The server itself"),
    ),
    components(schemas(ProblemBody, OrderName, ImagesName))
)]
struct Api;

/// All routes, before the edge wraps them.
pub struct Routes {
    /// The routes that need a caller's rights.
    pub(super) guarded: Option<GuardedRoutes>,
    /// Routes for everybody.
    pub(super) open: Router,
}

/// The routes that need a caller's rights.
pub(super) struct GuardedRoutes {
    pub(super) guard: Arc<Guard>,
    pub(super) router: Router,
    /// The state of their handlers.
    pub(super) handles: Handles,
}

impl From<Router> for Routes {
    fn from(open: Router) -> Self {
        Self { guarded: None, open }
    }
}

/// The state that handlers extract from.
#[derive(Clone)]
pub(super) struct Handles(Arc<Shared>);

/// The parts behind all handles.
struct Shared {
    service: Service,
    bodies: BodyRoom,
    document: docs::Document,
    methods: Methods,
    public_url: Option<PublicUrl>,
    streams: Streams,
    lists: Lists,
    links: root::Links,
}

impl FromRef<Handles> for Service {
    fn from_ref(handles: &Handles) -> Self {
        handles.0.service.clone()
    }
}

impl FromRef<Handles> for BodyRoom {
    fn from_ref(handles: &Handles) -> Self {
        handles.0.bodies.clone()
    }
}

impl FromRef<Handles> for docs::Document {
    fn from_ref(handles: &Handles) -> Self {
        handles.0.document.clone()
    }
}

impl FromRef<Handles> for Methods {
    fn from_ref(handles: &Handles) -> Self {
        handles.0.methods.clone()
    }
}

impl FromRef<Handles> for Streams {
    fn from_ref(handles: &Handles) -> Self {
        handles.0.streams.clone()
    }
}

impl FromRef<Handles> for Lists {
    fn from_ref(handles: &Handles) -> Self {
        handles.0.lists.clone()
    }
}

impl FromRef<Handles> for root::Links {
    fn from_ref(handles: &Handles) -> Self {
        handles.0.links.clone()
    }
}

impl FromRef<Handles> for Option<PublicUrl> {
    fn from_ref(handles: &Handles) -> Self {
        handles.0.public_url.clone()
    }
}

fn described() -> OpenApiRouter<Handles> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::describe, sessions::put, sessions::delete))
        .routes(routes!(blackboard::get, blackboard::put, blackboard::delete))
        .routes(routes!(prompt::get))
        .routes(routes!(logs::get, logs::post, logs::put, logs::delete))
        .routes(routes!(entries::get, entries::put, entries::patch, entries::delete))
        .routes(routes!(requests::claim, requests::release))
        .routes(routes!(requests::claim_next))
        .routes(routes!(requests::finish))
        .routes(routes!(requests::fail))
        .routes(routes!(requests::retry))
        .routes(routes!(requests::cancel))
        .routes(routes!(requests::judge))
        .routes(routes!(screenshots::image))
        .routes(routes!(blobs::post))
        .routes(routes!(blobs::get, blobs::put))
        .routes(routes!(agents::list, agents::delete_all))
        .routes(routes!(agents::get, agents::put, agents::patch, agents::delete))
        .routes(routes!(memory::cost))
        .routes(routes!(messages::ack))
        .routes(routes!(attention::get))
        .routes(routes!(state::get, state::put, state::patch, state::delete))
        .routes(routes!(transactions::post))
        .routes(routes!(inbox::questions))
        .routes(routes!(inbox::requests))
        .routes(routes!(search::get))
        .routes(routes!(questions::answer))
        .routes(routes!(checkpoints::list, checkpoints::post))
        .routes(routes!(checkpoints::get, checkpoints::delete))
        .routes(routes!(history::fork))
        .routes(routes!(history::restore))
        .routes(routes!(history::purge))
        .routes(routes!(archive::get, archive::put))
        .routes(routes!(events::get))
        .routes(routes!(notices::get))
        .routes(routes!(audit::get))
        .routes(routes!(diff::get))
        .routes(routes!(root::root))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics))
        .routes(routes!(docs::openapi_yaml))
        .routes(routes!(docs::openapi_json))
        .routes(routes!(docs::find_docs))
        .routes(routes!(docs::docs))
}

/// Routes that share the handlers of a described one.
const SHARED: [(&str, &str); 6] = [
    (STATE, "/v1/sessions/{session}/state/{path}"),
    (STATE_SLASH, "/v1/sessions/{session}/state/{path}"),
    (MEMORY, "/v1/sessions/{session}/{log}"),
    (MEMORY_ENTRY, "/v1/sessions/{session}/{log}/{seq}"),
    (MESSAGES, "/v1/sessions/{session}/{log}"),
    (MESSAGE, "/v1/sessions/{session}/{log}/{seq}"),
];

/// Builds all routes, those of other protocols' doors and of the page. `tokens` says who may use them, `public_url` is the base of
/// addresses that third parties open, and `streams` limits the open event streams.
pub fn router(
    service: Service,
    tokens: Tokens,
    public_url: Option<PublicUrl>,
    streams: Streams,
    doors: Vec<Door>,
    page: Option<Page>,
) -> Routes {
    metrics::begin();
    let (described, methods, _) = whole();
    let document = docs::Document::new(|| whole().2);
    let paths = doors.iter().map(|door| door.path).collect();
    let credentials = page.as_ref().map(|page| Arc::clone(&page.credentials));
    let guard = Arc::new(Guard { tokens, service: service.clone(), doors: paths, credentials });
    let (bodies, lists) = (BodyRoom::new(), Lists::default());
    let links = doors.iter().map(|door| (door.name, door.path));
    let links = links.chain(page.as_ref().map(|page| (page.name, page.path))).collect();
    let links = root::Links { doors: links, page: page.as_ref().map(|page| page.path) };
    let shared = Shared { service, bodies, document, methods, public_url, streams, lists, links };
    let handles = Handles(Arc::new(shared));
    let mut guarded = described;
    for door in doors {
        let path = door.path;
        let enter =
            move |room, streams, peer, request| pass(door.clone(), room, streams, peer, request);
        guarded = guarded.route(path, post(enter));
    }
    let router = guarded
        .route(STATE, whole_state())
        // Keys are never empty: the extractor refuses the path.
        .route(STATE_SLASH, whole_state())
        .route(MEMORY, log())
        .route(MEMORY_ENTRY, entry())
        .route(MESSAGES, log())
        .route(MESSAGE, entry())
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(handles.clone());
    let open =
        Router::new().route("/docs/{*file}", get(docs::docs_file)).with_state(handles.clone());
    let open = open.merge(page.map(|page| page.routes).unwrap_or_default());
    Routes { guarded: Some(GuardedRoutes { guard, router, handles }), open }
}

/// Routes a log of an agent to the handlers of logs.
fn log() -> MethodRouter<Handles> {
    get(logs::get).post(logs::post).put(logs::put).delete(logs::delete)
}

/// Routes an entry of such a log.
fn entry() -> MethodRouter<Handles> {
    get(entries::get).put(entries::put).patch(entries::patch).delete(entries::delete)
}

/// Routes the whole state to the handlers of its parts.
fn whole_state() -> MethodRouter<Handles> {
    get(state::get).put(state::put).patch(state::patch).delete(state::delete)
}

/// Returns the OpenAPI document as YAML.
///
/// # Errors
///
/// If the document cannot be serialized, because of a defect in one of its parts.
pub fn openapi_yaml() -> Result<String, impl std::error::Error + Send + Sync + 'static> {
    docs::yaml(&whole().2)
}

/// Returns the routes with a description of their own, the methods and the document of all routes.
fn whole() -> (Router<Handles>, Methods, Document) {
    let (described, document) = described().split_for_parts();
    let methods = Methods::of(&document.paths, &SHARED);
    let document = with_bare_alternatives(with_image_types(with_all_kinds(document)));
    let mut document = with_examples(with_conventions(document));
    for (path, item) in &mut document.paths.paths {
        if !is_public(path) {
            let in_session = path.contains("{session}");
            operations(item).for_each(|operation| openapi::guarded(operation, in_session));
        } else {
            // Public routes need no token.
            operations(item).for_each(|operation| operation.security = Some(Vec::new()));
        }
    }
    if let Some(components) = &mut document.components {
        components.responses.extend(openapi::components(&document.paths));
        components.security_schemes.extend(security_schemes());
    }
    document.security = Some(vec![
        SecurityRequirement::new("bearer", [""; 0]),
        SecurityRequirement::new("api_key", [""; 0]),
        SecurityRequirement::default(),
    ]);
    (described, methods, document)
}

/// Returns the ways to send a token. A server without tokens needs neither.
fn security_schemes() -> [(String, RefOr<SecurityScheme>); 2] {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("bb_…").build();
    let key = ApiKeyValue::new("X-API-Key");
    [
        ("bearer".to_owned(), SecurityScheme::Http(bearer).into()),
        ("api_key".to_owned(), SecurityScheme::ApiKey(ApiKey::Header(key)).into()),
    ]
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, patch, delete, .. } = item;
    [get, put, post, patch, delete].into_iter().flatten()
}
