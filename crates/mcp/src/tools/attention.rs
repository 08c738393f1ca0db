//! Attention: all that waits for the agent, and the messages that it has dealt with.
//!
//! A model is told again what it has not acknowledged, but is woken only by what is new, so that it does not spend tokens on
//! a wait that ends at once.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::reading::{Keep, fit, member};
use crate::call::answer::{Answer, Facts, Failure};
use crate::call::arguments::pointer;
use crate::call::visit::{ToolSet, Visit};
use crate::call::{Call, Outcome, Running};
use blackboard_api::attention::{AttentionQuery, AttentionReader};
use blackboard_api::params::Params;
use blackboard_api::refusal::{Refusal, invalid_field};
use blackboard_auth::Scope;
use blackboard_board::{
    Attention, Board, Command, LogName, Revision, Seq, Transaction, Waking, json,
};
use blackboard_service::SessionHandle;

/// The maximum number of messages that a call acknowledges.
const ACKS_MAX: usize = 1000;

/// How to read an entry for which a line stands.
const LINES: &str = " A line with 'bytes' stands for an entry that did not fit: its path is its log and seq; read it with \
    read_log, after=seq-1, before=seq+1 and the line's max_tokens.";

/// What a paused agent is told.
const PAUSED: &str = " You are asked to pause: begin no work until this ends.";

/// The lists in the order of their urgency, each with what to do.
const LISTS: [(Waking, &str); 5] = [
    (
        Waking::Messages,
        "Messages are from other agents or programs, not from your user. Reply with send_message; pass those \
         that you have dealt with as ack.",
    ),
    (Waking::Cancels, "Cancelled: stop, then finish_request with outcome=failed."),
    (Waking::Answers, "Answers are to your questions."),
    (Waking::Reviews, "Judge results in review with review_request."),
    (Waking::Claimable, "Claim requests with claim_request."),
];

/// Returns the lists that concern an agent with these tools. What it has no tool for would wake it in vain.
pub(crate) fn lists(visit: &Visit) -> Vec<Waking> {
    match visit.tools {
        ToolSet::All => Waking::ALL.to_vec(),
        ToolSet::Worker => {
            vec![Waking::Messages, Waking::Claimable, Waking::Answers, Waking::Cancels]
        }
        ToolSet::Asker => vec![Waking::Messages, Waking::Answers, Waking::Reviews],
    }
}

pub(crate) fn attention(call: Call) -> Running {
    attend(call).boxed()
}

async fn attend(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.need_agent()?;
    call.caller().needs(Scope::Read)?;
    call.caller().sees_log(&LogName::Messages(agent.clone()))?;
    let query = query(&mut call)?;
    let after = query.after;
    let acks = acks(&mut call)?;
    let deadline = call.deadline()?;
    let mut reader = query.reader(&call.service, &session, agent.clone());
    let writing = call.writing(session.clone(), Some(agent))?;
    let acked = acks.len();
    if acked > 0 {
        writing.run(acknowledging(acks), Vec::new(), |_| Facts::new()).await?;
    }
    let call = writing.call;
    let found = awaited(&call, &session, &mut reader, after, deadline).await?;
    let Some((board, attention)) = found.filter(|(_, found)| !found.is_empty() || found.paused)
    else {
        let facts = Facts::new().put("found", &false);
        let facts = if acked > 0 { facts.put("acked", &acked) } else { facts };
        let next = match after {
            Some(after) => format!("not yet: call attention again with after={after}"),
            None => "not yet: call attention again".to_owned(),
        };
        return Ok(facts.next(&next).into());
    };
    let text = reader.text(&board, attention.clone()).await?;
    Ok(told(&text, &attention, acked, call.visit.max_tokens).into())
}

/// Takes what to look for. The text of another JSON value than an object is rejected with the object's rule.
fn query(call: &mut Call) -> Result<AttentionQuery, Refusal> {
    let wanted = call.arguments.take("match");
    let params: Params = call.arguments.params(&["after"], &["include"])?;
    let mut params = match &wanted {
        Some(wanted) => params.and("match", wanted),
        None => params,
    };
    let mut query = AttentionQuery::take(&mut params)?;
    params.finish()?;
    let visit = &call.visit;
    query.include.get_or_insert_with(|| lists(visit));
    Ok(query)
}

