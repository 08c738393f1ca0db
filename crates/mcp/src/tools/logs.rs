//! The tools of logs and of the agent's own memory.

use futures_util::FutureExt as _;

use super::reading::{ESTIMATOR, FittedEntries, Keep, fit_entries, max_tokens, rest_of_cut};
use crate::call::answer::{Answer, Facts, Failure};
use crate::call::arguments::pointer;
use crate::call::{Call, Outcome, Running};
use blackboard_address::entry_url;
use blackboard_api::intake::input::optional;
use blackboard_api::intake::items::Intake;
use blackboard_api::intake::kinds::{After, Attempts, PriorityNumber, TimeOrDuration};
use blackboard_api::intake::tasks::ascending;
use blackboard_api::log_page::LogQuery;
use blackboard_api::offload::work;
use blackboard_api::ops::logs::{self as ops, Appended};
use blackboard_api::params::Params;
use blackboard_api::refusal::{Refusal, invalid_field};
use blackboard_board::json::Kind;
use blackboard_board::{LogName, PlanRequest, json};
use blackboard_service::{Receipt, SessionHandle};

/// The number of entries that are read at most, before they are cut to the tokens.
const ENTRIES_MAX: u64 = 1000;

/// The number of notes that are recalled by default.
const RECALLED_DEFAULT: u64 = 10;

/// How to read an entry for which a line stands.
const LINES: &str = " A line with 'bytes' stands for an entry that did not fit: the number in its path is its seq; read it \
    with after=seq-1, before=seq+1 and the line's max_tokens; one without is larger than any reading.";

/// The number of entries whose places an append tells.
const SEQS_MAX: usize = 100;

pub(crate) fn read_log(call: Call) -> Running {
    read_a_log(call).boxed()
}

async fn read_a_log(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let log = match call.arguments.need_string("log")?.as_str() {
        "memory" => LogName::Memory(call.owner()?),
        "messages" => LogName::Messages(call.owner()?),
        name => {
            // A model may say who it is, as for its own logs.
            call.agent()?;
            log_of_board(name)?
        }
    };
    shown(call, session, log, ENTRIES_MAX).await
}

pub(crate) fn recall(call: Call) -> Running {
    recall_notes(call).boxed()
}

async fn recall_notes(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let log = LogName::Memory(call.owner()?);
    shown(call, session, log, RECALLED_DEFAULT).await
}

/// Returns the board's log of this name.
fn log_of_board(name: &str) -> Result<LogName, Refusal> {
    let known = "one of questions, requests, trajectories, screenshots; for a memory use remember, for messages send_message";
    let none = || invalid_field(pointer("log"), format!("expected {known}"));
    LogName::of_board(name).ok_or_else(none)
}

/// Takes the arguments that choose entries, and the end of those that is kept: the first ones after a place, else the newest
/// ones, or those just before a place.
fn filter(call: &mut Call, latest_default: u64) -> Result<(Params, Keep), Failure> {
    let latest = call.arguments.whole("latest", 1, ENTRIES_MAX)?;
    let params = call.arguments.params(&["after", "before", "contains", "status"], &["steps"])?;
    let params = call.arguments.by(params)?;
    let has_after = params.has("after");
    let default = if has_after || params.has("before") { ENTRIES_MAX } else { latest_default };
    let params = params.and("limit", &latest.unwrap_or(default).to_string());
    Ok(match has_after {
        true => (params, Keep::First),
        false => (params.and("order", "desc"), Keep::Last),
    })
}

