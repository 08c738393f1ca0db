//! The name of a route: its template, for the guard, the metrics and the log.

use axum::extract::{MatchedPath, Request};

/// The template of the route of a request, never its path.
#[derive(Clone, Debug)]
pub(crate) enum RouteName {
    /// The router matched it.
    Matched(MatchedPath),
    /// It was matched before the router.
    Fixed(&'static str),
    /// No route has the request's path.
    Unknown,
}

impl RouteName {
    /// Returns the name of the route that the router matched.
    pub(crate) fn matched(request: &Request) -> Self {
        let matched = request.extensions().get::<MatchedPath>().cloned();
        matched.map_or(Self::Unknown, Self::Matched)
    }

    /// Returns the template, or an empty text.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Matched(path) => path.as_str(),
            Self::Fixed(path) => path,
            Self::Unknown => "",
        }
    }

    /// Returns the template as logs and metrics show it.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::Matched(_) | Self::Fixed(_) => self.as_str(),
            Self::Unknown => "none",
        }
    }
}
