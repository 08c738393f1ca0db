//! Questions to people: ask, answer, list.

mod host;
pub(crate) mod tasks;

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::reading::{Keep, fit, member};
use crate::call::answer::{Answer, Facts, Failure};
use crate::call::arguments::pointer;
use crate::call::{Call, Outcome, Running};
use blackboard_api::inbox::{InboxQuery, page};
use blackboard_api::intake::fields::is_blank;
use blackboard_api::intake::input::optional;
use blackboard_api::intake::kinds::{AnswerText, Options};
use blackboard_api::ops::logs::{self, Appended};
use blackboard_api::ops::questions::{Answering, Waiting};
use blackboard_api::params::Params;
use blackboard_api::refusal::{Refusal, invalid_field};
use blackboard_auth::Scope;
use blackboard_board::{
    AgentName, Board, Command, Entry, Item, LogName, PlanRequest, Seq, SessionName, json,
};

use blackboard_service::{Inbox, Receipt, SessionHandle};

/// The number of questions on a page of one session.
const LISTED_MAX: usize = 50;

pub(crate) fn ask_person(call: Call) -> Running {
    ask(call).boxed()
}

/// A question that was put on the board.
pub(crate) struct Asked {
    pub(crate) session: SessionHandle,
    pub(crate) seq: Seq,
}

async fn ask(mut call: Call) -> Result<Outcome, Failure> {
    if let Some(state) = call.client.state.take() {
        return host::answered(call, &state).await;
    }
    let session = call.session().await?;
    let agent = call.agent()?;
    // The result has the answer.
    call.caller().needs(Scope::Read)?;
    let deadline = call.deadline()?;
    let here = call.arguments.flag("ask_here")?;
    if let Some(seq) = call.arguments.whole("seq", 1, u64::MAX)?.map(Seq) {
        if call.arguments.take("question").is_some() {
            let why = "give 'seq' to wait for a question asked before, or 'question' for a new one";
            return Err(invalid_field(pointer("seq"), why).into());
        }
        call.finish()?;
        return waited(&call, Asked { session, seq }, deadline).await;
    }
    let question = call.arguments.need_string("question")?;
    let command = question_command(&mut call, &question)?;
    let writing = call.writing(session.clone(), agent.clone())?;
    let shape = |receipt: &Receipt| {
        let seq = Appended::of(receipt).and_then(|new| new.seqs().next());
        seq.map_or_else(Facts::new, |seq| Facts::new().put("seq", &seq))
    };
    let facts = writing.run(command, Vec::new(), shape).await?;
    let seq = member(facts.as_str(), "seq").and_then(json::whole).map(Seq);
    let asked = Asked { session, seq: seq.ok_or(blackboard_service::ServiceError::Fault)? };
    let call = writing.call;
    if here && call.client.elicits {
        return Ok(host::put(&call, &asked, agent.as_ref(), &question));
    }
    if call.client.takes_tasks && Instant::now() < deadline {
        return tasks::of_question(&call, &asked).await;
    }
    waited(&call, asked, deadline).await
}

/// Takes the question and what happens if nobody answers.
fn question_command(call: &mut Call, question: &str) -> Result<Command, Refusal> {
    if is_blank(question) {
        return Err(invalid_field(pointer("question"), "a question must not be blank"));
    }
    let (ttl, default) = (call.arguments.parsed("expires")?, call.arguments.string("default")?);
    let waiting = Waiting::of(ttl, default);
    let waiting = waiting.map_err(|why| invalid_field(pointer("default"), why))?;
    let options = optional::<Options>(&mut call.arguments, "options")?.unwrap_or_default();
    let mut text = String::from("{\"question\":");
    json::quote(question, &mut text);
    if !options.is_empty() {
        let quoted = options.iter().map(|option| {
            let mut quoted = String::new();
            json::quote(option, &mut quoted);
            quoted
        });
        let quoted: Vec<String> = quoted.collect();
        text.push_str(&format!(",\"options\":[{}]", quoted.join(",")));
    }
    text.push('}');
    let item = Item::from_json(&text)
        .map_err(|invalid| invalid_field(pointer("question"), invalid.to_string()))?;
    Ok(logs::append(LogName::Questions, vec![item], PlanRequest::default(), waiting))
}

/// Waits for the answer.
pub(super) async fn waited(
    call: &Call,
    asked: Asked,
    deadline: Instant,
) -> Result<Outcome, Failure> {
    let Asked { session, seq } = &asked;
    let look = |board: Option<&std::sync::Arc<Board>>| {
        let Some(board) = board else {
            return Err(blackboard_api::refusal::no_session(session.name()).into());
        };
        let entry = question(board, *seq)?;
        Ok(entry.item.get("answer").is_some().then(|| answer_facts(entry)))
    };
    let found = call.wait_for(session, deadline, look).await?;
    Ok(found.unwrap_or_else(|| not_yet(*seq)).into())
}

/// Returns a question, or refuses.
pub(crate) fn question(board: &Board, seq: Seq) -> Result<&Entry, Refusal> {
    logs::entry(board, &LogName::Questions, seq).map(|entry| &**entry)
}

/// Tells the end of a question: its answer, or that it has none.
pub(crate) fn answer_facts(entry: &Entry) -> Facts {
    let answer = entry.item.get("answer").unwrap_or("null");
    let facts = Facts::new().put("seq", &entry.seq);
    let is_set = |name: &str| entry.item.get(name) == Some("true");
    if answer == "null" {
        let why = if is_set("expired") { "expired" } else { "skipped" };
        let next = "nobody answered: go on without an answer, or fail the request with this reason";
        return facts.put("answered", &false).put(why, &true).next(next);
    }
    let facts = facts.put("answered", &true);
    let facts = if is_set("expired") { facts.put("by_default", &true) } else { facts };
    facts.board_data(&Facts::new().put_json("answer", answer))
}

