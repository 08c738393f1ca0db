//! Examples of requests and responses that work when they are sent from the documentation.

use serde_json::{Value, json};
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::{Operation, ParameterBuilder, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

use blackboard_board::PromptFormat;
use blackboard_prompt::{Source, Syntax};

/// Adds the examples of parameters and of bodies that have none yet.
pub(crate) fn with_examples(mut document: OpenApi) -> OpenApi {
    for item in document.paths.paths.values_mut() {
        let PathItem { get, put, post, patch, delete, .. } = item;
        [get, put, post, patch, delete].into_iter().flatten().for_each(add_to);
    }
    document
}

fn add_to(operation: &mut Operation) {
    let id = operation.operation_id.clone().unwrap_or_default();
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && let Some(example) = parameter_example(&id, &parameter.name)
        {
            let builder = ParameterBuilder::from(std::mem::take(parameter));
            *parameter = builder.example(Some(example)).build();
        }
    }
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        for (media_type, content) in &mut body.content {
            if let RefOr::T(content) = content
                && content.example.is_none()
            {
                content.example = body_example(&id, media_type);
            }
        }
    }
    if id == "get_prompt" {
        add_formats(operation);
    }
}

fn parameter_example(id: &str, name: &str) -> Option<Value> {
    Some(match name {
        "session" => json!("demo"),
        "agent" if !id.starts_with("get_events") => json!("AppAgent"),
        "seq" => json!(1),
        "q" => json!("print report"),
        "path" if id == "patch_state" => json!("tasks/log"),
        "path" => json!("tasks/t1"),
        // A claim needs an agent.
        "X-Agent-ID" if id.ends_with("_request") => json!("AppAgent"),
        _ => return None,
    })
}

/// Returns the body of an operation that is not on a log; those have an item of their own.
fn body_example(id: &str, media_type: &str) -> Option<Value> {
    let is_merge = media_type == "application/merge-patch+json";
    if media_type != "application/json" && !is_merge {
        return None;
    }
    Some(match id {
        "put_session" => json!({
            "settings": {"history_keys": ["step", "action", "result"], "ttl": "30d"},
            "labels": {"team": "blue"},
        }),
        "put_blackboard" => json!({
            "questions": [],
            "requests": [{"request": "Print the report"}],
            "trajectories": [{"step": 1, "action": "open", "result": "ok"}],
            "screenshots": [],
        }),
        "put_agent" => json!({"type": "AppAgent", "platform": "windows", "host": "HostAgent"}),
        "patch_agent" => json!({"status": "PENDING"}),
        "put_checkpoint" => json!({"name": "before-print"}),
        "fork_session" => json!({"to": "demo-2"}),
        "restore_session" => json!({"at": 1}),
        "answer_question" => json!({"answer": "The one on floor 2"}),
        "claim_request" => json!({"ttl": "60s"}),
        "claim_next_request" => json!({"ttl": "60s", "match": {"device": "windows"}}),
        "finish_request" => json!({"result": "printed"}),
        "fail_request" => json!({"reason": "out of paper", "retry_in": "30s"}),
        "retry_request" => json!({"deadline": "2h"}),
        "cancel_request" => json!({"reason": "no longer needed"}),
        "judge_request" => json!({"accept": true, "reason": "complete"}),
        "put_whole_state" => json!({"tasks": {"t1": {"status": "ready", "tries": 0}}}),
        "put_state" => json!({"status": "ready", "tries": 0}),
        "patch_whole_state" => json!({"tasks": {"t1": {"status": "taken"}}}),
        "patch_state" if is_merge => json!({"status": "taken"}),
        "patch_state" => json!({"append": ["printed"]}),
        "transact" => json!({
            "if": [{"path": "tasks/t1/status", "equals": "ready"}],
            "then": [
                {"put": "tasks/t1/status", "value": "taken", "ttl": "60s"},
                {"append": "trajectories", "item": {"step": 2, "action": "print"}},
            ],
            "else": [],
        }),
        _ => return None,
    })
}

/// Adds an example of each format to the prompt's responses.
fn add_formats(operation: &mut Operation) {
    let Some(RefOr::T(response)) = operation.responses.responses.get_mut("200") else { return };
    for (media_type, content) in &mut response.content {
        let RefOr::T(content) = content else { continue };
        for (name, example) in formats()
            .into_iter()
            .filter(|(_, example)| example.is_string() == (media_type == "text/markdown"))
        {
            let example = ExampleBuilder::new().value(Some(example)).build();
            content.examples.insert(name.to_owned(), RefOr::T(example));
        }
    }
}

/// Returns the prompt of a board with one request and one screenshot, by format.
fn formats() -> [(&'static str, Value); PromptFormat::NAMED.len()] {
    PromptFormat::NAMED.map(|(name, format)| match Syntax::of(format) {
        Some(syntax) => (name, parts_example(syntax)),
        None => (name, json!("# Blackboard\n\n## Requests\n\n- Print the report\n")),
    })
}

fn parts_example(syntax: &Syntax) -> Value {
    let heading = "[Blackboard:]";
    let requests = r#"[Request History:]\n [{\"request\": \"Print the report\"}]"#;
    let metadata = r#"\"Print dialog\""#;
    let texts = [heading, requests, metadata]
        .map(|text| format!("{}{text}{}", syntax.text_begin, syntax.text_end));
    let begin = syntax.image_begin("image/png", Source::Inline);
    let image = format!("{begin}iVBORw0KGgo={}", syntax.image_end);
    serde_json::from_str(&format!("[{}, {image}]", texts.join(", "))).unwrap_or_default()
}
