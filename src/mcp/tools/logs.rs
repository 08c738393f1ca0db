//! The tools of logs and of the agent's own memory.

use std::borrow::Cow;

use futures_util::FutureExt as _;

use super::reading::{Fitted, Keep, entry_path, fit, max_tokens, member, whole};
use crate::api::intake::input::optional;
use crate::api::intake::items::Intake;
use crate::api::intake::kinds::{After, Attempts};
use crate::api::intake::tasks::plan;
use crate::api::log_page::LogQuery;
use crate::api::offload::work;
use crate::api::ops::logs::{self as ops, Appended};
use crate::api::params::Params;
use crate::api::refusal::{Refusal, invalid_field};
use crate::board::json::Kind;
use crate::board::{LogName, Plan, json};
use crate::mcp::call::answer::{Answer, Facts, Failure};
use crate::mcp::call::arguments::pointer;
use crate::mcp::call::{Call, Outcome, Running};
use crate::service::{Receipt, SessionHandle};

/// The number of entries that are read at most, before they are cut to the tokens.
const ENTRIES_MAX: &str = "1000";

/// The number of notes that are recalled by default.
const RECALLED_DEFAULT: &str = "10";

/// How to read an entry for which a line stands.
const LINES: &str = " A line with 'bytes' stands for an entry that did not fit: the number in its path is its seq; read it \
    with after=seq-1, before=seq+1 and the line's max_tokens.";

/// The number of entries whose places an append tells.
const SEQS_MAX: usize = 100;

pub(crate) fn read_log(call: Call) -> Running {
    read_a_log(call).boxed()
}

async fn read_a_log(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let log = log(&mut call)?;
    let params = filter(&mut call)?;
    let mut params = call.arguments.by(params)?;
    let (has_after, has_before) = (params.has("after"), params.has("before"));
    let keep = if has_after { Keep::First } else { Keep::Last };
    if has_after {
        params = params.and("limit", ENTRIES_MAX);
    } else if has_before {
        // The entries just before, not those at the log's begin.
        params = params.and("limit", ENTRIES_MAX).and("order", "desc");
    } else if !params.has("latest") {
        params = params.and("latest", ENTRIES_MAX);
    }
    shown(call, session, log, params, keep).await
}

pub(crate) fn recall(call: Call) -> Running {
    recall_notes(call).boxed()
}

async fn recall_notes(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let log = call.memory()?;
    let mut params = filter(&mut call)?;
    // The line of a note that did not fit is followed by its place.
    let has_place = params.has("after") || params.has("before");
    if !params.has("latest") && !has_place {
        params = params.and("latest", RECALLED_DEFAULT);
    }
    shown(call, session, log, params, Keep::Last).await
}

/// Takes the log that is read or written.
fn log(call: &mut Call) -> Result<LogName, Failure> {
    let name = call.arguments.need_string("log")?;
    let known = "one of questions, requests, trajectories, screenshots; for memories use recall and remember";
    let none = || invalid_field(pointer("log"), format!("expected {known}"));
    Ok(LogName::of_board(&name).ok_or_else(none)?)
}

/// Takes the arguments that choose entries.
fn filter(call: &mut Call) -> Result<Params, Refusal> {
    call.arguments.params(&["latest", "after", "before", "contains", "status"], &["steps"])
}

async fn shown(
    mut call: Call,
    session: SessionHandle,
    log: LogName,
    mut params: Params,
    keep: Keep,
) -> Result<Outcome, Failure> {
    call.caller().sees_log(&log)?;
    let tokens = max_tokens(&mut call)?;
    let query = LogQuery::params(session.name(), false, &mut params)?;
    params.finish()?;
    call.finish()?;
    let published = call.published(&session).await?;
    let revision = published.board.revision();
    let page = query.pieces(session.clone(), published.board, log.clone()).await;
    let page = whole(page).await?;
    let about = about(&page, &log, keep, tokens);
    let Some((head, data)) = about else {
        let none = format!("No entries of {log} match (session {session}, revision {revision}).");
        return Ok(Answer::text(none).into());
    };
    Ok(Answer::reading(&format!("{head} Session {session}, revision {revision}."), &data).into())
}

/// Returns what is told about a page, and the entries that fit; nothing of an empty page.
fn about(page: &str, log: &LogName, keep: Keep, tokens: u64) -> Option<(String, Vec<String>)> {
    let (mut entries, mut count, mut is_more) = (None, "0", false);
    for member in json::members(page) {
        match member.name {
            "\"entries\"" => entries = Some(member.value),
            "\"count\"" => count = member.value,
            "\"more\"" => is_more = member.value == "true",
            _ => {}
        }
    }
    let entries = in_order(entries?);
    let Fitted { elements, ends, has_lines, left_out } =
        fit(&entries, tokens, keep, |entry| entry_path(log, entry));
    let (first, last) = ends?;
    let (first, last) = (seq_of(first), seq_of(last));
    let shown = elements.len();
    let mut rest = match keep {
        Keep::Last if left_out > 0 || is_more => {
            format!(" Older ones: read_log with before={first}, or a larger max_tokens.")
        }
        Keep::First if left_out > 0 || is_more => {
            format!(" Later ones: read_log with after={last}, or a larger max_tokens.")
        }
        Keep::First | Keep::Last => String::new(),
    };
    if has_lines {
        rest.push_str(LINES);
    }
    let head = format!("{shown} of {count} entries of {log}, seq {first} to {last}.{rest}");
    Some((head, elements))
}

/// Returns entries with the oldest first.
fn in_order(entries: &str) -> Cow<'_, str> {
    let mut all: Vec<&str> = json::elements(entries).collect();
    let seq = |entry: Option<&&str>| entry.and_then(|entry| json::whole(seq_of(entry)));
    if seq(all.first()) <= seq(all.last()) {
        return Cow::Borrowed(entries);
    }
    all.reverse();
    Cow::Owned(format!("[{}]", all.join(",")))
}

fn seq_of(entry: &str) -> &str {
    member(entry, "seq").unwrap_or("0")
}

pub(crate) fn append_items(call: Call) -> Running {
    append(call).boxed()
}

async fn append(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let log = log(&mut call)?;
    let items = call.arguments.need("items")?;
    let after = optional::<After>(&mut call.arguments, "after")?.unwrap_or_default();
    let plan = plan(after, optional::<Attempts>(&mut call.arguments, "attempts")?);
    if !plan.is_empty() && log != LogName::Requests {
        return Err(
            invalid_field(pointer("log"), "only requests have 'after' and 'attempts'").into()
        );
    }
    let intake = taken(log.clone(), items, "items").await?;
    let Intake { items, images, .. } = intake;
    let command = ops::append(log.clone(), items, plan, None);
    let writing = call.writing(session, agent)?;
    let told = log.clone();
    let facts = writing.run(command, images, move |receipt| appended(&told, receipt)).await?;
    Ok(facts.into())
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
    let command = ops::append(log.clone(), items, Plan::default(), None);
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
