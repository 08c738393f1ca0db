//! The handler of the prompt.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use utoipa::ToSchema;

use super::openapi;
use super::read::{Early, PastQuery, Reading, RevisionQuery};
use super::request::path::SessionPath;
use super::request::public_url::PublicUrl;
use super::response::{Answer, EMPTY_HEADER, JSON, emptiness, prefers, segments};
use blackboard_api::prompt::{Prompt, PromptQuery};
use blackboard_api::signed_url::ImageAddresses;
use blackboard_api::tag::{Rendering, Resource};
use blackboard_board::{Board, PromptFormat};
use blackboard_service::SessionHandle;

const MARKDOWN: &str = "text/markdown; charset=utf-8";

const TRUNCATED: HeaderName = HeaderName::from_static("blackboard-truncated");

const TOKENS: HeaderName = HeaderName::from_static("blackboard-tokens");

/// A part of a prompt. Its members depend on the format.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is written here")]
#[expect(non_snake_case, reason = "the names are the providers'")]
pub(crate) struct PartBody {
    /// `text` or `image_url`; in `responses` `input_text` or `input_image`; in `anthropic` `text` or `image`; absent
    /// in `gemini`.
    #[schema(rename = "type", required = false, nullable = false, example = "text")]
    r#type: Option<String>,
    /// The text of a text part.
    #[schema(required = false, nullable = false)]
    text: Option<String>,
    #[schema(required = false, schema_with = openapi::image_url)]
    image_url: Option<String>,
    /// In `responses`: the resolution at which the model sees the image.
    #[schema(required = false, nullable = false, example = "auto")]
    detail: Option<String>,
    /// In `anthropic`: the image.
    #[schema(required = false, nullable = false, value_type = BTreeMap<String, serde_json::Value>)]
    source: Option<String>,
    /// In `anthropic` with `cache_marks`: marks the end of the prefix to cache.
    #[schema(required = false, nullable = false, value_type = BTreeMap<String, serde_json::Value>)]
    cache_control: Option<String>,
    /// In `gemini`: the image.
    #[schema(required = false, nullable = false, value_type = BTreeMap<String, serde_json::Value>)]
    inlineData: Option<String>,
    /// In `gemini`: the address of the image.
    #[schema(required = false, nullable = false, value_type = BTreeMap<String, serde_json::Value>)]
    fileData: Option<String>,
}

/// Read the board as a prompt
///
/// By default, the parts are those of the original's `blackboard_to_prompt`; the query or a profile changes them.
/// Their order is fixed: questions, requests, trajectories, screenshots, state, memories.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/prompt", operation_id = "get_prompt", tag = "prompt",
    params(PromptQuery, PastQuery, RevisionQuery, openapi::WaitQuery),
    responses(
        (status = 200, description = "The parts in the requested format, by default OpenAI's chat format",
            content((Vec<PartBody> = "application/json"), (String = "text/markdown")),
            headers(("ETag" = String, description = "Changes with what the prompt shows"),
                ("Blackboard-Empty" = bool, description = "True if the four logs are empty"),
                ("Blackboard-Tokens" = Option<u64>, description = "With `max_tokens`: the estimated number of tokens"),
                ("Blackboard-Truncated" = Option<u64>, description = "With `max_tokens`: the number of items and images left out"))),
        openapi::ReadPromptRefusals,
    )
)]
pub(crate) async fn get(
    SessionPath(session): SessionPath,
    State(public): State<Option<PublicUrl>>,
    mut reading: Reading,
) -> Result<Response, Early> {
    let prefers_markdown = prefers(&reading.headers, &["text/markdown"]);
    let query = PromptQuery::params(&mut reading.params, prefers_markdown)?;
    let service = reading.service.clone();
    let addresses = |board: &Board| {
        let base = public.as_ref().map(PublicUrl::base);
        ImageAddresses::of(&service, base, board, session.name())
    };
    let caller = reading.caller.clone();
    let rendering = |board: &Board| {
        let spec = query.of(board)?;
        spec.logs().try_for_each(|log| caller.sees_log(log))?;
        let version = board.at_version(spec.changed(board));
        let form = spec.form(|| addresses(board));
        Ok(Rendering::of(Resource::Prompt, version).in_format(form))
    };
    let (answer, board) = reading.of(&session, rendering).await?;
    let answer = answer.header(EMPTY_HEADER, emptiness(&board));
    let addresses = addresses(&board);
    // Boxed, so that the future of an unchanged prompt is small.
    Box::pin(shown(answer, session, board, &query, addresses)).await
}

async fn shown(
    mut answer: Answer,
    session: SessionHandle,
    board: Arc<Board>,
    query: &PromptQuery,
    addresses: ImageAddresses,
) -> Result<Response, Early> {
    let spec = query.of(&board)?;
    let prompt = Prompt::of(&session, &board, &spec, &addresses).await?;
    if let Some(budgeted) = &prompt.budgeted {
        answer = answer
            .header(TOKENS, HeaderValue::from(budgeted.cost.tokens()))
            .header(TRUNCATED, HeaderValue::from(budgeted.left_out.total()));
    }
    let media_type = if spec.format == PromptFormat::Markdown { MARKDOWN } else { JSON };
    let body = segments::body(prompt.segments, session, board).await?;
    Ok(answer.body(media_type, body))
}
