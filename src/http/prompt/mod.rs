//! The prompt: the board as a model reads it. All formats share one walk over the board.
//!
//! What is asked for (`wishes`) and the board make a plan: which entries (`picked`), each in which form. A budget takes
//! from the plan what it must (`weighing`), from the newest on (`newest`). Then the plan is written (`writing`) with the texts of its format
//! (`texts`), those of items made and weighed by `items`.

mod budget;
mod format;
mod items;
mod newest;
mod plan;
mod query;
mod render;
mod selection;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use utoipa::ToSchema;

use super::openapi;
use super::read::{Early, Reading};
use super::request::path::SessionPath;
use super::request::public_url::PublicUrl;
use super::response::JSON;
use super::response::problem::Problem;
use super::screenshots::signed_url::ImageAddresses;
use crate::board::{Board, Log, PromptFormat, PromptPart, Revision};
use crate::http::response::tag::{Rendering, Resource};
use crate::service::Service;
use format::Texts;
use plan::Plan;
use query::{Asked, Wishes};
use render::Writing;

const MARKDOWN: &str = "text/markdown; charset=utf-8";

const TRUNCATED: HeaderName = HeaderName::from_static("blackboard-truncated");

const TOKENS: HeaderName = HeaderName::from_static("blackboard-tokens");

/// A part of a prompt; which members it has is its format's.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what is written here")]
#[expect(non_snake_case, reason = "the names are the providers'")]
pub(in crate::http) struct PartBody {
    /// `text` or `image_url`; of `responses` `input_text` or `input_image`, of `anthropic` `text` or `image`; not of
    /// `gemini`.
    #[schema(rename = "type", required = false, nullable = false, example = "text")]
    r#type: Option<String>,
    /// The text of a text part.
    #[schema(required = false, nullable = false)]
    text: Option<String>,
    #[schema(required = false, schema_with = openapi::image_url)]
    image_url: Option<String>,
    /// Of `responses`: how closely to look.
    #[schema(required = false, nullable = false, example = "auto")]
    detail: Option<String>,
    /// Of `anthropic`: the image.
    #[schema(required = false, nullable = false, value_type = Object)]
    source: Option<String>,
    /// Of `anthropic` with `cache_marks`: up to here it is to be cached.
    #[schema(required = false, nullable = false, value_type = Object)]
    cache_control: Option<String>,
    /// Of `gemini`: the image.
    #[schema(required = false, nullable = false, value_type = Object)]
    inlineData: Option<String>,
    /// Of `gemini`: where the image is.
    #[schema(required = false, nullable = false, value_type = Object)]
    fileData: Option<String>,
}

/// Read the board as a prompt
///
/// Unless the query or a profile says otherwise, what the original's `blackboard_to_prompt` gives. The order of the
/// parts is fixed: questions, requests, trajectories, screenshots, state, memories.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/prompt", operation_id = "get_prompt", tag = "prompt",
    params(openapi::InSession, openapi::PromptQuery, openapi::PastQuery, openapi::MinRevision, openapi::WaitQuery, openapi::IfNoneMatch),
    responses(
        (status = 200, description = "The parts in the format that was asked for, in OpenAI's chat format by default",
            content((Vec<PartBody> = "application/json"), (String = "text/markdown")),
            headers(("ETag" = String, description = "Changes with what the prompt shows"), ("Blackboard-Revision" = u64, description = "The revision shown"),
                ("Blackboard-Tokens" = Option<u64>, description = "With `max_tokens`: how many tokens it takes, by estimate"),
                ("Blackboard-Truncated" = Option<u64>, description = "With `max_tokens`: how many items and images were left out"))),
        openapi::ReadPromptRefusals,
    )
)]
pub(in crate::http) async fn get(
    SessionPath(session): SessionPath,
    State(public): State<Option<PublicUrl>>,
    mut reading: Reading,
) -> Result<Response, Early> {
    let asked = Asked::params(&mut reading.params, &reading.headers)?;
    let service = reading.service.clone();
    let addresses = {
        let (service, session) = (service.clone(), session.clone());
        move |board: &Board| ImageAddresses::of(&service, public.as_ref(), board, &session)
    };
    let caller = reading.caller.clone();
    let rendering = |board: &Board| {
        let wishes = asked.of(board)?;
        wishes.logs().try_for_each(|log| caller.sees_log(log))?;
        let version = board.at_version(last_change(board, &wishes.parts));
        Ok(Rendering::of(Resource::Prompt, version).in_format(form(&wishes, || addresses(board))))
    };
    let (mut answer, board) = reading.of(&session, rendering).await?;
    let (wishes, addresses) = (asked.of(&board)?, addresses(&board));
    let texts = Texts::new(&session, &wishes, &addresses);
    let plan = planned(&service, &board, &texts).await?;
    if let Some(budgeted) = &plan.budgeted {
        answer = answer
            .header(TOKENS, HeaderValue::from(budgeted.cost.tokens()))
            .header(TRUNCATED, HeaderValue::from(budgeted.left_out.total()));
    }
    let segments = Writing::segments(&plan, &board, &texts).await?;
    let body = segments.body(service, board).await?;
    let media_type = if wishes.format == PromptFormat::Markdown { MARKDOWN } else { JSON };
    Ok(answer.body(media_type, body))
}

async fn planned(
    service: &Service,
    board: &Arc<Board>,
    texts: &Texts<'_>,
) -> Result<Plan, Problem> {
    let mut plan = Plan::of(board, texts).await?;
    match texts.wishes.max_tokens {
        Some(max_tokens) => plan.keep_within(service, board, texts, max_tokens).await?,
        None => _ = plan.decide_images(service, board, texts, &BTreeSet::new()).await?,
    }
    Ok(plan)
}

/// What the prompt depends on besides its board and the query.
fn form(wishes: &Wishes, addresses: impl Fn() -> ImageAddresses) -> String {
    let addresses = if wishes.shows_addresses() { addresses().version() } else { String::new() };
    match wishes.format {
        PromptFormat::Parts => addresses,
        other @ (PromptFormat::Responses
        | PromptFormat::Anthropic
        | PromptFormat::Gemini
        | PromptFormat::Markdown) => format!("{other:?} {addresses}"),
    }
}

/// The last change of anything that the prompt shows, the session's settings among it.
fn last_change(board: &Board, shown: &[PromptPart]) -> Revision {
    let configured = board.life().map(|life| life.configured).unwrap_or_default();
    let changed = shown.iter().filter_map(|part| match part {
        PromptPart::Log(log) => board.log(log).map(Log::changed),
        PromptPart::State => Some(board.state().changed()),
    });
    changed.fold(configured, Revision::max)
}
