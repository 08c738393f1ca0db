//! The guard: authentication, and the scope of routes.
//!
//! The scope of a route follows from its method, except for the routes listed here. Access to a session, and to a
//! log, is checked by extractors such as [`SessionPath`](super::request::path::SessionPath).

pub(super) mod methods;
mod rights_end;
pub(crate) mod session_detail;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use super::response::LoggedToken;
use super::response::problem::Problem;
use super::response::{REVISION_HEADER, revision_value};
use blackboard_address::session_of;
use blackboard_api::ops::NotWritten;
use blackboard_api::refusal::no_session;
use blackboard_api::signed_url::not_signed;
use blackboard_auth::{Caller, Forbidden, RequestOrigin, Scope, Secret, Tokens, Unauthorized};
use blackboard_board::Code;
use blackboard_fairness::{Client, in_slices};
use blackboard_service::{Service, Unreachable};
pub(super) use rights_end::broken_off;
use rights_end::{end_body_with, end_with, unless_over};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The routes that need no token.
const PUBLIC: [&str; 7] =
    ["/", "/healthz", "/readyz", "/openapi.yaml", "/openapi.json", "/docs", "/docs/"];

/// The route that covers all sessions.
const METRICS: &str = "/metrics";

/// The routes for admins only.
const ADMIN: [(Method, &str); 2] = [
    (Method::POST, "/v1/sessions/{session}/purge"),
    (Method::PUT, "/v1/sessions/{session}/archive"),
];

/// The route that a signed address opens.
const IMAGE: &str = "/v1/sessions/{session}/screenshots/{seq}/image";

/// Returns the caller that a request's headers stand for, or `None` if they name none. The guard takes writes from the
/// server's own pages only.
pub type Credentials =
    Arc<dyn Fn(&HeaderMap) -> Option<Result<Caller, Unauthorized>> + Send + Sync>;

/// The authentication of requests.
pub(super) struct Guard {
    pub(super) tokens: Tokens,
    pub(super) service: Service,
    /// The paths of other protocols' doors.
    pub(super) doors: Arc<[&'static str]>,
    /// The source of callers for requests without a token.
    pub(super) credentials: Option<Credentials>,
}

impl Guard {
    /// Passes a request on if its caller has the scope of its route, whose template is `matched`.
    pub(super) async fn pass<F: Future<Output = Response>>(
        &self,
        matched: &str,
        request: Request,
        answer: impl FnOnce(Caller, Request) -> F,
    ) -> Response {
        let caller = match self.admit(&request, matched) {
            Ok(caller) => caller,
            Err(problem) => return (*problem).into_response(),
        };
        let uri = request.uri().clone();
        // A write that succeeded is reported, even if the rights end meanwhile.
        let reads = is_read(request.method());
        let request = request.map(|body| end_body_with(&caller, self.tokens.now(), body));
        let client = caller.client();
        let answer = pin!(answer(caller.clone(), request));
        let answer = pin!(in_slices(client, answer));
        let mut response = if reads {
            match unless_over(&caller, self.tokens.now(), answer).await {
                Ok(response) => response,
                Err(why) => return unauthorized(why).into_response(),
            }
        } else {
            answer.await
        };
        // The refusal may only be due to a body broken off with the rights.
        if response.status().is_client_error()
            && let Err(why) = caller.still_may(self.tokens.now())
        {
            response = unauthorized(why).into_response();
        }
        if caller.is_signed() {
            response.headers_mut().remove(REVISION_HEADER);
            if tells_something(&response) {
                response = Problem::from(not_signed()).into_response();
            }
        }
        self.name_revision(&caller, uri.path(), &mut response);
        // The body is rendered and compressed outside `in_slices`, and must count as this client's too.
        if client != Client::current() {
            response.extensions_mut().insert(client);
        }
        if let Some(grant) = caller.grant() {
            let (name, agent) = (grant.token().name.clone(), caller.agent().cloned());
            response.extensions_mut().insert(LoggedToken { name, agent });
        }
        end_with(&caller, self.tokens.now(), response)
    }

