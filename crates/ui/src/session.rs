//! Log-in and log-out of a browser.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::cookie;
use blackboard_auth::{BeginError, Login, Logins, Scope, Unauthorized};
use blackboard_fairness::Client;
use blackboard_store::StoreError;

/// The maximum size of a log-in's body, in bytes.
const BODY_BYTES_MAX: usize = 4 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BeginBody {
    token: String,
}

/// The rights of the page.
#[derive(Serialize)]
struct SessionBody {
    /// False on a server without tokens, where everybody may do everything.
    tokens_required: bool,
    /// The login of this browser.
    login: Option<LoginBody>,
}

#[derive(Serialize)]
struct LoginBody {
    token: TokenBody,
    expires_at: String,
}

#[derive(Serialize)]
struct TokenBody {
    name: String,
    scopes: Vec<&'static str>,
    sessions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

impl From<Login> for LoginBody {
    fn from(Login { token, expires_at }: Login) -> Self {
        let ends_first = token.expires_at.map_or(expires_at, |token| token.min(expires_at));
        Self {
            expires_at: ends_first.to_string(),
            token: TokenBody {
                name: token.name.to_string(),
                scopes: token.scopes.iter().map(Scope::as_str).collect(),
                sessions: token.sessions.iter().map(ToString::to_string).collect(),
                agent: token.agent.map(|agent| agent.to_string()),
                expires_at: token.expires_at.map(|at| at.to_string()),
            },
        }
    }
}

/// Shows the rights that the browser has.
pub(super) async fn show(State(logins): State<Logins>, headers: HeaderMap) -> Response {
    let tokens_required = logins.tokens().are_required();
    let found = cookie::login_id(&headers).filter(|_| tokens_required);
    let login = found.and_then(|id| logins.find(id).ok()).map(|(_, login)| login.into());
    json(&SessionBody { tokens_required, login })
}

/// Trades a token for a cookie. The logins whose cookies it replaces end: nobody could log out of them any more.
pub(super) async fn begin(
    State(logins): State<Logins>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Response> {
    own(&headers).map_err(IntoResponse::into_response)?;
    let body = read(&headers, request.into_body()).await?;
    let begun = match logins.begin(&body.token) {
        Ok(begun) => begun,
        Err(BeginError::Unauthorized(why)) => return Err(unauthorized(&logins, why)),
        Err(BeginError::RateLimited(wait)) => {
            return Err(too_many(wait, "the token exceeded --token-rate; retry after Retry-After"));
        }
        Err(error @ BeginError::Random(_)) => {
            tracing::error!(%error, "no login could be created");
            return Err(StatusCode::INTERNAL_SERVER_ERROR.into_response());
        }
    };
    let Some((id, login)) = begun else {
        return Ok(json(&SessionBody { tokens_required: false, login: None }));
    };
    end_present(&logins, &headers).await?;
    tracing::info!(token = %login.token.name, "a browser logged in");
    // Rounded up: the login is younger than a second.
    let seconds = (login.expires_at.0 - logins.tokens().now().0 + 999) / 1000;
    let set = cookie::set(&id, seconds, cookie::origin(&headers));
    let mut response = json(&SessionBody { tokens_required: true, login: Some(login.into()) });
    response.headers_mut().extend(set.map(|set| (SET_COOKIE, set)));
    Ok(response)
}

/// Ends the login of each cookie, and deletes the cookie. If an end could not be stored, the login goes on and the cookie stays, so that
/// the log-out can be tried again.
pub(super) async fn end(
    State(logins): State<Logins>,
    headers: HeaderMap,
) -> Result<Response, Response> {
    own(&headers).map_err(IntoResponse::into_response)?;
    end_present(&logins, &headers).await?;
    let tokens_required = logins.tokens().are_required();
    let mut response = json(&SessionBody { tokens_required, login: None });
    let set = cookie::set("", 0, cookie::origin(&headers));
    response.headers_mut().extend(set.map(|set| (SET_COOKIE, set)));
    Ok(response)
}

/// Ends the login of each cookie.
async fn end_present(logins: &Logins, headers: &HeaderMap) -> Result<(), Response> {
    let ids: Vec<String> = cookie::login_ids(headers).map(str::to_owned).collect();
    if !ids.is_empty() {
        let ending = logins.clone();
        let ended =
            tokio::task::spawn_blocking(move || ids.iter().try_for_each(|id| ending.end(id)));
        let ended = ended.await;
        let ended = ended.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())?;
        ended.map_err(|error| not_ended(&error))?;
    }
    Ok(())
}

fn not_ended(error: &StoreError) -> Response {
    tracing::error!(%error, "a login could not be ended");
    let detail = "the log-out could not be stored, so the login goes on; retry after Retry-After";
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, HeaderValue::from(1))], detail).into_response()
}

/// Refuses requests of other sites' pages: they must not log a browser in or out.
fn own(headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    if cookie::origin(headers).is_own() {
        return Ok(());
    }
    Err((
        StatusCode::FORBIDDEN,
        "log in and out from this server's own page; its origin must equal Host",
    ))
}

async fn read(headers: &HeaderMap, body: Body) -> Result<BeginBody, Response> {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|text| text.split(';').next()).unwrap_or_default();
    if !media_type.trim().eq_ignore_ascii_case("application/json") {
        let detail = "send the token as application/json: {\"token\":\"bb_…\"}";
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).into_response());
    }
    let bytes = to_bytes(body, BODY_BYTES_MAX).await.map_err(|_| {
        let detail = format!("the body is incomplete or has more than {BODY_BYTES_MAX} bytes");
        (StatusCode::PAYLOAD_TOO_LARGE, detail).into_response()
    })?;
    // The message of a parser could quote the token.
    serde_json::from_slice(&bytes).map_err(|_| {
        let detail = "the body is not {\"token\":\"bb_…\"}";
        (StatusCode::UNPROCESSABLE_ENTITY, detail).into_response()
    })
}

fn unauthorized(logins: &Logins, why: Unauthorized) -> Response {
    match logins.tokens().count_refused(Client::current()) {
        Ok(()) => (StatusCode::UNAUTHORIZED, why.to_string()).into_response(),
        Err(wait) => too_many(
            wait,
            "too many invalid tokens were sent from this address; retry after Retry-After",
        ),
    }
}

fn too_many(wait: Duration, detail: &'static str) -> Response {
    let after = HeaderValue::from(wait.as_secs() + 1);
    (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, after)], detail).into_response()
}

fn json(body: &SessionBody) -> Response {
    let Ok(text) = serde_json::to_string(body) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let headers = [(CACHE_CONTROL, "no-store"), (CONTENT_TYPE, "application/json")];
    (headers, text + "\n").into_response()
}
