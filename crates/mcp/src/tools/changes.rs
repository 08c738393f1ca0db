//! Waiting for a change of the board.

use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout_at};

use super::reading::{Keep, fit, member};
use crate::call::answer::{Answer, Facts, Failure};
use crate::call::{Call, Outcome, Running};
use blackboard_api::intake::filter::Wanted;
use blackboard_api::view::change::write_event;
use blackboard_board::Revision;
use blackboard_service::Commits;

/// The number of pages of commits that are examined before an answer.
const PAGES_MAX: usize = 40;

/// How to read a commit for which a line stands.
const LINES: &str = " A line with 'bytes' stands for a commit that did not fit: read the board to see what it changed.";

pub(crate) fn wait_for_change(call: Call) -> Running {
    wait(call).boxed()
}

async fn wait(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let after = call.arguments.whole("after", 0, u64::MAX)?.map(Revision);
    let mut params = call.arguments.params(&[], &["on"])?;
    let wanted = Wanted::take(&mut params)?;
    params.finish()?;
    let deadline = call.deadline()?;
    call.finish()?;
    let mut wait = session.wait()?;
    let mut cursor = after.unwrap_or_else(|| wait.extent().revision);
    for page in 0.. {
        let commits = match wait.commits(cursor).await? {
            Commits::These(commits) => commits,
            Commits::Gap => {
                let revision = wait.extent().revision;
                let facts = Facts::new().put("changed", &true).put("missed", &true);
                let next =
                    "changes before this revision are not kept: look again with board_overview";
                return Ok(facts.put("revision", &revision).next(next).into());
            }
        };
        let mut events = String::from("[");
        for commit in &commits {
            let visible = call.caller().visible(commit);
            let Some(changes) = wanted.of(&visible) else { continue };
            // Of what it may not see, a model is not told that it was there.
            if changes.is_empty() {
                continue;
            }
            if events.len() > 1 {
                events.push(',');
            }
            write_event(session.name(), &visible, &changes, true, &mut events);
        }
        events.push(']');
        cursor = commits.last().map_or(cursor, |commit| commit.revision);
        if events.len() > 2 {
            let tokens = call.visit.max_tokens;
            return Ok(told(&events, cursor, commits.len(), tokens).into());
        }
        if !commits.is_empty() && page < PAGES_MAX {
            continue;
        }
        if call.gone.is_cancelled() || Instant::now() >= deadline {
            break;
        }
        let changed = tokio::select! {
            changed = timeout_at(deadline, wait.changed()) => changed,
            () = call.gone.cancelled() => break,
        };
        if matches!(changed, Ok(Ok(false) | Err(_))) {
            break;
        }
    }
    let next = format!("not yet: call wait_for_change again with after={cursor}");
    Ok(Facts::new().put("changed", &false).put("revision", &cursor).next(&next).into())
}

fn told(events: &str, cursor: Revision, commits: usize, max_tokens: u64) -> Answer {
    let path = |event: &str| format!("events/{}", member(event, "revision").unwrap_or("0"));
    let fitted = fit(events, max_tokens, Keep::Last, path);
    let lines = if fitted.has_lines { LINES } else { "" };
    let rest = match fitted.left_out {
        0 => String::new(),
        count => format!(" The first {count} of {commits} commits were left out; read the board."),
    };
    let about = format!(
        "The board changed, here up to revision {cursor}.{rest}{lines} To go on: after={cursor}."
    );
    Answer::reading(about, fitted.elements)
}
