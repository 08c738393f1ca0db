//! The board as one text.

use std::str;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::reading::asked_tokens;
use crate::call::answer::{Answer, Failure};
use crate::call::{Call, Outcome, Running};
use blackboard_api::params::Params;
pub(crate) use blackboard_api::prompt::{Prompt, PromptQuery, PromptSpec};
use blackboard_api::refusal::Refusal;
use blackboard_api::segments::Segments;
use blackboard_api::signed_url::ImageAddresses;
use blackboard_board::{Board, Code, LogName, PromptPart};
use blackboard_service::{ServiceError, SessionHandle};

pub(crate) fn render_prompt(call: Call) -> Running {
    render(call).boxed()
}

async fn render(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let params = call.arguments.params(&["latest", "status"], &["include", "keys", "steps"])?;
    let params = call.arguments.by(params)?;
    let asked = asked_tokens(&mut call)?;
    call.finish()?;
    let board = call.published(&session).await?.board;
    let tokens = asked.unwrap_or(call.visit.max_tokens);
    let spec = spec(&call, &board, params, tokens)?;
    let rendered = match asked {
        Some(_) => markdown(&call, &session, &board, &spec).await?,
        None => fitting(&call, &session, &board, spec).await?,
    };
    let about = format!("Session {session} at revision {}.{}", board.revision(), rendered.left_out);
    Ok(Answer::reading_text(about, rendered.text).into())
}

/// A board as Markdown.
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// What was left out, and how to read it: sentences after another one.
    pub(crate) left_out: String,
}

/// Renders a board as Markdown within a number of tokens that nobody asked for.
pub(crate) async fn within(
    call: &Call,
    session: &SessionHandle,
    board: &Arc<Board>,
    params: Params,
    max_tokens: u64,
) -> Result<Rendered, Failure> {
    let spec = spec(call, board, params, max_tokens)?;
    fitting(call, session, board, spec).await
}

fn spec(
    call: &Call,
    board: &Board,
    params: Params,
    max_tokens: u64,
) -> Result<PromptSpec, Failure> {
    let params = params.and("max_tokens", &max_tokens.to_string());
    let mut params = params.and("format", "markdown").and("images", "none");
    let query = PromptQuery::params(&mut params, true)?;
    params.finish()?;
    let spec = query.of(board)?;
    spec.logs().try_for_each(|log| call.caller().sees_log(log))?;
    Ok(spec)
}

/// Renders a board as Markdown. A budget that nobody asked for is no error: what it never removes is left out if it does not
/// fit.
async fn fitting(
    call: &Call,
    session: &SessionHandle,
    board: &Arc<Board>,
    mut spec: PromptSpec,
) -> Result<Rendered, Failure> {
    let mut left_out = String::new();
    let mut parts = [
        (PromptPart::State, " The state does not fit: read it with get_state."),
        (PromptPart::Log(LogName::Questions), " The questions do not fit: read_log has them."),
    ]
    .into_iter();
    loop {
        match markdown(call, session, board, &spec).await {
            Err(refusal) if refusal.code() == Code::BudgetTooSmall => {}
            rendered => {
                let Rendered { text, left_out: older } = rendered?;
                return Ok(Rendered { text, left_out: left_out + &older });
            }
        }
        let Some((_, sentence)) = parts.find(|(part, _)| spec.omit(part)) else {
            left_out.push_str(" Not even the headings fit: raise max_tokens.");
            return Ok(Rendered { text: String::new(), left_out });
        };
        left_out.push_str(sentence);
    }
}

async fn markdown(
    call: &Call,
    session: &SessionHandle,
    board: &Arc<Board>,
    spec: &PromptSpec,
) -> Result<Rendered, Refusal> {
    let addresses = ImageAddresses::of(&call.service, None, board, session.name());
    let prompt = Prompt::of(session, board, spec, &addresses).await?;
    let left_out = match prompt.budgeted.map_or(0, |budgeted| budgeted.left_out.total()) {
        0 => String::new(),
        count => {
            format!(" {count} older items or images were left out; raise max_tokens for them.")
        }
    };
    let text = text_of(prompt.segments, session, Arc::clone(board)).await?;
    Ok(Rendered { text, left_out })
}

async fn text_of(
    segments: Segments,
    session: &SessionHandle,
    board: Arc<Board>,
) -> Result<String, ServiceError> {
    let mut pieces = segments.pieces(session.clone(), board);
    let mut text = String::new();
    loop {
        let piece = match pieces.ready() {
            Some(piece) => piece,
            None => match pieces.next().await? {
                Some(piece) => piece,
                None => return Ok(text),
            },
        };
        text.push_str(str::from_utf8(&piece).map_err(|_| ServiceError::Fault)?);
    }
}
