//! Messages before the protocol's library reads them: bounds, the arguments of a tool, refusals as JSON-RPC says.
//!
//! The library makes a tree of a message in one piece, at some microseconds for each value. So it is given only what
//! stands outside a tool's arguments, which has narrow bounds; the tool reads the arguments itself.

use std::borrow::Cow;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError};

use super::call::arguments::RawArguments;
use super::catalog::{Definition, tool};
use blackboard_api::offload::work;
use blackboard_board::json::tokens::Tokens;
use blackboard_board::json::{self, Kind};

/// The maximum number of names, values and brackets in a message, a tool's arguments included.
const TOKENS_MAX: usize = 200_000;

/// The maximum number of names, values and brackets outside a tool's arguments.
const OUTSIDE_TOKENS_MAX: usize = 1_000;

/// The maximum size of what stands outside a tool's arguments.
const OUTSIDE_BYTES_MAX: usize = 256 << 10;

/// The room that is made for what stands outside the arguments. Most messages have less.
const OUTLINE_BYTES: usize = 1 << 10;

/// The method that calls a tool.
const CALL: &str = "tools/call";

/// The requests that are answered. Their library reads one with other parameters as a request of another protocol.
const METHODS: [&str; 14] = [
    "completion/complete",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    CALL,
    "tools/list",
];

/// A message in two parts.
pub(super) struct Received {
    /// The message for the library.
    pub(super) message: Bytes,
    /// The board's tool that is called.
    pub(super) tool: Option<&'static Definition>,
    /// The arguments of a tool, which the message is without.
    pub(super) arguments: Option<RawArguments>,
}

/// Looks at a body, in its client's turn if it is large. With `extra` tools beside the board's, the library reads the
/// arguments of tools that are not the board's.
pub(super) async fn received(body: Bytes, extra: bool) -> Result<Received, Box<Response>> {
    let bytes = body.len();
    let looked = work(bytes, move || Ok(look(&body, extra))).await;
    let failed = |_| {
        let why = "the server failed; its log has the cause";
        Err(ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None))
    };
    looked.unwrap_or_else(failed).map_err(|error| Box::new(rejected(error)))
}

/// Takes the arguments of a tool out of a message. Those of a tool that does not exist are dropped unread.
fn look(body: &Bytes, extra: bool) -> Result<Received, ErrorData> {
    let text = document(body)?;
    let outline = Outline::of(text);
    let name = outline.tool();
    let tool = name.as_deref().and_then(tool);
    let arguments = outline.arguments.filter(|_| name.is_some());
    let whole = Received { message: body.clone(), tool, arguments: None };
    let Some(arguments) = arguments else {
        check_outside(text)?;
        return Ok(whole);
    };
    if extra && tool.is_none() {
        check(text)?;
        return Ok(whole);
    }
    check_outside(&outline.outside)?;
    let message = outline.outside.into();
    if tool.is_none() {
        return Ok(Received { message, tool, arguments: None });
    }
    check(arguments)?;
    let arguments = RawArguments::new(body.slice_ref(arguments.as_bytes()));
    Ok(Received { message, tool, arguments: Some(arguments) })
}

/// The parts of a message, as literals. The last of repeated members counts.
#[derive(Default)]
struct Outline<'a> {
    method: Option<&'a str>,
    name: Option<&'a str>,
    arguments: Option<&'a str>,
    /// The message without the arguments in its parameters.
    outside: String,
}

impl<'a> Outline<'a> {
    fn of(message: &'a str) -> Self {
        let mut outline = Self::default();
        outline.outside.reserve(message.len().min(OUTLINE_BYTES));
        outline.outside.push('{');
        for member in json::members(message) {
            let name = json::decode(member.name);
            outline.begin(member.name);
            if name == "params" {
                outline.take_params(member.value);
                continue;
            }
            if name == "method" {
                outline.method = Some(member.value);
            }
            outline.outside.push_str(member.value);
        }
        outline.outside.push('}');
        outline
    }

