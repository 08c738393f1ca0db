//! The web page: its files, and the login by which a browser holds a token that scripts cannot read.
//!
//! The page uses the public API alone. This door knows nothing of `http`: `app` mounts its routes, and
//! gives its logins to the guard.

mod cookie;
mod files;
#[cfg(debug_assertions)]
mod pack;
mod session;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::{get, post};

pub use files::PATH;

use blackboard_auth::{Caller, Logins, Unauthorized};

/// The routes of the page. They need no token.
pub fn routes(logins: Logins) -> Router {
    Router::new()
        .route("/ui", get(files::find))
        .route(PATH, get(files::index))
        .route("/ui/session", post(session::begin).delete(session::end).get(session::show))
        .route("/ui/{*file}", get(files::file))
        .with_state(logins)
}

/// Returns the caller whose login a request names, or `None` if it names none.
#[must_use]
pub fn caller(logins: &Logins, headers: &HeaderMap) -> Option<Result<Caller, Unauthorized>> {
    let id = cookie::login_id(headers)?;
    Some(logins.find(id).map(|(caller, _)| caller))
}
