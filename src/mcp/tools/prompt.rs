//! The board as one text.

use std::str;

use futures_util::FutureExt as _;

use super::reading::max_tokens;
use crate::api::params::Params;
use crate::api::prompt::{Prompt, PromptQuery};
use crate::api::segments::Segments;
use crate::api::signed_url::ImageAddresses;
use crate::mcp::call::answer::{Answer, Failure};
use crate::mcp::call::{Call, Outcome, Running};
use crate::service::{Published, ServiceError, SessionHandle};

pub(crate) fn render_prompt(call: Call) -> Running {
    render(call).boxed()
}

async fn render(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let params = call.arguments.params(&["latest", "status"], &["include", "keys", "steps"])?;
    let params = call.arguments.by(params)?;
    let tokens = max_tokens(&mut call.arguments)?;
    let params = params.and("max_tokens", &tokens.to_string());
    call.finish()?;
    let published = call.published(&session).await?;
    let revision = published.board.revision();
    let (text, left_out) = markdown(&call, &session, published, params).await?;
    let left = match left_out {
        0 => String::new(),
        count => {
            format!(" {count} older items or images were left out; raise max_tokens for them.")
        }
    };
    let about = format!("Session {session} at revision {revision}.{left}");
    Ok(Answer::reading_text(&about, &text).into())
}

/// Renders a board as Markdown. Returns the text, and the number of things that were left out.
pub(crate) async fn markdown(
    call: &Call,
    session: &SessionHandle,
    published: Published,
    params: Params,
) -> Result<(String, usize), Failure> {
    let mut params = params.and("format", "markdown").and("images", "none");
    let query = PromptQuery::params(&mut params, true)?;
    params.finish()?;
    let board = published.board;
    let spec = query.of(&board)?;
    spec.logs().try_for_each(|log| call.caller().sees_log(log))?;
    let addresses = ImageAddresses::of(&call.service, None, &board, session.name());
    let prompt = Prompt::of(session, &board, &spec, &addresses).await?;
    let left_out = prompt.budgeted.map_or(0, |budgeted| budgeted.left_out.total());
    let text = text_of(prompt.segments, session, board).await?;
    Ok((text, usize::try_from(left_out).unwrap_or(usize::MAX)))
}

async fn text_of(
    segments: Segments,
    session: &SessionHandle,
    board: std::sync::Arc<crate::board::Board>,
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