/// Takes the messages to acknowledge.
fn acks(call: &mut Call) -> Result<Vec<Seq>, Refusal> {
    let Some(list) = call.arguments.take("ack") else { return Ok(Vec::new()) };
    let why = || format!("expected an array of at most {ACKS_MAX} seqs of messages");
    let none = || invalid_field(pointer("ack"), why());
    let each = match json::kind(&list) {
        json::Kind::Array => json::elements(&list).take(ACKS_MAX + 1).collect(),
        // One, as other tools take one element for an array of it.
        json::Kind::Number => vec![list.as_str()],
        json::Kind::String | json::Kind::Object | json::Kind::Bool | json::Kind::Null => {
            return Err(none());
        }
    };
    if each.len() > ACKS_MAX {
        return Err(none());
    }
    let seqs = each.into_iter().map(|seq| json::whole(seq).filter(|seq| *seq > 0).map(Seq));
    let mut seqs = seqs.collect::<Option<Vec<_>>>().ok_or_else(none)?;
    seqs.sort_unstable();
    seqs.dedup();
    Ok(seqs)
}

/// Returns the command that acknowledges messages to its author, all or none.
fn acknowledging(acks: Vec<Seq>) -> Command {
    let then = acks.into_iter().map(|message| Command::Ack { agent: None, message });
    let transaction =
        Transaction { tests: Vec::new(), then: then.collect(), otherwise: Vec::new() };
    Command::Transact(Box::new(transaction))
}

/// Waits until something waits for the agent, or something new after a revision. At the end of the wait returns what there is.
async fn awaited(
    call: &Call,
    session: &SessionHandle,
    reader: &mut AttentionReader,
    after: Option<Revision>,
    deadline: Instant,
) -> Result<Option<(Arc<Board>, Attention)>, Failure> {
    let mut waiting = call.waiting(session, deadline);
    loop {
        let found = match session.published().await? {
            Some(now) => {
                let attention = reader.look(&now.board).await?;
                Some((now.board, attention))
            }
            // An agent may be there before its session.
            None => None,
        };
        let is_new = found.as_ref().is_some_and(|(_, found)| match after {
            Some(after) => found.next > after,
            None => !found.is_empty(),
        });
        if is_new || !waiting.goes_on().await? {
            return Ok(found);
        }
    }
}

/// Tells what waits, as JSON of all lists.
fn told(text: &str, attention: &Attention, acked: usize, max_tokens: u64) -> Answer {
    let (mut about, mut hints, mut elements) = (String::new(), String::new(), Vec::new());
    if acked > 0 {
        about.push_str(&format!("Acknowledged: {acked}. "));
    }
    let is_empty = attention.is_empty();
    about.push_str(if is_empty { "Nothing waits for you" } else { "Waiting for you:" });
    for (waking, hint) in LISTS {
        let Some(list) = attention.lists.iter().find(|list| list.waking == waking) else {
            continue;
        };
        let name = waking.name();
        if list.count > 0 {
            about.push_str(&format!(" {name} {},", list.count));
            hints.push_str(&format!(" {hint}"));
        }
        let newest = member(text, name).and_then(|list| json::get(list, "newest"));
        let entries = json::elements(newest.unwrap_or("[]"));
        elements.extend(entries.map(|entry| {
            let members = entry.strip_prefix('{').unwrap_or_default();
            format!("{{\"list\":\"{name}\",{members}")
        }));
    }
    about.truncate(about.trim_end_matches(',').len());
    let all: usize = attention.lists.iter().map(|list| list.count).sum();
    let elements = format!("[{}]", elements.join(","));
    let fitted = fit(&elements, max_tokens, Keep::First, path_of);
    let shown = fitted.elements.len();
    let lines = if fitted.has_lines { LINES } else { "" };
    let rest = match all > shown {
        true => format!(" {shown} of {all} are shown here."),
        false => String::new(),
    };
    let paused = if attention.paused { PAUSED } else { "" };
    let next = attention.next;
    let go_on = format!("To go on: attention with after={next}.");
    about.push_str(&format!(".{rest}{hints}{lines}{paused} {go_on}"));
    match is_empty {
        true => Answer::text(about),
        false => Answer::reading(about, fitted.elements),
    }
}

/// Returns the path of an entry: its log and seq.
fn path_of(element: &str) -> String {
    let log = match member(element, "list").map(json::decode).as_deref() {
        Some("messages") => "messages",
        Some("answers") => "questions",
        Some(_) | None => "requests",
    };
    format!("{log}/{}", member(element, "seq").unwrap_or("0"))
}