    fn admit(&self, request: &Request, matched: &str) -> Result<Caller, Box<Problem>> {
        if is_public(matched) {
            return Ok(Caller::nobody());
        }
        let presented = presented(request.headers())?;
        let caller = match (self.tokens.authenticate(presented), presented) {
            (Ok(caller), _) => caller,
            (Err(_), None) if is_signed(request, matched) => Caller::signed(),
            (Err(missing), None) => self.logged_in(request, matched, missing)?,
            (Err(why), presented) => {
                if presented.is_some() {
                    self.tokens.count_refused(Client::current()).map_err(|wait| {
                        let detail = "too many invalid tokens were sent from this address; retry after Retry-After";
                        Box::new(rate_limited(detail, wait))
                    })?;
                }
                let is_bare = request.headers().get(AUTHORIZATION).is_some_and(lacks_scheme);
                return Err(Box::new(unauthorized(if is_bare {
                    Unauthorized::NoScheme
                } else {
                    why
                })));
            }
        };
        if let Some(grant) = caller.grant() {
            grant.count_request().map_err(|wait| {
                let detail = "the token exceeded --token-rate; retry after Retry-After";
                Box::new(rate_limited(detail, wait))
            })?;
        }
        if let Some(scope) = self.scope_of(request.method(), matched) {
            caller.needs(scope).map_err(Problem::from)?;
        }
        if matched == METRICS && !caller.reaches_all() {
            let detail = "metrics cover all sessions; use a token without session patterns";
            return Err(Box::new(Problem::new(Code::Forbidden, detail)));
        }
        Ok(caller)
    }

    /// Returns the caller whose login a request names. Writes must come from our own pages, and other protocols' doors
    /// take tokens only.
    fn logged_in(
        &self,
        request: &Request,
        matched: &str,
        missing: Unauthorized,
    ) -> Result<Caller, Box<Problem>> {
        let headers = request.headers();
        let credentials = self.credentials.as_ref().filter(|_| !self.doors.contains(&matched));
        let found = credentials.and_then(|credentials| credentials(headers));
        let caller = found.unwrap_or(Err(missing)).map_err(|why| Box::new(unauthorized(why)))?;
        if !is_read(request.method()) && !origin(headers).is_own() {
            let detail = "a login can write only from this server's own page; send a token instead";
            return Err(Box::new(Problem::new(Code::Forbidden, detail)));
        }
        Ok(caller)
    }

    /// Returns the scope that a route needs. A door checks each operation by itself.
    fn scope_of(&self, method: &Method, matched: &str) -> Option<Scope> {
        if self.doors.contains(&matched) {
            return None;
        }
        let is_admin = ADMIN.iter().any(|(of, path)| of == method && *path == matched);
        Some(match is_read(method) {
            _ if is_admin => Scope::Admin,
            true => Scope::Read,
            false => Scope::Write,
        })
    }

    /// Adds the session's revision to an answer that lacks it, such as a refusal made before the board was read.
    fn name_revision(&self, caller: &Caller, path: &str, response: &mut Response) {
        if !response.headers().contains_key(REVISION_HEADER)
            && !caller.is_signed()
            && let Some(session) = session_of(path)
            && let Some(revision) = self.service.known_revision(caller, &session)
        {
            response.headers_mut().insert(REVISION_HEADER, revision_value(revision));
        }
    }
}

/// The caller of a request to a handler that takes it alone.
pub(super) struct Calling(pub(super) Caller);

impl<S: Sync> FromRequestParts<S> for Calling {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        caller_of(parts).map(Self)
    }
}

/// Returns the caller of a request. A route outside the guard has none.
pub(super) fn caller_of(parts: &Parts) -> Result<Caller, Problem> {
    let caller = parts.extensions.get::<Caller>().cloned();
    caller.ok_or_else(|| {
        Problem::new(Code::Internal, "the request reached a handler without authentication")
    })
}

