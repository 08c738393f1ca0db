//! Calls of tools that never wait, answered without the protocol's library.
//!
//! The library runs a service of its own for each request, with two tasks and four channels, so that a handler can send
//! notices before its result. A tool that never waits has nothing to send. What is read here is the plain call alone:
//! whatever else a client sends, and each message with a fault, is the library's to answer.

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, ConstString as _, JsonRpcVersion2_0,
    ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerResult,
};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::call::visit::Visit;
use super::call::{Client, Progress};
use super::message::Received;
use super::server::{Asked, Server};

/// The media types of answers.
pub(super) const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");

/// The room that is made for an answer. Most have less.
const ANSWER_BYTES: usize = 1 << 10;

/// The header that names a client's generation; without it, one of the earlier.
const VERSION: &str = "mcp-protocol-version";

/// A call as the library reads it, without anything beside.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    params: CallToolRequestParams,
}

/// A call that needs nothing of the library.
pub(super) struct Direct {
    id: RequestId,
    is_recent: bool,
    asked: Asked,
}

impl Direct {
    /// Reads a message; `None` if the library must answer it.
    pub(super) fn of(parts: &Parts, received: &Received) -> Option<Self> {
        let definition = received.tool.filter(|tool| !tool.waits())?;
        if parts.headers.get(header::ACCEPT)? != ACCEPTED {
            return None;
        }
        let Message { id, params, .. } = serde_json::from_slice(&received.message).ok()?;
        let meta = params.meta.unwrap_or_default();
        let is_recent = is_recent(&parts.headers, &meta, definition.name)?;
        let visit = Visit::of_request(parts).ok().filter(|visit| definition.is_shown(visit))?;
        let asked = Asked {
            definition,
            visit,
            arguments: received.arguments.clone(),
            client: Client::default(),
            is_recent,
            progress: Progress::default(),
            cancelled: CancellationToken::new(),
        };
        Some(Self { id, is_recent, asked })
    }

    /// Runs the tool.
    pub(super) async fn answer(self, server: &Server) -> Response {
        let Self { id, is_recent, asked } = self;
        let message = match server.run(asked).await {
            Ok(response) => {
                let mut result = ServerResult::from(response);
                if !is_recent {
                    result.strip_result_type_for_legacy_peer();
                }
                ServerJsonRpcMessage::response(result, id)
            }
            Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
        };
        let mut body = Vec::with_capacity(ANSWER_BYTES);
        // Serialization fails at maps with keys other than strings only.
        serde_json::to_writer(&mut body, &message).ok();
        let mut response = Response::new(Body::from(Bytes::from(body)));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }
}

/// Returns true for a call of the present generation, and false for one of an earlier; `None` if its headers and metadata
/// do not agree, or name another.
fn is_recent(headers: &HeaderMap, meta: &RequestMetaObject, tool: &str) -> Option<bool> {
    let recent = ProtocolVersion::V_2026_07_28;
    let mut named = headers.get_all(VERSION).iter();
    let (first, None) = (named.next(), named.next()) else { return None };
    match (first, meta.protocol_version()) {
        (None, None) => Some(false),
        (Some(named), None) => {
            let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
            let is_known = known.any(|version| *version != recent && named == version.as_str());
            is_known.then_some(false)
        }
        (Some(named), Some(version)) => {
            let agrees = version == recent
                && named == recent.as_str()
                && meta.missing_required_keys(&recent).is_empty()
                && is_only(headers, "mcp-method", CallToolRequestMethod::VALUE)
                && is_only(headers, "mcp-name", tool);
            agrees.then_some(true)
        }
        (None, Some(_)) => None,
    }
}

fn is_only(headers: &HeaderMap, name: &str, value: &str) -> bool {
    headers.get_all(name).iter().eq([value])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::message::received;
    use blackboard_auth::Caller;

    /// The generation of a call that needs nothing of the library.
    async fn direct(headers: &[(&str, &str)], message: &Value) -> Option<bool> {
        let mut request = axum::http::Request::builder().uri("/mcp?session=s");
        request = request.header("accept", ACCEPTED).extension(Caller::owner());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let body = Bytes::from(message.to_string());
        let received = received(body, false).await.ok().unwrap();
        Direct::of(&parts, &received).map(|direct| direct.is_recent)
    }

    fn call(name: &str, meta: &Value) -> Value {
        let params = json!({"name": name, "arguments": {"path": "a"}, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    }

    #[tokio::test]
    async fn a_plain_call_is_direct_and_others_are_not() {
        let version = |version| ("mcp-protocol-version", version);
        let plain = call("get_state", &json!({}));
        for (headers, direct_of) in [
            (&[][..], Some(false)),
            (&[version("2025-11-25")], Some(false)),
            (&[version("2026-07-28")], None),
            (&[version("2030-01-01")], None),
        ] {
            assert_eq!(direct(headers, &plain).await, direct_of, "{headers:?}");
        }
        let mut without_arguments = plain.clone();
        without_arguments["params"].as_object_mut().unwrap().remove("arguments");
        assert_eq!(direct(&[], &without_arguments).await, Some(false));
        assert_eq!(
            direct(&[], &call("get_state", &json!({"progressToken": 1}))).await,
            Some(false)
        );
        for tool in ["claim_request", "ask_person", "wait_for_change", "unknown"] {
            assert_eq!(direct(&[], &call(tool, &json!({}))).await, None, "{tool}");
        }
        for (name, value) in [
            ("id", json!(null)),
            ("id", json!(1.5)),
            ("jsonrpc", json!("1.0")),
            ("method", json!("tools/list")),
            ("result", json!({})),
            ("other", json!(1)),
        ] {
            let mut other = plain.clone();
            other[name] = value;
            assert_eq!(direct(&[], &other).await, None, "{name}");
        }
        for (name, value) in [("_meta", json!(1)), ("arguments", json!([]))] {
            let mut other = plain.clone();
            other["params"][name] = value;
            assert_eq!(direct(&[], &other).await, None, "{name}");
        }
    }

    #[tokio::test]
    async fn a_recent_call_is_direct_if_all_agrees() {
        let version = "2026-07-28";
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let recent = call("get_state", &meta);
        let headers = [
            ("mcp-protocol-version", version),
            ("mcp-method", "tools/call"),
            ("mcp-name", "get_state"),
        ];
        assert_eq!(direct(&headers, &recent).await, Some(true));
        for (left_out, (name, value)) in headers.iter().enumerate() {
            let mut fewer = headers.to_vec();
            fewer.remove(left_out);
            assert_eq!(direct(&fewer, &recent).await, None, "without {name}");
            fewer.push((name, "2025-11-25"));
            assert_eq!(direct(&fewer, &recent).await, None, "another {name}");
            fewer.push((name, value));
            fewer.swap(left_out, headers.len());
            assert_eq!(direct(&fewer, &recent).await, None, "two of {name}");
        }
        for member in meta.as_object().unwrap().keys() {
            let mut fewer = meta.clone();
            fewer.as_object_mut().unwrap().remove(member);
            assert_eq!(direct(&headers, &call("get_state", &fewer)).await, None, "{member}");
        }
    }
}