/// Tells that a question has no answer yet.
pub(crate) fn not_yet(seq: Seq) -> Facts {
    let next =
        format!("not yet: call ask_person again with seq={seq} to wait, or do other work first");
    Facts::new().put("seq", &seq).put("answered", &false).next(&next)
}

pub(crate) fn answer_question(call: Call) -> Running {
    answer(call).boxed()
}

async fn answer(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let seq = call.arguments.need_seq("seq")?;
    let skip = call.arguments.flag("skip")?.then_some(());
    let answer = optional::<AnswerText>(&mut call.arguments, "answer")?;
    Ok(ended(call, session, agent, seq, Answering { answer, skip }).await?.into())
}

/// Answers or skips a question.
pub(crate) async fn ended(
    call: Call,
    session: SessionHandle,
    agent: Option<AgentName>,
    seq: Seq,
    answering: Answering,
) -> Result<Facts, Failure> {
    let what = if answering.skip.is_some() { "skipped" } else { "answered" };
    let command = answering.of(seq)?;
    let writing = call.writing(session, agent)?;
    let shape = move |receipt: &Receipt| {
        Facts::new().put("seq", &seq).put(what, &true).put("revision", &receipt.board.revision())
    };
    writing.run(command, Vec::new(), shape).await
}

pub(crate) fn list_open_questions(call: Call) -> Running {
    list(call).boxed()
}

async fn list(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.optional_session().await?;
    if let Some(session) = session {
        let after = cursor(&mut call)?;
        call.finish()?;
        let board = call.published(&session).await?.board;
        return Ok(of_session(session.name(), &board, after, call.visit.max_tokens));
    }
    let after: Option<String> = call.arguments.string("after")?;
    call.caller().needs(Scope::Read)?;
    call.finish()?;
    let params = Params::of(after.map(|after| ("after", after)));
    let mut params = params.and("limit", "200");
    let query = InboxQuery::take(&mut params)?;
    let text = page(&call.service, call.caller(), Inbox::Questions, &query).await?;
    let tokens = call.visit.max_tokens;
    let mut fitted = fit(member(&text, "questions").unwrap_or("[]"), tokens, Keep::First, path_of);
    let Some((_, last)) = fitted.ends else {
        return Ok(none("There is no open question."));
    };
    let count = fitted.elements.len();
    let more = member(&text, "more") == Some("true") || fitted.left_out > 0;
    let rest = if more {
        // A session's name is its maker's text, so it stands among the data.
        let name = member(last, "session").map(json::decode).unwrap_or_default();
        let next = format!("{name}/{}", member(last, "seq").unwrap_or("0"));
        fitted.elements.push(Facts::new().put("next", &next).as_str().to_owned());
        " Later ones: pass 'next' of the last line as 'after'."
    } else {
        ""
    };
    let lines = lines(fitted.has_lines);
    let about = format!(
        "{count} open questions.{rest}{lines} Answer one with answer_question: its session and seq."
    );
    Ok(Answer::reading(about, fitted.elements).into())
}

/// Takes the cursor of one session's questions: the last seq shown, as a number or a string. The schema allows strings only,
/// because the cursor over all sessions is one.
fn cursor(call: &mut Call) -> Result<Seq, Refusal> {
    let Some(text) = call.arguments.parsed::<String>("after")? else { return Ok(Seq(0)) };
    let none = || invalid_field(pointer("after"), "expected the seq of the last question shown");
    json::whole(&text).map(Seq).ok_or_else(none)
}

fn of_session(session: &SessionName, board: &Board, after: Seq, max_tokens: u64) -> Outcome {
    let log = board.log(&LogName::Questions);
    let open = board.asked().open().iter().filter(|seq| **seq > after);
    let shown = |seq: &Seq| {
        let entry = log?.get(*seq)?;
        Some(format!("{{\"seq\":{seq},\"at\":\"{}\",\"item\":{}}}", entry.at, entry.item.text()))
    };
    let all: Vec<String> = open.filter_map(shown).take(LISTED_MAX + 1).collect();
    let text = format!("[{}]", all.iter().take(LISTED_MAX).cloned().collect::<Vec<_>>().join(","));
    let fitted = fit(&text, max_tokens, Keep::First, path_of);
    let Some((_, last)) = fitted.ends else {
        return none(&format!("Session {session} has no open question."));
    };
    let more = all.len() > LISTED_MAX || fitted.left_out > 0;
    let seq = member(last, "seq").unwrap_or("0");
    let rest = if more { format!(" Later ones: after={seq}.") } else { String::new() };
    let about = format!(
        "{} open questions of session {session}.{rest}{} Answer one with answer_question and its seq.",
        fitted.elements.len(),
        lines(fitted.has_lines)
    );
    Answer::reading(about, fitted.elements).into()
}

/// Returns the path of a question, under its session where the list has those of several.
fn path_of(question: &str) -> String {
    let seq = member(question, "seq").unwrap_or("0");
    match member(question, "session") {
        Some(session) => format!("{}/questions/{seq}", json::decode(session)),
        None => format!("questions/{seq}"),
    }
}

/// Returns how to read a question for which a line stands, if one does.
const fn lines(has_lines: bool) -> &'static str {
    match has_lines {
        true => {
            " A line with 'bytes' stands for a question that did not fit: the number in its path is its seq; read it with \
                read_log (log questions), after=seq-1, before=seq+1 and the line's max_tokens."
        }
        false => "",
    }
}

fn none(text: &str) -> Outcome {
    Answer::text(text).into()
}
