//! Tools and a prompt that need input from the client, asked for by their first answer.
//!
//! A state that the client carries is signed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use blackboard::mcp::{Context, Maybe};
use blackboard::service::Service;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputRequests, InputRequiredResult, InputResponses, Tool,
};
use serde_json::{Value, json};

use crate::content::success;
use crate::fixtures::{done, parsed, tool};

/// The name of the prompt.
pub(crate) const PROMPT: &str = "test_input_required_result_prompt";

/// The state of a call without rounds.
const ONCE: &str = "once";

/// Describes the tools.
pub(crate) fn tools() -> Vec<Tool> {
    let described = [
        ("test_input_required_result_elicitation", "Asks the user"),
        ("test_input_required_result_sampling", "Asks the model"),
        ("test_input_required_result_list_roots", "Asks for the roots"),
        ("test_input_required_result_request_state", "Asks the user, and carries a state"),
        ("test_input_required_result_tampered_state", "Asks the user, and carries a state"),
        ("test_input_required_result_multiple_inputs", "Asks the user, the model, and for roots"),
        ("test_input_required_result_multi_round", "Asks the user twice"),
        ("test_input_required_result_capabilities", "Asks for all that the client can give"),
        ("test_streaming_elicitation", "Asks the user"),
    ];
    described.map(|(name, about)| tool(name, about, &json!({"type": "object"}))).to_vec()
}

/// Calls a tool; `None` if it is not one of these.
pub(crate) fn call(
    service: &Service,
    request: &CallToolRequestParams,
    context: &Context,
) -> Option<Maybe<CallToolResponse>> {
    let given = request.input_responses.as_ref();
    let state = request.request_state.as_deref();
    let called = match &*request.name {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            named(given).map_or_else(|| ask(user_name(), None), |name| text(&name))
        }
        "test_input_required_result_sampling" => match input(given, "capital_question") {
            Some(answer) => text(&answer.to_string()),
            None => ask(sampling("capital_question", "What is the capital of France?"), None),
        },
        "test_input_required_result_list_roots" => match input(given, "client_roots") {
            Some(roots) => text(&roots.to_string()),
            None => ask(roots(), None),
        },
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => confirmed(service, state),
        "test_input_required_result_multiple_inputs" => multiple(service, given, state),
        "test_input_required_result_multi_round" => round(service, state),
        "test_input_required_result_capabilities" => match given {
            Some(_) => text("The inputs are here"),
            None => ask(possible(context), None),
        },
        _ => return None,
    };
    Some(done(called))
}

/// Makes the prompt; `None` if it is another one.
pub(crate) fn prompt(request: &GetPromptRequestParams) -> Option<Maybe<GetPromptResponse>> {
    if request.name != PROMPT {
        return None;
    }
    let given = request.input_responses.as_ref();
    let made = match input(given, "user_context") {
        Some(given) => {
            let content = json!({"type": "text", "text": given.to_string()});
            parsed(json!([{"role": "user", "content": content}]))
                .map(|messages| GetPromptResult::new(messages).into())
        }
        None => {
            let asked = user("user_context", "What context should the prompt use?", "context");
            parsed(asked).map(|asked| InputRequiredResult::from_input_requests(asked).into())
        }
    };
    Some(done(made))
}

fn text(text: &str) -> Result<CallToolResponse, ErrorData> {
    success(&json!([{"type": "text", "text": text}]))
}

/// Asks for inputs.
fn ask(inputs: Value, state: Option<String>) -> Result<CallToolResponse, ErrorData> {
    let inputs: InputRequests = parsed(inputs)?;
    Ok(InputRequiredResult::new(Some(inputs), state).into())
}

/// Returns an input, which is an object if it is one.
pub(crate) fn input<'a>(given: Option<&'a InputResponses>, name: &str) -> Option<&'a Value> {
    given?.get(name).filter(|input| input.is_object())
}

/// Returns a greeting of the user whose name was asked for.
fn named(given: Option<&InputResponses>) -> Option<String> {
    let name = input(given, "user_name")?.pointer("/content/name")?.as_str()?;
    Some(format!("Hello, {name}!"))
}

/// A question to the user for one member.
pub(crate) fn user(input: &str, message: &str, member: &str) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {member: {"type": if member == "ok" { "boolean" } else { "string" }}},
        "required": [member],
    });
    let params = json!({"message": message, "requestedSchema": schema});
    json!({input: {"method": "elicitation/create", "params": params}})
}

/// The question for the user's name.
pub(crate) fn user_name() -> Value {
    user("user_name", "What is your name?", "name")
}

fn sampling(input: &str, message: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": message}});
    let params = json!({"messages": [message], "maxTokens": 100});
    json!({input: {"method": "sampling/createMessage", "params": params}})
}

fn roots() -> Value {
    json!({"client_roots": {"method": "roots/list", "params": {}}})
}

fn together(all: &[Value]) -> Value {
    let members = all.iter().filter_map(Value::as_object).flatten();
    members.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn confirmed(service: &Service, state: Option<&str>) -> Result<CallToolResponse, ErrorData> {
    match state {
        None => ask(user("confirm", "Please confirm", "ok"), Some(seal(service, ONCE))),
        Some(state) => {
            open(service, state)?;
            text("state-ok")
        }
    }
}

fn multiple(
    service: &Service,
    given: Option<&InputResponses>,
    state: Option<&str>,
) -> Result<CallToolResponse, ErrorData> {
    state.map(|state| open(service, state)).transpose()?;
    let names = ["user_name", "greeting", "client_roots"];
    if state.is_some() && names.iter().all(|name| input(given, name).is_some()) {
        return text("All inputs are here");
    }
    let all = together(&[user_name(), sampling("greeting", "Generate a greeting"), roots()]);
    ask(all, Some(seal(service, ONCE)))
}

fn round(service: &Service, state: Option<&str>) -> Result<CallToolResponse, ErrorData> {
    match state.map(|state| open(service, state)).transpose()?.as_deref() {
        None => {
            let first = user("step1", "Step 1: What is your name?", "name");
            ask(first, Some(seal(service, "round 1")))
        }
        Some("round 1") => {
            let second = user("step2", "Step 2: What is your favorite color?", "color");
            ask(second, Some(seal(service, "round 2")))
        }
        Some(_) => text("The last round is over"),
    }
}

/// Asks for what the client declares that it can give.
fn possible(context: &Context) -> Value {
    let client = context.client_capabilities().unwrap_or_default();
    let asked = [
        client.elicitation.map(|_| user_name()),
        client.sampling.map(|_| sampling("greeting", "Generate a greeting")),
        client.roots.map(|_| roots()),
    ];
    together(&asked.into_iter().flatten().collect::<Vec<_>>())
}

fn seal(service: &Service, state: &str) -> String {
    format!("{state}.{}", URL_SAFE_NO_PAD.encode(service.signing_key().sign(state.as_bytes())))
}

/// Returns a state that was sealed here.
fn open(service: &Service, sealed: &str) -> Result<String, ErrorData> {
    let opened = || {
        let (state, signature) = sealed.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        service.signing_key().has_signed(state.as_bytes(), &signature).then(|| state.to_owned())
    };
    opened()
        .ok_or_else(|| ErrorData::invalid_params("the requestState is not of this server", None))
}
