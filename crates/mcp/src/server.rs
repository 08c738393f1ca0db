//! The protocol's requests, each answered alone.

use std::pin::pin;
use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscriptionFilter, Tool, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;

use super::call::Outcome;
use super::call::answer::{Failure, refused, refused_request};
use super::call::arguments::{Arguments, RawArguments};
use super::call::visit::Visit;
use super::call::{Call, Client, Progress};
use super::catalog::{Definition, TOOLS, tool};
use super::extra::Extra;
use super::instructions::INSTRUCTIONS;
use super::tools::questions::tasks;
use super::{completion, message, prompts, resources, subscription};
use blackboard_fairness::in_slices;
use blackboard_service::Service;

/// The time for which a client may keep the lists of tools, prompts and templates.
const LIST_TTL_MS: u64 = 60_000;

/// The context of a request.
type Context = RequestContext<RoleServer>;

/// The door's side of the protocol.
#[derive(Clone)]
pub(super) struct Server {
    service: Service,
    extra: Option<Arc<dyn Extra>>,
}

impl Server {
    /// Creates the side of the protocol for the boards of a service.
    pub(super) fn new(service: Service, extra: Option<Arc<dyn Extra>>) -> Self {
        Self { service, extra }
    }

    /// Runs a tool. Refusals are results, so that the model reads them.
    pub(super) async fn run(&self, asked: Asked) -> Result<CallToolResponse, ErrorData> {
        let Asked { definition, visit, arguments, client, is_recent, progress, cancelled } = asked;
        let (caller, structured) = (visit.caller.clone(), visit.structured);
        let gone = visit.departed.child_token();
        let (service, given_up) = (self.service.clone(), gone.clone());
        let mut running = pin!(async move {
            let arguments = Arguments::of(arguments, &definition.properties).await?;
            let mut call = Call::new(service, visit, definition.name, arguments, client);
            call.gone = given_up;
            (definition.run)(call).await
        });
        // A write under way is finished; a wait ends at once.
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            never = progress.tell() => match never {},
            () = cancelled.cancelled() => {
                gone.cancel();
                running.await
            }
            why = caller.over(self.service.now()) => {
                gone.cancel();
                let outcome = running.await;
                if definition.reads() {
                    return Err(ErrorData::invalid_request(why.to_string(), None));
                }
                // A write that succeeded is reported.
                outcome
            }
        };
        let mut result = match outcome {
            Ok(Outcome::Answer(answer)) => answer.into_result(structured),
            Ok(Outcome::Task(task)) => return Ok((*task).into()),
            Ok(Outcome::Input(input)) => return Ok((*input).into()),
            Err(Failure::Refused(refusal)) => refused(refusal, structured),
            Err(Failure::Protocol(error)) => return Err(error),
        };
        result.meta = named(is_recent);
        Ok(result.into())
    }
}

/// A tool that is called, with all that the call comes with.
pub(super) struct Asked {
    pub(super) definition: &'static Definition,
    pub(super) visit: Visit,
    pub(super) arguments: Option<RawArguments>,
    pub(super) client: Client,
    /// True for a client of the present generation.
    pub(super) is_recent: bool,
    pub(super) progress: Progress,
    /// Cancelled when the protocol's library drops the request.
    pub(super) cancelled: CancellationToken,
}

impl Asked {
    /// Reads a call that the protocol's library passes on.
    fn of(request: CallToolRequestParams, context: &Context) -> Result<Self, ErrorData> {
        let definition = tool(&request.name).ok_or_else(|| unknown_tool(&request.name))?;
        let visit = visit(context)?;
        if !definition.is_shown(&visit) {
            return Err(unknown_tool(definition.name));
        }
        let parts = context.extensions.get::<Parts>();
        let arguments = parts.and_then(|parts| parts.extensions.get::<RawArguments>()).cloned();
        let (capabilities, is_recent) = (context.client_capabilities(), is_recent(context));
        let client = Client {
            takes_tasks: capabilities.as_ref().is_some_and(ClientCapabilities::supports_tasks),
            elicits: is_recent
                && capabilities.as_ref().is_some_and(|client| client.elicitation.is_some()),
            state: request.request_state,
            inputs: request.input_responses,
        };
        let (progress, cancelled) = (Progress::of(context), context.ct.clone());
        Ok(Self { definition, visit, arguments, client, is_recent, progress, cancelled })
    }
}

fn visit(context: &Context) -> Result<Visit, ErrorData> {
    Visit::of(&context.extensions).map_err(refused_request)
}

/// Returns true for the generations in which a client asks its user between two calls.
fn is_recent(context: &Context) -> bool {
    let recent = ProtocolVersion::V_2026_07_28;
    context.protocol_version().is_some_and(|version| version.as_str() >= recent.as_str())
}

/// Returns the metadata of a result: which server it is from, for the generation that has it in every result.
fn named(is_recent: bool) -> Option<MetaObject> {
    let info =
        || serde_json::json!({ "name": blackboard_api::NAME, "version": blackboard_api::VERSION });
    let meta =
        || JsonObject::from_iter([("io.modelcontextprotocol/serverInfo".to_owned(), info())]);
    is_recent.then(|| MetaObject(meta()))
}

