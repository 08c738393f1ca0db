//! Points in a board's history: name one, compare two, return to one.

use std::sync::Arc;

use futures_util::FutureExt as _;

use super::reading::{Keep, fit, max_tokens, member, whole};
use crate::call::answer::{Answer, Facts, Failure};
use crate::call::arguments::missing;
use crate::call::{Call, Outcome, Running};
use blackboard_api::history::diff_page::{DiffPieces, compared};
use blackboard_api::ops::history::{Naming, Past, Restoring};
use blackboard_board::json;
use blackboard_service::{At, Receipt};

/// The number of differences that are compared at most, before they are cut to the tokens.
const DIFFERENCES_MAX: usize = 1000;

/// How to read a difference for which a line stands.
const LINES: &str = " A line with 'bytes' stands for a difference that did not fit: its path says where it is; read it there \
    with read_log, recall, or get_state without the 'state/' that the path begins with. One that was removed is in the history \
    only.";

pub(crate) fn checkpoint_board(call: Call) -> Running {
    checkpoint(call).boxed()
}

async fn checkpoint(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let naming: Naming = call.input().await?;
    let writing = call.writing(session, agent)?;
    let (command, told) = (naming.command(), naming.name);
    let shape = move |receipt: &Receipt| {
        Facts::new()
            .put("checkpoint", told.as_str())
            .put("moved", &receipt.existed)
            .put("revision", &receipt.board.revision())
    };
    Ok(writing.run(command, Vec::new(), shape).await?.into())
}

pub(crate) fn compare_board(call: Call) -> Running {
    compare(call).boxed()
}

async fn compare(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let from: At = call.arguments.parsed("from")?.ok_or_else(|| missing("from"))?;
    let to: Option<At> = call.arguments.parsed("to")?;
    let tokens = max_tokens(&mut call)?;
    call.finish()?;
    let now = call.published(&session).await?;
    let before = session.board_at(&now, &from).await?;
    let after = match &to {
        Some(to) => session.board_at(&now, to).await?,
        None => Arc::clone(&now.board),
    };
    let ends = (before.revision(), after.revision());
    let caller = call.caller().clone();
    let page = compared(caller, before, after, 0, DIFFERENCES_MAX).await?;
    let text = whole(DiffPieces::new(session.name().clone(), ends, 0, page)).await?;
    let path = |found: &str| json::decode(member(found, "path").unwrap_or_default()).into_owned();
    let (mut left_out, mut has_lines, mut told) = (0, false, Vec::new());
    for list in ["added", "changed", "removed"] {
        let fitted = fit(member(&text, list).unwrap_or("[]"), tokens / 3, Keep::First, path);
        left_out += fitted.left_out;
        has_lines |= fitted.has_lines;
        told.extend(fitted.elements.iter().map(|found| format!("{{\"{list}\":{found}}}")));
    }
    let more = member(&text, "more") == Some("true");
    let rest = match (left_out, more) {
        (0, false) if told.is_empty() => " No difference that you may see.".to_owned(),
        (0, false) => String::new(),
        (count, false) => {
            format!(" {count} more were left out: raise max_tokens, or compare nearer points.")
        }
        (_, true) => " More were left out; compare nearer points.".to_owned(),
    };
    let lines = if has_lines { LINES } else { "" };
    let (from, to) = ends;
    let about = format!("Session {session} from revision {from} to {to}.{rest}{lines}");
    Ok(Answer::reading(about, told).into())
}

pub(crate) fn restore_board(call: Call) -> Running {
    restore(call).boxed()
}

async fn restore(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let Restoring { at } = call.input().await?;
    let writing = call.writing(session, agent)?;
    let (then, before) = match writing.write.to_restore(&at).await? {
        Past::Repeated(kept) => return Ok(Facts::again(kept.text()).into()),
        Past::Board { then, now } => (then, now),
    };
    let restored = then.revision();
    let shape = move |receipt: &Receipt| {
        Facts::new()
            .put("restored", &restored)
            .put("changed", &receipt.committed)
            .put("revision", &receipt.board.revision())
            .next(&format!("to undo: restore_board with at={before}"))
    };
    let shape = Arc::new(shape);
    let reply = writing.write.restore(then, writing.keep(&shape)).await;
    Ok(writing.told(reply, &*shape)?.into())
}
