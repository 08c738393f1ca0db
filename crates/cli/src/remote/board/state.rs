//! `blackboard state`

use clap::{Args, Subcommand};
use hyper::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::input;
use crate::remote::place::{ValuePlace, json, quoted};
use crate::remote::query::Query;
use crate::remote::repeat::Repeat;
use crate::remote::server::Write;
use blackboard_address::state_url;
use blackboard_board::Ttl;
use blackboard_printable::line;

/// Read and write values of a session's state
///
/// A value is named by SESSION/path/to/it; SESSION alone is the whole state. In a name ~1 is / and ~0 is ~.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard state set demo/devices/linux/ready true\n\
\x20 blackboard state get demo/devices\n\
\x20 blackboard state add demo/pages 1")]
pub struct State {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Get(Get),
    Set(Set),
    Add(Add),
    Rm(Rm),
}

/// Print a value as JSON
#[derive(Args, Debug)]
struct Get {
    /// Value, as SESSION/path
    #[arg(value_name = "SESSION[/PATH]")]
    place: ValuePlace,

    /// Show the state as it was at this revision or checkpoint
    #[arg(long, value_name = "REVISION|CHECKPOINT")]
    at: Option<String>,

    #[command(flatten)]
    access: Access,
}

/// Set a value
#[derive(Args, Debug)]
struct Set {
    /// Value to set, as SESSION/path
    #[arg(value_name = "SESSION[/PATH]")]
    place: ValuePlace,

    /// Value as JSON, or as text with --string; - reads it from standard input
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,

    /// Take the value as text
    #[arg(long)]
    string: bool,

    /// Delete the value after this time, such as 30s, unless it is set again
    #[arg(long, value_name = "DURATION")]
    ttl: Option<Ttl>,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// Add to a number on the server, so that no concurrent addition is lost
#[derive(Args, Debug)]
struct Add {
    /// Number to add to, as SESSION/path
    #[arg(value_name = "SESSION/PATH")]
    place: ValuePlace,

    /// Number to add, as JSON; below 0 it subtracts
    #[arg(value_name = "NUMBER", allow_hyphen_values = true)]
    number: String,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// Delete a value and everything below it
#[derive(Args, Debug)]
struct Rm {
    /// Value to delete, as SESSION/path
    #[arg(value_name = "SESSION[/PATH]")]
    place: ValuePlace,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// The outcome of an addition.
#[derive(Deserialize)]
struct Sum<'a> {
    #[serde(borrow)]
    value: &'a RawValue,
}

impl State {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Get(get) => get.run(),
            Command::Set(set) => set.run(),
            Command::Add(add) => add.run(),
            Command::Rm(rm) => rm.run(),
        }
    }
}

impl Get {
    fn run(self) -> Result<(), Failure> {
        let query = Query::of(address(&self.place)).with("at", self.at);
        self.access.run(async |server, screen| {
            let received = server.get(&query.address()).await?;
            screen.json(&received.text)
        })
    }
}

impl Set {
    fn run(self) -> Result<(), Failure> {
        let address = Query::of(address(&self.place)).with("ttl", self.ttl).address();
        self.access.write(self.repeat, async |_| {
            let value = input::argument(self.value)?;
            let value = if self.string { quoted(&value) } else { json("the value", value)? };
            Ok(Write::json(Method::PUT, address, value))
        })
    }
}

impl Add {
    fn run(self) -> Result<(), Failure> {
        let address = address(&self.place);
        self.access.run(async |server, screen| {
            let number = json("the number", self.number)?;
            let write = Write::json(Method::PATCH, address, format!("{{\"add\":{number}}}"));
            let received = server.write(write, &self.repeat.key()).await?;
            screen.show(&received, |sum: Sum<'_>| format!("{}\n", line(sum.value.get())))
        })
    }
}

impl Rm {
    fn run(self) -> Result<(), Failure> {
        let address = address(&self.place);
        self.access.write(self.repeat, async |_| Ok(Write::delete(address)))
    }
}

fn address(place: &ValuePlace) -> String {
    state_url(&place.session, &place.path)
}
