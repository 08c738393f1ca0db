//! Tools that send the client a request while it waits, as sessions allow up to 2025-11-25.
//!
//! The request reaches the client in the answer to its call, which is all that the suite checks. The client's answer is
//! dropped, since the door has no sessions. The board's own tools never ask in this way.

use std::time::Duration;

use blackboard::mcp::{Context, Maybe};
use futures_util::future::FutureExt as _;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ServerRequest, Tool,
};
use rmcp::service::Peer;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::fixtures::{parsed, tool};

/// The longest wait for an answer. The client's own tests end after thirty seconds.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// Describes the tools.
pub(crate) fn tools() -> Vec<Tool> {
    let of = |argument: &str| {
        json!({
            "type": "object",
            "properties": {argument: {"type": "string"}},
            "required": [argument],
        })
    };
    let none = json!({"type": "object"});
    vec![
        tool("test_sampling", "Asks the model", &of("prompt")),
        tool("test_elicitation", "Asks the user", &of("message")),
        tool("test_elicitation_sep1034_defaults", "Asks the user with defaults", &none),
        tool("test_elicitation_sep1330_enums", "Asks the user with choices", &none),
    ]
}

/// Calls a tool; `None` if it is not one of these.
pub(crate) fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Option<Maybe<CallToolResponse>> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|arguments| arguments.get(name)).cloned().unwrap_or_default()
    };
    let asked = match &*request.name {
        "test_sampling" => {
            let content = json!({"type": "text", "text": argument("prompt")});
            let params =
                json!({"messages": [{"role": "user", "content": content}], "maxTokens": 100});
            json!({"method": "sampling/createMessage", "params": params})
        }
        "test_elicitation" => elicitation(
            &argument("message"),
            &json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            }),
        ),
        "test_elicitation_sep1034_defaults" => elicitation(&json!("Please confirm"), &defaults()),
        "test_elicitation_sep1330_enums" => elicitation(&json!("Please choose"), &choices()),
        _ => return None,
    };
    Some(ask(context.peer.clone(), asked).boxed())
}

fn elicitation(message: &Value, properties: &Value) -> Value {
    let schema = json!({"type": "object", "properties": properties});
    json!({
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": schema},
    })
}

fn defaults() -> Value {
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": true},
    })
}

fn choices() -> Value {
    let titled = |word: &str| {
        let choice = |n: i32| json!({"const": format!("value{n}"), "title": format!("{word} {n}")});
        json!([choice(1), choice(2), choice(3)])
    };
    let options = json!(["option1", "option2", "option3"]);
    json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    })
}

async fn ask(peer: Peer<RoleServer>, asked: Value) -> Result<CallToolResponse, ErrorData> {
    let asked: ServerRequest = parsed(asked)?;
    let result = match timeout(WAIT_MAX, peer.send_request(asked)).await {
        Ok(Ok(answer)) => {
            let answer = serde_json::to_string(&answer).unwrap_or_default();
            CallToolResult::success(vec![ContentBlock::text(answer)])
        }
        Ok(Err(error)) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
        Err(_) => CallToolResult::error(vec![ContentBlock::text("the client did not answer")]),
    };
    Ok(result.into())
}
