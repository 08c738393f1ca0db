//! Kinds of members that name something: a path of the state, a log, an agent, an entry, a point in history.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::fields::{string, text_of};
use super::input::{Kind, kinds, named};
use super::query::{Of, Shaped};
use crate::refusal::{Fault, Refusal, invalid_field};
use crate::schema::{from, pattern, point, with_example};
use blackboard_address::parse_log_path;
use blackboard_board::{
    AgentName, Code, InvalidPath, LogName, NAME_BYTES_MAX, Revision, StatePath, json,
};
use blackboard_service::At;

/// A name, which its type parses.
impl<T: Shaped> Kind for Of<T> {
    type Value = T;

    fn read(at: &str, value: &str) -> Result<T, Refusal> {
        if json::kind(value) != json::Kind::String {
            return Err(invalid_field(at.to_owned(), "expected a name, as a string"));
        }
        let name = text_of(value, at)?.parse();
        name.map_err(|why: T::Err| invalid_field(at.to_owned(), why.to_string()))
    }

    fn schema() -> RefOr<Schema> {
        T::schema()
    }
}

kinds! {
    /// A point in a session's history.
    Point: At = point_member, point();
    /// A path in the state.
    PathText: StatePath = path_member, named::<PathText>(&[]), naming PathText;
    /// A log, by its path within the session.
    LogText: LogName = log_member, named::<LogText>(&[]), naming LogText;
    /// An agent's name.
    AgentText: AgentName = agent_member, named::<AgentText>(&[]), naming AgentText;
    /// A whole number: the place of an entry, a count, a revision.
    Whole: u64 = whole_member, from(0);
}

impl ToSchema for PathText {}
impl ToSchema for LogText {}
impl ToSchema for AgentText {}

impl PartialSchema for PathText {
    fn schema() -> RefOr<Schema> {
        let told = "A path in the state: keys separated by `/`. In a key `~1` is `/` and `~0` is `~` (RFC 6901). The empty \
            path is the\nwhole state.";
        let mut path = pattern(r"^(([A-Za-z0-9_-]|~[01])+(/([A-Za-z0-9_-]|~[01])+)*)?$");
        path.description = Some(told.to_owned());
        with_example(path, "tasks/t1/status").into()
    }
}

impl PartialSchema for LogText {
    fn schema() -> RefOr<Schema> {
        let told = format!(
            "`{}`, `agents/{{agent}}/memory` or `agents/{{agent}}/messages`.",
            logs("`, `")
        );
        let owned = "agents/[A-Za-z0-9_~-]+/(memory|messages)";
        let log = pattern(&format!("^({}|{owned})$", logs("|")));
        ObjectBuilder::from(log).description(Some(told)).into()
    }
}

impl PartialSchema for AgentText {
    fn schema() -> RefOr<Schema> {
        let mut agent = pattern("^[A-Za-z0-9_~-]+$");
        agent.description = Some("An agent's name.".to_owned());
        agent.max_length = Some(NAME_BYTES_MAX);
        with_example(agent, "AppAgent").into()
    }
}

fn point_member(at: &str, value: &str) -> Result<At, Refusal> {
    let refused = || invalid_field(at.to_owned(), "expected a revision, or a checkpoint's name");
    match json::kind(value) {
        json::Kind::String => Of::<At>::read(at, value),
        // Any larger number is a revision that does not exist.
        json::Kind::Number if value.bytes().all(|byte| byte.is_ascii_digit()) => {
            value.parse().map_err(|_| refused())
        }
        json::Kind::Number => {
            json::whole(value).map(|whole| At::Revision(Revision(whole))).ok_or_else(refused)
        }
        json::Kind::Null | json::Kind::Bool | json::Kind::Array | json::Kind::Object => {
            Err(refused())
        }
    }
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

/// Returns the names of the board's logs.
fn logs(separator: &str) -> String {
    LogName::BOARD.map(|log| log.to_string()).join(separator)
}

fn log_member(at: &str, value: &str) -> Result<LogName, Refusal> {
    parse_log_path(&string(at, value)?).ok_or_else(|| {
        let why = format!(
            "expected a log: {}, agents/{{agent}}/memory or agents/{{agent}}/messages",
            logs(", ")
        );
        invalid_field(at.to_owned(), why)
    })
}

fn agent_member(at: &str, value: &str) -> Result<AgentName, Refusal> {
    let name = string(at, value)?.parse();
    name.map_err(|why| invalid_field(at.to_owned(), format!("{why}")))
}

fn whole_member(at: &str, value: &str) -> Result<u64, Refusal> {
    json::whole(value).ok_or_else(|| invalid_field(at.to_owned(), "expected a whole number"))
}