    fn take_params(&mut self, params: &'a str) {
        (self.name, self.arguments) = (None, None);
        self.outside.push('{');
        for member in json::members(params) {
            let name = json::decode(member.name);
            if name == "arguments" {
                self.arguments = Some(member.value);
                continue;
            }
            if name == "name" {
                self.name = Some(member.value);
            }
            self.begin(member.name);
            self.outside.push_str(member.value);
        }
        self.outside.push('}');
    }

    /// Begins a member with its name.
    fn begin(&mut self, name: &str) {
        if !self.outside.ends_with('{') {
            self.outside.push(',');
        }
        self.outside.push_str(name);
        self.outside.push(':');
    }

    /// Returns the name of the tool that is called; `None` if none is, or its arguments are no object.
    fn tool(&self) -> Option<Cow<'a, str>> {
        let text = |literal: &&str| json::kind(literal) == Kind::String;
        let method = self.method.filter(text).map(json::decode);
        let is_call = method.is_some_and(|method| method == CALL)
            && self.arguments.is_none_or(|value| json::kind(value) == Kind::Object);
        self.name.filter(|_| is_call).filter(text).map(json::decode)
    }
}

/// Returns the text of a body, which must be one JSON object.
fn document(body: &[u8]) -> Result<&str, ErrorData> {
    match json::document(body) {
        Err(json::Malformed { line, column, reason }) => {
            let why = format!("line {line}, column {column}: {reason}");
            Err(ErrorData::new(ErrorCode::PARSE_ERROR, why, None))
        }
        Ok(text) if json::kind(text.get()) != Kind::Object => {
            let found = json::kind(text.get()).with_article();
            Err(invalid(format!("expected one message, as an object; found {found}")))
        }
        Ok(text) => Ok(text.get()),
    }
}

/// Refuses a message or arguments of too many values.
fn check(text: &str) -> Result<(), ErrorData> {
    if has_more(text, TOKENS_MAX) {
        return Err(invalid(format!(
            "the message has more than {TOKENS_MAX} names, values and brackets; send less at once"
        )));
    }
    Ok(())
}

/// Refuses too much outside a tool's arguments.
fn check_outside(text: &str) -> Result<(), ErrorData> {
    let is_large = text.len() > OUTSIDE_BYTES_MAX;
    if is_large || has_more(text, OUTSIDE_TOKENS_MAX) {
        return Err(invalid(format!(
            "the message has more than {OUTSIDE_BYTES_MAX} bytes, or more than {OUTSIDE_TOKENS_MAX} names, values and \
             brackets, outside a tool's 'arguments'; send less there"
        )));
    }
    Ok(())
}

/// Returns true if a text has more tokens, each of which has a byte at least.
fn has_more(text: &str, tokens: usize) -> bool {
    text.len() > tokens && Tokens::new(text).nth(tokens).is_some()
}

/// Replaces the library's answer to a message that it cannot read.
pub(super) fn answered(response: Response, is_json: bool) -> Response {
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        let why = "the message is not one of the protocol, or is nested deeper than 128 levels";
        return rejected(invalid(why.to_owned()));
    }
    response
}

fn invalid(why: String) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, why, None)
}

fn rejected(error: ErrorData) -> Response {
    let error = JsonRpcError::new(None, error);
    let body = serde_json::to_vec(&error).unwrap_or_default();
    let mut response = Response::new(Body::from(Bytes::from(body)));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Returns the error for a request that the library does not know: of its parameters, if the method is known. Recent
/// generations have no handshake.
pub(super) fn unknown(method: &str, is_recent: bool) -> ErrorData {
    if METHODS.contains(&method) || method == "initialize" && !is_recent {
        let why = format!("the parameters of {method} do not match the protocol");
        return ErrorData::invalid_params(why, None);
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method {method}"), None)
}
