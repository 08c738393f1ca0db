//! Messages to other agents.

use futures_util::FutureExt as _;

use super::logs::{appended, taken};
use crate::call::answer::Failure;
use crate::call::arguments::{missing, pointer};
use crate::call::{Call, Outcome, Running};
use blackboard_api::intake::items::Intake;
use blackboard_api::ops::logs as ops;
use blackboard_api::refusal::{Refusal, invalid_field};
use blackboard_board::json::Kind;
use blackboard_board::{AgentName, LogName, PlanRequest, json};

pub(crate) fn send_message(call: Call) -> Running {
    send(call).boxed()
}

async fn send(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let to: AgentName = call.arguments.parsed("to")?.ok_or_else(|| missing("to"))?;
    let item = message(&mut call)?;
    let log = LogName::Messages(to);
    let Intake { items, images, .. } = taken(log.clone(), item, "item").await?;
    let command = ops::append(log.clone(), items, PlanRequest::default(), None);
    let writing = call.writing(session, agent)?;
    let facts = writing.run(command, images, move |receipt| appended(&log, receipt)).await?;
    Ok(facts.into())
}

/// Takes a message as JSON text, with the thread that it belongs to and the message that it replies to.
fn message(call: &mut Call) -> Result<String, Refusal> {
    let mut item = call.arguments.need("item")?;
    let thread = call.arguments.string("thread")?.map(|thread| {
        let mut quoted = String::new();
        json::quote(&thread, &mut quoted);
        quoted
    });
    let reply_to = call.arguments.whole("reply_to", 1, u64::MAX)?.map(|seq| seq.to_string());
    let kind = json::kind(&item);
    if !matches!(kind, Kind::String | Kind::Object) {
        let why = "expected one message, an object or a string";
        return Err(invalid_field(pointer("item"), why));
    }
    if kind == Kind::String && (thread.is_some() || reply_to.is_some()) {
        item = format!("{{\"text\":{item}}}");
    }
    for (name, value) in [("thread", thread), ("reply_to", reply_to)] {
        let Some(value) = value else { continue };
        if json::get(&item, name).is_some() {
            return Err(invalid_field(pointer(name), "is a member of 'item' too; send it once"));
        }
        item = with_member(&item, name, &value);
    }
    Ok(item)
}

/// Adds a member to the text of an object that lacks it.
fn with_member(object: &str, name: &str, value: &str) -> String {
    let begun = object.trim_end().strip_suffix('}').unwrap_or(object).trim_end();
    let comma = if begun.ends_with('{') { "" } else { "," };
    format!("{begun}{comma}\"{name}\":{value}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_added_to_any_object() {
        for (object, with) in [
            ("{}", r#"{"reply_to":3}"#),
            ("{ }", r#"{"reply_to":3}"#),
            (r#"{"text":"{"} "#, r#"{"text":"{","reply_to":3}"#),
            (r#"{"text":{} }"#, r#"{"text":{},"reply_to":3}"#),
        ] {
            assert_eq!(with_member(object, "reply_to", "3"), with);
        }
    }
}
