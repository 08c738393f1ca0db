//! Tools that become tasks if the client supports tasks.

use std::time::Duration;

use blackboard::mcp::{Context, Maybe};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    CreateTaskResult, ErrorData, InputRequest, InputRequests, InputRequiredResult, Tool,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture, TaskManager, TaskOptions};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::content::success;
use crate::fixtures::{done, parsed, tool};
use crate::inputs::{input, user, user_name};

/// Describes the tools.
pub(crate) fn tools() -> Vec<Tool> {
    let described = [
        ("greet", "Greets at once", json!({"name": {"type": "string"}})),
        (
            "slow_compute",
            "Sleeps, then answers",
            json!({"seconds": {"type": "number"}, "label": {"type": "string"}}),
        ),
        ("failing_job", "Fails after a second", json!({})),
        ("protocol_error_job", "Ends with an error of the protocol", json!({})),
        ("confirm_delete", "Asks the user in its task", json!({"filename": {"type": "string"}})),
        ("multi_input", "Asks the user two questions in its task", json!({})),
        ("test_tool_with_task", "Asks the user, then becomes a task", json!({})),
    ];
    let described = described.map(|(name, about, properties)| {
        tool(name, about, &json!({"type": "object", "properties": properties}))
    });
    described.to_vec()
}

/// Calls a tool; `None` if it is not one of these.
pub(crate) fn call(
    tasks: &TaskManager,
    request: &CallToolRequestParams,
    context: &Context,
) -> Option<Maybe<CallToolResponse>> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|arguments| arguments.get(name)).cloned().unwrap_or_default()
    };
    let capabilities = context.client_capabilities().unwrap_or_default();
    let follows = capabilities.supports_tasks();
    let task = |work: Work| done(if follows { Ok(start(tasks, work)) } else { Err(unfollowed()) });
    let called = match &*request.name {
        "greet" => {
            let name = argument("name");
            done(text(&format!("Hello, {}!", name.as_str().unwrap_or("friend"))))
        }
        "slow_compute" => {
            let slow = Slow { seconds: argument("seconds").as_f64().unwrap_or(1.0) };
            if follows { task(Work::Slow(slow)) } else { Box::pin(async move { slow.run().await }) }
        }
        "failing_job" => task(Work::Failing),
        "protocol_error_job" if follows => task(Work::Broken),
        "protocol_error_job" => done(Err(broken())),
        "confirm_delete" => {
            let file = argument("filename").as_str().unwrap_or_default().to_owned();
            task(Work::Confirming(file))
        }
        "multi_input" => task(Work::Gathering),
        "test_tool_with_task" => match input(request.input_responses.as_ref(), "user_name") {
            Some(given) => task(Work::Greeting(given.to_string())),
            None if follows => done(parsed(user_name()).map(|asked: InputRequests| {
                InputRequiredResult::from_input_requests(asked).into()
            })),
            None => done(Err(unfollowed())),
        },
        _ => return None,
    };
    Some(called)
}

/// The work of a task.
enum Work {
    Slow(Slow),
    Failing,
    Broken,
    Confirming(String),
    Gathering,
    Greeting(String),
}

fn start(tasks: &TaskManager, work: Work) -> CallToolResponse {
    let task = tasks.spawn(TaskOptions::default(), move |context| work.run(context));
    CreateTaskResult::new(task).into()
}

impl Work {
    fn run(self, context: TaskContext) -> TaskFuture {
        Box::pin(async move {
            match self {
                Self::Slow(slow) => tokio::select! {
                    () = context.cancelled() => Err(TaskExit::Cancelled),
                    () = slow.sleep() => Ok(answer(&slow.told())),
                },
                Self::Failing => {
                    sleep(Duration::from_secs(1)).await;
                    Ok(CallToolResult::error(vec![ContentBlock::text("failed, as it must")]))
                }
                Self::Broken => Err(broken().into()),
                Self::Confirming(file) => {
                    let given = asked(&context, "confirm", &format!("Delete {file}?")).await?;
                    Ok(answer(&given.to_string()))
                }
                Self::Gathering => {
                    let (a, b) = tokio::join!(
                        asked(&context, "input-a", "The first value?"),
                        asked(&context, "input-b", "The second value?"),
                    );
                    Ok(answer(&json!([a?, b?]).to_string()))
                }
                Self::Greeting(name) => Ok(answer(&format!("Hello, {name}!"))),
            }
        })
    }
}

/// A sleep.
struct Slow {
    seconds: f64,
}

impl Slow {
    async fn sleep(&self) {
        sleep(Duration::try_from_secs_f64(self.seconds).unwrap_or_default()).await;
    }

    fn told(&self) -> String {
        format!("done after {} s", self.seconds)
    }

    async fn run(&self) -> Result<CallToolResponse, ErrorData> {
        self.sleep().await;
        text(&self.told())
    }
}

fn text(text: &str) -> Result<CallToolResponse, ErrorData> {
    success(&json!([{"type": "text", "text": text}]))
}

fn answer(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn broken() -> ErrorData {
    ErrorData::internal_error("broken, as it must be", None)
}

/// Refuses a client that cannot follow a task.
fn unfollowed() -> ErrorData {
    let needed = ClientCapabilities::builder().enable_tasks().build();
    ErrorData::missing_required_client_capability(needed)
}

/// Asks the user in a task, and waits for the answer.
async fn asked(context: &TaskContext, key: &str, message: &str) -> Result<Value, TaskExit> {
    let mut asked: InputRequests = parsed(user(key, message, "value"))?;
    let none = || ErrorData::internal_error("there is no question", None);
    let question: InputRequest = asked.remove(key).ok_or_else(none)?;
    context.request_input(key, question).await
}
