//! Tools that answer at once, or after notifications of progress and log messages.

use std::time::Duration;

use blackboard::mcp::{Context, Maybe};
use futures_util::future::FutureExt as _;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ErrorData,
    ProgressNotificationParam, ProgressToken, ServerNotification, Tool,
};
use rmcp::service::Peer;
use serde_json::{Value, json};

use crate::fixtures::{done, parsed, tool};

/// A red pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// A sound without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// The pause between two notices.
const PAUSE: Duration = Duration::from_millis(50);

/// Describes the tools.
pub(crate) fn tools() -> Vec<Tool> {
    let simple = [
        ("test_simple_text", "Answers with text"),
        ("test_image_content", "Answers with an image"),
        ("test_audio_content", "Answers with a sound"),
        ("test_embedded_resource", "Answers with a resource"),
        ("test_multiple_content_types", "Answers with text, an image and a resource"),
        ("test_error_handling", "Fails"),
        ("test_tool_with_progress", "Tells its progress"),
        ("test_tool_with_logging", "Sends three lines of its log"),
        ("test_logging_tool", "Sends a line of its log if the request asks for that"),
        ("test_reconnection", "Answers without closing its stream before"),
        ("test_missing_capability", "Needs a client that samples"),
        ("test_trigger_tool_change", "Does nothing: the list of tools never changes"),
    ];
    let simple = simple.map(|(name, about)| tool(name, about, &json!({"type": "object"})));
    let mut tools = simple.to_vec();
    tools.push(tool("json_schema_2020_12_tool", "Has a schema with all keywords", &full_schema()));
    let schema = json!({
        "type": "object",
        "properties": {"value": {"type": "string", "x-mcp-header": "Value"}},
        "required": ["value"],
    });
    tools.push(tool("test_custom_header", "Repeats a value that a header has too", &schema));
    tools
}

fn full_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// Calls a tool; `None` if it is not one of these.
pub(crate) fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Option<Maybe<CallToolResponse>> {
    let peer = context.peer.clone();
    let called = match &*request.name {
        "test_error_handling" => {
            let content = json!([text("This tool intentionally returns an error for testing")]);
            done(parsed(content).map(|content| CallToolResult::error(content).into()))
        }
        "test_tool_with_progress" => progress(peer, context.meta.get_progress_token()).boxed(),
        "test_tool_with_logging" => logging(peer).boxed(),
        "test_logging_tool" => {
            let wanted = context.meta.log_level().is_some();
            logging_if(wanted, peer).boxed()
        }
        "test_missing_capability" => done(sampling(context)),
        "test_custom_header" => {
            let value = request.arguments.as_ref().and_then(|arguments| arguments.get("value"));
            done(success(&json!([text(value.and_then(Value::as_str).unwrap_or_default())])))
        }
        name => done(success(&content(name)?)),
    };
    Some(called)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Answers with content.
pub(crate) fn success(content: &Value) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(parsed(content.clone())?).into())
}

/// Returns the content of a tool that always answers the same.
fn content(name: &str) -> Option<Value> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let content = match name {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => json!([{
            "type": "resource",
            "resource": {
                "uri": "test://embedded-resource",
                "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            },
        }]),
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            {
                "type": "resource",
                "resource": {
                    "uri": "test://mixed-content-resource",
                    "mimeType": "application/json",
                    "text": r#"{"test":"data","value":123}"#,
                },
            },
        ]),
        "test_reconnection" => json!([text("Reconnection test completed")]),
        "json_schema_2020_12_tool" => json!([text("Hello!")]),
        "test_trigger_tool_change" => json!([text("The list of tools is as it was.")]),
        _ => return None,
    };
    Some(content)
}

async fn progress(
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
) -> Result<CallToolResponse, ErrorData> {
    for told in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let progress = ProgressNotificationParam::new(token.clone(), told).with_total(100.0);
            peer.notify_progress(progress).await.map_err(undelivered)?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    success(&json!([text("Progress test completed")]))
}

async fn logging(peer: Peer<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        log(&peer, line).await?;
        tokio::time::sleep(PAUSE).await;
    }
    success(&json!([text("Logging test completed")]))
}

async fn logging_if(wanted: bool, peer: Peer<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    if wanted {
        log(&peer, "The request asked for this line").await?;
    }
    success(&json!([text("Logging tool completed")]))
}

async fn log(peer: &Peer<RoleServer>, line: &str) -> Result<(), ErrorData> {
    let notice: ServerNotification = parsed(json!({
        "method": "notifications/message",
        "params": {"level": "info", "logger": "fixtures", "data": line},
    }))?;
    peer.send_notification(notice).await.map_err(undelivered)
}

fn undelivered(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn sampling(context: &Context) -> Result<CallToolResponse, ErrorData> {
    let capabilities = context.client_capabilities().unwrap_or_default();
    if capabilities.sampling.is_none() {
        let needed: ClientCapabilities = parsed(json!({"sampling": {}}))?;
        return Err(ErrorData::missing_required_client_capability(needed));
    }
    success(&json!([text("The client samples")]))
}
