//! `blackboard token`

use std::io::{self, Write};

use clap::{Args, Subcommand};

use super::directory::{Answering, Directory, Unanswered};
use super::{Failure, note};
use crate::auth::{Scope, SessionPattern};
use crate::board::{AgentName, TokenName, Ttl};
use crate::control::{AskError, Line, MadeToken, Request, TokenLine};
use crate::printable;
use crate::printable::plain;

/// Make, list and revoke tokens, also while a server runs: what is done takes effect at once
///
/// From the first token on, every request to a server of this data directory needs one.
#[derive(Args, Debug)]
pub(super) struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

/// Make a token, and print it: it is kept nowhere, and cannot be shown again
#[derive(Args, Debug)]
struct Create {
    /// What it is called, for those who list and revoke it
    #[arg(long, env = "BLACKBOARD_TOKEN_NAME", value_name = "NAME")]
    name: TokenName,

    /// The agent as which it writes, always; it does not see what other agents remember without memory:read
    #[arg(long, env = "BLACKBOARD_TOKEN_AGENT", value_name = "AGENT")]
    agent: Option<AgentName>,

    /// Which sessions it reaches, * for any characters; may be given several times. Others do not exist for it
    #[arg(long, env = "BLACKBOARD_TOKEN_SESSIONS", value_name = "PATTERN", default_value = "*")]
    sessions: Vec<SessionPattern>,

    /// What it may do, separated by commas: read, write, memory:read, or admin for everything
    #[arg(
        long,
        env = "BLACKBOARD_TOKEN_SCOPES",
        value_name = "SCOPE,…",
        value_delimiter = ',',
        default_value = "read,write"
    )]
    scopes: Vec<Scope>,

    /// How long it lives, such as 12h or 30d; until it is revoked if absent
    #[arg(long, env = "BLACKBOARD_TOKEN_EXPIRES", value_name = "DURATION")]
    expires: Option<Ttl>,

    #[command(flatten)]
    directory: Directory,
}

/// List all tokens, the oldest first: not what they are, but what they may do
#[derive(Args, Debug)]
struct List {
    /// A JSON object a line, for programs
    #[arg(long, env = "BLACKBOARD_TOKEN_JSON")]
    json: bool,

    #[command(flatten)]
    directory: Directory,
}

/// End a token: requests with it are refused, and streams that it has open end
#[derive(Args, Debug)]
struct Revoke {
    /// Its name or its id
    #[arg(value_name = "NAME|ID")]
    token: String,

    #[command(flatten)]
    directory: Directory,
}

#[derive(Debug, thiserror::Error)]
enum Unfinished {
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("cannot print")]
    Output(#[from] io::Error),
    #[error("the answer cannot be read: is the server of another version?")]
    Unreadable(#[from] serde_json::Error),
}

impl Token {
    pub(super) fn run(self) -> Result<(), Failure> {
        let done = match self.command {
            Command::Create(create) => create.run(),
            Command::List(list) => list.run(),
            Command::Revoke(revoke) => revoke.run(),
        };
        done.map_err(Failure::failed)
    }
}

impl Create {
    /// The token alone goes to standard output, so that a script can take it.
    fn run(self) -> Result<(), Unfinished> {
        let Self { name, agent, sessions, scopes, expires, directory } = self;
        let request = Request::CreateToken { name, scopes, sessions, agent, expires };
        let (lines, done) = asked(&directory.answering()?, &request)?;
        let made: MadeToken = serde_json::from_str(&done)?;
        writeln!(io::stdout(), "{}", made.token)?;
        for line in lines {
            note(format_args!("made {}; it is not shown again", told(&line)));
        }
        Ok(())
    }
}

impl List {
    fn run(self) -> Result<(), Unfinished> {
        self.directory.present()?;
        let (lines, _) = asked(&self.directory.telling()?, &Request::Tokens {})?;
        let mut out = io::stdout().lock();
        if self.json {
            for line in lines {
                writeln!(out, "{}", plain(&serde_json::to_string(&line)?))?;
            }
            return Ok(());
        }
        if lines.is_empty() {
            note("there are no tokens: whoever reaches the server may do everything");
        }
        for line in lines {
            writeln!(out, "{}  {}", line.id, printable::line(&told(&line)))?;
        }
        Ok(())
    }
}

impl Revoke {
    fn run(self) -> Result<(), Unfinished> {
        self.directory.present()?;
        let request = Request::RevokeToken { token: self.token };
        let (lines, _) = asked(&self.directory.answering()?, &request)?;
        for line in lines {
            note(format_args!("revoked {}", line.name));
        }
        Ok(())
    }
}

/// The lines of an answer, and what its last one tells.
fn asked(answering: &Answering, request: &Request) -> Result<(Vec<TokenLine>, String), Unfinished> {
    let (mut asking, mut lines) = (answering.ask(request)?, Vec::new());
    loop {
        match asking.line()? {
            Line::Part(line) => lines.push(serde_json::from_slice(&line)?),
            Line::Done(told) => return Ok((lines, told)),
        }
    }
}

/// A token in a line for a person.
fn told(line: &TokenLine) -> String {
    let scopes: Vec<_> = line.scopes.iter().map(|scope| scope.as_str()).collect();
    let sessions: Vec<_> = line.sessions.iter().map(SessionPattern::as_str).collect();
    let agent = line.agent.as_ref().map(|agent| format!(" as {agent}"));
    let ends = match (line.state.as_str(), &line.ends_at) {
        ("live", Some(at)) => format!(", until {at}"),
        ("live", None) => String::new(),
        (state, Some(at)) => format!(", {state} {at}"),
        (state, None) => format!(", {state}"),
    };
    format!(
        "{}: {} on {}{}{ends}",
        line.name,
        scopes.join(","),
        sessions.join(" "),
        agent.unwrap_or_default(),
    )
}
