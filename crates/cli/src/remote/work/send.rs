//! `blackboard send`

use std::borrow::Cow;
use std::collections::BTreeMap;

use clap::Args;
use hyper::Method;
use serde_json::value::RawValue;

use super::claim::object;
use super::messages::log;
use crate::Failure;
use crate::remote::access::Access;
use crate::remote::body::Written;
use crate::remote::input;
use crate::remote::place::quoted;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Repeat;
use crate::remote::server::Write;
use blackboard_address::{log_path, log_url};
use blackboard_board::{AgentName, SessionName};

/// Send a message to an agent
///
/// ITEM is JSON if it begins with {, [ or ", and otherwise text, which becomes {"text": …}. An array sends all of its
/// items or none. Without ITEM, or with -, it is read from standard input. The agent need not exist yet, and has the
/// message until it acknowledges it: 'blackboard messages' lists what waits for it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard send demo LinuxAgent 'The sales are in sales.csv' --agent HostAgent\n\
\x20 blackboard send demo HostAgent 'Thanks' --reply-to 3 --thread sales --agent LinuxAgent")]
pub struct Send {
    /// Session of the agent
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Agent that gets the message
    #[arg(value_name = "AGENT")]
    to: AgentName,

    /// Message, as JSON or as text; - reads it from standard input
    #[arg(
        value_name = "ITEM",
        allow_hyphen_values = true,
        default_value = "-",
        hide_default_value = true
    )]
    item: String,

    /// Thread that the message belongs to
    #[arg(long, value_name = "TEXT")]
    thread: Option<String>,

    /// Message that this one replies to, by its seq among your own
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(u64).range(1..))]
    reply_to: Option<u64>,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

impl Send {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let log = log(&self.to);
        let place = format!("{}/{}", self.session, log_path(&log));
        let members = [
            ("thread", self.thread.map(|thread| quoted(&thread))),
            ("reply_to", self.reply_to.map(|seq| seq.to_string())),
        ];
        self.access.run(async |server, screen| {
            let item = input::json_or_text(input::argument(self.item)?);
            let item = with_members(item, members)?;
            let write = Write::json(Method::POST, log_url(&self.session, &log), item);
            let received = server.write(write, &self.repeat.key()).await?;
            screen.show(&received, |written: Written| written.sentence(&place))
        })
    }
}

/// Adds the members that are given, after those of the item, whose text stays as it is.
fn with_members<const N: usize>(
    item: String,
    members: [(&str, Option<String>); N],
) -> Result<String, Refusal> {
    let given = members.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let given: Vec<(&str, String)> = given.collect();
    if given.is_empty() {
        return Ok(item);
    }
    let added: Vec<String> =
        given.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let added = added.join(",");
    if let Ok(text) = serde_json::from_str::<String>(&item) {
        return Ok(object([Some(format!("\"text\":{}", quoted(&text))), Some(added)]));
    }
    let own = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(&item);
    let own = own.ok().filter(|own| !given.iter().any(|(name, _)| own.contains_key(*name)));
    let Some((own, open)) = own.zip(item.trim_end().strip_suffix('}')) else {
        return Err(Refusal::NoMembers);
    };
    let comma = if own.is_empty() { "" } else { "," };
    Ok(format!("{open}{comma}{added}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_after_those_of_the_item() {
        let with = |item: &str| {
            let members = [("thread", Some("\"t\"".to_owned())), ("reply_to", None)];
            with_members(item.to_owned(), members)
        };
        assert_eq!(with(r#""a\nb""#).unwrap(), r#"{"text":"a\nb","thread":"t"}"#);
        assert_eq!(with("{}\n").unwrap(), r#"{"thread":"t"}"#);
        assert_eq!(with(r#"{"n": 1.0}"#).unwrap(), r#"{"n": 1.0,"thread":"t"}"#);
        for item in ["[{}]", "{", r#"{"thread":1}"#, "3"] {
            assert!(matches!(with(item), Err(Refusal::NoMembers)), "{item}");
        }
        let none = with_members("[{}]".to_owned(), [("thread", None)]);
        assert_eq!(none.unwrap(), "[{}]");
    }
}
