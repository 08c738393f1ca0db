//! Fixtures by noun. The suite calls them by name, and defines the behaviour of each.

use blackboard::mcp::{Context, Extra, Maybe};
use blackboard::service::Service;
use futures_util::future::{FutureExt as _, ready};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CompletionInfo, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Prompt, ReadResourceRequestParams, ReadResourceResponse,
    Reference, Resource, ResourceTemplate, Tool, UpdateTaskParams,
};
use rmcp::task_manager::TaskManager;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{asking, content, inputs, reading, tasks};

/// All fixtures.
pub(crate) struct Fixtures {
    /// Signs the states that clients carry.
    service: Service,
    tasks: TaskManager,
}

impl Fixtures {
    pub(crate) fn new(service: Service) -> Self {
        Self { service, tasks: TaskManager::new() }
    }
}

impl Extra for Fixtures {
    fn tools(&self) -> Vec<Tool> {
        [content::tools(), inputs::tools(), asking::tools(), tasks::tools()].concat()
    }

    fn call(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Option<Maybe<CallToolResponse>> {
        content::call(request, context)
            .or_else(|| inputs::call(&self.service, request, context))
            .or_else(|| asking::call(request, context))
            .or_else(|| tasks::call(&self.tasks, request, context))
    }

    fn resources(&self) -> (Vec<Resource>, Vec<ResourceTemplate>) {
        (reading::resources(), reading::templates())
    }

    fn read(&self, request: &ReadResourceRequestParams) -> Option<Maybe<ReadResourceResponse>> {
        reading::read(&request.uri)
    }

    fn prompts(&self) -> Vec<Prompt> {
        reading::prompts()
    }

    fn prompt(
        &self,
        request: &GetPromptRequestParams,
        _: &Context,
    ) -> Option<Maybe<GetPromptResponse>> {
        inputs::prompt(request).or_else(|| reading::prompt(request))
    }

    fn complete(&self, request: &CompleteRequestParams) -> Option<CompleteResult> {
        let Reference::Prompt(prompt) = &request.r#ref else { return None };
        let known = reading::prompts().iter().any(|known| known.name == prompt.name);
        let values = CompletionInfo::new(vec!["test".to_owned(), "testing".to_owned()]).ok()?;
        known.then(|| CompleteResult::new(values))
    }

    fn task(&self, request: &GetTaskParams) -> Option<Maybe<GetTaskResult>> {
        let task = self.tasks.get_task(&request.task_id).ok()?;
        Some(done(Ok(GetTaskResult::new(task))))
    }

    fn update_task(&self, request: &UpdateTaskParams) -> Option<Maybe<()>> {
        let inputs = request.input_responses.clone();
        self.tasks.update_task(&request.task_id, inputs).ok()?;
        Some(done(Ok(())))
    }

    fn cancel_task(&self, request: &CancelTaskParams) -> Option<Maybe<()>> {
        self.tasks.cancel_task(&request.task_id).ok()?;
        Some(done(Ok(())))
    }
}

/// Wraps an answer that needs no waiting.
pub(crate) fn done<T: Send + 'static>(answer: Result<T, ErrorData>) -> Maybe<T> {
    ready(answer).boxed()
}

/// Reads a part of the protocol that is written as JSON, as the suite shows it.
pub(crate) fn parsed<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Describes a tool.
pub(crate) fn tool(name: &'static str, description: &'static str, schema: &Value) -> Tool {
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, description, schema)
}
