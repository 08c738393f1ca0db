//! The hot path: the two commonest forms of a request, matched before the router.
//!
//! These are an append to one of a board's logs, and a read of a log or prompt by a client that may have it already.
//! Any other form goes to the router, also one of these with a query or an escape in its path. Either way the same
//! functions check the request, and the same handler answers it.

use axum::body::Body;
use axum::extract::{FromRef, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;

use crate::logs;
use crate::prompt;
use crate::read::{Early, Reading};
use crate::request::path::{LogPath, SessionPath};
use crate::response::problem::Problem;
use crate::routes::Handles;
use crate::write::Writing;
use blackboard_auth::Caller;
use blackboard_board::{LogName, SessionName};
use blackboard_service::Service;

/// The template of the logs of boards.
const LOG: &str = "/v1/sessions/{session}/{log}";

/// The template of prompts.
const PROMPT: &str = "/v1/sessions/{session}/prompt";

/// A request that the hot path answers.
pub(super) struct HotRequest {
    session: SessionName,
    form: Form,
}

/// What a request asks for.
enum Form {
    Append(LogName),
    Log(LogName),
    Prompt,
}

impl HotRequest {
    /// Matches a request.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let (method, uri) = (request.method(), request.uri());
        let rest = uri.path().strip_prefix("/v1/sessions/")?;
        let (session, part) = rest.split_once('/')?;
        if uri.query().is_some() || session.contains('%') {
            return None;
        }
        let form = if *method == Method::POST {
            Form::Append(LogName::of_board(part)?)
        } else if *method == Method::GET && request.headers().contains_key(header::IF_NONE_MATCH) {
            if part == "prompt" { Form::Prompt } else { Form::Log(LogName::of_board(part)?) }
        } else {
            return None;
        };
        // The router's way says why a name is invalid.
        Some(Self { session: session.parse().ok()?, form })
    }

    /// Returns the template of the route.
    pub(super) fn route(&self) -> &'static str {
        match self.form {
            Form::Append(_) | Form::Log(_) => LOG,
            Form::Prompt => PROMPT,
        }
    }

    /// Takes what the handler needs from the request, and calls it. The future is boxed, since those around it move.
    pub(super) fn answer(
        self,
        handles: &Handles,
        caller: Caller,
        request: Request,
    ) -> BoxFuture<'_, Response> {
        Box::pin(async move {
            let Self { session, form } = self;
            let (parts, body) = request.into_parts();
            match form {
                Form::Append(log) => {
                    append(handles, caller, session, log, parts, body).await.into_response()
                }
                Form::Log(log) => page(handles, caller, session, log, parts).await.into_response(),
                Form::Prompt => shown(handles, caller, session, parts).await.into_response(),
            }
        })
    }
}

async fn append(
    handles: &Handles,
    caller: Caller,
    session: SessionName,
    log: LogName,
    mut parts: Parts,
    body: Body,
) -> Result<Response, Problem> {
    let path =
        LogPath::of(&Service::from_ref(handles), &caller, &session, log, &parts.method).await?;
    let writing = Writing::begin(path.session.clone(), &mut parts, handles)?;
    logs::post(path, writing, body).await
}

async fn page(
    handles: &Handles,
    caller: Caller,
    session: SessionName,
    log: LogName,
    mut parts: Parts,
) -> Result<Response, Early> {
    let path =
        LogPath::of(&Service::from_ref(handles), &caller, &session, log, &parts.method).await?;
    let reading = Reading::begin(caller, &mut parts, handles)?;
    logs::get(path, reading).await
}

async fn shown(
    handles: &Handles,
    caller: Caller,
    session: SessionName,
    mut parts: Parts,
) -> Result<Response, Early> {
    let path = SessionPath::of(&Service::from_ref(handles), &caller, &session).await?;
    let reading = Reading::begin(caller, &mut parts, handles)?;
    prompt::get(path, State(FromRef::from_ref(handles)), reading).await
}