async fn shown(
    mut call: Call,
    session: SessionHandle,
    log: LogName,
    latest_default: u64,
) -> Result<Outcome, Failure> {
    let (mut params, keep) = filter(&mut call, latest_default)?;
    call.caller().sees_log(&log)?;
    let tokens = max_tokens(&mut call)?;
    let query = LogQuery::params(session.name(), false, &mut params)?;
    params.finish()?;
    call.finish()?;
    let board = call.published(&session).await?.board;
    let revision = board.revision();
    let mut page = query.one_by_one(session.clone(), board, log.clone(), ESTIMATOR).await;
    let FittedEntries { elements, ends, has_lines, is_full, cut_bytes } =
        fit_entries(&mut page, &log, tokens, keep).await?;
    let Some((first, last)) = ends else {
        let of = format!("(session {session}, revision {revision})");
        let none = match (page.reached(), keep) {
            (None, _) => format!("No entries of {log} match {of}."),
            (Some(seq), Keep::Last) => {
                format!("No entries of {log} from seq {seq} match {of}; older ones: before={seq}.")
            }
            (Some(seq), Keep::First) => {
                format!("No entries of {log} up to seq {seq} match {of}; later ones: after={seq}.")
            }
        };
        return Ok(Answer::text(none).into());
    };
    let (shown, count) = (elements.len(), page.count());
    let mut about = format!("{shown} of {count} entries of {log}, seq {first} to {last}.");
    if is_full || page.has_more() {
        let larger = if is_full { ", or a larger max_tokens" } else { "" };
        about.push_str(&match keep {
            Keep::Last => format!(" Older ones: {} with before={first}{larger}.", call.tool),
            Keep::First => format!(" Later ones: {} with after={last}{larger}.", call.tool),
        });
    }
    if has_lines {
        about.push_str(LINES);
    }
    if let Some(bytes) = cut_bytes {
        about.push_str(&rest_of_cut(bytes, tokens, &entry_url(session.name(), &log, first)));
    }
    about.push_str(&format!(" Session {session}, revision {revision}."));
    Ok(Answer::reading(about, elements).into())
}

pub(crate) fn append_items(call: Call) -> Running {
    append(call).boxed()
}

async fn append(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let log = log_of_board(&call.arguments.need_string("log")?)?;
    let items = call.arguments.need("items")?;
    let plan = plan(&mut call)?;
    if !plan.is_empty() && log != LogName::Requests {
        let why = "only requests have 'after', 'attempts', 'priority', 'not_before', 'deadline' and 'review'";
        return Err(invalid_field(pointer("log"), why).into());
    }
    let intake = taken(log.clone(), items, "items").await?;
    let Intake { items, images, .. } = intake;
    let command = ops::append(log.clone(), items, plan, None);
    let writing = call.writing(session, agent)?;
    let told = log.clone();
    let facts = writing.run(command, images, move |receipt| appended(&told, receipt)).await?;
    Ok(facts.into())
}

/// Takes the plan of requests.
fn plan(call: &mut Call) -> Result<PlanRequest, Refusal> {
    let arguments = &mut call.arguments;
    Ok(PlanRequest {
        after: ascending(optional::<After>(arguments, "after")?.unwrap_or_default()),
        attempts: optional::<Attempts>(arguments, "attempts")?,
        priority: optional::<PriorityNumber>(arguments, "priority")?.unwrap_or_default(),
        not_before: optional::<TimeOrDuration>(arguments, "not_before")?,
        deadline: optional::<TimeOrDuration>(arguments, "deadline")?,
        review: arguments.flag("review")?,
    })
}

pub(crate) fn remember(call: Call) -> Running {
    remember_note(call).boxed()
}

async fn remember_note(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.need_agent()?;
    let item = call.arguments.need("item")?;
    if json::kind(&item) == Kind::Array {
        let why = "expected one note, an object or a string";
        return Err(invalid_field(pointer("item"), why).into());
    }
    let log = LogName::Memory(agent.clone());
    let Intake { items, images, .. } = taken(log.clone(), item, "item").await?;
    let command = ops::append(log.clone(), items, PlanRequest::default(), None);
    let writing = call.writing(session, Some(agent))?;
    let facts = writing.run(command, images, move |receipt| appended(&log, receipt)).await?;
    Ok(facts.into())
}

/// Parses items, with pointers to the argument.
pub(crate) async fn taken(
    log: LogName,
    text: String,
    name: &'static str,
) -> Result<Intake, Refusal> {
    work(text.len(), move || {
        let mut intake = Intake::default();
        let taken = intake.take_json(&log, text.as_bytes());
        taken.map_err(|refusal| refusal.below(&pointer(name)))?;
        Ok(intake)
    })
    .await
}

/// Tells the places of new entries.
pub(crate) fn appended(log: &LogName, receipt: &Receipt) -> Facts {
    let facts = Facts::new().put("log", &log.to_string());
    let Some(new) = Appended::of(receipt) else {
        return facts.put("appended", &0).put("revision", &receipt.board.revision());
    };
    let seqs: Vec<_> = new.seqs().take(SEQS_MAX).collect();
    let facts = facts
        .put("appended", &new.count)
        .put("seqs", &seqs)
        .put("revision", &receipt.board.revision());
    match new.dropped {
        Some(dropped) => facts.put("dropped", &dropped),
        None => facts,
    }
}
