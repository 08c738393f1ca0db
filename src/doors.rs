//! The doors beside HTTP, as far as this build has them.

use crate::auth::Logins;
use crate::http::{Door, Page};
use crate::service::Service;

/// Returns the doors whose messages come by HTTP.
#[cfg(feature = "mcp")]
pub(crate) fn doors(service: &Service) -> Vec<Door> {
    use crate::mcp;

    vec![Door { name: "mcp", path: mcp::PATH, answer: mcp::answer(service) }]
}

#[cfg(not(feature = "mcp"))]
pub(crate) const fn doors(_: &Service) -> Vec<Door> {
    Vec::new()
}

/// Returns the web page, whose logins are a second source of callers for the guard.
#[cfg(feature = "page")]
pub(crate) fn page(logins: Logins) -> Option<Page> {
    use crate::ui;
    use axum::http::HeaderMap;
    use std::sync::Arc;

    let routes = ui::routes(logins.clone());
    let credentials = Arc::new(move |headers: &HeaderMap| ui::caller(&logins, headers));
    Some(Page { name: "ui", path: ui::PATH, routes, credentials })
}

#[cfg(not(feature = "page"))]
pub(crate) fn page(_: Logins) -> Option<Page> {
    None
}
