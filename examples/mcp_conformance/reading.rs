//! Resources, their template, and prompts.

use blackboard::mcp::Maybe;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt, PromptArgument,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceTemplate,
};
use serde_json::{Value, json};

use crate::content::PNG;
use crate::fixtures::{done, parsed};
use crate::inputs;

const TEXT: &str = "test://static-text";

const BINARY: &str = "test://static-binary";

/// Describes the resources.
pub(crate) fn resources() -> Vec<Resource> {
    let described = [(TEXT, "static-text", "text/plain"), (BINARY, "static-binary", "image/png")];
    let resource = |(uri, name, kind): (&str, &str, &str)| {
        Resource::new(uri, name).with_description("A fixture").with_mime_type(kind)
    };
    described.map(resource).to_vec()
}

/// Describes the templates.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new("test://template/{id}/data", "template");
    vec![template.with_description("A fixture").with_mime_type("application/json")]
}

/// Reads a resource; `None` if it is not one of these.
pub(crate) fn read(uri: &str) -> Option<Maybe<ReadResourceResponse>> {
    let content = match uri {
        TEXT => json!({
            "uri": uri,
            "mimeType": "text/plain",
            "text": "This is the content of the static text resource.",
        }),
        BINARY => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let text =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()})
        }
    };
    Some(done(parsed(content).map(|content| ReadResourceResult::new(vec![content]).into())))
}

/// Describes the prompts.
pub(crate) fn prompts() -> Vec<Prompt> {
    let described: [(&str, &[&str]); 5] = [
        ("test_simple_prompt", &[]),
        ("test_prompt_with_arguments", &["arg1", "arg2"]),
        ("test_prompt_with_embedded_resource", &["resourceUri"]),
        ("test_prompt_with_image", &[]),
        (inputs::PROMPT, &[]),
    ];
    let argument =
        |name: &&str| PromptArgument::new(*name).with_description("Any text").with_required(true);
    let prompt = |(name, arguments): (&str, &[&str])| {
        let arguments: Vec<_> = arguments.iter().map(argument).collect();
        Prompt::new(name, Some("A fixture"), (!arguments.is_empty()).then_some(arguments))
    };
    described.map(prompt).to_vec()
}

/// Makes a prompt; `None` if it is not one of these.
pub(crate) fn prompt(request: &GetPromptRequestParams) -> Option<Maybe<GetPromptResponse>> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        let value = arguments.and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let text = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    let messages = match &*request.name {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            json!([text(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            json!([
                {"role": "user", "content": {"type": "resource", "resource": resource}},
                text("Please process the embedded resource above."),
            ])
        }
        "test_prompt_with_image" => {
            let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
            json!([{"role": "user", "content": image}, text("Please analyze the image above.")])
        }
        _ => return None,
    };
    Some(done(parsed(messages).map(|messages| GetPromptResult::new(messages).into())))
}
