//! Transactions: tests and operations, parsed with pointers to faults.

use super::questions::Answering;
use super::requests::{Claiming, Finishing};
use crate::api::address::parse_log_path;
use crate::api::intake::fields::{flag, members, number, value_of};
use crate::api::intake::input::{Input as _, Kind as _, Members, optional};
use crate::api::intake::items::Intake;
use crate::api::intake::kinds::{AnswerText, Lifetime};
use crate::api::intake::tasks::{plan_members, wanted_members};
use crate::api::refusal::{Fault, Place, Refusal, invalid_field, invalid_item, unknown_field};
use crate::board::json::{self, DEPTH_MAX, Kind};
use crate::board::{
    AgentCommand, Code, Command, Edit, InvalidPath, Item, Json, LogCommand, LogName, Revision, Seq,
    StatePath, Test, Transaction, Version,
};
use crate::service::{ImageBytes, ServiceError};

/// The maximum number of tests in a transaction, and of operations in each branch.
pub(crate) const PARTS_MAX: usize = 1000;

/// A parsed transaction.
pub(crate) struct Read {
    pub(crate) transaction: Transaction,
    /// The names of each branch's operations in the response.
    pub(crate) then: Vec<Operation>,
    pub(crate) otherwise: Vec<Operation>,
    pub(crate) images: Vec<ImageBytes>,
}

/// The name of an operation in the response: its verb, and the text of its target.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) verb: &'static str,
    pub(crate) target: Box<str>,
}

/// Finds the version of a place in the state from a tag.
type Versions<'a> = dyn Fn(&str, &StatePath) -> Result<Option<Version>, ServiceError> + 'a;

/// Reads `{"if": […], "then": […], "else": […]}`.
pub(crate) fn read(text: &str, versions: &Versions<'_>) -> Result<Read, Refusal> {
    let mut read = Read {
        transaction: Transaction::default(),
        then: Vec::new(),
        otherwise: Vec::new(),
        images: Vec::new(),
    };
    for (pointer, value) in last_of_each(members("", text)?) {
        match pointer.as_str() {
            "/if" => {
                for (pointer, test) in parts(&pointer, value)? {
                    read.transaction.tests.push(one_test(&pointer, test, versions)?);
                }
            }
            "/then" => {
                (read.transaction.then, read.then) = branch(&pointer, value, &mut read.images)?;
            }
            "/else" => {
                (read.transaction.otherwise, read.otherwise) =
                    branch(&pointer, value, &mut read.images)?;
            }
            _ => return Err(unknown_field(pointer, &["if", "then", "else"])),
        }
    }
    Ok(read)
}

/// Parses the operations of a branch, and their names in the response.
fn branch(
    pointer: &str,
    text: &str,
    images: &mut Vec<ImageBytes>,
) -> Result<(Vec<Command>, Vec<Operation>), Refusal> {
    let operations = parts(pointer, text)?.into_iter();
    operations.map(|(pointer, operation)| one_operation(&pointer, operation, images)).collect()
}

/// Keeps the last of members with the same name.
fn last_of_each<'a>(members: Vec<(String, &'a str)>) -> Vec<(String, &'a str)> {
    let mut last: Vec<(String, &'a str)> = Vec::new();
    for (pointer, value) in members {
        last.retain(|(known, _)| *known != pointer);
        last.push((pointer, value));
    }
    last
}

/// Returns the elements of an array with their pointers.
fn parts<'a>(pointer: &str, text: &'a str) -> Result<Vec<(String, &'a str)>, Refusal> {
    if json::kind(text) != Kind::Array {
        return Err(invalid_field(pointer.to_owned(), "expected an array"));
    }
    let pointed = |(index, element)| (format!("{pointer}/{index}"), element);
    let parts: Vec<_> = json::elements(text).take(PARTS_MAX + 1).enumerate().map(pointed).collect();
    if parts.len() > PARTS_MAX {
        let why = format!("at most {PARTS_MAX} elements are allowed");
        return Err(invalid_field(pointer.to_owned(), why));
    }
    Ok(parts)
}

fn one_test(pointer: &str, text: &str, versions: &Versions<'_>) -> Result<Test, Refusal> {
    let mut fields = Members::of(pointer, text)?;
    let test = if let Some((at, path)) = fields.take("path") {
        let path = path_member(&at, path)?;
        if let Some((at, value)) = fields.take("equals") {
            Test::Equals(path, value_of(value, DEPTH_MAX, &at)?)
        } else if let Some((at, value)) = fields.take("absent") {
            Test::Absent(path, flag(&at, value)?)
        } else {
            let (at, tag) = fields.need("etag")?;
            let version = versions(&string(&at, tag)?, &path)?;
            Test::InVersion(path, version)
        }
    } else if let Some((at, log)) = fields.take("log") {
        let log = log_member(&at, log)?;
        let (at, count) = fields.need("count")?;
        Test::Count(log, usize::try_from(whole(&at, count)?).unwrap_or(usize::MAX))
    } else if let Some((at, request)) = fields.take("request") {
        let request = Seq(whole(&at, request)?);
        let (at, claimable) = fields.need("claimable")?;
        Test::Claimable(request, flag(&at, claimable)?)
    } else if let Some((at, revision)) = fields.take("revision") {
        Test::AtRevision(Revision(whole(&at, revision)?))
    } else {
        return Err(fields.missing("'path', 'log', 'request' or 'revision'"));
    };
    fields.finish(test)
}

