//! The shared state: read, set, add.

use futures_util::FutureExt as _;

use super::reading::{fit_members, fits, how_to_read_all, max_tokens, rest_of_cut, within};
use crate::call::answer::{Answer, Facts, Failure};
use crate::call::arguments::{missing, pointer};
use crate::call::{Call, Outcome, Running};
use blackboard_address::state_url;
use blackboard_api::intake::input::optional;
use blackboard_api::intake::kinds::Lifetime;
use blackboard_api::offload::work;
use blackboard_api::ops::state::{self, Adding};
use blackboard_api::refusal::{Refusal, invalid_field};
use blackboard_api::view::state::text_of;
use blackboard_board::{self as board, Condition, Matches, SessionName, StatePath};
use blackboard_service::Receipt;

/// The expected tag of a value that must not exist.
const ABSENT: &str = "absent";

/// The size of a sum or value that an answer repeats.
const VALUE_BYTES_MAX: u64 = 1_000;

/// How to read a value whose members are shown.
const MEMBERS: &str = ", so its members are shown. A line with 'bytes' stands for one that did not fit: read it with \
    get_state and its path; a max_tokens as in the line shows it whole; one without is larger than any reading. One with 'name' \
    has a name that no path can have.";

/// Names a path outside the marks, unless its names could be read as anything else: others chose them, and a model copies them.
fn named(path: &StatePath) -> String {
    let path = path.to_string();
    if is_plain(&path) { format!("'{path}'") } else { "that path".to_owned() }
}

/// Returns the address of a value, without names that could be read as anything else.
fn address(session: &SessionName, path: &StatePath) -> String {
    match is_plain(&path.to_string()) {
        true => state_url(session, path),
        false => format!("{}/ with that path", state_url(session, &StatePath::root())),
    }
}

fn is_plain(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./~:".contains(&byte))
}

/// Takes a path; the whole state if it is absent or empty.
fn path(call: &mut Call) -> Result<Option<StatePath>, Refusal> {
    let Some(text) = call.arguments.string("path")? else { return Ok(None) };
    let text = text.trim_matches('/');
    if text.is_empty() {
        return Ok(Some(StatePath::root()));
    }
    text.parse()
        .map(Some)
        .map_err(|why: board::InvalidPath| invalid_field(pointer("path"), why.to_string()))
}

fn need_path(call: &mut Call) -> Result<StatePath, Refusal> {
    path(call)?.ok_or_else(|| missing("path"))
}

pub(crate) fn get_state(call: Call) -> Running {
    get(call).boxed()
}

async fn get(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let path = path(&mut call)?.unwrap_or_else(StatePath::root);
    let tokens = max_tokens(&mut call)?;
    call.finish()?;
    let board = call.published(&session).await?.board;
    let value = state::value(&board, &path)?;
    let tag = state::tag(call.service.epoch(), &board, &path);
    let revision = board.revision();
    let text = text_of(&value);
    let mut about = format!(
        "State at {}, tag {}, session {session}, revision {revision}.",
        named(&path),
        tag.bare()
    );
    if fits(&text, tokens) {
        return Ok(Answer::reading(about, vec![text]).into());
    }
    let address = address(session.name(), &path);
    let (mut shown, left_out) = fit_members(&path, &value, tokens);
    if shown.is_empty() {
        shown.push(within(&text, tokens));
        about.push_str(&rest_of_cut(text.len(), tokens, &address));
    } else {
        about.push_str(&format!(" It has {} bytes and does not fit{MEMBERS}", text.len()));
    }
    if left_out > 0 {
        let all = how_to_read_all(tokens, &address);
        about.push_str(&format!(" {left_out} more members were left out: {all}"));
    }
    Ok(Answer::reading(about, shown).into())
}

pub(crate) fn set_state(call: Call) -> Running {
    set(call).boxed()
}

async fn set(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let path = need_path(&mut call)?;
    let value = call.arguments.json("value");
    let bytes = value.as_ref().map_or(0, String::len);
    let ttl = optional::<Lifetime>(&mut call.arguments, "ttl")?;
    let expected = call.arguments.string("expected_tag")?;
    let told = path.clone();
    let command = match value {
        Some(value) => {
            let of = path.clone();
            let read = move || state::put(of, &pointer("value"), &value, ttl);
            work(bytes, read).await?
        }
        None if ttl.is_some() => return Err(missing("value").into()),
        None => state::remove(path.clone()),
    };
    let condition = match expected.as_deref() {
        None => Condition::default(),
        Some(ABSENT) => Condition { matches: None, absent: true },
        Some(tag) => {
            let version = state::version_of(&session, &path, &quoted(tag))?;
            let matches = Some(Matches::Versions(version.into_iter().collect()));
            Condition { matches, absent: false }
        }
    };
    let mut writing = call.writing(session, agent)?;
    writing.write.terms.condition = condition;
    let epoch = writing.call.service.epoch();
    let shape = move |receipt: &Receipt| {
        let facts = Facts::new()
            .put("path", &told.to_string())
            .put("changed", &receipt.committed)
            .put("revision", &receipt.board.revision());
        match receipt.board.state().value(&told) {
            Some(_) => facts.put("tag", state::tag(epoch, &receipt.board, &told).bare()),
            None => facts.put("deleted", &true),
        }
    };
    Ok(writing.run(command, Vec::new(), shape).await?.into())
}

/// Returns a tag with the quotes that HTTP has, which models are not shown.
pub(crate) fn quoted(tag: &str) -> String {
    format!("\"{}\"", tag.trim_matches('"'))
}

pub(crate) fn add_to_state(call: Call) -> Running {
    add(call).boxed()
}

async fn add(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let path = need_path(&mut call)?;
    let Adding { add } = call.input().await?;
    let writing = call.writing(session, agent)?;
    let told = path.clone();
    let shape = move |receipt: &Receipt| {
        let facts = Facts::new().put("path", &told.to_string());
        let facts = if let board::Answer::Value(value) = &receipt.answer
            && value.bytes() <= VALUE_BYTES_MAX
        {
            facts.put_json("value", &text_of(value))
        } else {
            facts
        };
        facts.put("revision", &receipt.board.revision())
    };
    Ok(writing.run(state::add(path, add), Vec::new(), shape).await?.into())
}
