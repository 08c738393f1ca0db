//! Tools, resources and prompts beside those of the board.

use futures_util::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Prompt, ReadResourceRequestParams, ReadResourceResponse, Resource,
    ResourceTemplate, Tool, UpdateTaskParams,
};
use rmcp::service::RequestContext;

/// The context of a request.
pub type Context = RequestContext<RoleServer>;

/// The answer to a request that may not be for the extra things.
pub type Maybe<T> = BoxFuture<'static, Result<T, ErrorData>>;

/// Things that the door shows beside the board's. The conformance suite of the protocol calls some by name.
pub trait Extra: Send + Sync {
    /// Returns the tools.
    fn tools(&self) -> Vec<Tool>;

    /// Calls a tool; `None` if it is not one of these.
    fn call(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Option<Maybe<CallToolResponse>>;

    /// Returns the resources and their templates.
    fn resources(&self) -> (Vec<Resource>, Vec<ResourceTemplate>);

    /// Reads a resource; `None` if it is not one of these.
    fn read(&self, request: &ReadResourceRequestParams) -> Option<Maybe<ReadResourceResponse>>;

    /// Returns the prompts.
    fn prompts(&self) -> Vec<Prompt>;

    /// Makes a prompt; `None` if it is not one of these.
    fn prompt(
        &self,
        request: &GetPromptRequestParams,
        context: &Context,
    ) -> Option<Maybe<GetPromptResponse>>;

    /// Completes an argument; `None` if it is of none of these.
    fn complete(&self, request: &CompleteRequestParams) -> Option<CompleteResult>;

    /// Returns a task; `None` if it is not one of these.
    fn task(&self, request: &GetTaskParams) -> Option<Maybe<GetTaskResult>>;

    /// Gives input to a task; `None` if it is not one of these.
    fn update_task(&self, request: &UpdateTaskParams) -> Option<Maybe<()>>;

    /// Cancels a task; `None` if it is not one of these.
    fn cancel_task(&self, request: &CancelTaskParams) -> Option<Maybe<()>>;
}
