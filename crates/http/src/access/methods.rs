//! Methods of the routes: `OPTIONS`, and refusals of methods that a route lacks.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use utoipa::openapi::{PathItem, Paths};

use crate::response::problem::Problem;

/// The names of the methods of each route.
#[derive(Clone, Default)]
pub(crate) struct Methods(Arc<HashMap<String, Vec<&'static str>>>);

impl Methods {
    /// Reads the methods of documented paths, and of further routes that share the handlers of such a path.
    pub(crate) fn of(paths: &Paths, like: &[(&str, &str)]) -> Self {
        let of_path = |(path, item): (&String, &PathItem)| (template(path), methods(item));
        let mut all: HashMap<_, _> = paths.paths.iter().map(of_path).collect();
        for (route, path) in like {
            if let Some(methods) = all.get(&template(path)).cloned() {
                all.insert(template(route), methods);
            }
        }
        Self(Arc::new(all))
    }

    fn sentence(&self, method: &Method, path: &str) -> String {
        // Only few methods exist, and a client may send any word.
        let method = blackboard_metrics::known_method(method.as_str());
        let known = self.0.get(&template(path)).map(Vec::as_slice).unwrap_or_default();
        let hint = match (method, path) {
            ("POST", "/v1/sessions") => "; to create a session, PUT /v1/sessions/{session}",
            _ => "",
        };
        let method = if method == "other" { "the method" } else { method };
        match known {
            [] => format!("{method} is not allowed here; use a method that Allow lists{hint}"),
            [one] => format!("{method} is not allowed here, only {one} is{hint}"),
            [first @ .., last] => {
                format!(
                    "{method} is not allowed here, only {} and {last} are{hint}",
                    first.join(", ")
                )
            }
        }
    }
}

/// Returns a path in the form by which routes are found: the router marks a rest of segments with a star.
fn template(path: &str) -> String {
    path.replace("{*", "{")
}

fn methods(item: &PathItem) -> Vec<&'static str> {
    let PathItem { get, put, post, patch, delete, .. } = item;
    let named = [
        ("GET", get.is_some()),
        ("HEAD", get.is_some()),
        ("POST", post.is_some()),
        ("PUT", put.is_some()),
        ("PATCH", patch.is_some()),
        ("DELETE", delete.is_some()),
    ];
    named.into_iter().filter(|(_, exists)| *exists).map(|(name, _)| name).collect()
}

/// Responds to `OPTIONS` with 204, and refuses every other method that the route lacks. The router adds `Allow`.
pub(crate) async fn method_not_allowed(
    State(methods): State<Methods>,
    path: Option<MatchedPath>,
    request: Request,
) -> Response {
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    let detail = methods.sentence(request.method(), path);
    Problem::of_status(StatusCode::METHOD_NOT_ALLOWED, detail).into_response()
}
