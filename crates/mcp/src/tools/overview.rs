//! The overview: a session at a glance, or the list of sessions.

use std::sync::Arc;

use futures_util::FutureExt as _;

use super::reading::{cut, fits};
use super::requests::newest_held;
use crate::call::answer::{Answer, Facts, Failure};
use crate::call::{Call, Outcome, Running};
use blackboard_api::inbox::listing;
use blackboard_board::{Board, Claim, Entry, Log, LogName, Seq, SessionName, StatePath};

/// The number of sessions that are listed.
const SESSIONS_MAX: usize = 50;

/// How much an overview shows.
struct Size {
    /// The number of open questions, requests and agents.
    shown: usize,
    /// The number of newest steps.
    steps: usize,
    /// The number of keys of the state.
    keys: usize,
    /// The bytes of an item.
    item_bytes: usize,
}

/// The sizes, the largest first. The first that fits is shown, or the last.
const SIZES: [Size; 3] = [
    Size { shown: 5, steps: 3, keys: 40, item_bytes: 400 },
    Size { shown: 3, steps: 2, keys: 20, item_bytes: 150 },
    Size { shown: 1, steps: 1, keys: 5, item_bytes: 60 },
];

pub(crate) fn board_overview(call: Call) -> Running {
    overview(call).boxed()
}

async fn overview(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.optional_session().await?;
    let prefix = call.arguments.string("prefix")?;
    let after: Option<SessionName> = call.arguments.parsed("after")?;
    call.finish()?;
    let lists = prefix.is_some() || after.is_some();
    let Some(session) = session.filter(|_| !lists) else {
        return sessions(&call, &prefix.unwrap_or_default(), after.as_ref()).await;
    };
    let Some(published) = session.published().await? else {
        let facts = Facts::new()
            .put("session", session.name().as_str())
            .put("exists", &false)
            .next("the session begins with the first write, such as append_items");
        return Ok(facts.into());
    };
    let mut text = String::new();
    for size in &SIZES {
        text = told(&call, session.name(), &published.board, size).as_str().to_owned();
        if fits(&text, call.visit.max_tokens) {
            break;
        }
    }
    Ok(Answer::reading("The board at a glance.".to_owned(), vec![text]).into())
}

async fn sessions(
    call: &Call,
    prefix: &str,
    after: Option<&SessionName>,
) -> Result<Outcome, Failure> {
    let listing = listing(prefix, &[], call.caller());
    let found = call.service.listed(listing, after, SESSIONS_MAX + 1).await?;
    let names: Vec<&SessionName> = found.iter().map(|found| &found.summary.name).collect();
    let shown: Vec<String> = names.iter().take(SESSIONS_MAX).map(ToString::to_string).collect();
    let more = names.len() > SESSIONS_MAX;
    let next = match shown.is_empty() {
        false if more => {
            "call board_overview with one of them as 'session'; later ones: the last of them as 'after', or a 'prefix' of the name"
        }
        false => "call board_overview with one of them as 'session'",
        true => "none yet: a session begins with its first write, such as append_items",
    };
    let names = Facts::new().put("sessions", &shown);
    Ok(Facts::new().put("more", &more).next(next).board_data(&names).into())
}

fn told(call: &Call, session: &SessionName, board: &Arc<Board>, size: &Size) -> Facts {
    let count = |log: &LogName| board.log(log).map_or(0, Log::len);
    let mut facts =
        Facts::new().put("session", session.as_str()).put("revision", &board.revision());
    for log in &LogName::BOARD {
        facts = facts.put(&log.to_string(), &count(log));
    }
    let asked = board.asked().open();
    let claimable = board.claimable_requests(None, size.shown);
    let in_review = board.tasks().in_review();
    let questions = open(board, &LogName::Questions, asked.iter(), size);
    let claimable: Vec<Seq> = claimable.iter().map(|open| open.entry.seq).collect();
    let requests = open(board, &LogName::Requests, claimable.iter(), size);
    facts = facts
        .put("open_questions_count", &asked.len())
        .put_json("open_questions", &list(&questions))
        .put("claimable_requests_count", &board.tasks().claimable_now())
        .put_json("claimable_requests", &list(&requests));
    if !in_review.is_empty() {
        let results = open(board, &LogName::Requests, in_review.keys(), size);
        facts = facts
            .put("requests_in_review_count", &in_review.len())
            .put_json("requests_in_review", &list(&results));
    }
    let agents: Vec<String> = board
        .agents()
        .iter()
        .take(size.shown)
        .map(|(name, agent)| format!("{name}: {}", agent.profile.status()))
        .collect();
    facts = facts.put("agents", &agents).put("agents_count", &board.agents().len());
    if let Some(state) = board.state().value(&StatePath::root()) {
        let keys: Vec<&str> = state.members().map(|(name, _)| name).take(size.keys).collect();
        facts = facts.put("state_keys", &keys).put("state_keys_count", &state.members().count());
    }
    let steps: Vec<String> = board
        .log(&LogName::Trajectories)
        .into_iter()
        .flat_map(|log| log.iter().rev().take(size.steps))
        .map(|entry| cut(entry.item.text(), size.item_bytes))
        .collect();
    facts = facts.put_json("newest_steps", &list(&steps));
    match call.visit.agent() {
        Some(agent) => {
            let held: Vec<_> =
                newest_held(board).filter(|(_, claim)| claim.agent == *agent).collect();
            let notes = LogName::Memory(agent.clone());
            facts
                .put_json("claimed_by_you", &list(&claimed(&held, size)))
                .put("claimed_by_you_count", &held.len())
                .put("your_notes", &count(&notes))
                .put("your_unacknowledged_messages", &board.unacked().count(agent))
        }
        None => facts,
    }
}

/// Returns the first of these claimed requests as JSON, with their fences.
fn claimed(held: &[(&Entry, &Claim)], size: &Size) -> Vec<String> {
    let shown = held.iter().take(size.shown).map(|(entry, claim)| {
        let Claim { fence, expires_at, .. } = claim;
        let item = cut(entry.item.text(), size.item_bytes);
        let seq = entry.seq;
        format!(
            "{{\"seq\": {seq}, \"fence\": {fence}, \"expires_at\": \"{expires_at}\", \"item\": {item}}}"
        )
    });
    shown.collect()
}

/// Returns the first of these entries as JSON.
fn open<'a>(
    board: &Board,
    log: &LogName,
    seqs: impl Iterator<Item = &'a Seq>,
    size: &Size,
) -> Vec<String> {
    let Some(log) = board.log(log) else { return Vec::new() };
    let entries = seqs.filter_map(|seq| log.get(*seq)).take(size.shown);
    let shown = |item: &str, seq: Seq| {
        format!("{{\"seq\": {seq}, \"item\": {}}}", cut(item, size.item_bytes))
    };
    entries.map(|entry| shown(entry.item.text(), entry.seq)).collect()
}

fn list(elements: &[String]) -> String {
    format!("[{}]", elements.join(", "))
}
