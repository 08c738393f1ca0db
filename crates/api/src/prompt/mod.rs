//! The prompt: the board as a model reads it.
//!
//! The query and the board determine a plan of entries and their forms, which all formats share. A budget removes
//! parts of the plan, the oldest first. Then the plan is rendered with the texts of its format.

mod items;
mod newest;
mod plan;
mod query;
mod removal_order;
mod render;
mod selection;
mod texts;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::refusal::Refusal;
use super::segments::Segments;
use super::signed_url::ImageAddresses;
use blackboard_board::Board;
use blackboard_service::SessionHandle;
use plan::{Budgeted, Plan};
pub use query::{PromptQuery, PromptSpec};
use render::Renderer;
use texts::Texts;

/// A prompt of a board.
pub struct Prompt {
    /// The text, in the spec's format.
    pub segments: Segments,
    /// The result of the token budget, if there is one.
    pub budgeted: Option<Budgeted>,
}

impl Prompt {
    /// Selects, weighs and renders the entries.
    pub async fn of(
        session: &SessionHandle,
        board: &Arc<Board>,
        spec: &PromptSpec,
        addresses: &ImageAddresses,
    ) -> Result<Self, Refusal> {
        let texts = Texts::new(session.name(), spec, addresses);
        let plan = planned(session, board, &texts).await?;
        let segments = Renderer::segments(&plan, board, &texts).await?;
        Ok(Self { segments, budgeted: plan.budgeted })
    }
}

async fn planned(
    session: &SessionHandle,
    board: &Arc<Board>,
    texts: &Texts<'_>,
) -> Result<Plan, Refusal> {
    let mut plan = Plan::of(board, texts).await?;
    match texts.spec.max_tokens {
        Some(max_tokens) => plan.keep_within(session, board, texts, max_tokens).await?,
        None => _ = plan.decide_images(session, board, texts, &BTreeSet::new()).await?,
    }
    Ok(plan)
}