fn one_operation(
    pointer: &str,
    text: &str,
    images: &mut Vec<ImageBytes>,
) -> Result<(Command, Operation), Refusal> {
    const VERBS: [&str; 10] = [
        "put",
        "patch",
        "add",
        "delete",
        "append",
        "claim",
        "claim_next",
        "done",
        "answer",
        "status",
    ];
    let mut fields = Members::of(pointer, text)?;
    let found = VERBS.into_iter().find_map(|verb| Some((verb, fields.take(verb)?)));
    let Some((verb, (at, target))) = found else {
        return Err(fields.missing(&format!("one of {}", VERBS.join(", "))));
    };
    let command = match verb {
        "put" | "patch" | "add" | "delete" => state_command(verb, &at, target, &mut fields)?,
        "append" => append_command(&at, target, &mut fields, images)?,
        "claim_next" => {
            let Claiming { ttl } = Claiming::take(&mut fields)?;
            Command::ClaimNext { wanted: wanted_members(&at, target)?, from: Seq(0), ttl }
        }
        "claim" => Claiming::take(&mut fields)?.of(Seq(whole(&at, target)?)),
        "done" => Finishing::take(&mut fields)?.of(Seq(whole(&at, target)?)),
        "answer" => {
            let question = Seq(whole(&at, target)?);
            let (at, value) = fields.need("value")?;
            Answering { answer: Some(AnswerText::read(&at, value)?), skip: None }.of(question)?
        }
        _ => status_command(at, target, &mut fields)?,
    };
    fields.finish((command, Operation { verb, target: target.into() }))
}

fn append_command(
    at: &str,
    target: &str,
    fields: &mut Members<'_>,
    images: &mut Vec<ImageBytes>,
) -> Result<Command, Refusal> {
    let log = log_member(at, target)?;
    let (at, item) = fields.need("item")?;
    let items = vec![item_member(&log, &at, item, images)?];
    let plan = plan_members(fields.take("after"), fields.take("attempts"))?;
    // As in the query of a POST, a plan has no effect on other logs.
    if plan.is_empty() || log != LogName::Requests {
        return Ok(Command::Log(log, LogCommand::Append { items }));
    }
    Ok(Command::Plan { items, plan })
}

fn status_command(at: String, target: &str, fields: &mut Members<'_>) -> Result<Command, Refusal> {
    let agent = string(&at, target)?;
    let agent = agent.parse().map_err(|why| invalid_field(at, format!("{why}")))?;
    let (at, value) = fields.need("value")?;
    string(&at, value)?;
    let patch = format!("{{\"status\":{value}}}");
    let patch = Item::from_json(&patch);
    let patch = patch.map_err(|invalid| invalid_item(&invalid, Place::default()))?;
    Ok(Command::Agent(agent, AgentCommand::Patch { patch }))
}

fn state_command(
    verb: &str,
    at: &str,
    target: &str,
    fields: &mut Members<'_>,
) -> Result<Command, Refusal> {
    let path = path_member(at, target)?;
    let levels_max = DEPTH_MAX.saturating_sub(path.len());
    let value = |fields: &mut Members<'_>| -> Result<Json, Refusal> {
        let (at, value) = fields.need("value")?;
        value_of(value, levels_max, &at)
    };
    let edit = match verb {
        "put" => {
            let ttl = optional::<Lifetime>(fields, "ttl")?;
            Edit::Put { value: value(fields)?, ttl }
        }
        "patch" => Edit::Merge(value(fields)?),
        "add" => {
            let (at, value) = fields.need("value")?;
            Edit::Add(number(&at, value)?)
        }
        _ => Edit::Remove,
    };
    Ok(Command::State(path, edit))
}

fn item_member(
    log: &LogName,
    at: &str,
    item: &str,
    images: &mut Vec<ImageBytes>,
) -> Result<Item, Refusal> {
    let mut intake = Intake::default();
    let refused = |invalid| invalid_item(&invalid, Place::default()).below(at);
    intake.take(log, item).map_err(refused)?;
    images.extend(intake.images);
    intake.items.pop().ok_or_else(|| invalid_field(at.to_owned(), "expected an item"))
}

fn path_member(at: &str, value: &str) -> Result<StatePath, Refusal> {
    let path = string(at, value)?;
    if path.is_empty() {
        return Ok(StatePath::root());
    }
    path.parse().map_err(|why| match why {
        InvalidPath::TooDeep { .. } => {
            let fault = Fault { pointer: Some(at.to_owned()), line: None, detail: why.to_string() };
            Refusal::new(Code::TooDeep, format!("{at}: {why}")).fault(fault)
        }
        InvalidPath::EmptySegment { .. } | InvalidPath::Dots { .. } | InvalidPath::Tilde { .. } => {
            invalid_field(at.to_owned(), why.to_string())
        }
    })
}

fn log_member(at: &str, value: &str) -> Result<LogName, Refusal> {
    let name = string(at, value)?;
    parse_log_path(&name).ok_or_else(|| {
        let known = "questions, requests, trajectories, screenshots or agents/{agent}/memory";
        invalid_field(at.to_owned(), format!("expected a log: {known}"))
    })
}

fn string(at: &str, value: &str) -> Result<String, Refusal> {
    if json::kind(value) != Kind::String {
        return Err(invalid_field(at.to_owned(), "expected a string"));
    }
    value_of(value, DEPTH_MAX, at)?;
    Ok(json::decode(value).into_owned())
}

fn whole(at: &str, value: &str) -> Result<u64, Refusal> {
    json::whole(value).ok_or_else(|| invalid_field(at.to_owned(), "expected a whole number"))
}