fn unknown_tool(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("no tool is named '{name}'; tools/list has the names"), None)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_tasks()
            .build();
        let implementation = Implementation::new(blackboard_api::NAME, blackboard_api::VERSION)
            .with_title("Blackboard")
            .with_description(blackboard_api::PURPOSE);
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(INSTRUCTIONS)
    }

    /// Clients that begin with a handshake keep nothing between two requests here, so they get neither notices nor tasks.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.negotiate_initialize(&request)?;
        if let Some(resources) = &mut result.capabilities.resources {
            resources.subscribe = None;
        }
        result.capabilities.extensions = None;
        Ok(result)
    }

    /// Describes a tool whose arguments are repeated in headers, which are compared then. The board's tools have none.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tools = self.extra.as_ref()?.tools();
        tools.into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let visit = visit(&context)?;
        let shown = TOOLS.iter().filter(|tool| tool.is_shown(&visit));
        let mut tools: Vec<_> = shown.map(|tool| tool.describe(&visit)).collect();
        tools.extend(self.extra.iter().flat_map(|extra| extra.tools()));
        let mut list = ListToolsResult::with_all_items(tools);
        list.meta = named(is_recent(&context));
        (list.ttl_ms, list.cache_scope) = (Some(LIST_TTL_MS), Some(CacheScope::Private));
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(called) = self.extra.as_ref().and_then(|extra| extra.call(&request, &context)) {
            return called.await;
        }
        let asked = Asked::of(request, &context)?;
        in_slices(asked.visit.client, self.run(asked)).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let visit = visit(&context)?;
        let cursor = request.and_then(|request| request.cursor);
        let listed = resources::list(&self.service, &visit, cursor.as_deref());
        let (mut all, next) = in_slices(visit.client, listed).await?;
        all.extend(self.extra.iter().flat_map(|extra| extra.resources().0));
        let mut list = ListResourcesResult::with_all_items(all);
        (list.next_cursor, list.meta) = (next, named(is_recent(&context)));
        (list.ttl_ms, list.cache_scope) = (Some(0), Some(CacheScope::Private));
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut all = resources::templates();
        all.extend(self.extra.iter().flat_map(|extra| extra.resources().1));
        let mut list = ListResourceTemplatesResult::with_all_items(all);
        list.meta = named(is_recent(&context));
        (list.ttl_ms, list.cache_scope) = (Some(LIST_TTL_MS), Some(CacheScope::Private));
        Ok(list)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if let Some(read) = self.extra.as_ref().and_then(|extra| extra.read(&request)) {
            return read.await;
        }
        let visit = visit(&context)?;
        let read =
            in_slices(visit.client, resources::read(&self.service, visit, &request.uri)).await;
        let mut read = read.map_err(|failure| with_uri(failure.into(), &request.uri))?;
        read.meta = named(is_recent(&context));
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut all = prompts::list(&visit(&context)?);
        all.extend(self.extra.iter().flat_map(|extra| extra.prompts()));
        let mut list = ListPromptsResult::with_all_items(all);
        list.meta = named(is_recent(&context));
        (list.ttl_ms, list.cache_scope) = (Some(LIST_TTL_MS), Some(CacheScope::Private));
        Ok(list)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(made) = self.extra.as_ref().and_then(|extra| extra.prompt(&request, &context)) {
            return made.await;
        }
        let visit = visit(&context)?;
        let made = in_slices(visit.client, prompts::get(&self.service, visit, &request)).await;
        let mut made = made?;
        made.meta = named(is_recent(&context));
        Ok(made.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        if let Some(completed) = self.extra.as_ref().and_then(|extra| extra.complete(&request)) {
            return Ok(completed);
        }
        let visit = visit(&context)?;
        let completed = completion::complete(&self.service, &visit, &request);
        let mut completed = in_slices(visit.client, completed).await;
        completed.meta = named(is_recent(&context));
        Ok(completed)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        subscription::served(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let visit = visit(context.request_context())?;
        in_slices(visit.client, subscription::listen(&self.service, &visit, &context)).await;
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        Err(message::unknown(&request.method, is_recent(&context)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        if let Some(task) = self.extra.as_ref().and_then(|extra| extra.task(&request)) {
            return task.await;
        }
        let visit = visit(&context)?;
        Ok(in_slices(visit.client, tasks::get(&self.service, &visit, &request.task_id)).await?)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        if let Some(updated) = self.extra.as_ref().and_then(|extra| extra.update_task(&request)) {
            return updated.await;
        }
        // A question asks nothing of the client; an unknown task is refused.
        let visit = visit(&context)?;
        in_slices(visit.client, tasks::get(&self.service, &visit, &request.task_id)).await?;
        Ok(())
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        if let Some(cancelled) = self.extra.as_ref().and_then(|extra| extra.cancel_task(&request)) {
            return cancelled.await;
        }
        let (visit, arguments) = (visit(&context)?, Arguments::none());
        let client = visit.client;
        let call =
            Call::new(self.service.clone(), visit, "cancel_task", arguments, Client::default());
        Ok(in_slices(client, tasks::cancel(call, &request.task_id)).await?)
    }
}

/// Adds the address of a resource to an error, as the protocol wants it.
fn with_uri(mut error: ErrorData, uri: &str) -> ErrorData {
    if let Some(serde_json::Value::Object(data)) = &mut error.data {
        data.insert("uri".to_owned(), uri.into());
    } else {
        error.data = Some(serde_json::json!({ "uri": uri }));
    }
    error
}