/// Returns the token of a request.
fn presented(headers: &HeaderMap) -> Result<Option<&str>, Box<Problem>> {
    let bearer = headers.get_all(AUTHORIZATION).iter().map(bearer);
    let keys = headers.get_all(API_KEY).iter().map(|value| value.to_str().ok());
    let mut tokens = bearer.chain(keys);
    match (tokens.next(), tokens.next()) {
        (None, _) => Ok(None),
        // A malformed token counts as an unknown one.
        (Some(token), None) => Ok(Some(token.unwrap_or_default())),
        (Some(_), Some(_)) => Err(Box::new(unauthorized(Unauthorized::Several))),
    }
}

/// Returns the origin of a request.
fn origin(headers: &HeaderMap) -> RequestOrigin<'_> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    RequestOrigin { origin: text(ORIGIN), fetch_site: text(FETCH_SITE), host: text(HOST) }
}

/// Returns the token of a bearer authorization. The scheme's name is case-insensitive (RFC 9110).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns true for a bare token where a scheme and a token are expected.
fn lacks_scheme(value: &HeaderValue) -> bool {
    value.to_str().is_ok_and(|value| value.trim().parse::<Secret>().is_ok())
}

fn rate_limited(detail: &str, wait: Duration) -> Problem {
    Problem::new(Code::RateLimited, detail).retry_after(wait.as_secs() + 1)
}

/// Returns true if the answer would tell a guesser of addresses what exists.
fn tells_something(response: &Response) -> bool {
    let status = response.status();
    status.is_client_error() && status != StatusCode::RANGE_NOT_SATISFIABLE
}

/// Returns true if the route needs no token.
pub(super) fn is_public(path: &str) -> bool {
    PUBLIC.contains(&path)
}

fn is_signed(request: &Request, matched: &str) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let has_signature = query.split('&').any(|pair| pair.starts_with("signature="));
    matched == IMAGE && is_read(request.method()) && has_signature
}

pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Refuses a request without a valid token (RFC 6750).
fn unauthorized(why: Unauthorized) -> Problem {
    let challenge = match why {
        Unauthorized::Missing => HeaderValue::from_static("Bearer realm=\"blackboard\""),
        Unauthorized::Several
        | Unauthorized::NoScheme
        | Unauthorized::Unknown
        | Unauthorized::Expired
        | Unauthorized::Revoked
        | Unauthorized::LoggedOut => {
            HeaderValue::from_static("Bearer realm=\"blackboard\", error=\"invalid_token\"")
        }
    };
    Problem::new(Code::Unauthorized, why.to_string()).header(WWW_AUTHENTICATE, challenge)
}

impl From<Unauthorized> for Problem {
    fn from(why: Unauthorized) -> Self {
        unauthorized(why)
    }
}

impl From<Unreachable> for Problem {
    fn from(why: Unreachable) -> Self {
        match why {
            Unreachable::Hidden(session) => {
                Self::from(no_session(&session)).reason("the token does not reach the session")
            }
            Unreachable::Over(why) => unauthorized(why),
            Unreachable::Behind(error) => error.into(),
        }
    }
}

impl From<NotWritten> for Problem {
    fn from(refused: NotWritten) -> Self {
        match refused {
            NotWritten::Over(why) => unauthorized(why),
            NotWritten::Forbidden(forbidden) => forbidden.into(),
            NotWritten::Refused(refusal) => refusal.into(),
            NotWritten::Service(error) => error.into(),
        }
    }
}

impl From<Forbidden> for Problem {
    fn from(forbidden: Forbidden) -> Self {
        let problem = Self::new(Code::Forbidden, forbidden.to_string());
        let challenge = match &forbidden {
            Forbidden::Scope(scope) => scope.as_str(),
            Forbidden::ForeignMemory { .. } => Scope::MemoryRead.as_str(),
            Forbidden::Setting { .. } | Forbidden::ForeignWrite { .. } => return problem,
        };
        let challenge = format!(
            "Bearer realm=\"blackboard\", error=\"insufficient_scope\", scope=\"{challenge}\""
        );
        match HeaderValue::from_str(&challenge) {
            Ok(challenge) => problem.header(WWW_AUTHENTICATE, challenge),
            Err(_) => problem,
        }
    }
}
